/*
 * Hashes kept until it is known how many there are.
 *
 * The size of a filter depends on the number of different keys. Those who do
 * not know it put the hashes here: 8 bytes each, the first million in memory
 * and the rest in a file without a name in $TMPDIR, while a sketch of 64 KiB
 * estimates how many are different. Then they make the filter, and take the
 * hashes out again. So the input is read once, and may be a pipe.
 */
#ifndef CALYX_TOOL_SPOOL_H
#define CALYX_TOOL_SPOOL_H

#include "tool.h"

struct spool *spool_open(void);
void spool_put(struct spool *spool, const uint64_t *hashes, size_t n);

/* Put a word that is no hash among them. It is handed out in its place, and not
 * counted. */
void spool_mark(struct spool *spool, uint64_t word);

/* How many are different: right to 0.4 % on average, and 1.6 % for sure, which
 * is to say but for one time in 12 000. */
double spool_distinct(const struct spool *spool);

/* Hand out all hashes in order. Once. */
void spool_take(struct spool *spool,
                void (*take)(void *context, const uint64_t *hashes, size_t n),
                void *context);
void spool_close(struct spool *spool);

#endif
