/* The configuration: by CONFIG SET, the server's file, or load arguments. */
#ifndef CALYX_MODULE_SETTINGS_H
#define CALYX_MODULE_SETTINGS_H

#include "server/api.h"

/* Of a Bloom filter that nobody reserves. */
#define MOST_INITIAL_SIZE (1LL << 30)
/* Of a cuckoo filter that clients make. */
#define MOST_CF_CAPACITY (1LL << 30)

struct settings {
    double error;                /* bf-error-rate       */
    long long capacity;          /* bf-initial-size     */
    long long expansion;         /* bf-expansion-factor */
    long long cf_bucket_size;    /* cf-bucket-size      */
    long long cf_capacity;       /* cf-initial-size     */
    long long cf_iterations;     /* cf-max-iterations   */
    long long cf_expansion;      /* cf-expansion-factor */
    long long cf_max_expansions; /* cf-max-expansions   */
    int layout;       /* calyx-layout: an index of `layouts`             */
    int cf_native;    /* calyx-cf-layout: 1 or 0                         */
    bool random_seed; /* calyx-seed: random, or                          */
    uint64_t seed;    /*   a number                                      */
    long long max_filter_bytes; /* calyx-max-filter-bytes: 0 for no limit */
    int valkey_order;        /* calyx-valkey-order: see layout/valkey.c      */
    double tightening;       /* bloom-tightening-ratio of valkey-bloom       */
    bool valkey_random_seed; /* bloom-use-random-seed: else its fixed one    */
};

extern struct settings settings;

/* Parse the arguments of the load command, then register what there is as
 * configuration. Logs what is wrong. */
int settings_load(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

#endif
