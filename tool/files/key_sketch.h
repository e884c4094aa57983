/*
 * A sketch: the number of distinct keys among many hashes, in 64 KiB.
 *
 * HyperLogLog (Flajolet, Fusy, Gandouet, Meunier 2007): the upper 16 bits of a
 * hash choose a register, which holds the largest number of leading zeros that
 * the other bits had, and 1. The estimate is Ertl's (2017), which is right for
 * few and for many keys. Its standard error is 0.41 %. Copies and the order of
 * keys change nothing.
 */
#ifndef CALYX_TOOL_KEY_SKETCH_H
#define CALYX_TOOL_KEY_SKETCH_H

#include "tool.h"

struct key_sketch;

struct key_sketch *sketch_new(void);
void sketch_free(struct key_sketch *sketch);

/* Any thread. */
void sketch_add(struct key_sketch *sketch, const uint64_t *hashes, size_t n);

/* The estimate, and three times its standard error: once in 700 times there are
 * more keys. */
uint64_t sketch_upper(const struct key_sketch *sketch);

#endif
