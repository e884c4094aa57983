/*
 * Bytes from a file, a pipe or standard input, decompressed if their first
 * bytes say gzip or zstd.
 */
#ifndef CALYX_TOOL_SOURCE_H
#define CALYX_TOOL_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "input/look.h"

struct byte_source;

/* From here on, the regular file that standard output goes to is not read as
 * lines: its own output would come back to it without an end. Standard input
 * that is at its end is empty instead. */
void source_refuse_output(void);
bool source_is_output(const struct byte_source *source);
bool file_is_output(const char *path);

/* "-" is standard input. If it cannot be opened, source_try returns NULL and
 * sets errno, and source_open fails. */
struct byte_source *source_try(const char *path);
struct byte_source *source_open(const char *path);

/* Look at the first bytes, unpacked, before any is read. A list is none if it
 * is a filter, is packed in a way that source_read does not know, or is UTF-16
 * or UTF-32: false, with source_trouble. The byte order mark of UTF-8 is no
 * part of the first line, and skipped. */
bool source_expect_lines(struct byte_source *source);

/* Is it of this kind? The second is about a regular file: of a pipe, the bytes
 * that are looked at would be gone. */
bool source_is(struct byte_source *source, enum look_kind kind);
bool file_is(const char *path, enum look_kind kind);

/* Fails if it is no filter, and says what it looks like. */
void source_expect_filter(struct byte_source *source);

/* For messages: the path, or "standard input". */
const char *source_name(const struct byte_source *source);

/* The next bytes, as many as are available without waiting, at most `size`; 0
 * at the end. -1 on an error, which source_trouble describes. A regular file
 * that was truncated or overwritten since it was opened or noted is an error,
 * reported at its end; one that has grown is not. */
ssize_t source_read(struct byte_source *source, void *buffer, size_t size);
const char *source_trouble(const struct byte_source *source);

/* The next `size` bytes, or as many as there are. Fails on an error. */
size_t source_fill(struct byte_source *source, void *bytes, size_t size);

/* Would source_read return at once? */
bool source_ready(const struct byte_source *source);

/* Bytes of the file that have been read, before decompression, and its size; 0
 * if unknown. */
uint64_t source_done(const struct byte_source *source);
uint64_t source_size(const struct byte_source *source);

/* Of a file that is read as it is, or that is stored: the offset of the next
 * byte. */
uint64_t source_offset(const struct byte_source *source);

/* A regular file that is read as it is: it can be mapped, or read twice. */
bool source_is_plain_file(struct byte_source *source);

void source_close(struct byte_source *source);

/* ---- Files that are read several times ----------------------------------- */

/* Note what regular files are, and later fail if one is not the same any more.
 * It may have grown, as a log does. */
void note_files(int count, char **files);
void expect_same_files(void);

/* From here on, of noted files that are not packed only the bytes are read that
 * they had when they were noted. So all passes read the same. */
void read_noted_bytes_only(void);

/* Has a file been written since it was noted? Not only at its end, maybe. */
bool file_was_touched(const char *path);

/* The bytes of a file that are read: fewer than it has if it has grown. */
uint64_t bytes_to_read(const struct stat *is);

/* ---- Text that is stored ----------------------------------------------------
 *
 * The bytes of sources, decompressed, stay in memory as they are read, one
 * source after the other. So they can be looked at later, and a pipe can be
 * read again from its start. */

/* Places of one source: offsets in the text. The start is UINT64_MAX before the
 * source is opened; the end moves while it is read. */
struct text_range {
    _Atomic uint64_t start, end;
};

struct kept_text {
    char *bytes; /* NULL: nothing is stored */
    uint64_t room;
    struct text_range *ranges;    /* of the sources, in the order of opening */
    struct byte_source **sources; /* NULL: could not be opened */
    size_t count, opened;         /* sources: at most, so far */
    size_t next;                  /* source to be opened */
    _Atomic uint64_t end;         /* of the last source */
    bool again;                   /* sources are read again */
    uint64_t unmapped; /* bytes at the beginning: they were read again */
    _Atomic bool full; /* a source had more bytes than there is room for: what
                          was read of it is not whole */
};

/* For this many sources. False if there is no address space for `room` bytes;
 * then nothing is stored. */
bool kept_text_open(struct kept_text *text, size_t sources, uint64_t room);
void kept_text_close(struct kept_text *text);

/* From now on the sources that are opened, in the same order, begin at their
 * start again, and go on after what is stored. No more is stored, and what is
 * stored is freed as it is read. */
void kept_text_again(struct kept_text *text);

/* Like source_try, for a source that is stored. source_close only ends reading.
 */
struct byte_source *kept_source_try(struct kept_text *text, const char *path);

#endif
