/*
 * One bit for each line of the input.
 *
 * Regular files can be read again. So lines need not be stored until all lines
 * before them are known, nor be sorted: a last pass over the files prints those
 * with a mark, or those without.
 */
#ifndef CALYX_TOOL_MARKS_H
#define CALYX_TOOL_MARKS_H

#include <stdatomic.h>

#include "input/pipeline.h"

enum { MARKS_IN_WORD = 64 };
struct line_marks {
    uint64_t lines;
    uint64_t next;  /* the first line that was not considered yet */
    uint64_t first; /* of those to print */
    uint64_t read;  /* lines before the current block */
    bool marked;    /* print the marked lines, not the others */
    /* Hashes of the text of the blocks that are printed, by `hasher`: */
    const uint64_t *sums;
    uint64_t sum_count;
    calyx_filter *hasher;
    _Atomic uint64_t bits[];
};

struct line_marks *marks_new(uint64_t lines);
void marks_free(struct line_marks *marks); /* NULL is fine */
uint64_t marks_bytes(uint64_t lines);      /* of memory */

/* Any thread. */
void marks_set(struct line_marks *marks, uint64_t line);
void marks_clear(struct line_marks *marks, uint64_t line);
static inline bool marks_has(const struct line_marks *marks, uint64_t line) {
    return atomic_load_explicit(&marks->bits[line / MARKS_IN_WORD],
                                memory_order_relaxed) >>
               line % MARKS_IN_WORD &
           1;
}

/* Set a mark, for marks that no other thread uses now. Without a lock on the
 * cache line, several of them overlap. */
static inline void marks_set_alone(struct line_marks *marks, uint64_t line) {
    _Atomic uint64_t *const word = &marks->bits[line / MARKS_IN_WORD];
    atomic_store_explicit(word,
                          atomic_load_explicit(word, memory_order_relaxed) |
                              UINT64_C(1) << line % MARKS_IN_WORD,
                          memory_order_relaxed);
}

/* Mark what `more` marks, too. */
void marks_join(struct line_marks *marks, const struct line_marks *more);

/* The marked lines from `first` on. */
uint64_t marks_count(const struct line_marks *marks, uint64_t first);

/* Begin to print lines, from `first` on: those that are marked, or those that
 * are not. */
void marks_start(struct line_marks *marks, uint64_t first, bool marked);

/* Output the lines of a block that has block->ends, after the lines of earlier
 * blocks. To be called in order. */
void marks_print_block(struct line_marks *marks, struct text_block *block);

/* Print all lines of these files that have not been considered yet. Fails if
 * their text does not have the hashes marks->sums. Returns the bytes that were
 * read: 0 if there are none. */
uint64_t marks_print(struct line_marks *marks, int count, char **files,
                     struct output *output);

#endif
