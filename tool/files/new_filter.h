/* The filter to make: options that 'build' and 'add --create' share. */
#ifndef CALYX_TOOL_NEW_FILTER_H
#define CALYX_TOOL_NEW_FILTER_H

#include "tool.h"

/* What the options said; 0 or NULL where they said nothing. */
extern struct wanted {
    const char *kind, *hash, *seed, *comment;
    uint64_t keys, memory;
    uint32_t probes;
    double rate, growth;
    bool strict;
} wanted;

void parse_growth(const struct verb_option *option, const char *value);
void parse_probes(const struct verb_option *option, const char *value);

/* Rows of a group. */
#define NEW_FILTER_OPTIONS(keys_text)                                          \
    {'n', "keys", "KEYS", keys_text, parse_positive, &wanted.keys},            \
        {'p',                                                                  \
         "rate",                                                               \
         "RATE",                                                               \
         "The false-positive rate: 0.01, 1%, 1e-6 or 1/1000000. The default "  \
         "is 1%.",                                                             \
         parse_rate,                                                           \
         &wanted.rate},                                                        \
        {0,                                                                    \
         "memory",                                                             \
         "SIZE",                                                               \
         "Make the filter this large, such as 10M or 64KiB, with the "         \
         "rate that results; or with --rate, the number of keys. K, M "        \
         "and G are powers of 1000, Ki, Mi and Gi of 1024.",                   \
         parse_size,                                                           \
         &wanted.memory},                                                      \
        {0,                                                                    \
         "kind",                                                               \
         "KIND",                                                               \
         "The kind of filter: line (the default, unless another is the first " \
         "that keeps the rate), line2 for rates below "                        \
         "0.1%, split for Parquet, flat as in textbooks, bucket to be able "   \
         "to remove keys, or to grow far, counting to remove keys and merge, " \
         "ribbon for 30 % less memory if keys never change. "                  \
         "'calyx --version' lists all kinds.",                                 \
         parse_text,                                                           \
         &wanted.kind},                                                        \
        {0,                                                                    \
         "probes",                                                             \
         "N",                                                                  \
         "Bits to set for a key, instead of the best number.",                 \
         parse_probes,                                                         \
         NULL},                                                                \
        {0,                                                                    \
         "growth",                                                             \
         "FACTOR",                                                             \
         "Let the filter grow when more keys come than planned, to FACTOR "    \
         "times the keys, from 1.25 to 16.",                                   \
         parse_growth,                                                         \
         NULL},                                                                \
        {0,          "strict",                                                 \
         NULL,       "Report an error when more keys come than planned.",      \
         parse_flag, &wanted.strict},                                          \
        {0,                                                                    \
         "hash",                                                               \
         "HASH",                                                               \
         "The hash of the keys: xxh3 (the default), xxh64, murmur3 or fnv1a; " \
         "siphash with --key-file.",                                           \
         parse_text,                                                           \
         &wanted.hash},                                                        \
        {0,                                                                    \
         "seed",                                                               \
         "SEED",                                                               \
         "Seed of the hash: a number, or 'random'. The default is 0. Filters " \
         "can be merged if their seeds are equal.",                            \
         parse_text,                                                           \
         &wanted.seed},                                                        \
    {                                                                          \
        0, "comment", "TEXT", "Store TEXT with the filter.", parse_text,       \
            &wanted.comment                                                    \
    }

/* Of these options, with the key of --key-file. Fails if they contradict each
 * other. */
calyx_options options_wanted(void);

/* The same with the bits that fit into --memory, if that was given. */
calyx_options size_wanted(calyx_options want);

/* A small filter with the hash of those to be built. */
calyx_filter *new_hasher(const calyx_options *want);

/* Store the comment and the options for keys with a filter that was built. */
void label_new(calyx_filter *f);

/* An empty filter, in --memory if that was given, with its comment. */
calyx_filter *new_filter(calyx_options want);

#endif
