/*
 * Many keys: hash a batch of them, then query or add the batch, with the memory
 * accesses of the batch overlapped (kind/prefetch.h).
 *
 * The road of calyx_add_many, for the kind "line" on AVX2:
 *
 *     add_keys                     here
 *       fill_window                here: hash the next keys
 *         xxh3_many                hash/hash.c
 *       add_some                   here
 *         line_add_batch           kind/line_batch_template.h: the loop
 *           steady_length          kind/prefetch.h: how far to prefetch
 *           line_of                kind/line.h, base/bits.h: where a line is
 *           add_8                  kind/line_avx2.c: the bits of 8 keys
 *           store_answers          kind/line_batch_template.h: which were new
 *       advance_window             here
 *
 * A filter with a limit claims room before (claim_room, single.h).
 */
#include <string.h>

#include "filter/allow_list.h"
#include "filter/segments.h"
#include "filter/single.h"
#include "filter/stripes.h"
#include "hash/xxh3.h"
#include "kind/batch_loops.h"

/* ---- Keys to hashes ------------------------------------------------------ */

/* Keys in one of three forms; the other two are NULL. */
struct key_list {
    const calyx_key *bytes;
    const uint64_t *numbers, *hashes;
    size_t n;
};

/* The hashes of a list that are in work: a batch, and behind it the first ones
 * of the next, which the kernel prefetches. */
struct hash_window {
    struct batch batch;
    size_t most;        /* hashes in a batch                                */
    size_t done;        /* keys that have left the window                   */
    bool kernel_hashes; /* the kernel hashes numbers as it prefetches lines */
    uint64_t
        buffer[BATCH_MAX + PREFETCH_DISTANCE]; /* unless hashes are given */
};

static size_t at_most(size_t n, size_t limit) {
    return n < limit ? n : limit;
}

/* The hashes of n keys from `from` on: in the buffer, or as given. */
static const uint64_t *hash_keys(const calyx_filter *f,
                                 const struct key_list *keys, size_t from,
                                 size_t n, uint64_t *buffer) {
    if (keys->hashes) return keys->hashes + from;
    if (keys->bytes)
        f->hash->many(f->hash, &f->secret, keys->bytes + from, n,
                      keys->n - from - n, buffer);
    else
        f->hash->numbers(f->hash, &f->secret, f->kernel->level,
                         keys->numbers + from, n, buffer);
    return buffer;
}

/* Begin the next batch: append keys to those left in the window. */
static void fill_window(const calyx_filter *f, const struct key_list *keys,
                        struct hash_window *w) {
    const size_t left = keys->n - w->done, here = w->batch.more;
    const size_t all =
        keys->hashes ? left : at_most(left, BATCH_MAX + PREFETCH_DISTANCE);
    w->batch.n = at_most(all, w->most);
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

static void open_window(const calyx_filter *f, const struct key_list *keys,
                        struct hash_window *w, size_t most,
                        bool kernel_hashes) {
    w->most = most;
    w->done = 0;
    w->kernel_hashes = kernel_hashes;
    w->batch = (struct batch){.hashes = w->buffer};
    if (kernel_hashes) w->batch.flip = xxh3_flip(f->secret.seed);
    fill_window(f, keys, w);
}

/* A kernel has processed the first n hashes. */
static void note_prefetched(struct batch *batch, size_t n) {
    batch->prefetched = at_most(n + PREFETCH_DISTANCE, batch->n + batch->more);
}

/* The first n hashes leave the window. */
static void advance_window(const calyx_filter *f, const struct key_list *keys,
                           struct hash_window *w, size_t n) {
    w->done += n;
    w->batch.hashes += n;
    w->batch.n -= n;
    w->batch.prefetched -= at_most(w->batch.prefetched, n);
    if (w->batch.n == 0) fill_window(f, keys, w);
}

/* ---- Query a filter that has grown --------------------------------------- */

enum {
    LARGE_BYTES = 16 << 20
}; /* a part beyond the caches has at least these */

static bool is_large(const calyx_filter *f, const struct part *p) {
    return bits_bytes(f->kind, &p->shape) >= LARGE_BYTES;
}

/* Query this part and the older ones together, as far as the kernel can.
 * Returns the first part that is left to the caller. */
static const struct part *has_together(const calyx_filter *f,
                                       const struct part *p,
                                       const uint64_t *hashes, size_t n,
                                       bool *found) {
    while (f->kernel->has_in_any && p) {
        struct part_view views[PARTS_AT_ONCE];
        size_t count = 0;
        for (; p && count < PARTS_AT_ONCE; p = p->older, count++) {
            if (p->shape.blocks >> 32) break;
            views[count] = (struct part_view){p->body, p->shape};
        }
        if (count == 0) break;
        f->kernel->has_in_any(views, count, hashes, n, found);
    }
    return p;
}

/* Query one part after the other, each for the hashes not found yet. */
static void has_one_by_one(const calyx_filter *f, const struct part *p,
                           const uint64_t *hashes, size_t n, bool *found) {
    uint64_t left[BATCH_MAX];
    uint16_t place[BATCH_MAX];
    bool here[BATCH_MAX];
    for (; p; p = p->older) {
        size_t lefts = 0;
        for (size_t i = 0; i < n; i++) {
            left[lefts] = hashes[i];
            place[lefts] = (uint16_t)i;
            lefts += !found[i];
        }
        f->kernel->has_batch(p->body, &p->shape, batch_of(left, lefts), here);
        for (size_t i = 0; i < lefts; i++) found[place[i]] = here[i];
    }
}

/* Query a large part by itself: 20 % faster than together with others, once it
 * is in memory and not in a cache. */
static void has_alone(const calyx_filter *f, const struct part *p,
                      const uint64_t *hashes, size_t n, bool *found) {
    bool here[BATCH_MAX];
    f->kernel->has_batch(p->body, &p->shape, batch_of(hashes, n), here);
    for (size_t i = 0; i < n; i++) found[i] |= here[i];
}

/* Query this part and all older ones. The newest parts are the largest. A batch
 * without hashes to prefetch has more memory accesses in flight if all parts
 * are queried together. */
static size_t has_in_parts(const calyx_filter *f, const struct part *p,
                           const uint64_t *hashes, size_t n, bool *found) {
    memset(found, false, n);
    for (; p && n > PREFETCH_DISTANCE && is_large(f, p); p = p->older)
        has_alone(f, p, hashes, n, found);
    p = has_together(f, p, hashes, n, found);
    if (p) has_one_by_one(f, p, hashes, n, found);
    return count_true(found, n);
}

/* ---- Query a static filter ----------------------------------------------- */

/* Hashes that a layer has bumped, for the next one, and whose they are. */
struct bumped_list {
    size_t n;
    uint64_t hashes[BATCH_MAX];
    size_t places[BATCH_MAX];
};

/* Answer all of a list by the layers behind the first, and empty it. `found`
 * may be NULL; the places in it are false so far. Returns the number of "yes".
 */
static size_t has_in_next_layers(const calyx_filter *f,
                                 struct bumped_list *list, bool *found) {
    bool here[BATCH_MAX];
    uint16_t bumped[BATCH_MAX + 1];
    const struct part *p = f->first_layer;
    size_t yes = 0;
    while (list->n > 0 && (p = p->next_layer)) {
        const size_t n = list->n;
        list->n = f->kernel->has_batch_in_layer(
            p->body, &p->shape, batch_of(list->hashes, n), here, bumped);
        yes += count_true(here, n);
        for (size_t i = 0; found && i < n; i++)
            found[list->places[i]] = here[i];
        for (size_t i = 0; i < list->n; i++) {
            const size_t from = bumped[i];
            list->hashes[i] =
                f->kind->construction->next_hash(list->hashes[from]);
            list->places[i] = list->places[from];
        }
    }
    list->n = 0;
    return yes;
}

/* Query the first layer, and list what it has bumped. The first hash of the
 * batch has this place in `all_found`, which gets the answers of those that are
 * on the list when that is full. Returns the number of "yes". */
static size_t has_in_first_layer(const calyx_filter *f, struct batch batch,
                                 bool *found, struct bumped_list *list,
                                 size_t place, bool *all_found) {
    uint16_t bumped[BATCH_MAX + 1];
    const struct part *const p = f->first_layer;
    const size_t n =
        f->kernel->has_batch_in_layer(p->body, &p->shape, batch, found, bumped);
    size_t yes = count_true(found, batch.n);
    if (list->n + n > BATCH_MAX) yes += has_in_next_layers(f, list, all_found);
    for (size_t i = 0; i < n; i++, list->n++) {
        list->hashes[list->n] =
            f->kind->construction->next_hash(batch.hashes[bumped[i]]);
        list->places[list->n] = place + bumped[i];
    }
    return yes;
}

static size_t has_in_layers(const calyx_filter *f, struct batch batch,
                            bool *found) {
    struct bumped_list list;
    list.n = 0;
    const size_t yes = has_in_first_layer(f, batch, found, &list, 0, found);
    return yes + has_in_next_layers(f, &list, found);
}

/* Query all parts. */
static size_t has_in_filter(const calyx_filter *f, const struct part *p,
                            struct batch batch, bool *found) {
    if (f->table)
        return f->kernel->table->has_batch(&f->table->t, batch, found);
    if (!p->older)
        return f->kernel->has_batch(p->body, &p->shape, batch, found);
    return f->first_layer ? has_in_layers(f, batch, found)
                          : has_in_parts(f, p, batch.hashes, batch.n, found);
}

/* ---- Files with damage --------------------------------------------------- */

/* Will this number of keys use most of the ranges that are left? Then one pass
 * over all of them, in order, is faster. */
static bool uses_most(size_t keys, const uint64_t *left) {
    const uint64_t n = __atomic_load_n(left, __ATOMIC_RELAXED);
    return n > 0 && keys >= n;
}

/* Compare the ranges of these hashes with their checksums. */
static NOINLINE void verify_batch(const calyx_filter *f, const struct part *p,
                                  const uint64_t *hashes, size_t n) {
    for (size_t i = 0; f->first_layer && i < n; i++) meets_damage(f, hashes[i]);
    for (; p && !f->first_layer; p = p->older)
        for (size_t i = 0; i < n; i++) f->ranges->is_intact(f, p, hashes[i]);
}

/* Returns the number of "yes". */
static NOINLINE size_t answer_yes_where_damaged(const calyx_filter *f,
                                                const struct part *p,
                                                const uint64_t *hashes,
                                                size_t n, bool *found) {
    for (size_t i = 0; f->first_layer && i < n; i++)
        if (!found[i]) found[i] = meets_damage(f, hashes[i]);
    for (; p && !f->first_layer; p = p->older)
        for (size_t i = 0; i < n; i++)
            if (!found[i]) found[i] = is_damaged_at(f, p, hashes[i]);
    return count_true(found, n);
}

/* If the file was truncated, no "no" is certain. Returns the number of "yes".
 */
static size_t answer_yes_if_truncated(const calyx_filter *f, size_t yes,
                                      bool *found, size_t n) {
    if (yes == n || !is_truncated(f)) return yes;
    if (found) memset(found, true, n);
    return n;
}

/* ---- Query many, sorted -------------------------------------------------- */

/*
 * The higher a hash, the higher the address of its line, in every part. So
 * hashes that are roughly sorted walk through all parts from the first line to
 * the last, and reuse the lines and pages of the hashes before them. That
 * outweighs the sorting if there are many hashes, and the parts are large.
 */
enum {
    SORTED_MAX = 4096, /* hashes at a time: 8192 are 10 % faster, but take 90
                          KiB of stack instead of 50 */
    BUCKET_BITS = 8,
    BUCKETS = 1 << BUCKET_BITS,
    SORTED_LEAST = 1024,
    SORTED_LEAST_BYTES = 1 << 20
};
_Static_assert(SORTED_MAX <= UINT16_MAX, "places are numbers of 16 bits");

static bool is_sorting_faster(const calyx_filter *f, const struct part *p,
                              size_t n) {
    if (!p->older || !f->kernel->has_in_any || n < SORTED_LEAST) return false;
    uint64_t bytes = 0;
    for (; p; p = p->older) bytes += bits_bytes(f->kind, &p->shape);
    return bytes >= SORTED_LEAST_BYTES;
}

/* Sort by the highest bits: order[0] is the place of the first hash. */
static void bucket_sort(uint16_t *order, const uint64_t *hashes, size_t n) {
    const int shift = 64 - BUCKET_BITS;
    uint16_t next[BUCKETS + 1] = {0};
    for (size_t i = 0; i < n; i++) next[(hashes[i] >> shift) + 1]++;
    for (size_t i = 1; i < BUCKETS; i++)
        next[i] = (uint16_t)(next[i] + next[i - 1]);
    for (size_t i = 0; i < n; i++)
        order[next[hashes[i] >> shift]++] = (uint16_t)i;
}

static NOINLINE size_t has_sorted(const calyx_filter *f, const struct part *p,
                                  const struct key_list *keys, bool *found) {
    uint64_t buffer[SORTED_MAX];
    uint16_t order[SORTED_MAX];
    size_t total = 0;
    for (size_t from = 0, n; from < keys->n; from += n) {
        n = at_most(keys->n - from, SORTED_MAX);
        const uint64_t *const hashes = hash_keys(f, keys, from, n, buffer);
        bool *const answers = found ? found + from : NULL;
        size_t yes = 0;
        bucket_sort(order, hashes, n);
        for (size_t i = 0, some; i < n; i += some) {
            uint64_t sorted[BATCH_MAX];
            bool here[BATCH_MAX];
            some = at_most(n - i, BATCH_MAX);
            for (size_t j = 0; j < some; j++) sorted[j] = hashes[order[i + j]];
            if (may_be_damaged(f)) verify_batch(f, p, sorted, some);
            size_t these = has_in_parts(f, p, sorted, some, here);
            if (may_be_damaged(f))
                these = answer_yes_where_damaged(f, p, sorted, some, here);
            yes += these;
            for (size_t j = 0; answers && j < some; j++)
                answers[order[i + j]] = here[j];
        }
        total += answer_yes_if_truncated(f, yes, answers, n);
    }
    return total;
}

/* ---- Query many ---------------------------------------------------------- */

/* Is it faster if the kernel hashes numbers while it waits for memory? In a
 * cache it does not wait, and is 5 % slower. */
static bool should_kernel_hash(const calyx_filter *f, const struct part *p,
                               const struct key_list *keys) {
    return keys->numbers && !p->older && is_large(f, p) && f->hash->is_xxh3 &&
           f->kernel->hashes_numbers && !may_be_damaged(f);
}

static NOINLINE size_t has_in_batches(const calyx_filter *f,
                                      const struct part *p,
                                      const struct key_list *keys,
                                      bool *found) {
    bool here[BATCH_MAX];
    size_t total = 0;
    struct hash_window w;
    open_window(f, keys, &w, BATCH_MAX, should_kernel_hash(f, p, keys));
    while (w.batch.n > 0) {
        const size_t n = w.batch.n;
        const uint64_t *const hashes = w.batch.hashes;
        bool *const answers = found ? found : here;
        if (may_be_damaged(f)) verify_batch(f, p, hashes, n);
        size_t yes = has_in_filter(f, p, w.batch, answers);
        if (may_be_damaged(f))
            yes = answer_yes_where_damaged(f, p, hashes, n, answers);
        total += answer_yes_if_truncated(f, yes, answers, n);
        note_prefetched(&w.batch, n);
        advance_window(f, keys, &w, n);
        if (found) found += n;
    }
    return total;
}

/* What the first layer bumps, 4 % of the keys, waits until there is a batch of
 * it: a few at a time would wait for memory, and take twice as long. */
static NOINLINE size_t has_in_layers_in_batches(const calyx_filter *f,
                                                const struct key_list *keys,
                                                bool *found) {
    bool here[BATCH_MAX];
    struct bumped_list list;
    struct hash_window w;
    size_t yes = 0;
    list.n = 0;
    open_window(f, keys, &w, BATCH_MAX, false);
    while (w.batch.n > 0) {
        const size_t n = w.batch.n;
        yes += has_in_first_layer(f, w.batch, found ? found + w.done : here,
                                  &list, w.done, found);
        note_prefetched(&w.batch, n);
        advance_window(f, keys, &w, n);
    }
    yes += has_in_next_layers(f, &list, found);
    return answer_yes_if_truncated(f, yes, found, keys->n);
}

/* All are noinline: otherwise one frame would hold the buffers of all. */
static size_t query_keys(const calyx_filter *f, const struct key_list *keys,
                         bool *found) {
    const struct part *p = newest_of(f);
    if (f->ranges && uses_most(keys->n, &f->ranges->unverified))
        f->ranges->verify_rest(f);
    if (f->first_layer && !may_be_damaged(f))
        return has_in_layers_in_batches(f, keys, found);
    return is_sorting_faster(f, p, keys->n) ? has_sorted(f, p, keys, found)
                                            : has_in_batches(f, p, keys, found);
}

/* ---- With an allow list -------------------------------------------------- */

/* The bytes of key i; NULL if only its hash is known. Those of a number are
 * stored in `room`. */
static calyx_key key_at(const struct key_list *keys, size_t i, uint8_t *room) {
    if (keys->bytes) return keys->bytes[i];
    if (!keys->numbers) return (calyx_key){0};
    store64(room, keys->numbers[i]);
    return (calyx_key){room, sizeof(uint64_t)};
}

static bool is_key_listed(const calyx_filter *f, const struct key_list *keys,
                          size_t i, uint64_t hash) {
    uint8_t room[sizeof(uint64_t)];
    const calyx_key key = key_at(keys, i, room);
    return is_listed(f, hash, key.data, key.size);
}

/* Only keys that were found are hashed again. Returns the number of "yes". */
static NOINLINE size_t has_many_unlisted(const calyx_filter *f,
                                         const struct key_list *keys,
                                         bool *found) {
    bool here[BATCH_MAX];
    size_t total = 0;
    for (size_t from = 0, n; from < keys->n; from += n) {
        n = found ? keys->n : at_most(keys->n - from, BATCH_MAX);
        bool *const answers = found ? found : here;
        const struct key_list these = {
            .bytes = keys->bytes ? keys->bytes + from : NULL,
            .numbers = keys->numbers ? keys->numbers + from : NULL,
            .n = n,
        };
        query_keys(f, &these, answers);
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

static size_t has_keys(const calyx_filter *f, const struct key_list *keys,
                       bool *found) {
    return f->allowed && !keys->hashes ? has_many_unlisted(f, keys, found)
                                       : query_keys(f, keys, found);
}

/* ---- Add many ------------------------------------------------------------ */

static size_t add_batch(calyx_filter *f, struct part *p, struct batch batch,
                        bool *fresh) {
    return f->stripes ? add_batch_to_stripes(f, p, batch, fresh)
                      : f->kernel->add_batch(p->body, &p->shape, batch, fresh);
}

/* Add hashes to a filter that has grown, except those that an older part has.
 * Returns the number of fresh ones. */
static size_t add_to_grown(calyx_filter *f, struct part *p,
                           const uint64_t *hashes, size_t n, bool *fresh) {
    uint64_t new[BATCH_MAX];
    bool here[BATCH_MAX], answers[BATCH_MAX];
    has_in_parts(f, p->older, hashes, n, here);
    size_t news = 0;
    for (size_t i = 0; i < n; i++) {
        new[news] = hashes[i];
        news += !here[i];
    }
    const size_t total = add_batch(f, p, batch_of(new, news), answers);
    if (fresh)
        for (size_t i = 0, j = 0; i < n; i++)
            fresh[i] = !here[i] && answers[j++];
    return total;
}

/* Add the first n hashes of a batch to the only part of a filter. */
static size_t add_to_only(calyx_filter *f, struct part *p, struct batch *batch,
                          size_t n, bool *fresh) {
    struct batch first = *batch;
    first.n = n;
    first.more += batch->n - n;
    note_prefetched(batch, n);
    return add_batch(f, p, first, fresh);
}

/* Add the first hashes of a batch: as many as there is room for in the newest
 * part, or one, if the filter has to grow or each key has a part of its own. */
static calyx_status add_some(calyx_filter *f, struct batch *batch, bool *fresh,
                             size_t *done) {
    if (f->table) return add_batch_to_segments(f, batch, fresh, done);
    struct part *p = newest_of(f);
    const bool one_by_one = p->older && is_counting(f), claims = is_bounded(f);
    size_t n = batch->n;
    const calyx_status marked =
        f->ranges ? f->ranges->mark(f, batch->hashes, &n) : CALYX_OK;
    if (marked != CALYX_OK) return marked;
    if (one_by_one)
        n = 0;
    else if (claims)
        n = (size_t)claim_room(f, p, n);
    if (n == 0) {
        bool ignored;
        *done = 1;
        return add_hash_general(f, *batch->hashes, fresh ? fresh : &ignored);
    }
    const size_t added = p->older ? add_to_grown(f, p, batch->hashes, n, fresh)
                                  : add_to_only(f, p, batch, n, fresh);
    const uint64_t counted = is_counting(f) ? n : added;
    count_items(f, p, counted - (claims ? n : 0));
    *done = n;
    return CALYX_OK;
}

/* The same for a filter with an allow list: the keys leave it. */
static NOINLINE calyx_status add_some_listed(calyx_filter *f,
                                             const struct key_list *keys,
                                             struct hash_window *w, bool *fresh,
                                             size_t *done) {
    bool here[BATCH_MAX];
    const uint64_t *const hashes = w->batch.hashes;
    if (!fresh) fresh = here;
    const calyx_status status = add_some(f, &w->batch, fresh, done);
    for (size_t i = 0; status == CALYX_OK && i < *done; i++) {
        uint8_t room[sizeof(uint64_t)];
        const calyx_key key = key_at(keys, w->done + i, room);
        fresh[i] = leave_list(f, hashes[i], key.data, key.size, fresh[i]);
    }
    return status;
}

/* Stripes take longer batches than kernels do, where nothing else is made of
 * them. */
static size_t largest_batch(const calyx_filter *f,
                            const struct key_list *keys) {
    return f->stripes && keys->hashes && !f->ranges && !f->allowed &&
                   !(f->growth > 0)
               ? STRIPE_BATCH_MAX
               : BATCH_MAX;
}

static calyx_status add_keys(calyx_filter *f, const struct key_list *keys,
                             bool *fresh, size_t *done) {
    if (done) *done = 0;
    if (f->read_only) return refuse_change(f);
    calyx_status status = CALYX_OK;
    if (f->ranges && uses_most(keys->n, &f->ranges->unmarked))
        f->ranges->mark_all(f, true); /* add_some returns its errors */
    struct hash_window w;
    open_window(f, keys, &w, largest_batch(f, keys), false);
    while (w.batch.n > 0) {
        size_t some;
        bool *const answers = fresh ? fresh + w.done : NULL;
        status = f->allowed ? add_some_listed(f, keys, &w, answers, &some)
                            : add_some(f, &w.batch, answers, &some);
        if (status != CALYX_OK) break;
        advance_window(f, keys, &w, some);
    }
    if (done) *done = w.done;
    return status;
}

/* ---- Remove many --------------------------------------------------------- */

/* A filter that has grown removes one by one: each key has a part of its own.
 */
static size_t remove_batch(calyx_filter *f, struct part *p, struct batch batch,
                           bool *found) {
    if (f->table) return remove_batch_from_segments(f, &batch, found);
    if (!p->older) {
        const size_t removed =
            f->kernel->remove_batch(p->body, &p->shape, batch, found);
        uncount_items(p, removed);
        return removed;
    }
    size_t total = 0;
    for (size_t i = 0; i < batch.n; i++) {
        const enum removal became = remove_hash(f, batch.hashes[i]);
        if (found) found[i] = became != KEY_ABSENT;
        total += became == KEY_REMOVED;
    }
    return total;
}

/* Keys on the allow list are not in the filter, and stay. */
static NOINLINE size_t remove_many_unlisted(calyx_filter *f,
                                            const struct key_list *keys,
                                            bool *found) {
    size_t total = 0;
    for (size_t i = 0; i < keys->n; i++) {
        uint64_t buffer;
        const uint64_t hash = *hash_keys(f, keys, i, 1, &buffer);
        const enum removal became =
            is_key_listed(f, keys, i, hash) ? KEY_ABSENT : remove_hash(f, hash);
        if (found) found[i] = became != KEY_ABSENT;
        total += became == KEY_REMOVED;
    }
    return total;
}

static calyx_status remove_keys(calyx_filter *f, const struct key_list *keys,
                                bool *found, size_t *removed) {
    if (removed) *removed = 0;
    if (!is_counting(f) || is_table_locked_here(f)) return CALYX_CANNOT;
    if (f->read_only) return CALYX_READ_ONLY;
    struct part *p = newest_of(f);
    size_t total = 0;
    if (f->allowed && !keys->hashes) {
        total = remove_many_unlisted(f, keys, found);
        if (removed) *removed = total;
        return CALYX_OK;
    }
    struct hash_window w;
    open_window(f, keys, &w, BATCH_MAX, false);
    while (w.batch.n > 0) {
        const size_t n = w.batch.n;
        total += remove_batch(f, p, w.batch, found);
        note_prefetched(&w.batch, n);
        advance_window(f, keys, &w, n);
        if (found) found += n;
    }
    if (removed) *removed = total;
    return CALYX_OK;
}

/* ---- Count many ---------------------------------------------------------- */

/* Prefetch the counters of a hash; its bits were just looked up. */
static void prefetch_counters(const calyx_filter *f, const struct part *p,
                              uint64_t hash) {
    uint64_t at[MOST_COUNTER_OFFSETS];
    const size_t n = f->kind->counter_offsets(&p->shape, hash, at);
    for (size_t i = 0; i < n; i++) __builtin_prefetch(p->body + at[i]);
}

/* Lookups first: absent keys, mostly the larger share, need no counters. A part
 * of a grown filter is known only when its bits were read. */
static void count_each_key(const calyx_filter *f, const struct key_list *keys,
                           uint32_t *counts) {
    enum { AHEAD = 8 };
    const bool prefetches = f->kind->counter_offsets && !newest_of(f)->older;
    uint64_t buffer[BATCH_MAX];
    bool found[BATCH_MAX];
    for (size_t from = 0, n; from < keys->n; from += n) {
        n = at_most(keys->n - from, BATCH_MAX);
        const uint64_t *const hashes = hash_keys(f, keys, from, n, buffer);
        query_keys(f, &(struct key_list){.hashes = hashes, .n = n}, found);
        for (size_t i = 0; i < n; i++) {
            if (prefetches && i + AHEAD < n && found[i + AHEAD])
                prefetch_counters(f, newest_of(f), hashes[i + AHEAD]);
            const bool is_in =
                found[i] && !(f->allowed && !keys->hashes &&
                              is_key_listed(f, keys, from + i, hashes[i]));
            counts[from + i] = is_in ? calyx_count_hash(f, hashes[i]) : 0;
        }
    }
}

/* ---- The public calls ---------------------------------------------------- */

void calyx_hash_many(const calyx_filter *f, const calyx_key *keys, size_t n,
                     uint64_t *hashes) {
    f->hash->many(f->hash, &f->secret, keys, n, 0, hashes);
}

void calyx_hash_many_u64(const calyx_filter *f, const uint64_t *numbers,
                         size_t n, uint64_t *hashes) {
    f->hash->numbers(f->hash, &f->secret, f->kernel->level, numbers, n, hashes);
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

calyx_status calyx_remove_hashes(calyx_filter *f, const uint64_t *hashes,
                                 size_t n, bool *found, size_t *removed) {
    return remove_keys(f, &(struct key_list){.hashes = hashes, .n = n}, found,
                       removed);
}

void calyx_count_many(const calyx_filter *f, const calyx_key *keys, size_t n,
                      uint32_t *counts) {
    count_each_key(f, &(struct key_list){.bytes = keys, .n = n}, counts);
}

void calyx_count_many_u64(const calyx_filter *f, const uint64_t *numbers,
                          size_t n, uint32_t *counts) {
    count_each_key(f, &(struct key_list){.numbers = numbers, .n = n}, counts);
}

void calyx_count_hashes(const calyx_filter *f, const uint64_t *hashes, size_t n,
                        uint32_t *counts) {
    count_each_key(f, &(struct key_list){.hashes = hashes, .n = n}, counts);
}
