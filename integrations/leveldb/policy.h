/*
 * Calyx as the filter policy of LevelDB, through LevelDB's C interface:
 *
 *     leveldb_filterpolicy_t *policy = calyx_leveldb_policy(10, &why);
 *     leveldb_options_set_filter_policy(options, policy);
 *     ... open, use and close databases ...
 *     leveldb_filterpolicy_destroy(policy);
 *
 * LevelDB keeps a small filter beside each block of keys in its files, and asks
 * it before it reads the block.
 */
#ifndef CALYX_LEVELDB_POLICY_H
#define CALYX_LEVELDB_POLICY_H

#include <calyx/calyx.h>
#include <leveldb/c.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A policy whose filters are as large, to the byte, as the filters of LevelDB's
 * own with as many bits a key, 1 to 32. NULL with the reason in `why`, if asked
 * for, when it cannot be made. Any number of threads and databases may use one
 * policy. A database may be opened with other bits a key than it was written
 * with: each filter contains its own parameters. */
leveldb_filterpolicy_t *calyx_leveldb_policy(int bits_per_key,
                                             calyx_error *why);

#ifdef __cplusplus
}
#endif
#endif
