#include "exact/key_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "exact/budget.h"
#include "exact/key_hash.h"
#include "exact/slot_table.h"

enum { ALIGNMENT = 8, FIRST_ROOM = 1 << 16 };

/* After the payload. */
struct stored_key {
    uint32_t size;
    char bytes[];
};

struct key_table {
    size_t payload;
    bool with_lines;
    const calyx_filter *hasher;
    uint64_t memory, count;
    struct slot_table slots; /* a place counts words of the keys, from 1 */
    char *keys;
    uint64_t room;
    _Atomic uint64_t used;
};

/* ---- Memory -------------------------------------------------------------- */

/* Slots for the keys that are expected, in at most half of the memory. In more
 * memory a table begins larger, so that doublings leave bits of the tags. */
static uint64_t first_keys(uint64_t expected, uint64_t memory) {
    enum { FEW = 1 << 9, MANY = 1 << 20 };
    const uint64_t most = memory / 24, share = memory >> 16;
    const uint64_t least = FEW + (share < MANY ? share : MANY);
    const uint64_t keys = expected < most ? expected : most;
    return keys > least ? keys : least;
}

struct key_table *key_table_new(size_t payload, bool with_lines) {
    struct key_table *const t = alloc_memory(sizeof *t);
    *t = (struct key_table){.payload = payload, .with_lines = with_lines};
    return t;
}

void key_table_free(struct key_table *t) {
    if (!t) return;
    slot_table_close(&t->slots);
    if (t->keys) munmap(t->keys, t->room);
    free(t);
}

static void move_keys(struct key_table *t, uint64_t room) {
    void *const moved = t->keys ? mremap(t->keys, t->room, room, MREMAP_MAYMOVE)
                                : map_memory(room);
    if (moved == MAP_FAILED)
        fail("out of memory: cannot allocate %llu bytes; -S sets how much is "
             "taken",
             (unsigned long long)room);
    if (room >= (1u << 22)) madvise(moved, room, MADV_HUGEPAGE);
    t->keys = moved;
    t->room = room;
}

void key_table_start(struct key_table *t, const calyx_filter *hasher,
                     uint64_t keys, uint64_t memory) {
    slot_table_close(&t->slots);
    if (!slot_table_open(&t->slots, first_keys(keys, memory)))
        fail("out of memory; -S sets how much is taken");
    if (!t->keys) move_keys(t, FIRST_ROOM);
    /* the next keys use the same pages, unless the memory has shrunk */
    if (memory < t->memory) madvise(t->keys, t->room, MADV_DONTNEED);
    t->hasher = hasher;
    t->memory = memory;
    t->count = 0;
    t->used = 0;
}

static uint64_t slot_bytes(const struct key_table *t) {
    return t->slots.count * sizeof *t->slots.slots;
}

void key_table_reserve(struct key_table *t) {
    const uint64_t slots = slot_bytes(t);
    move_keys(t, (t->memory > slots ? t->memory - slots : 0) + 64);
}

/* ---- Stored keys --------------------------------------------------------- */

static uint64_t size_of_copy(const struct key_table *t, uint64_t key_size,
                             uint64_t line_size) {
    const uint64_t head = sizeof(struct stored_key);
    const uint64_t size = t->payload + head + key_size +
                          (t->with_lines ? sizeof(uint32_t) + line_size : 0);
    return (size + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

double stored_key_size(size_t payload) {
    return (double)(payload + sizeof(struct stored_key)) +
           (ALIGNMENT - 1) / 2.0;
}

void *stored_payload(const struct key_table *t, struct stored_key *stored) {
    return (char *)stored - t->payload;
}

calyx_key stored_line(const struct key_table *t, struct stored_key *stored) {
    const calyx_key key = {stored->bytes, stored->size};
    uint32_t line;
    if (!t->with_lines) return key;
    const char *const after = stored->bytes + stored->size;
    memcpy(&line, after, sizeof line);
    return line ? (calyx_key){after + sizeof line, line - 1} : key;
}

/* Space for it is reserved. `line` may be NULL. */
static struct stored_key *write_copy(struct key_table *t, uint64_t at,
                                     const calyx_key *key,
                                     const calyx_key *line) {
    char *const to = t->keys + at;
    memset(to, 0, t->payload);
    struct stored_key *const stored =
        (struct stored_key *)(void *)(to + t->payload);
    stored->size = (uint32_t)key->size;
    if (key->size) memcpy(stored->bytes, key->data, key->size);
    if (!t->with_lines) return stored;
    char *const after = stored->bytes + key->size;
    const uint32_t size = line ? (uint32_t)line->size + 1 : 0;
    memcpy(after, &size, sizeof size);
    if (size > 1) memcpy(after + sizeof size, line->data, line->size);
    return stored;
}

struct stored_key *key_table_next(const struct key_table *t,
                                  struct stored_key *stored) {
    const char *next = t->keys;
    if (stored) {
        const calyx_key line = stored_line(t, stored);
        const bool has_line = line.data != stored->bytes;
        next = (const char *)stored - t->payload +
               size_of_copy(t, stored->size, has_line ? line.size : 0);
    }
    return next < t->keys + t->used
               ? (struct stored_key *)(uintptr_t)(next + t->payload)
               : NULL;
}

uint64_t key_table_count(const struct key_table *t) {
    return t->count;
}

/* ---- Search -------------------------------------------------------------- */

static struct stored_key *key_at(const struct key_table *t, uint64_t slot) {
    return (struct stored_key *)(void *)(t->keys +
                                         ALIGNMENT * (place_in(slot) - 1) +
                                         t->payload);
}

/* The slot that has the key, or a free one. */
static uint64_t slot_with(const struct key_table *t, const calyx_key *key,
                          uint64_t hash, uint64_t *slot) {
    const struct slot_hash h = slot_hash(&t->slots, hash);
    for (uint64_t at = h.first;; at = next_slot(&t->slots, at, h.tag)) {
        *slot = load_slot(&t->slots, at);
        if (!*slot) return at;
        if (!has_tag(*slot, h.tag)) continue;
        const struct stored_key *const k = key_at(t, *slot);
        if (k->size == key->size && memcmp(k->bytes, key->data, k->size) == 0)
            return at;
    }
}

void key_table_prefetch(const struct key_table *t, uint64_t hash) {
    __builtin_prefetch(
        (const void *)&t->slots.slots[slot_hash(&t->slots, hash).first]);
}

/* Two lines: a key of 60 bytes is seldom in one. */
void key_table_prefetch_key(const struct key_table *t, uint64_t hash) {
    const struct slot_hash h = slot_hash(&t->slots, hash);
    const uint64_t slot = load_slot(&t->slots, h.first);
    if (!has_tag(slot, h.tag))
        return; /* so it is most likely not free either */
    const char *const key = (const char *)key_at(t, slot);
    __builtin_prefetch(key);
    __builtin_prefetch(key + 64);
}

struct stored_key *key_table_find_one(const struct key_table *t,
                                      const calyx_key *key, uint64_t hash) {
    uint64_t slot;
    slot_with(t, key, hash, &slot);
    return slot ? key_at(t, slot) : NULL;
}

void key_table_find(const struct key_table *t, const calyx_key *keys,
                    const uint64_t *hashes, size_t n,
                    struct stored_key **found) {
    enum { SLOTS_AHEAD = 32, KEYS_AHEAD = 12 };
    for (size_t i = 0; i < n && i < SLOTS_AHEAD; i++)
        key_table_prefetch(t, hashes[i]);
    for (size_t i = 0; i < n && i < KEYS_AHEAD; i++)
        key_table_prefetch_key(t, hashes[i]);
    for (size_t i = 0; i < n; i++) {
        if (i + SLOTS_AHEAD < n) key_table_prefetch(t, hashes[i + SLOTS_AHEAD]);
        if (i + KEYS_AHEAD < n)
            key_table_prefetch_key(t, hashes[i + KEYS_AHEAD]);
        found[i] = key_table_find_one(t, &keys[i], hashes[i]);
    }
}

/* ---- Adding -------------------------------------------------------------- */

void key_table_copy(struct key_table *t, const calyx_key *keys, size_t n,
                    struct stored_key **stored) {
    uint64_t size = 0;
    for (size_t i = 0; i < n; i++)
        if (!stored[i] && keys[i].size < UINT32_MAX)
            size += size_of_copy(t, keys[i].size, 0);
    if (size > t->room) return;
    uint64_t at = t->used;
    do {
        if (size > t->room - at) return;
    } while (!atomic_compare_exchange_weak(&t->used, &at, at + size));
    for (size_t i = 0; i < n; i++) {
        if (stored[i] || keys[i].size >= UINT32_MAX) continue;
        stored[i] = write_copy(t, at, &keys[i], NULL);
        at += size_of_copy(t, keys[i].size, 0);
    }
}

static void publish(struct key_table *t, uint64_t at, struct slot_hash h,
                    const struct stored_key *copy) {
    const uint64_t place =
        (uint64_t)((const char *)copy - t->payload - t->keys) / ALIGNMENT + 1;
    store_slot(&t->slots, at, h.tag | place);
    t->count++;
}

static bool slots_are_full(const struct key_table *t) {
    return t->count >= t->slots.count / 6 * 5;
}

struct stored_key *key_table_add(struct key_table *t, uint64_t hash,
                                 struct stored_key *copy) {
    const calyx_key key = {copy->bytes, copy->size};
    uint64_t slot;
    const uint64_t at = slot_with(t, &key, hash, &slot);
    if (slot) return key_at(t, slot);
    if (slots_are_full(t)) return NULL;
    publish(t, at, slot_hash(&t->slots, hash), copy);
    return copy;
}

static void hash_places(const void *table, const uint64_t *slots, size_t n,
                        uint64_t *hashes) {
    const struct key_table *const t = table;
    for (size_t i = 0; i < n; i++) {
        const struct stored_key *const k = key_at(t, slots[i]);
        hash_keys(t->hasher, &(calyx_key){k->bytes, k->size}, 1, &hashes[i]);
    }
}

/* Of the slots 3 of 4 are used, or 5 of 6 when there is no memory for more. */
static bool room_in_slots(struct key_table *t, uint64_t used) {
    return t->count < t->slots.count / 4 * 3 ||
           (2 * slot_bytes(t) + used <= t->memory &&
            slot_table_double(&t->slots, hash_places, t)) ||
           !slots_are_full(t);
}

struct stored_key *key_table_insert(struct key_table *t, const calyx_key *key,
                                    uint64_t hash, const calyx_key *line) {
    const size_t longest =
        line && line->size > key->size ? line->size : key->size;
    if (longest >= UINT32_MAX)
        fail("a line of %zu bytes is too long to be compared; the limit is 4 "
             "GiB",
             longest);
    const uint64_t from = t->used;
    const uint64_t used =
        from + size_of_copy(t, key->size, line ? line->size : 0);
    if (t->count &&
        (slot_bytes(t) + used > t->memory || !room_in_slots(t, used)))
        return NULL;
    uint64_t room = t->room;
    while (room < used) room *= 2;
    if (room > t->room) move_keys(t, room);
    struct stored_key *const stored = write_copy(t, from, key, line);
    atomic_store_explicit(&t->used, used, memory_order_relaxed);
    const struct slot_hash h = slot_hash(&t->slots, hash);
    uint64_t at = h.first;
    while (load_slot(&t->slots, at)) at = next_slot(&t->slots, at, h.tag);
    publish(t, at, h, stored);
    return stored;
}

uint64_t key_table_capacity(uint64_t expected, uint64_t memory, double size) {
    const uint64_t word = sizeof(uint64_t);
    uint64_t bytes = slot_table_bytes(first_keys(expected, memory));
    while (2 * bytes + (uint64_t)((double)(bytes / word / 4 * 3) * size) <=
           memory)
        bytes *= 2;
    if (memory <= bytes) return 1;
    const double most = (double)(bytes / word / 6 * 5);
    const double keys = (double)(memory - bytes) / size;
    return (uint64_t)(keys < most ? keys : most);
}
