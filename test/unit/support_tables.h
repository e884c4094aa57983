/* What tests of tables of fingerprints share: hashes, and growth by hand. */
#ifndef CALYX_TEST_SUPPORT_TABLES_H
#define CALYX_TEST_SUPPORT_TABLES_H

#include "engine/table_engine.h"
#include "support.h"

/* Rates that come to all widths, for i from 0 to 18. */
double rate_of(int i);

/* A hash for each number. */
uint64_t mixed(uint64_t i);

calyx_status add_hash(calyx_filter *f, uint64_t hash);
bool has_hash(const calyx_filter *f, uint64_t hash);

/* The lowest hash of position c of p, in the first group. */
uint64_t border(const struct bucket_table *t, uint64_t c, uint64_t p);

/* Add hashes mixed(i + 1) and so on until the table has come to a stage.
 * Returns the last i. */
uint64_t add_until_stage(calyx_filter *f, uint32_t number, uint64_t i);

/* Add a segment, and move all groups into it. */
void grow_one_stage(calyx_filter *f);

#endif
