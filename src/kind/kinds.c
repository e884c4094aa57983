/*
 * The table of kinds: found by the name that people type, and by the code that
 * files have. To add one, write its file and give it a row here.
 */
#include <calyx/calyx.h>
#include <string.h>

#include "kind/kind.h"

/* The kinds of filter there are. The first is the default. */
#define KINDS(ROW) \
    ROW(line)      \
    ROW(line2)     \
    ROW(split)     \
    ROW(flat)      \
    ROW(counting)

#define DECLARE(name) extern const struct kind kind_##name;
KINDS(DECLARE)

#define ADDRESS(name) &kind_##name,
static const struct kind *const table[] = {KINDS(ADDRESS)};

#define NAME(name) #name,
static const char *const names[] = {KINDS(NAME) NULL};

enum { COUNT = sizeof table / sizeof table[0] };

const struct kind *kind_named(const char *name) {
    for (int i = 0; i < COUNT; i++)
        if (strcmp(table[i]->name, name) == 0) return table[i];
    return NULL;
}

const struct kind *kind_coded(uint32_t code) {
    for (int i = 0; i < COUNT; i++)
        if (table[i]->code == code) return table[i];
    return NULL;
}

/* Before the first release these chose the bits of a key in another way. Their
 * codes are never given out again. */
const char *kind_retired(uint32_t code) {
    static const char *const retired[] = {
        [1] = "line", [2] = "line2", [5] = "counting"};
    return code < sizeof retired / sizeof retired[0] ? retired[code] : NULL;
}

uint32_t calyx_kind_can(const char *name) {
    const struct kind *const kind = kind_named(name);
    return kind ? kind->can : 0;
}

const char *const *calyx_kinds(void) {
    return names;
}
