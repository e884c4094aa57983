#include "exact/known_keys.h"

#include <inttypes.h>
#include <stdlib.h>

#include "exact/key_table.h"

struct known_keys {
    struct key_table *table; /* with a word for each: 1 if it was found */
    const calyx_filter *hasher;
    uint64_t memory;
};

static bool keep_lines(struct text_block *block, struct key_batch *batch) {
    struct known_keys *const known = block->context;
    uint64_t hashes[BATCH_ROOM];
    char text[TEXT_SIZE];
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        calyx_hash_many(known->hasher, batch->keys, batch->count, hashes);
        for (size_t i = 0; i < batch->count; i++)
            if (!key_table_find_one(known->table, &batch->keys[i], hashes[i]) &&
                !key_table_insert(known->table, &batch->keys[i], hashes[i],
                                  NULL))
                fail("the included keys must be in memory: after %" PRIu64
                     " of them, the %s of -S are full; give more",
                     key_table_count(known->table),
                     size_text(known->memory, text));
    }
    return true;
}

struct known_keys *known_keys_read(const calyx_filter *hasher, uint64_t memory,
                                   int count, char **files) {
    enum { FEW = 1000 }; /* slots double as keys come */
    struct known_keys *const known = alloc_memory(sizeof *known);
    *known = (struct known_keys){key_table_new(sizeof(uint64_t), false), hasher,
                                 memory};
    key_table_start(known->table, hasher, FEW, memory);
    const struct stages stages = {.in_order = keep_lines, .context = known};
    run_pipeline(&stages, count, files);
    return known;
}

void known_keys_free(struct known_keys *known) {
    if (known) key_table_free(known->table);
    free(known);
}

uint64_t known_keys_count(const struct known_keys *known) {
    return key_table_count(known->table);
}

void known_keys_find(struct known_keys *known, const calyx_key *keys,
                     const uint64_t *hashes, size_t n, bool *is_known) {
    struct stored_key *stored[BATCH_ROOM];
    key_table_find(known->table, keys, hashes, n, stored);
    for (size_t i = 0; i < n; i++) {
        is_known[i] = stored[i] != NULL;
        if (!stored[i]) continue;
        uint64_t *const found = stored_payload(known->table, stored[i]);
        __atomic_store_n(found, 1, __ATOMIC_RELAXED);
    }
}

void known_keys_visit(const struct known_keys *known, known_key_visitor *visit,
                      void *context) {
    struct stored_key *at = NULL;
    while ((at = key_table_next(known->table, at))) {
        const calyx_key key = stored_line(known->table, at);
        const uint64_t *const found = stored_payload(known->table, at);
        visit(context, &key, *found);
    }
}

struct naming {
    const char *where;
    uint64_t count;
};

static void name_one(void *context, const calyx_key *key, bool found) {
    enum { MOST_NAMED = 10, LONGEST = 200 };
    struct naming *const naming = context;
    if (found || naming->count++ >= MOST_NAMED) return;
    const int size = key->size < LONGEST ? (int)key->size : LONGEST;
    warn("not in %s: %.*s", naming->where, size, (const char *)key->data);
}

uint64_t name_keys_not_found(const struct known_keys *known,
                             const char *where) {
    struct naming naming = {where, 0};
    known_keys_visit(known, name_one, &naming);
    return naming.count;
}
