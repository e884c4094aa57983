/* The items of a command, taken from its words and given back as such. */
#include "command/items.h"

void items_open(struct items *items, RedisModuleString **argv, int n) {
    items->argv = argv;
    items->n = (size_t)n;
    const bool few = items->n <= FEW_ITEMS;
    items->keys =
        few ? items->few_keys : RM_Alloc(items->n * sizeof *items->keys);
    items->answers = few ? items->few_flags : RM_Alloc(2 * items->n);
    items->changed = items->answers + items->n;
    for (size_t i = 0; i < items->n; i++)
        items->keys[i].data = RM_StringPtrLen(argv[i], &items->keys[i].size);
}

void items_close(struct items *items) {
    if (items->keys == items->few_keys) return;
    RM_Free(items->keys);
    RM_Free(items->answers);
}

struct items items_slice(const struct items *items, size_t from, size_t n) {
    struct items slice;
    slice.argv = items->argv + from;
    slice.n = n;
    slice.keys = items->keys + from;
    slice.answers = items->answers + from;
    slice.changed = items->changed + from;
    return slice;
}

RedisModuleString **items_chosen(const struct items *items, const bool *flags,
                                 size_t n, RedisModuleString **few,
                                 size_t *chosen) {
    RedisModuleString **out =
        n <= FEW_ITEMS ? few : RM_Alloc(n * sizeof(void *));
    *chosen = 0;
    for (size_t i = 0; i < n; i++)
        if (flags[i]) out[(*chosen)++] = items->argv[i];
    return out;
}

void items_replicate(RedisModuleCtx *ctx, const char *command,
                     RedisModuleString *name, const struct items *items,
                     const bool *flags, size_t n) {
    RedisModuleString *few[FEW_ITEMS];
    size_t chosen;
    RedisModuleString **out = items_chosen(items, flags, n, few, &chosen);
    if (chosen > 0) RM_Replicate(ctx, command, "sv", name, out, chosen);
    if (out != few) RM_Free(out);
}
