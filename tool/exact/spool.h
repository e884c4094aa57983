/*
 * Stores hashes until their number is known.
 *
 * The size of a filter depends on the number of distinct keys. If that is
 * unknown, the hashes go here: 8 bytes each, the first million in memory and
 * the rest in a nameless file in $TMPDIR, while a sketch of 64 KiB estimates
 * how many are distinct. Then the filter is made, and the hashes are read back.
 * So the input is read once, and may be a pipe.
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
