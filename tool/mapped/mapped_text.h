/*
 * Plain files, mapped one behind the other, so that one number says where a
 * line is: its place, a byte of all of them. No place is 0.
 */
#ifndef CALYX_TOOL_MAPPED_TEXT_H
#define CALYX_TOOL_MAPPED_TEXT_H

#include "exact/candidates.h"

struct mapped_file {
    uint64_t start, end; /* places */
    size_t reading;
};

struct mapped_text {
    char *bytes; /* by place */
    uint64_t size;
    struct mapped_file *files; /* those of all readings, in their order */
    size_t count;
};

/* Address space for files of this many bytes together. */
uint64_t mapped_text_size(size_t files, uint64_t bytes);

/* False if they cannot be mapped; they may still be read. */
bool mapped_text_open(struct mapped_text *text, const struct reading *readings,
                      size_t count);
void mapped_text_close(struct mapped_text *text);

/* The file of a place. */
const struct mapped_file *mapped_file_of(const struct mapped_text *text,
                                         uint64_t place);

/* Is this the whole line there? */
bool mapped_line_is(const struct mapped_text *text, uint64_t place,
                    const calyx_key *line);

/* Prefetch the first bytes there, if this many are compared. */
static inline void mapped_line_prefetch(const struct mapped_text *text,
                                        uint64_t place, size_t size) {
    enum { CACHE_LINE = 64 };
    __builtin_prefetch(text->bytes + place);
    if (place % CACHE_LINE + size >= CACHE_LINE)
        __builtin_prefetch(text->bytes + place + CACHE_LINE);
}

#endif
