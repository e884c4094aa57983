/*
 * Many keys: hash a batch of them, then query or add the batch, with the memory
 * accesses of the batch overlapped (kind/prefetch.h).
 *
 * The road of calyx_add_many, for the kind "line" on AVX2:
 *
 *     add_keys, add_by             here
 *       open_window                engine/key_list.c: hash the next keys
 *         xxh3_many                hash/hash.c
 *       bits_add_some              engine/bits_engine.c
 *         line_add_batch           kind/line_batch_template.h: the loop
 *           steady_length          kind/prefetch.h: how far to prefetch
 *           line_of                kind/line.h, base/bits.h: where a line is
 *           add_8                  kind/line_avx2.c: the bits of 8 keys
 *           store_answers          kind/line_batch_template.h: which were new
 *       advance_window             engine/key_list.c
 */
#include "base/compiler.h"
#include "filter/filter.h"

static size_t has_keys(const calyx_filter *f, const struct key_list *keys,
                       bool *found) {
    return f->calls->has_many(f, keys, found);
}

/* Longer batches only where nothing else is made of hashes. */
static calyx_status add_by(calyx_filter *f, const struct key_list *keys,
                           uint64_t *buffer, bool *fresh, size_t *done) {
    const struct calls *const calls = f->calls;
    calyx_status status = CALYX_OK;
    struct key_window w;
    open_window(f, keys, &w, buffer,
                keys->hashes ? calls->most_hashes : BATCH_MAX);
    while (w.batch.n > 0) {
        size_t some;
        status = calls->add_some(f, &w, fresh ? fresh + w.done : NULL, &some);
        if (status != CALYX_OK) break;
        advance_window(f, &w, some);
    }
    if (done) *done = w.done;
    return status;
}

static NOINLINE calyx_status add_many(calyx_filter *f,
                                      const struct key_list *keys, bool *fresh,
                                      size_t *done) {
    uint64_t buffer[WINDOW_MOST];
    return add_by(f, keys, buffer, fresh, done);
}

static calyx_status add_keys(calyx_filter *f, const struct key_list *keys,
                             bool *fresh, size_t *done) {
    uint64_t few[FEW_KEYS];
    if (!keys->hashes && keys->n > FEW_KEYS)
        return add_many(f, keys, fresh, done);
    return add_by(f, keys, few, fresh, done);
}

static calyx_status remove_keys(calyx_filter *f, const struct key_list *keys,
                                bool *found, size_t *removed) {
    calyx_status status = CALYX_OK;
    size_t total = 0;
    uint64_t buffer[WINDOW_MOST];
    struct key_window w;
    if (removed) *removed = 0;
    if (!is_counting(f)) return CALYX_CANNOT;
    open_window(f, keys, &w, buffer, BATCH_MAX);
    while (w.batch.n > 0 && status == CALYX_OK) {
        const size_t n = w.batch.n;
        size_t some = 0;
        status =
            f->calls->remove_batch(f, &w, found ? found + w.done : NULL, &some);
        total += some;
        note_prefetched(&w.batch, n);
        advance_window(f, &w, n);
    }
    if (removed) *removed = total;
    return status;
}

/* ---- The public calls ---------------------------------------------------- */

void calyx_hash_many(const calyx_filter *f, const calyx_key *keys, size_t n,
                     uint64_t *hashes) {
    f->hash->many(f->hash, &f->secret, keys, n, 0, hashes);
}

calyx_status calyx_add_many(calyx_filter *f, const calyx_key *keys, size_t n,
                            bool *fresh, size_t *done) {
    return add_keys(f, &(struct key_list){.bytes = keys, .n = n}, fresh, done);
}

size_t calyx_has_many(const calyx_filter *f, const calyx_key *keys, size_t n,
                      bool *found) {
    return has_keys(f, &(struct key_list){.bytes = keys, .n = n}, found);
}

calyx_status calyx_remove_many(calyx_filter *f, const calyx_key *keys, size_t n,
                               bool *found, size_t *removed) {
    return remove_keys(f, &(struct key_list){.bytes = keys, .n = n}, found,
                       removed);
}

calyx_status calyx_remove_many_u64(calyx_filter *f, const uint64_t *numbers,
                                   size_t n, bool *found, size_t *removed) {
    return remove_keys(f, &(struct key_list){.numbers = numbers, .n = n}, found,
                       removed);
}

calyx_status calyx_add_many_u64(calyx_filter *f, const uint64_t *numbers,
                                size_t n, bool *fresh, size_t *done) {
    return add_keys(f, &(struct key_list){.numbers = numbers, .n = n}, fresh,
                    done);
}

size_t calyx_has_many_u64(const calyx_filter *f, const uint64_t *numbers,
                          size_t n, bool *found) {
    return has_keys(f, &(struct key_list){.numbers = numbers, .n = n}, found);
}

calyx_status calyx_add_hashes(calyx_filter *f, const uint64_t *hashes, size_t n,
                              bool *fresh, size_t *done) {
    return add_keys(f, &(struct key_list){.hashes = hashes, .n = n}, fresh,
                    done);
}

size_t calyx_has_hashes(const calyx_filter *f, const uint64_t *hashes, size_t n,
                        bool *found) {
    return has_keys(f, &(struct key_list){.hashes = hashes, .n = n}, found);
}
