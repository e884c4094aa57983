#include "exact/key_table.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "exact/budget.h"

enum {
    KEY_TAG_SHIFT = 40, /* a slot: 24 bits of the hash above, the place below */
    ALIGNMENT = 8,
};

/* Behind the payload. */
struct stored_key {
    uint32_t size;
    char bytes[];
};

struct key_table {
    size_t payload;
    _Atomic uint64_t *slots; /* 0: free; else the place counts words, from 1 */
    uint64_t slot_count, count;
    char *keys;
    uint64_t room;
    _Atomic uint64_t used;
};

/* ---- Memory -------------------------------------------------------------- */

/* 2 of 3 slots are used. */
static uint64_t slots_for(uint64_t keys) {
    return keys + keys / 2 + 64;
}

static uint64_t size_of_copy(size_t payload, uint64_t key_size) {
    const uint64_t size = payload + sizeof(struct stored_key) + key_size;
    return (size + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

uint64_t key_table_bytes(uint64_t keys, uint64_t bytes, size_t payload) {
    return slots_for(keys) * sizeof(uint64_t) + bytes +
           keys * size_of_copy(payload, ALIGNMENT / 2 - 1);
}

struct key_table *key_table_new(uint64_t keys, uint64_t memory,
                                size_t payload) {
    struct key_table *const t = alloc_memory(sizeof *t);
    *t = (struct key_table){.payload = payload, .slot_count = slots_for(keys)};
    const uint64_t most = memory / 2 / sizeof *t->slots + 1;
    if (t->slot_count > most) t->slot_count = most;
    const uint64_t size = t->slot_count * sizeof *t->slots;
    t->slots = map_memory(size);
    if (size >= (1u << 22)) madvise((void *)t->slots, size, MADV_HUGEPAGE);
    t->room = memory - (size < memory ? size : memory) + 64;
    t->keys = map_memory(t->room);
    return t;
}

void key_table_free(struct key_table *t) {
    if (!t) return;
    munmap((void *)t->slots, t->slot_count * sizeof *t->slots);
    munmap(t->keys, t->room);
    free(t);
}

void key_table_clear(struct key_table *t) {
    memset((void *)t->slots, 0, t->slot_count * sizeof *t->slots);
    t->used = t->count = 0;
}

uint64_t key_table_count(const struct key_table *t) {
    return t->count;
}

void *stored_payload(const struct key_table *t, struct stored_key *stored) {
    return (char *)stored - t->payload;
}

/* ---- Search -------------------------------------------------------------- */

static uint64_t first_slot(const struct key_table *t, uint64_t hash) {
    return (uint64_t)((unsigned __int128)hash * t->slot_count >> 64);
}

static uint64_t tag_of_key(uint64_t hash) {
    return hash << KEY_TAG_SHIFT;
}

static struct stored_key *key_at(const struct key_table *t, uint64_t slot) {
    const uint64_t place = slot & ((UINT64_C(1) << KEY_TAG_SHIFT) - 1);
    return (struct stored_key *)(void *)(t->keys + ALIGNMENT * (place - 1) +
                                         t->payload);
}

static uint64_t load_slot(const struct key_table *t, uint64_t at) {
    return atomic_load_explicit(&t->slots[at], memory_order_acquire);
}

/* The slot that has the key, or a free one. */
static uint64_t slot_with(const struct key_table *t, const calyx_key *key,
                          uint64_t hash, uint64_t *slot) {
    uint64_t at = first_slot(t, hash);
    for (;; at = at + 1 < t->slot_count ? at + 1 : 0) {
        *slot = load_slot(t, at);
        if (!*slot) return at;
        if ((*slot ^ tag_of_key(hash)) >> KEY_TAG_SHIFT) continue;
        const struct stored_key *const k = key_at(t, *slot);
        if (k->size == key->size && memcmp(k->bytes, key->data, k->size) == 0)
            return at;
    }
}

void key_table_prefetch(const struct key_table *t, uint64_t hash) {
    __builtin_prefetch((const void *)&t->slots[first_slot(t, hash)]);
}

/* Two lines: a key of 60 bytes is seldom in one. */
static void prefetch_key(const struct key_table *t, uint64_t hash) {
    const uint64_t slot = load_slot(t, first_slot(t, hash));
    if (!slot || (slot ^ tag_of_key(hash)) >> KEY_TAG_SHIFT) return;
    const char *const key = (const char *)key_at(t, slot);
    __builtin_prefetch(key);
    __builtin_prefetch(key + 64);
}

void key_table_find(const struct key_table *t, const calyx_key *keys,
                    const uint64_t *hashes, size_t n,
                    struct stored_key **found) {
    enum { SLOTS_AHEAD = 32, KEYS_AHEAD = 12 };
    for (size_t i = 0; i < n && i < SLOTS_AHEAD; i++)
        key_table_prefetch(t, hashes[i]);
    for (size_t i = 0; i < n && i < KEYS_AHEAD; i++) prefetch_key(t, hashes[i]);
    for (size_t i = 0; i < n; i++) {
        if (i + SLOTS_AHEAD < n) key_table_prefetch(t, hashes[i + SLOTS_AHEAD]);
        if (i + KEYS_AHEAD < n) prefetch_key(t, hashes[i + KEYS_AHEAD]);
        uint64_t slot;
        slot_with(t, &keys[i], hashes[i], &slot);
        found[i] = slot ? key_at(t, slot) : NULL;
    }
}

/* ---- Copies -------------------------------------------------------------- */

void key_table_copy(struct key_table *t, const calyx_key *keys, size_t n,
                    struct stored_key **stored) {
    uint64_t size = 0;
    for (size_t i = 0; i < n; i++)
        if (!stored[i] && keys[i].size < UINT32_MAX)
            size += size_of_copy(t->payload, keys[i].size);
    if (size > t->room) return;
    uint64_t at = t->used;
    do {
        if (size > t->room - at) return;
    } while (!atomic_compare_exchange_weak(&t->used, &at, at + size));
    for (size_t i = 0; i < n; i++) {
        if (stored[i] || keys[i].size >= UINT32_MAX) continue;
        char *const to = t->keys + at;
        memset(to, 0, t->payload);
        stored[i] = (struct stored_key *)(void *)(to + t->payload);
        stored[i]->size = (uint32_t)keys[i].size;
        if (keys[i].size) memcpy(stored[i]->bytes, keys[i].data, keys[i].size);
        at += size_of_copy(t->payload, keys[i].size);
    }
}

struct stored_key *key_table_add(struct key_table *t, uint64_t hash,
                                 struct stored_key *copy) {
    const calyx_key key = {copy->bytes, copy->size};
    uint64_t slot;
    const uint64_t at = slot_with(t, &key, hash, &slot);
    if (slot) return key_at(t, slot);
    if (10 * t->count >= 9 * t->slot_count) return NULL;
    const uint64_t place =
        (uint64_t)((char *)copy - t->payload - t->keys) / ALIGNMENT + 1;
    atomic_store_explicit(&t->slots[at], tag_of_key(hash) | place,
                          memory_order_release);
    t->count++;
    return copy;
}
