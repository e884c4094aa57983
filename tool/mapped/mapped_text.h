/*
 * The text of all files, one after another, so that one number says where a
 * line is: its place, a byte of all of them. No place is 0. Plain files are
 * mapped. If one file is a pipe or compressed, the text of all is stored in
 * memory as it is read.
 */
#ifndef CALYX_TOOL_MAPPED_TEXT_H
#define CALYX_TOOL_MAPPED_TEXT_H

#include "exact/method.h"
#include "input/source.h"

struct mapped_text {
    char *bytes; /* by place */
    uint64_t size;
    struct text_range *ranges; /* of the files of all readings, in order */
    size_t *readings;          /* of these files */
    size_t count;
    struct kept_text *kept; /* NULL: mapped */
};

/* Address space for files of this many bytes together. */
uint64_t mapped_text_size(size_t files, uint64_t bytes);

/* Number of files: no names are standard input. */
size_t files_of_readings(const struct file_group *readings, size_t count);

/* Map plain files. False if they cannot be mapped; they may still be read. */
bool mapped_text_open(struct mapped_text *text,
                      const struct file_group *readings, size_t count);

/* Or keep up to `room` bytes, in `kept`. False if there is no room. */
bool mapped_text_keep(struct mapped_text *text,
                      const struct file_group *readings, size_t count,
                      struct kept_text *kept, uint64_t room);

/* `kept` is not closed. */
void mapped_text_close(struct mapped_text *text);

/* The file of a place, a number. */
size_t mapped_file_of(const struct mapped_text *text, uint64_t place);

/* The line at a place. */
calyx_key mapped_line(const struct mapped_text *text, uint64_t place);

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
