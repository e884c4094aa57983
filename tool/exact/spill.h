/*
 * Records in temporary files, for what does not fit into memory.
 *
 * A spill is a file of records in the order of their sequence numbers, written
 * once, then read once. It has no name, so that it goes with the process,
 * however that ends: nothing has to be cleaned up, not even after kill -9.
 * It is not packed.
 */
#ifndef CALYX_TOOL_SPILL_H
#define CALYX_TOOL_SPILL_H

#include "tool.h"

struct record {
    uint64_t sequence; /* its place in the input */
    uint64_t number;   /* whatever belongs to it, such as a count */
    calyx_key key, line;
    bool has_line; /* else the line is the key */
};

/* -T DIR */
void parse_spill_folder(const struct verb_option *option, const char *value);
const char *spill_folder(void);

/* A new file without a name in it, for reading and writing; -1 and errno if
 * there can be none. */
int spill_file(void);

/* The same, or fail. */
int spill_file_or_fail(void);

/* Write to one, or read back what was written; or fail. Any thread. */
void spill_write_at(int fd, const void *bytes, size_t size, uint64_t place);
void spill_read_at(int fd, void *bytes, size_t size, uint64_t place);

/* Fail now if there can be no file there. */
void expect_spill(void);

/* No file is made before a buffer is full. */
struct spill *spill_new(size_t buffer);
void spill_put(struct spill *spill, const struct record *record);

/* From writing to reading. */
void spill_rewind(struct spill *spill, size_t buffer);

/* The next records, 1 to `most`; 0 at the end. They are in the buffer until the
 * next call. */
size_t spill_read(struct spill *spill, struct record *records, size_t most);

uint64_t spill_size(const struct spill *spill);    /* bytes put into it */
uint64_t spill_records(const struct spill *spill); /* and records */
void spill_close(struct spill *spill);             /* NULL is fine */

/* Bytes written to files by all spills, and the most that there were at once.
 */
uint64_t spill_written(void);
uint64_t spill_peak(void);

/* This many of them have gone with their file. */
void spill_released(uint64_t bytes);

#endif
