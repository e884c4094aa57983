/*
 * One of N parts of the keys: --part i/N.
 *
 * For the exact verbs, the lines of other parts are taken out of the input as
 * it is read. A key belongs to the part in which its XXH3 hash with seed 0
 * lies, of N equal ranges; so equal keys are in one part, in all files.
 */
#ifndef CALYX_TOOL_PART_LINES_H
#define CALYX_TOOL_PART_LINES_H

#include "input/lines.h"
#include "input/records.h"

struct part_choice {
    uint32_t number, count; /* from 1 to count; 0: all keys */
};

/* "3/16", into a struct part_choice. */
void parse_part(const struct verb_option *option, const char *value);

/* --part for verbs that select lines. */
extern const struct group part_lines_group;

/* The part of a hash, from 0 to count - 1, by its high bits. */
uint32_t part_of_hash(uint64_t hash, uint32_t count);

/* Is there a --part? */
bool selects_part(void);

/* Take the lines of other parts out of a block. Nothing if there is no --part.
 */
void select_part_lines(struct text_block *block, struct key_batch *batch);

#endif
