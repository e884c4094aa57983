#include "engine/key_list.h"

#include <string.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "engine/engine.h"
#include "hash/xxh3.h"

const uint64_t *hash_keys(const calyx_filter *f, const struct key_list *keys,
                          size_t from, size_t n, uint64_t *buffer) {
    if (keys->hashes) return keys->hashes + from;
    if (keys->bytes)
        f->hash->many(f->hash, &f->secret, keys->bytes + from, n,
                      keys->n - from - n, buffer);
    else
        f->hash->numbers(f->hash, &f->secret, f->kernel->level,
                         keys->numbers + from, n, buffer);
    return buffer;
}

calyx_key key_at(const struct key_list *keys, size_t i, uint8_t *room) {
    if (keys->bytes) return keys->bytes[i];
    if (!keys->numbers) return (calyx_key){0};
    store64(room, keys->numbers[i]);
    return (calyx_key){room, sizeof(uint64_t)};
}

/* Begin the next batch: append keys to those left in the window. */
static void fill_window(const calyx_filter *f, struct key_window *w) {
    const struct key_list *const keys = w->keys;
    const size_t left = keys->n - w->done, here = w->batch.more;
    const size_t all =
        keys->hashes ? left : lesser_of(left, BATCH_MAX + PREFETCH_DISTANCE);
    w->batch.n = lesser_of(all, w->most);
    w->batch.more = all - w->batch.n;
    if (all == 0) return; /* the arrays may be NULL */
    if (keys->hashes) {
        w->batch.hashes = keys->hashes + w->done;
        return;
    }
    memmove(w->buffer, w->batch.hashes, here * sizeof *w->buffer);
    w->batch.hashes = w->buffer;
    if (w->kernel_hashes)
        w->batch.numbers = keys->numbers + w->done;
    else
        hash_keys(f, keys, w->done + here, all - here, w->buffer + here);
}

void open_window(const calyx_filter *f, const struct key_list *keys,
                 struct key_window *w, uint64_t *buffer, size_t most) {
    *w = (struct key_window){
        .keys = keys,
        .most = most,
        .buffer = buffer,
        .batch.hashes = buffer,
    };
    fill_window(f, w);
}

void note_prefetched(struct batch *batch, size_t n) {
    batch->prefetched =
        lesser_of(n + PREFETCH_DISTANCE, batch->n + batch->more);
}

void advance_window(const calyx_filter *f, struct key_window *w, size_t n) {
    w->done += n;
    w->batch.hashes += n;
    w->batch.n -= n;
    w->batch.prefetched -= lesser_of(w->batch.prefetched, n);
    if (w->batch.n == 0) fill_window(f, w);
}

static NOINLINE size_t has_in_windows(const calyx_filter *f,
                                      const struct key_list *keys, bool *found,
                                      has_batch_function *has_batch,
                                      bool kernel_hashes) {
    uint64_t buffer[WINDOW_MOST];
    bool here[BATCH_MAX];
    size_t total = 0;
    struct key_window w = {
        .keys = keys,
        .most = BATCH_MAX,
        .buffer = buffer,
        .batch = {.hashes = buffer, .flip = xxh3_flip(f->secret.seed)},
        .kernel_hashes = kernel_hashes,
    };
    fill_window(f, &w);
    while (w.batch.n > 0) {
        const size_t n = w.batch.n;
        total += has_batch(f, w.batch, found ? found + w.done : here);
        note_prefetched(&w.batch, n);
        advance_window(f, &w, n);
    }
    return total;
}

size_t has_in_batches(const calyx_filter *f, const struct key_list *keys,
                      bool *found, has_batch_function *has_batch,
                      bool kernel_hashes) {
    const size_t n = keys->n;
    uint64_t buffer[FEW_KEYS];
    bool here[FEW_KEYS];
    if (n == 0 || n > FEW_KEYS)
        return has_in_windows(f, keys, found, has_batch, kernel_hashes);
    const uint64_t *const hashes = hash_keys(f, keys, 0, n, buffer);
    return has_batch(f, batch_of(hashes, n), found ? found : here);
}
