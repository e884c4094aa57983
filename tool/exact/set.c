#include "exact/set.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "exact/budget.h"

enum {
    TAG_SHIFT = 40, /* a slot: 24 bits of the hash above, the place below */
    FIRST_SLOTS = 1 << 10,
    FIRST_ROOM = 1 << 16,
};

struct key_set {
    uint64_t budget;
    size_t payload;
    uint64_t *slots; /* 0: free; else the place counts words, from 1 */
    uint64_t slot_count, count;
    char *entries;
    uint64_t used, room;
};

/* ---- Memory ------------------------------------------------------------- */

static void *take_pages(uint64_t size) {
    void *const pages = map_memory(size);
    if (size >= (1u << 22)) madvise(pages, size, MADV_HUGEPAGE);
    return pages;
}

static void alloc_slots(struct key_set *set, uint64_t count) {
    set->slot_count = count;
    set->slots = take_pages(count * sizeof *set->slots);
}

static void free_slots(struct key_set *set) {
    munmap(set->slots, set->slot_count * sizeof *set->slots);
}

struct key_set *set_new(uint64_t budget, size_t payload) {
    struct key_set *const set = alloc_memory(sizeof *set);
    *set = (struct key_set){
        .budget = budget, .payload = payload, .room = FIRST_ROOM};
    set->entries = take_pages(set->room);
    alloc_slots(set, FIRST_SLOTS);
    return set;
}

void set_free(struct key_set *set) {
    if (!set) return;
    free_slots(set);
    munmap(set->entries, set->room);
    free(set);
}

void set_clear(struct key_set *set, uint64_t budget) {
    free_slots(set);
    alloc_slots(set, FIRST_SLOTS);
    /* entries of the next partition use the same pages, unless the budget has
     * shrunk */
    if (budget < set->budget) madvise(set->entries, set->room, MADV_DONTNEED);
    set->budget = budget;
    set->count = set->used = 0;
}

/* ---- Entries ------------------------------------------------------------ */

static struct entry *entry_at(const struct key_set *set, uint64_t place) {
    return (struct entry *)(void *)(set->entries + 8 * (place - 1));
}

static uint64_t size_of(const struct key_set *set, uint64_t key_size,
                        uint64_t line_behind) {
    const uint64_t size =
        sizeof(struct entry) + set->payload + key_size + line_behind;
    return (size + 7) & ~UINT64_C(7);
}

void *set_payload(const struct key_set *set, const struct entry *e) {
    (void)set;
    return (char *)(uintptr_t)e + sizeof *e;
}

static calyx_key key_of(const struct key_set *set, const struct entry *e) {
    return (calyx_key){(const char *)e + sizeof *e + set->payload, e->key_size};
}

calyx_key set_line(const struct key_set *set, const struct entry *e) {
    const calyx_key key = key_of(set, e);
    if (!e->line_behind) return key;
    return (calyx_key){(const char *)key.data + key.size, e->line_behind - 1};
}

uint64_t set_count(const struct key_set *set) {
    return set->count;
}

struct entry *set_next(const struct key_set *set, const struct entry *e) {
    const char *const next =
        e ? (const char *)e + size_of(set, e->key_size, e->line_behind)
          : set->entries;
    return next < set->entries + set->used
               ? (struct entry *)(void *)(uintptr_t)next
               : NULL;
}

/* ---- Slots -------------------------------------------------------------- */

static uint64_t tag_of(uint64_t hash) {
    return hash >> TAG_SHIFT << TAG_SHIFT;
}

static uint64_t place_in(uint64_t slot) {
    return slot & ((UINT64_C(1) << TAG_SHIFT) - 1);
}

void set_prefetch_slot(const struct key_set *set, uint64_t hash) {
    __builtin_prefetch(&set->slots[hash & (set->slot_count - 1)]);
}

void set_prefetch_entry(const struct key_set *set, uint64_t hash) {
    const uint64_t slot = set->slots[hash & (set->slot_count - 1)];
    if (!slot || tag_of(slot) != tag_of(hash)) return;
    const char *const e = (const char *)entry_at(set, place_in(slot));
    __builtin_prefetch(e);
    __builtin_prefetch(e + 64);
}

static bool is_key(const struct key_set *set, const struct entry *e,
                   const calyx_key *key, uint64_t hash) {
    return e->hash == hash && e->key_size == key->size &&
           memcmp(key_of(set, e).data, key->data, key->size) == 0;
}

struct entry *set_find(const struct key_set *set, const calyx_key *key,
                       uint64_t hash) {
    for (uint64_t at = hash;; at++) {
        const uint64_t slot = set->slots[at & (set->slot_count - 1)];
        if (!slot) return NULL;
        if (tag_of(slot) != tag_of(hash)) continue;
        struct entry *const e = entry_at(set, place_in(slot));
        if (is_key(set, e, key, hash)) return e;
    }
}

static void point_to(struct key_set *set, const struct entry *e) {
    uint64_t at = e->hash;
    while (set->slots[at & (set->slot_count - 1)]) at++;
    const uint64_t words = (uint64_t)((const char *)e - set->entries) / 8;
    set->slots[at & (set->slot_count - 1)] = tag_of(e->hash) | (words + 1);
}

/* Entries are in order, slots are not: prefetch the slots. */
static void point_to_all(struct key_set *set) {
    enum { AHEAD = 16 };
    const struct entry *ahead = NULL;
    for (int i = 0; i < AHEAD && (ahead = set_next(set, ahead)); i++)
        set_prefetch_slot(set, ahead->hash);
    for (const struct entry *e = NULL; (e = set_next(set, e));) {
        if (ahead && (ahead = set_next(set, ahead)))
            set_prefetch_slot(set, ahead->hash);
        point_to(set, e);
    }
}

/* ---- Putting ------------------------------------------------------------ */

static bool within_budget(const struct key_set *set, uint64_t slots,
                          uint64_t used) {
    return slots * sizeof *set->slots + used <= set->budget;
}

/* Slots for one more key: at most 2 of 3 are used, or 9 of 10 when there is no
 * memory for more. */
static bool room_in_slots(struct key_set *set, uint64_t used) {
    if (3 * set->count < 2 * set->slot_count) return true;
    if (!within_budget(set, 2 * set->slot_count, used))
        return 10 * set->count < 9 * set->slot_count;
    const uint64_t twice = 2 * set->slot_count;
    free_slots(set);
    alloc_slots(set, twice);
    point_to_all(set);
    return true;
}

uint64_t set_capacity(uint64_t budget, uint64_t entry_size) {
    uint64_t slots = FIRST_SLOTS;
    while (2 * slots * sizeof(uint64_t) + slots / 3 * 2 * entry_size <= budget)
        slots *= 2;
    const uint64_t left = budget - slots * sizeof(uint64_t);
    const uint64_t most = slots / 10 * 9;
    if (budget < slots * sizeof(uint64_t)) return 1;
    return left / entry_size < most ? left / entry_size : most;
}

/* Slots beyond an eighth of the budget must be earned: the guess may be far too
 * high, if many keys are equal. */
void set_expect(struct key_set *set, uint64_t keys) {
    uint64_t slots = set->slot_count;
    while (2 * slots < 3 * keys && 2 * slots <= set->budget / 8 / sizeof slots)
        slots *= 2;
    if (slots == set->slot_count) return;
    free_slots(set);
    alloc_slots(set, slots);
}

static void make_room(struct key_set *set, uint64_t used) {
    if (used <= set->room) return;
    uint64_t room = set->room;
    while (room < used) room *= 2;
    void *const moved = mremap(set->entries, set->room, room, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED)
        fail("out of memory: %llu bytes are wanted; -S sets how much is taken",
             (unsigned long long)room);
    if (room >= (1u << 22)) madvise(moved, room, MADV_HUGEPAGE);
    set->entries = moved;
    set->room = room;
}

struct entry *set_insert(struct key_set *set, const calyx_key *key,
                         uint64_t hash, const calyx_key *line) {
    const size_t longest =
        line && line->size > key->size ? line->size : key->size;
    if (longest >= UINT32_MAX)
        fail("a line of %zu bytes is too long to be compared; less than 4 GiB "
             "are wanted",
             longest);
    const uint64_t line_behind = line ? line->size + 1 : 0;
    const uint64_t used = set->used + size_of(set, key->size, line_behind);
    if (set->count && (!within_budget(set, set->slot_count, used) ||
                       !room_in_slots(set, used)))
        return NULL;
    make_room(set, used);

    struct entry *const e = (struct entry *)(void *)(set->entries + set->used);
    *e = (struct entry){hash, (uint32_t)key->size, (uint32_t)line_behind};
    char *const to = (char *)e + sizeof *e;
    memset(to, 0, set->payload);
    if (key->size) memcpy(to + set->payload, key->data, key->size);
    if (line && line->size)
        memcpy(to + set->payload + key->size, line->data, line->size);
    set->used = used;
    set->count++;
    point_to(set, e);
    return e;
}
