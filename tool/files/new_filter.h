/* The filter to make: options that 'build' and 'add --create' share. */
#ifndef CALYX_TOOL_NEW_FILTER_H
#define CALYX_TOOL_NEW_FILTER_H

#include "tool.h"

/* What the options said; 0 or NULL where they said nothing. */
extern struct wanted {
    const char *kind, *hash, *seed, *comment;
    uint64_t keys, memory, bits;
    uint32_t probes;
    double rate, growth;
    bool strict;
} wanted;

/* --keys, --rate, --memory, --kind and others */
extern const struct group new_filter_group;

/* Of these options, with the key of --key-file. Fails if they contradict each
 * other. */
calyx_options options_wanted(void);

/* Was the size of the filter given, by --memory or --bits? */
bool has_size(void);

/* Has a filter these bits, or nearly? Kinds of large blocks may waste much of a
 * few bits: without --kind, --bits takes the first that does not. */
bool uses_bits(const calyx_info *is, uint64_t bits);

/* The options with the bits of --bits, or with the bits that fit into --memory,
 * if one was given. */
calyx_options size_wanted(calyx_options want);

/* A small filter with the hash of those to be built. */
calyx_filter *new_hasher(const calyx_options *want);

/* Store the comment and the options for keys with a filter that was built. */
void label_new(calyx_filter *f);

/* An empty filter, of the size that was given if any, with its comment. */
calyx_filter *new_filter(calyx_options want);

#endif
