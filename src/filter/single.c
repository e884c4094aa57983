/*
 * One key: hash it, then call what the engine of the filter does. batch.c does
 * the same for many keys.
 */
#include "base/bits.h"
#include "base/compiler.h"
#include "filter/filter.h"
#include "hash/xxh3.h"

/* The bytes of a number, as a key. */
struct number_key {
    uint8_t bytes[8];
};

static struct number_key key_of_number(uint64_t number) {
    struct number_key key;
    store64(key.bytes, number);
    return key;
}

/* ---- Keys ---------------------------------------------------------------- */

uint64_t calyx_hash(const calyx_filter *f, const void *key, size_t size) {
    return f->hash->one(&f->secret, key, size);
}

bool calyx_has(const calyx_filter *f, const void *key, size_t size) {
    const struct calls *const calls = f->calls;
    if (calls->of_keys) return calls->of_keys->has(f, key, size);
    return calls->has(f, calyx_hash(f, key, size));
}

NO_CANARY calyx_status calyx_add(calyx_filter *f, const void *key, size_t size,
                                 bool *fresh) {
    const struct calls *const calls = f->calls;
    if (calls->of_keys) return calls->of_keys->add(f, key, size, fresh);
    return calls->add(f, calyx_hash(f, key, size), fresh);
}

static calyx_status check_remove(const calyx_filter *f) {
    if (!is_counting(f)) return CALYX_CANNOT;
    return f->read_only ? CALYX_READ_ONLY : CALYX_OK;
}

calyx_status calyx_remove(calyx_filter *f, const void *key, size_t size,
                          bool *found) {
    const struct calls *const calls = f->calls;
    enum removal became = KEY_ABSENT;
    calyx_status status = check_remove(f);
    if (status != CALYX_OK) return status;
    status = calls->of_keys
                 ? calls->of_keys->remove(f, key, size, &became)
                 : calls->remove(f, calyx_hash(f, key, size), &became);
    if (status == CALYX_OK && found) *found = became != KEY_ABSENT;
    return status;
}

uint32_t calyx_count(const calyx_filter *f, const void *key, size_t size) {
    const struct calls *const calls = f->calls;
    if (calls->of_keys) return calls->of_keys->count(f, key, size);
    return calls->count(f, calyx_hash(f, key, size));
}

/* ---- Numbers ------------------------------------------------------------- */

/* A call through a pointer costs as much as XXH3 of 8 bytes. */
static inline bool is_xxh3(const calyx_filter *f) {
    return __builtin_expect(f->hash->is_xxh3, true);
}

uint64_t calyx_hash_u64(const calyx_filter *f, uint64_t number) {
    if (is_xxh3(f)) return xxh3_of_number(number, f->secret.seed);
    return f->hash->number(f->hash, &f->secret, number);
}

/* noinline: the path of other filters needs no stack frame without it. */
static NOINLINE bool has_key_of_number(const calyx_filter *f, uint64_t number) {
    const struct number_key key = key_of_number(number);
    return calyx_has(f, key.bytes, sizeof key.bytes);
}

bool calyx_has_u64(const calyx_filter *f, uint64_t number) {
    if (f->calls->of_keys || !is_xxh3(f)) return has_key_of_number(f, number);
    return f->calls->has(f, xxh3_of_number(number, f->secret.seed));
}

static NOINLINE calyx_status add_key_of_number(calyx_filter *f, uint64_t number,
                                               bool *fresh) {
    const struct number_key key = key_of_number(number);
    return calyx_add(f, key.bytes, sizeof key.bytes, fresh);
}

calyx_status calyx_add_u64(calyx_filter *f, uint64_t number, bool *fresh) {
    if (f->calls->of_keys || !is_xxh3(f))
        return add_key_of_number(f, number, fresh);
    return f->calls->add(f, xxh3_of_number(number, f->secret.seed), fresh);
}

calyx_status calyx_remove_u64(calyx_filter *f, uint64_t number, bool *found) {
    const struct number_key key = key_of_number(number);
    return calyx_remove(f, key.bytes, sizeof key.bytes, found);
}

uint32_t calyx_count_u64(const calyx_filter *f, uint64_t number) {
    const struct number_key key = key_of_number(number);
    return calyx_count(f, key.bytes, sizeof key.bytes);
}

/* ---- Hashes -------------------------------------------------------------- */

bool calyx_has_hash(const calyx_filter *f, uint64_t hash) {
    return f->calls->has(f, hash);
}

calyx_status calyx_add_hash(calyx_filter *f, uint64_t hash, bool *fresh) {
    return f->calls->add(f, hash, fresh);
}

calyx_status calyx_remove_hash(calyx_filter *f, uint64_t hash, bool *found) {
    enum removal became = KEY_ABSENT;
    calyx_status status = check_remove(f);
    if (status == CALYX_OK) status = f->calls->remove(f, hash, &became);
    if (status == CALYX_OK && found) *found = became != KEY_ABSENT;
    return status;
}

uint32_t calyx_count_hash(const calyx_filter *f, uint64_t hash) {
    return f->calls->count(f, hash);
}
