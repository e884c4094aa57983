/*
 * One key: hash it, then query the parts or add to one. batch.c does the same
 * for many keys.
 *
 * The common filter has one part, no limit and memory of its own. Its path is
 * has_hash and add_hash: no branch on the answer, so the processor can start
 * the caller's next lookup before this one is finished. Everything else is in
 * functions that are not inlined.
 */
#include "filter/single.h"

#include "base/compiler.h"
#include "filter/allow_list.h"
#include "filter/segments.h"
#include "filter/stripes.h"
#include "hash/xxh3.h"

/* ---- One hash ------------------------------------------------------------ */

/* The only branch is on whether the hash was bumped. */
static NOINLINE bool in_layers(const calyx_filter *f, uint64_t hash) {
    if (may_be_damaged(f) && meets_damage(f, hash)) return true;
    for (const struct part *p = f->first_layer; p; p = p->next_layer) {
        const enum layer_answer answer =
            f->kernel->has_in_layer(p->body, &p->shape, hash);
        if (answer != LAYER_BUMPED)
            return (answer == LAYER_YES) | is_truncated(f);
        hash = f->kind->construction->next_hash(hash);
    }
    return is_truncated(f); /* then no "no" is certain */
}

/* Newest part first: it is the largest, and holds most of the keys. */
static NOINLINE bool in_chain(const calyx_filter *f, uint64_t hash) {
    for (const struct part *p = newest_of(f); p; p = p->older)
        if (is_damaged_at(f, p, hash) || in_part(f, p, hash)) return true;
    return is_truncated(f); /* then no "no" is certain */
}

/* All end in another function, so this one needs no stack. */
static NOINLINE bool in_any_part(const calyx_filter *f, uint64_t hash) {
    if (f->table) return has_in_segments(f, hash);
    return f->first_layer ? in_layers(f, hash) : in_chain(f, hash);
}

/* In a filter that is not special. */
static inline bool has_plainly(const calyx_filter *f, uint64_t hash) {
    const struct part *p = newest_of(f);
    return p->older ? in_any_part(f, hash) : in_part(f, p, hash);
}

static inline bool has_hash(const calyx_filter *f, uint64_t hash) {
    return f->special ? in_any_part(f, hash) : has_plainly(f, hash);
}

/*
 * The part of a key: the oldest part that has it; NULL if none does.
 *
 * A counting filter adds a key to its part, or, if it has none, to the newest.
 * So older parts never gain a bit: a part that did not have the key when it was
 * added never will, and remove finds the part that add chose.
 */
static struct part *part_of(const calyx_filter *f, uint64_t hash) {
    struct part *oldest = NULL;
    for (struct part *p = newest_of(f); p; p = p->older)
        if (in_part(f, p, hash)) oldest = p;
    return oldest;
}

static calyx_status add_again(calyx_filter *f, struct part *p, uint64_t hash,
                              bool *fresh) {
    *fresh = false;
    if (!is_counting(f)) return CALYX_OK;
    f->kernel->add(p->body, &p->shape, hash);
    p->items++;
    return CALYX_OK;
}

NOINLINE calyx_status add_hash_general(calyx_filter *f, uint64_t hash,
                                       bool *fresh) {
    struct part *p;
    size_t one = 1;
    if (f->table) return add_to_segments(f, hash, fresh);
    const calyx_status marked =
        f->ranges ? f->ranges->mark(f, &hash, &one) : CALYX_OK;
    if (marked != CALYX_OK) return marked;
    for (;;) {
        p = newest_of(f);
        const bool full = is_bounded(f) && items_of(p) >= p->capacity;
        struct part *const has = p->older || full ? part_of(f, hash) : NULL;
        if (has) return add_again(f, has, hash, fresh);
        if (!is_bounded(f) || claim_room(f, p, 1)) break;
        const calyx_status grown = f->growth > 0 ? grow(f, p) : CALYX_FULL;
        if (grown != CALYX_OK) return grown;
    }
    *fresh = f->stripes ? add_to_stripe(f, p, hash)
                        : f->kernel->add(p->body, &p->shape, hash);
    const uint64_t claimed = is_bounded(f);
    count_items(f, p, (*fresh || is_counting(f)) - claimed);
    return CALYX_OK;
}

static inline calyx_status add_hash(calyx_filter *f, uint64_t hash,
                                    bool *fresh) {
    struct part *p = newest_of(f);
    if (f->read_only) return refuse_change(f);
    if (p->older || is_bounded(f) || f->special || f->stripes)
        return add_hash_general(f, hash, fresh);
    *fresh = f->kernel->add(p->body, &p->shape, hash);
    count_items(f, p, *fresh | is_counting(f));
    return CALYX_OK;
}

/* The kernel's remove looks for the key itself, so a filter with one part need
 * not be queried first. */
enum removal remove_hash(calyx_filter *f, uint64_t hash) {
    if (f->table) return remove_from_segments(f, hash);
    struct part *const newest = newest_of(f);
    struct part *const p = newest->older ? part_of(f, hash) : newest;
    if (!p) return KEY_ABSENT;
    const enum removal became = f->kernel->remove(p->body, &p->shape, hash);
    uncount_items(p, became == KEY_REMOVED);
    return became;
}

/* ---- With an allow list -------------------------------------------------- */

/* noinline, and called before the key is hashed: other filters, nearly all,
 * need not keep the key in registers. So is has_special. */
static NOINLINE bool has_unlisted(const calyx_filter *f, const void *key,
                                  size_t size) {
    const uint64_t hash = calyx_hash(f, key, size);
    return in_any_part(f, hash) && !is_listed(f, hash, key, size);
}

static NOINLINE bool has_special(const calyx_filter *f, const void *key,
                                 size_t size) {
    if (f->allowed) return has_unlisted(f, key, size);
    return in_any_part(f, calyx_hash(f, key, size));
}

/* A key that was on the list was not in the filter, whatever its bits say. */
bool leave_list(calyx_filter *f, uint64_t hash, const void *key, size_t size,
                bool was_fresh) {
    if (!drop_listed(f, hash, key, size) || was_fresh) return was_fresh;
    if (!is_counting(f)) count_items(f, newest_of(f), 1);
    return true;
}

static calyx_status add_and_leave(calyx_filter *f, uint64_t hash,
                                  const void *key, size_t size, bool *fresh) {
    const calyx_status status = add_hash(f, hash, fresh);
    if (status == CALYX_OK && f->allowed)
        *fresh = leave_list(f, hash, key, size, *fresh);
    return status;
}

static NOINLINE calyx_status add_special(calyx_filter *f, const void *key,
                                         size_t size, bool *fresh) {
    return add_and_leave(f, calyx_hash(f, key, size), key, size, fresh);
}

/* The bytes of a number, as a key. */
struct number_key {
    uint8_t bytes[8];
};

static struct number_key key_of_number(uint64_t number) {
    struct number_key key;
    store64(key.bytes, number);
    return key;
}

static NOINLINE calyx_status add_special_number(calyx_filter *f,
                                                uint64_t number, bool *fresh) {
    const struct number_key key = key_of_number(number);
    return add_special(f, key.bytes, sizeof key.bytes, fresh);
}

/* ---- The public calls ---------------------------------------------------- */

uint64_t calyx_hash(const calyx_filter *f, const void *key, size_t size) {
    return f->hash->one(&f->secret, key, size);
}

/* A call through a pointer costs as much as XXH3 of 8 bytes. */
static inline bool is_xxh3(const calyx_filter *f) {
    return __builtin_expect(f->hash->is_xxh3, true);
}

static uint64_t hash_number(const calyx_filter *f, uint64_t number) {
    if (is_xxh3(f)) return xxh3_of_number(number, f->secret.seed);
    return f->hash->number(f->hash, &f->secret, number);
}

/* noinline: the path of xxh3 needs no stack frame without it. */
static NOINLINE bool has_number(const calyx_filter *f, uint64_t number) {
    const struct number_key key = key_of_number(number);
    if (f->special) return has_special(f, key.bytes, sizeof key.bytes);
    return has_plainly(f, f->hash->number(f->hash, &f->secret, number));
}

bool calyx_has(const calyx_filter *f, const void *key, size_t size) {
    if (f->special) return has_special(f, key, size);
    return has_plainly(f, calyx_hash(f, key, size));
}

bool calyx_has_u64(const calyx_filter *f, uint64_t number) {
    if (!is_xxh3(f) || f->special) return has_number(f, number);
    return has_plainly(f, xxh3_of_number(number, f->secret.seed));
}

NO_CANARY calyx_status calyx_add(calyx_filter *f, const void *key, size_t size,
                                 bool *fresh) {
    bool ignored;
    if (!fresh) fresh = &ignored;
    if (f->special) return add_special(f, key, size, fresh);
    return add_hash(f, calyx_hash(f, key, size), fresh);
}

NO_CANARY calyx_status calyx_add_u64(calyx_filter *f, uint64_t number,
                                     bool *fresh) {
    bool ignored;
    if (!fresh) fresh = &ignored;
    if (f->special) return add_special_number(f, number, fresh);
    return add_hash(f, hash_number(f, number), fresh);
}

calyx_status calyx_remove_hash(calyx_filter *f, uint64_t hash, bool *found) {
    if (!is_counting(f) || is_table_locked_here(f)) return CALYX_CANNOT;
    if (f->read_only) return CALYX_READ_ONLY;
    const enum removal became = remove_hash(f, hash);
    if (found) *found = became != KEY_ABSENT;
    return CALYX_OK;
}

uint32_t calyx_count_hash(const calyx_filter *f, uint64_t hash) {
    enum { COUNT_MAX = 15 }; /* or more */
    /* The counters of a key are in other ranges than its bits. */
    if (f->ranges && is_counting(f)) f->ranges->verify_rest(f);
    if (f->first_layer) return has_hash(f, hash);
    if (may_be_damaged(f) && has_hash(f, hash))
        return is_counting(f) ? COUNT_MAX : 1;
    if (f->table) return count_in_segments(f, hash);
    const struct part *p = part_of(f, hash);
    uint32_t count = p != NULL;
    if (p && is_counting(f)) count = f->kind->count(p->body, &p->shape, hash);
    return count ? count : is_truncated(f);
}

/* ---- The same for keys, numbers and hashes ------------------------------- */

uint64_t calyx_hash_u64(const calyx_filter *f, uint64_t number) {
    return hash_number(f, number);
}

bool calyx_has_hash(const calyx_filter *f, uint64_t hash) {
    return has_hash(f, hash);
}

NO_CANARY calyx_status calyx_add_hash(calyx_filter *f, uint64_t hash,
                                      bool *fresh) {
    bool ignored;
    if (!fresh) fresh = &ignored;
    if (f->special) return add_and_leave(f, hash, NULL, 0, fresh);
    return add_hash(f, hash, fresh);
}

/* A key on the list is not in the filter: its bits are those of other keys. */
calyx_status calyx_remove(calyx_filter *f, const void *key, size_t size,
                          bool *found) {
    const uint64_t hash = calyx_hash(f, key, size);
    if (!f->allowed || !is_counting(f) || f->read_only ||
        !is_listed(f, hash, key, size))
        return calyx_remove_hash(f, hash, found);
    if (found) *found = false;
    return CALYX_OK;
}

calyx_status calyx_remove_u64(calyx_filter *f, uint64_t number, bool *found) {
    if (!f->allowed) return calyx_remove_hash(f, hash_number(f, number), found);
    const struct number_key key = key_of_number(number);
    return calyx_remove(f, key.bytes, sizeof key.bytes, found);
}

uint32_t calyx_count(const calyx_filter *f, const void *key, size_t size) {
    const uint64_t hash = calyx_hash(f, key, size);
    if (f->allowed && is_listed(f, hash, key, size)) return 0;
    return calyx_count_hash(f, hash);
}

uint32_t calyx_count_u64(const calyx_filter *f, uint64_t number) {
    if (!f->allowed) return calyx_count_hash(f, hash_number(f, number));
    const struct number_key key = key_of_number(number);
    return calyx_count(f, key.bytes, sizeof key.bytes);
}
