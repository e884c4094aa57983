/*
 * The allow list is a hash table with open addressing, and the bytes of its
 * keys after it, in one block of memory:
 *
 *     struct allow_list | slots | keys: u32 size, bytes; u32 size, bytes; ...
 *
 * Threads that add to the filter only set `dropped` in slots, so that readers
 * need no lock. All other changes want the filter for themselves, as calyx.h
 * says; they put a new block into the place of the old one, unless there is
 * room.
 */
#include "engine/allow_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/memory.h"

enum {
    SIZE_BYTES = 4, /* before each key */
    LEAST_SLOTS = 16,
    LEAST_ROOM = 256
};

struct allow_slot {
    uint64_t hash;
    uint32_t at;      /* of the size of the key, plus 1; 0: the slot is empty */
    uint32_t dropped; /* atomic: the key is no longer on the list             */
};

struct allow_list {
    uint32_t slots; /* a power of two, at least twice those in use    */
    uint32_t used;  /* slots in use, the slots of dropped keys included   */
    uint32_t room, taken; /* bytes for keys, and of these in use            */
    uint32_t keys, bytes; /* on the list; atomic                            */
};

/* ---- The block ----------------------------------------------------------- */

static size_t block_bytes(uint32_t slots, uint32_t room) {
    return sizeof(struct allow_list) + slots * sizeof(struct allow_slot) + room;
}

static struct allow_slot *slots_of(const struct allow_list *list) {
    return (struct allow_slot *)(list + 1);
}

static uint8_t *keys_of(const struct allow_list *list) {
    return (uint8_t *)(slots_of(list) + list->slots);
}

/* Acquire: whoever sees the number without a key sees that it was dropped. */
static uint32_t load(const uint32_t *number) {
    return __atomic_load_n(number, __ATOMIC_ACQUIRE);
}

static calyx_key key_in(const struct allow_list *list,
                        const struct allow_slot *slot) {
    const uint8_t *const entry = keys_of(list) + slot->at - 1;
    return (calyx_key){entry + SIZE_BYTES, load32(entry)};
}

static bool is_on(const struct allow_slot *slot) {
    return slot->at && !__atomic_load_n(&slot->dropped, __ATOMIC_ACQUIRE);
}

/* The size may be 0, and then the address NULL. */
static bool is_same(calyx_key a, const void *key, size_t size) {
    return a.size == size && (size == 0 || memcmp(a.data, key, size) == 0);
}

static struct allow_list *new_block(const calyx_memory *memory, uint64_t keys,
                                    uint64_t bytes) {
    uint32_t slots = LEAST_SLOTS, room = LEAST_ROOM;
    while (slots < 2 * keys) slots *= 2;
    while (room < bytes) room *= 2;
    struct allow_list *const made =
        memory->allocate(memory->context, block_bytes(slots, room), ALIGNMENT);
    if (!made) return NULL;
    made->slots = slots;
    made->room = room;
    return made;
}

static void release_block(const calyx_memory *memory, struct allow_list *list) {
    if (list)
        memory->release(memory->context, list,
                        block_bytes(list->slots, list->room));
}

/* There is room, and the key is not there. */
static void insert(struct allow_list *list, uint64_t hash, calyx_key key) {
    struct allow_slot *const slots = slots_of(list);
    uint32_t i = (uint32_t)hash & (list->slots - 1);
    while (slots[i].at) i = (i + 1) & (list->slots - 1);
    uint8_t *const entry = keys_of(list) + list->taken;
    store32(entry, (uint32_t)key.size);
    if (key.size) memcpy(entry + SIZE_BYTES, key.data, key.size);
    slots[i] = (struct allow_slot){.hash = hash, .at = list->taken + 1};
    const uint32_t bytes = SIZE_BYTES + (uint32_t)key.size;
    list->taken += bytes;
    list->used++;
    list->bytes += bytes;
    list->keys++;
}

/* The next slot from number *i on that has this hash and is on the list; at
 * first *i is the hash. NULL if there is none. */
static struct allow_slot *next_of_hash(const struct allow_list *list,
                                       uint64_t hash, uint64_t *i) {
    struct allow_slot *const slots = slots_of(list);
    for (;; ++*i) {
        struct allow_slot *const slot = &slots[*i & (list->slots - 1)];
        if (!slot->at) return NULL;
        if (slot->hash != hash || !is_on(slot)) continue;
        ++*i;
        return slot;
    }
}

static struct allow_slot *find(const struct allow_list *list, uint64_t hash,
                               const void *key, size_t size) {
    uint64_t i = hash;
    struct allow_slot *slot;
    while ((slot = next_of_hash(list, hash, &i)))
        if (is_same(key_in(list, slot), key, size)) return slot;
    return NULL;
}

/* Two threads may drop the same key: one of them counts it. */
static void drop(struct allow_list *list, struct allow_slot *slot) {
    if (__atomic_exchange_n(&slot->dropped, 1, __ATOMIC_ACQ_REL)) return;
    const uint32_t bytes = SIZE_BYTES + load32(keys_of(list) + slot->at - 1);
    __atomic_fetch_sub(&list->bytes, bytes, __ATOMIC_RELEASE);
    __atomic_fetch_sub(&list->keys, 1, __ATOMIC_RELEASE);
}

/* ---- For lookups and additions ------------------------------------------- */

/* Is this key, of this hash, on the list? */
static bool is_listed(const calyx_filter *f, uint64_t hash, const void *key,
                      size_t size) {
    return find(f->allowed, hash, key, size) != NULL;
}

/* Take all keys of this hash off the list, as it was added; other threads may
 * do the same, or look up keys. Returns whether `key` was among them; it may be
 * NULL. */
static bool drop_listed(const calyx_filter *f, uint64_t hash, const void *key,
                        size_t size) {
    struct allow_list *const list = f->allowed;
    uint64_t i = hash;
    bool was_there = false;
    struct allow_slot *slot;
    while ((slot = next_of_hash(list, hash, &i))) {
        was_there |= key && is_same(key_in(list, slot), key, size);
        drop(list, slot);
    }
    return was_there;
}

/* After a hash was added: was the key, which may be NULL, fresh? A key that was
 * on the list was not in the filter, whatever its bits say. */
static bool leave_list(calyx_filter *f, uint64_t hash, const void *key,
                       size_t size, bool was_fresh) {
    if (!drop_listed(f, hash, key, size) || was_fresh) return was_fresh;
    if (!is_counting(f)) count_items(f, newest_of(f), 1);
    return true;
}

/* ---- With a filter ------------------------------------------------------- */

static void replace(calyx_filter *f, struct allow_list *list) {
    release_block(&f->memory, f->allowed);
    f->allowed = list;
    choose_calls(f);
}

void drop_list(calyx_filter *f) {
    replace(f, NULL);
}

void move_list(calyx_filter *f, calyx_move_function *move, void *context) {
    if (f->allowed)
        f->allowed = move(context, f->allowed,
                          block_bytes(f->allowed->slots, f->allowed->room));
}

uint64_t list_memory_bytes(const calyx_filter *f) {
    return f->allowed ? block_bytes(f->allowed->slots, f->allowed->room) : 0;
}

static void insert_all(struct allow_list *to, const struct allow_list *from) {
    for (uint32_t i = 0; from && i < from->slots; i++) {
        const struct allow_slot *const slot = &slots_of(from)[i];
        if (is_on(slot)) insert(to, slot->hash, key_in(from, slot));
    }
}

/* Make room for a key of this many bytes. */
static bool reserve(calyx_filter *f, uint32_t bytes) {
    const struct allow_list *const list = f->allowed;
    if (list && 2 * (list->used + 1) <= list->slots &&
        bytes <= list->room - list->taken)
        return true;
    const uint64_t keys = list ? list->keys : 0, old = list ? list->bytes : 0;
    /* twice what is needed: the next ones find room */
    struct allow_list *const made =
        new_block(&f->memory, 2 * keys + 1, 2 * old + bytes);
    if (!made) return false;
    insert_all(made, list);
    replace(f, made);
    return true;
}

static calyx_status refuse_in_place(const calyx_filter *f, calyx_error *why) {
    if (!is_in_place(f)) return CALYX_OK;
    return fail(why, CALYX_READ_ONLY,
                "the allow list of a file cannot be changed in place; change "
                "the list of a copy, and save it");
}

static calyx_status refuse_size(uint64_t taken, uint64_t wanted,
                                calyx_error *why) {
    return fail(why, CALYX_FULL,
                "an allow list has at most %d bytes, with %d for each key; "
                "%llu are taken, and %llu more do not fit: build a filter with "
                "a lower rate instead",
                CALYX_ALLOW_MOST, SIZE_BYTES, (unsigned long long)taken,
                (unsigned long long)wanted);
}

calyx_status calyx_allow(calyx_filter *f, const void *key, size_t size,
                         bool *fresh, calyx_error *why) {
    const calyx_status status = refuse_in_place(f, why);
    if (status != CALYX_OK) return status;
    const uint64_t hash = calyx_hash(f, key, size);
    const bool is_new = !f->allowed || !is_listed(f, hash, key, size);
    if (is_new) {
        const uint32_t taken = f->allowed ? f->allowed->bytes : 0;
        if (size > CALYX_ALLOW_MOST ||
            taken + SIZE_BYTES + size > CALYX_ALLOW_MOST)
            return refuse_size(taken, (uint64_t)size + SIZE_BYTES, why);
        if (!reserve(f, SIZE_BYTES + (uint32_t)size))
            return fail(why, CALYX_NO_MEMORY, "no memory for an allow list");
        insert(f->allowed, hash, (calyx_key){key, size});
    }
    if (fresh) *fresh = is_new;
    return CALYX_OK;
}

calyx_status calyx_disallow(calyx_filter *f, const void *key, size_t size,
                            bool *found) {
    const calyx_status status = refuse_in_place(f, NULL);
    if (status != CALYX_OK) return status;
    struct allow_slot *const slot =
        f->allowed ? find(f->allowed, calyx_hash(f, key, size), key, size)
                   : NULL;
    if (found) *found = slot != NULL;
    if (!slot) return CALYX_OK;
    drop(f->allowed, slot);
    if (f->allowed->keys == 0) drop_list(f);
    return CALYX_OK;
}

bool calyx_is_allowed(const calyx_filter *f, const void *key, size_t size) {
    return f->allowed && is_listed(f, calyx_hash(f, key, size), key, size);
}

uint64_t listed_keys(const calyx_filter *f) {
    return f->allowed ? load(&f->allowed->keys) : 0;
}

bool calyx_next_allowed(const calyx_filter *f, uint64_t *at, calyx_key *key) {
    const struct allow_list *const list = f->allowed;
    for (; list && *at < list->slots; ++*at) {
        const struct allow_slot *const slot = &slots_of(list)[*at];
        if (!is_on(slot)) continue;
        *key = key_in(list, slot);
        ++*at;
        return true;
    }
    return false;
}

/* ---- As bytes ------------------------------------------------------------ */

static calyx_key entry_at(const uint8_t *entry) {
    return (calyx_key){entry + SIZE_BYTES, load32(entry)};
}

static int compare_keys(calyx_key a, calyx_key b) {
    const size_t least = a.size < b.size ? a.size : b.size;
    const int order = least ? memcmp(a.data, b.data, least) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_entries(const void *a, const void *b) {
    return compare_keys(entry_at(*(const uint8_t *const *)a),
                        entry_at(*(const uint8_t *const *)b));
}

bool is_encoded_list(const uint8_t *bytes, uint32_t size) {
    const uint8_t *before = NULL;
    for (uint32_t at = 0; at < size;) {
        const uint8_t *const entry = bytes + at;
        if (size - at < SIZE_BYTES || load32(entry) > size - at - SIZE_BYTES ||
            (before && compare_keys(entry_at(before), entry_at(entry)) >= 0))
            return false;
        at += SIZE_BYTES + load32(entry);
        before = entry;
    }
    return size <= CALYX_ALLOW_MOST;
}

uint64_t encoded_list_keys(const uint8_t *bytes, uint32_t size) {
    uint64_t keys = 0;
    for (uint32_t at = 0; at < size; keys++)
        at += SIZE_BYTES + load32(bytes + at);
    return keys;
}

bool is_in_encoded_list(const uint8_t *bytes, uint32_t size, const void *key,
                        size_t key_size) {
    for (uint32_t at = 0; at < size; at += SIZE_BYTES + load32(bytes + at))
        if (is_same(entry_at(bytes + at), key, key_size)) return true;
    return false;
}

uint32_t encoded_list_bytes(const calyx_filter *f) {
    return f->allowed ? load(&f->allowed->bytes) : 0;
}

/* Pointers to the entries on the list, sorted; returns their number. */
static size_t sort_entries(const struct allow_list *list,
                           const uint8_t **entries) {
    size_t n = 0;
    for (uint32_t i = 0; i < list->slots; i++)
        if (is_on(&slots_of(list)[i]))
            entries[n++] = keys_of(list) + slots_of(list)[i].at - 1;
    qsort(entries, n, sizeof *entries, compare_entries);
    return n;
}

calyx_status encode_list(const calyx_filter *f, struct encoded_list *out,
                         calyx_error *why) {
    const calyx_memory *const memory = &f->memory;
    *out = (struct encoded_list){.room = encoded_list_bytes(f)};
    if (!out->room) return CALYX_OK;
    const size_t pointers = f->allowed->used * sizeof(uint8_t *);
    const uint8_t **const entries =
        memory->allocate(memory->context, pointers, sizeof(uint64_t));
    if (entries)
        out->bytes =
            memory->allocate(memory->context, out->room, sizeof(uint64_t));
    const size_t n = out->bytes ? sort_entries(f->allowed, entries) : 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bytes = SIZE_BYTES + load32(entries[i]);
        memcpy(out->bytes + out->size, entries[i], bytes);
        out->size += bytes;
    }
    if (entries) memory->release(memory->context, entries, pointers);
    if (out->bytes) return CALYX_OK;
    return fail(why, CALYX_NO_MEMORY, "no memory to write an allow list");
}

void release_encoded_list(const calyx_filter *f, struct encoded_list *list) {
    if (list->bytes)
        f->memory.release(f->memory.context, list->bytes, list->room);
    *list = (struct encoded_list){0};
}

calyx_status decode_list(calyx_filter *f, const uint8_t *bytes, uint32_t size) {
    const uint64_t keys = encoded_list_keys(bytes, size);
    struct allow_list *const made =
        keys ? new_block(&f->memory, keys, size) : NULL;
    if (keys && !made) return CALYX_NO_MEMORY;
    for (uint32_t at = 0; at < size; at += SIZE_BYTES + load32(bytes + at)) {
        const calyx_key key = entry_at(bytes + at);
        insert(made, calyx_hash(f, key.data, key.size), key);
    }
    replace(f, made);
    return CALYX_OK;
}

/* ---- Of two filters ------------------------------------------------------ */

/* Keys have the same hash in both. */
calyx_status copy_list(calyx_filter *to, const calyx_filter *from) {
    const struct allow_list *const list = from->allowed;
    if (!list) return CALYX_OK;
    struct allow_list *const made =
        new_block(&to->memory, load(&list->keys), load(&list->bytes));
    if (!made) return CALYX_NO_MEMORY;
    insert_all(made, list);
    replace(to, made);
    return CALYX_OK;
}

/* Insert the keys of a filter's list that are not there yet; with `unless`,
 * those only that this filter has not. */
static void insert_some(struct allow_list *to, const calyx_filter *from,
                        const calyx_filter *unless) {
    const struct allow_list *const list = from->allowed;
    for (uint32_t i = 0; list && i < list->slots; i++) {
        const struct allow_slot *const slot = &slots_of(list)[i];
        if (!is_on(slot)) continue;
        const calyx_key key = key_in(list, slot);
        if (!(unless && calyx_has(unless, key.data, key.size)) &&
            !find(to, slot->hash, key.data, key.size))
            insert(to, slot->hash, key);
    }
}

/* The list of a union or intersection; NULL if it would be empty. */
static calyx_status combine(const calyx_filter *f, const calyx_filter *other,
                            bool unite, struct allow_list **out,
                            calyx_error *why) {
    *out = NULL;
    if (f->lent || !(f->allowed || other->allowed))
        return CALYX_OK; /* a file in place has none, and gets none */
    struct allow_list *const made =
        new_block(&f->memory, listed_keys(f) + listed_keys(other),
                  (uint64_t)encoded_list_bytes(f) + encoded_list_bytes(other));
    if (!made) return fail(why, CALYX_NO_MEMORY, "no memory for an allow list");
    insert_some(made, f, unite ? other : NULL);
    insert_some(made, other, unite ? f : NULL);
    if (made->keys > 0 && made->bytes <= CALYX_ALLOW_MOST) {
        *out = made;
        return CALYX_OK;
    }
    const uint64_t here = encoded_list_bytes(f);
    const calyx_status status =
        made->keys ? refuse_size(here, made->bytes - here, why) : CALYX_OK;
    release_block(&f->memory, made);
    return status;
}

static calyx_status replace_by_both(calyx_filter *f, const calyx_filter *other,
                                    bool unite, calyx_error *why) {
    struct allow_list *both;
    if (f == other) return CALYX_OK;
    const calyx_status status = combine(f, other, unite, &both, why);
    if (status == CALYX_OK) replace(f, both);
    return status;
}

calyx_status unite_lists(calyx_filter *f, const calyx_filter *other,
                         calyx_error *why) {
    return replace_by_both(f, other, true, why);
}

calyx_status intersect_lists(calyx_filter *f, const calyx_filter *other,
                             calyx_error *why) {
    return replace_by_both(f, other, false, why);
}

calyx_status check_lists(const calyx_filter *f, const calyx_filter *other,
                         calyx_error *why) {
    struct allow_list *both;
    const calyx_status status = combine(f, other, true, &both, why);
    release_block(&f->memory, both);
    return status;
}

void drop_listed_of(const calyx_filter *f, const calyx_filter *other) {
    for (uint32_t i = 0; f->allowed && i < f->allowed->slots; i++) {
        struct allow_slot *const slot = &slots_of(f->allowed)[i];
        if (!is_on(slot)) continue;
        const calyx_key key = key_in(f->allowed, slot);
        if (calyx_has(other, key.data, key.size)) drop(f->allowed, slot);
    }
}

/* ---- The calls of a filter with a list ----------------------------------- */

static bool listed_has(const calyx_filter *f, uint64_t hash) {
    return unlisted_calls(f)->has(f, hash);
}

static bool listed_has_key(const calyx_filter *f, const void *key,
                           size_t size) {
    const uint64_t hash = calyx_hash(f, key, size);
    return listed_has(f, hash) && !is_listed(f, hash, key, size);
}

static calyx_status add_and_leave(calyx_filter *f, uint64_t hash,
                                  const void *key, size_t size, bool *fresh) {
    bool is_fresh;
    const calyx_status status = unlisted_calls(f)->add(f, hash, &is_fresh);
    if (status != CALYX_OK) return status;
    is_fresh = leave_list(f, hash, key, size, is_fresh);
    if (fresh) *fresh = is_fresh;
    return CALYX_OK;
}

static calyx_status listed_add(calyx_filter *f, uint64_t hash, bool *fresh) {
    return add_and_leave(f, hash, NULL, 0, fresh);
}

static calyx_status listed_add_key(calyx_filter *f, const void *key,
                                   size_t size, bool *fresh) {
    return add_and_leave(f, calyx_hash(f, key, size), key, size, fresh);
}

static calyx_status listed_remove(calyx_filter *f, uint64_t hash,
                                  enum removal *became) {
    return unlisted_calls(f)->remove(f, hash, became);
}

/* A key on the list is not in the filter: its bits are the bits of other keys.
 */
static calyx_status remove_unlisted(calyx_filter *f, uint64_t hash,
                                    const void *key, size_t size,
                                    enum removal *became) {
    *became = KEY_ABSENT;
    if (!f->read_only && is_listed(f, hash, key, size)) return CALYX_OK;
    return listed_remove(f, hash, became);
}

static calyx_status listed_remove_key(calyx_filter *f, const void *key,
                                      size_t size, enum removal *became) {
    return remove_unlisted(f, calyx_hash(f, key, size), key, size, became);
}

static uint32_t listed_count(const calyx_filter *f, uint64_t hash) {
    return unlisted_calls(f)->count(f, hash);
}

static uint32_t listed_count_key(const calyx_filter *f, const void *key,
                                 size_t size) {
    const uint64_t hash = calyx_hash(f, key, size);
    return is_listed(f, hash, key, size) ? 0 : listed_count(f, hash);
}

static bool is_key_listed(const calyx_filter *f, const struct key_list *keys,
                          size_t i, uint64_t hash) {
    uint8_t room[sizeof(uint64_t)];
    const calyx_key key = key_at(keys, i, room);
    return is_listed(f, hash, key.data, key.size);
}

/* Only keys that were found are hashed again. Returns the number of "yes". */
static size_t listed_has_many(const calyx_filter *f,
                              const struct key_list *keys, bool *found) {
    const struct calls *const inner = unlisted_calls(f);
    bool here[BATCH_MAX];
    size_t total = 0;
    if (keys->hashes) return inner->has_many(f, keys, found);
    for (size_t from = 0, n; from < keys->n; from += n) {
        n = found ? keys->n : lesser_of(keys->n - from, BATCH_MAX);
        bool *const answers = found ? found : here;
        const struct key_list these = {
            .bytes = keys->bytes ? keys->bytes + from : NULL,
            .numbers = keys->numbers ? keys->numbers + from : NULL,
            .n = n,
        };
        inner->has_many(f, &these, answers);
        for (size_t i = 0; i < n; i++) {
            uint64_t buffer;
            if (answers[i])
                answers[i] = !is_key_listed(
                    f, &these, i, *hash_keys(f, &these, i, 1, &buffer));
            total += answers[i];
        }
    }
    return total;
}

static calyx_status listed_add_some(calyx_filter *f, struct key_window *w,
                                    bool *fresh, size_t *done) {
    bool here[BATCH_MAX];
    const uint64_t *const hashes = w->batch.hashes;
    if (!fresh) fresh = here;
    const calyx_status status = unlisted_calls(f)->add_some(f, w, fresh, done);
    for (size_t i = 0; status == CALYX_OK && i < *done; i++) {
        uint8_t room[sizeof(uint64_t)];
        const calyx_key key = key_at(w->keys, w->done + i, room);
        fresh[i] = leave_list(f, hashes[i], key.data, key.size, fresh[i]);
    }
    return status;
}

static calyx_status listed_remove_batch(calyx_filter *f, struct key_window *w,
                                        bool *found, size_t *removed) {
    if (w->keys->hashes)
        return unlisted_calls(f)->remove_batch(f, w, found, removed);
    *removed = 0;
    for (size_t i = 0; i < w->batch.n; i++) {
        uint8_t room[sizeof(uint64_t)];
        const calyx_key key = key_at(w->keys, w->done + i, room);
        enum removal became;
        const calyx_status status =
            remove_unlisted(f, w->batch.hashes[i], key.data, key.size, &became);
        if (status != CALYX_OK) return status;
        if (found) found[i] = became != KEY_ABSENT;
        *removed += became == KEY_REMOVED;
    }
    return CALYX_OK;
}

static const struct calls_of_keys calls_of_keys = {
    .has = listed_has_key,
    .add = listed_add_key,
    .remove = listed_remove_key,
    .count = listed_count_key,
};

const struct calls listed_calls = {
    .has = listed_has,
    .add = listed_add,
    .remove = listed_remove,
    .count = listed_count,
    .of_keys = &calls_of_keys,
    .has_many = listed_has_many,
    .add_some = listed_add_some,
    .remove_batch = listed_remove_batch,
    .most_hashes = BATCH_MAX,
};
