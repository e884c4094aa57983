/*
 * A small exact set of keys, all in memory: the known false positives of
 * --allow. A hash table with open addressing that is never more than half full.
 */
#ifndef CALYX_TOOL_EXACT_H
#define CALYX_TOOL_EXACT_H

#include "tool.h"

struct exact;
struct exact *exact_new(void);
void exact_add(struct exact *set, const calyx_key *key, uint64_t hash);
bool exact_has(const struct exact *set, const calyx_key *key, uint64_t hash);

#endif
