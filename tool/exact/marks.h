/*
 * Lines of the input that are not to be printed: one bit for each.
 *
 * Regular files can be read again. So lines need not be stored until all lines
 * before them are known, nor be sorted: a last pass over the files prints those
 * without a mark.
 */
#ifndef CALYX_TOOL_MARKS_H
#define CALYX_TOOL_MARKS_H

#include "input/pipeline.h"

struct line_marks;

struct line_marks *marks_new(uint64_t lines);
void marks_free(struct line_marks *marks);
uint64_t marks_bytes(uint64_t lines); /* of memory */
uint64_t marks_lines(const struct line_marks *marks);

/* Mark a line, once. Any thread. */
void marks_set(struct line_marks *marks, uint64_t line);
uint64_t marks_count(const struct line_marks *marks);

/* Output the lines of a block that has block->ends, after those of earlier
 * blocks. To be called in order. */
void marks_print_block(struct line_marks *marks, struct text_block *block);

/* Print all lines that have not been put out yet; false if there are none, and
 * nothing had to be read. */
bool marks_print(struct line_marks *marks, int count, char **files,
                 struct output *output);

/* Print all lines with a mark, instead. */
bool marks_print_marked(struct line_marks *marks, int count, char **files,
                        struct output *output);

#endif
