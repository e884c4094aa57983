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

/* --keys, --rate, --memory, --kind and others */
extern const struct group new_filter_group;

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
