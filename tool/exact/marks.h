/*
 * One bit for each line of the input.
 *
 * Regular files can be read again. So lines need not be stored until all lines
 * before them are known, nor be sorted: a last pass over the files prints those
 * with a mark, or those without.
 */
#ifndef CALYX_TOOL_MARKS_H
#define CALYX_TOOL_MARKS_H

#include "input/pipeline.h"

struct line_marks;

struct line_marks *marks_new(uint64_t lines);
void marks_free(struct line_marks *marks); /* NULL is fine */
uint64_t marks_bytes(uint64_t lines);      /* of memory */
uint64_t marks_lines(const struct line_marks *marks);

/* Any thread. */
void marks_set(struct line_marks *marks, uint64_t line);
void marks_clear(struct line_marks *marks, uint64_t line);
bool marks_has(const struct line_marks *marks, uint64_t line);

/* The same for marks that no other thread uses now: faster. */
void marks_set_alone(struct line_marks *marks, uint64_t line);

/* Mark what `more` marks, too. */
void marks_join(struct line_marks *marks, const struct line_marks *more);

/* The marked lines from `first` on. */
uint64_t marks_count(const struct line_marks *marks, uint64_t first);

/* Begin to print lines, from `first` on: those that are marked, or those that
 * are not. */
void marks_start(struct line_marks *marks, uint64_t first, bool marked);

/* Output the lines of a block that has block->ends, after those of earlier
 * blocks. To be called in order. */
void marks_print_block(struct line_marks *marks, struct text_block *block);

/* Print all lines of these files that have not been considered yet. Returns the
 * bytes that were read: 0 if there are none. */
uint64_t marks_print(struct line_marks *marks, int count, char **files,
                     struct output *output);

#endif
