/*
 * The table of kinds: found by the name that people type, and by the code that
 * files have. To add one, write its file and give it a row here.
 */
#include <calyx/calyx.h>
#include <string.h>

#include "base/bits.h"
#include "kind/kind.h"

/* Text, or none: the condition is a macro, 0 or 1. */
#define UNLESS_0(...) __VA_ARGS__
#define UNLESS_1(...)
#define PASTE(a, b)        a##b
#define UNLESS_(cond, ...) PASTE(UNLESS_, cond)(__VA_ARGS__)
#define UNLESS(cond, ...)  UNLESS_(cond, __VA_ARGS__)

/* The kinds of filter there are. The first is the default. */
#define KINDS(ROW)                           \
    ROW(line)                                \
    UNLESS(CALYX_NO_LINE2, ROW(line2))       \
    UNLESS(CALYX_NO_SPLIT, ROW(split))       \
    UNLESS(CALYX_NO_FLAT, ROW(flat))         \
    UNLESS(CALYX_NO_BUCKET, ROW(bucket))     \
    UNLESS(CALYX_NO_BUCKET, ROW(distinct))   \
    UNLESS(CALYX_NO_COUNTING, ROW(counting)) \
    UNLESS(CALYX_NO_RIBBON, ROW(ribbon))

/* The names and codes of kinds that are left out, for errors. */
static const struct left_out left_out[] = {
#if CALYX_NO_LINE2
    {"line2", "CALYX_NO_LINE2", 7},
#endif
#if CALYX_NO_SPLIT
    {"split", "CALYX_NO_SPLIT", 3},
#endif
#if CALYX_NO_FLAT
    {"flat", "CALYX_NO_FLAT", 4},
#endif
#if CALYX_NO_COUNTING
    {"counting", "CALYX_NO_COUNTING", 8},
#endif
#if CALYX_NO_RIBBON
    {"ribbon", "CALYX_NO_RIBBON", 9},
#endif
#if CALYX_NO_BUCKET
    {"bucket", "CALYX_NO_BUCKET", 10},
    {"distinct", "CALYX_NO_BUCKET", 11},
    {"bucket", "CALYX_NO_BUCKET", 12},
    {"distinct", "CALYX_NO_BUCKET", 13},
#endif
    {NULL, NULL, 0},
};

#define DECLARE(name) extern const struct kind kind_##name;
KINDS(DECLARE)

#define ADDRESS(name) &kind_##name,
const struct kind *const kind_table[] = {KINDS(ADDRESS) NULL};

#define NAME(name) #name,
static const char *const names[] = {KINDS(NAME) NULL};

enum { COUNT = sizeof kind_table / sizeof kind_table[0] - 1 };
const uint32_t kind_count = COUNT;

const struct kind *kind_named(const char *name) {
    for (int i = 0; i < COUNT; i++)
        if (strcmp(kind_table[i]->name, name) == 0) return kind_table[i];
    return NULL;
}

const struct kind *kind_coded(uint32_t code) {
    for (int i = 0; i < COUNT; i++) {
        const struct kind *const kind = kind_table[i];
        if (kind->code == code) return kind;
        if (kind->fixed && kind->fixed->code == code) return kind->fixed;
    }
    return NULL;
}

const struct left_out *kind_left_out(const char *name, uint32_t code) {
    for (const struct left_out *kind = left_out; kind->name; kind++)
        if (kind->code == code || (name && strcmp(kind->name, name) == 0))
            return kind;
    return NULL;
}

uint32_t calyx_kind_can(const char *name) {
    const struct kind *const kind = kind_named(name);
    return kind ? kind->can : 0;
}

uint64_t kind_bits(const struct kind *kind, const struct shape *shape) {
    return kind->body_bits ? kind->body_bits(shape)
                           : shape->blocks * kind->block_bits;
}

uint64_t kind_counter_bits(const struct kind *kind, const struct shape *shape) {
    return kind->counter_lines ? kind->counter_lines(shape) * 8 * 64
                               : shape->blocks * kind->counter_bits;
}

size_t kind_offsets(const struct kind *kind, const struct shape *shape,
                    uint64_t hash, uint64_t *at) {
    if (kind->offsets) return kind->offsets(shape, hash, at);
    if (!kind->one_block) return 0;
    at[0] = scale64(hash, shape->blocks) * kind->block_bits / 8;
    return 1;
}

/* Within its block, a key has the same bits wherever the block is: so a body of
 * this block alone gives the same answer. */
bool kind_has_in_copies(const struct kind *kind, const struct shape *shape,
                        uint64_t hash, const uint8_t *copies) {
    if (kind->has_in_copies) return kind->has_in_copies(shape, hash, copies);
    const struct shape one = {.blocks = 1, .probes = shape->probes};
    uint64_t at = 0;
    kind_offsets(kind, shape, hash, &at);
    const struct kernel *const *kernel = kind->kernels;
    while ((*kernel)->level != CPU_SCALAR) kernel++;
    return (*kernel)->has(copies + at % 64, &one, hash);
}

const char *const *calyx_kinds(void) {
    return names;
}
