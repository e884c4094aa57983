/*
 * How much memory the exact verbs may take, and where temporary files go: -S,
 * -T and --dry-run.
 */
#ifndef CALYX_TOOL_BUDGET_H
#define CALYX_TOOL_BUDGET_H

#include "tool.h"

extern const struct group budget_group;

/* Bytes, from -S; or half of memory_left when this is first called. */
uint64_t budget(void);

/* The budget less `taken` bytes; at least a quarter, since the smallest filter
 * may exceed the budget of a test. */
uint64_t budget_without(uint64_t taken);

/* Pages of zeros, which take memory when they are first touched; or fail. */
void *map_memory(uint64_t size);

bool only_plans(void); /* --dry-run */

/* --assume: files are not looked at, nor need they exist. */
bool assumes_lines(void);

/* What is known of the lines of a file before it is read. */
struct sample {
    bool rereadable; /* a regular file */
    bool plain;      /* and not packed: cheap to read again */
    uint64_t bytes;  /* about, decompressed; 0 if unknown */
    uint64_t lines;  /* about */
    double seconds;  /* to read it, about */
};
struct sample sample_file(const char *path);
struct sample sample_files(int count, char **files); /* as one; none: a pipe */
void sample_add(struct sample *sum, const struct sample *more);

#endif
