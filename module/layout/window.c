/* The layout of windows: panes in a ring. See window.h. */
#include "layout/window.h"

#include <stdio.h>
#include <string.h>

#include "server/allocator.h"
#include "wire/bytes.h"

static const char MAGIC[8] = "CALYXBW\1";

enum { NUMBERS = 5, HEAD_START = 8 + 8 * NUMBERS, FEW = 64 };

static calyx_status damaged(calyx_error *why, const char *text) {
    why->status = CALYX_DAMAGED;
    snprintf(why->text, sizeof why->text, "%s", text);
    return CALYX_DAMAGED;
}

uint64_t span_of(uint64_t milliseconds, uint64_t generations) {
    return (milliseconds + generations - 1) / generations;
}

uint64_t window_span(const struct time_window *w) {
    return span_of(w->milliseconds, w->panes - 1);
}

static void note_bytes(struct filter *f) {
    f->bytes = f->arrived = 0;
    for (uint32_t i = 0; i < f->window->panes; i++) {
        f->bytes += f->window->pane[i].bytes;
        f->arrived += f->window->pane[i].arrived;
    }
}

/* ---- Making -------------------------------------------------------------- */

static void free_window(struct filter *f) {
    struct time_window *const w = f->window;
    if (!w) return; /* hollow */
    rotation_remove(w);
    for (uint32_t i = 0; i < w->panes; i++) {
        if (w->pane[i].native) native_layout.free(&w->pane[i]);
        if (w->pane[i].extra) RM_Free(w->pane[i].extra);
    }
    if (w->name) RM_Free(w->name);
    RM_Free(w->pane);
    RM_Free(w);
}

/* A window with panes that have no filters yet. */
static void take_window(struct filter *f, const struct time_window *like) {
    struct time_window *const w = RM_Calloc(1, sizeof *w);
    *w = (struct time_window){
        .milliseconds = like->milliseconds,
        .began = like->began,
        .panes = like->panes,
        .newest = like->newest,
    };
    w->pane = RM_Calloc(w->panes, sizeof *w->pane);
    for (uint32_t i = 0; i < w->panes; i++) {
        w->pane[i].layout = &native_layout;
        extra_for(&w->pane[i]); /* now: rotation must not allocate */
    }
    f->window = w;
    f->repeats_matter = true;
    rotation_add(w);
}

/* The last step of making: on failure, undo the others. */
static calyx_status finish(struct filter *f, calyx_status status) {
    if (status == CALYX_OK) {
        note_bytes(f);
        f->expansion = f->window->pane[0].expansion;
    } else {
        free_window(f);
        f->window = NULL;
    }
    return status;
}

static calyx_status make(struct filter_params *params, struct filter *f,
                         calyx_error *why) {
    const struct time_window like = {.milliseconds = params->window,
                                     .began = params->began,
                                     .panes = params->generations + 1};
    take_window(f, &like);
    struct filter_params pane = *params;
    pane.error = params->error / like.panes;
    pane.capacity =
        (params->capacity + params->generations - 1) / params->generations;
    struct filter *const panes = f->window->pane;
    calyx_status status = native_layout.make(&pane, &panes[0], why);
    /* Planning one of 250 items takes 1.4 ms; the others are like it. */
    for (uint32_t i = 1; i < like.panes && status == CALYX_OK; i++)
        status = native_layout.make_like(&panes[0], &panes[i], why);
    params->kind =
        pane.kind; /* what was chosen for the first, and the others */
    params->seed = pane.seed;
    params->random_seed = false;
    return finish(f, status);
}

typedef calyx_status copying(const struct filter *f, struct filter *to,
                             calyx_error *why);

static calyx_status copy_by(copying *copy_pane, uint64_t rewrites,
                            const struct filter *f, struct filter *to,
                            calyx_error *why) {
    take_window(to, f->window);
    if (f->window->name)
        rotation_name(to->window, f->window->name, f->window->name_size);
    calyx_status status = CALYX_OK;
    for (uint32_t i = 0; i < f->window->panes && status == CALYX_OK; i++) {
        extra_for(&to->window->pane[i])->rewrites =
            extra_of(&f->window->pane[i])->rewrites + rewrites;
        status = copy_pane(&f->window->pane[i], &to->window->pane[i], why);
    }
    return finish(to, status);
}

static calyx_status copy(const struct filter *f, struct filter *to,
                         calyx_error *why) {
    return copy_by(native_layout.copy, 0, f, to, why);
}

static calyx_status make_like(const struct filter *f, struct filter *to,
                              calyx_error *why) {
    return copy_by(native_layout.make_like, 1, f, to, why);
}

/* ---- Rotation ------------------------------------------------------------ */

/* In place: rotation allocates nothing, so it cannot fail and evicts nothing.
 */
static void empty(struct filter *pane) {
    calyx_info info;
    calyx_clear_by(pane->native, memory_renew, NULL);
    calyx_info_of(pane->native, &info);
    pane->bytes = pane->arrived = info.bytes;
}

void window_rotate(struct filter *f, uint64_t rotations, uint64_t began) {
    struct time_window *const w = f->window;
    if (rotations > w->panes) rotations = w->panes;
    for (uint64_t i = 0; i < rotations; i++) {
        w->newest = (w->newest + 1) % w->panes;
        empty(&w->pane[w->newest]);
    }
    w->began = began;
    w->looked = 0;
    for (uint32_t i = 0; i < w->panes; i++) extra_for(&w->pane[i])->rewrites++;
    note_bytes(f);
    filter_count(f);
}

/* ---- Items --------------------------------------------------------------- */

/* An item is hashed once for all panes. Only where its bits are set, the allow
 * list of the pane matters. */
struct hashed_item {
    uint64_t hash;
    const calyx_key *key;
};

static bool in_pane(const struct filter *pane, const struct hashed_item *item) {
    return calyx_has_hash(pane->native, item->hash) &&
           !calyx_is_allowed(pane->native, item->key->data, item->key->size);
}

/* Is it in one of the older panes? Overdue ones are skipped: rotation may have
 * to wait, lookups need not. */
static bool in_older(const struct time_window *w,
                     const struct hashed_item *item, uint64_t due) {
    for (uint32_t age = 1; age + due < w->panes; age++) {
        const uint32_t i = (w->newest + w->panes - age) % w->panes;
        if (in_pane(&w->pane[i], item)) return true;
    }
    return false;
}

static bool in_any(const struct time_window *w, const struct hashed_item *item,
                   uint64_t due) {
    return (due < w->panes && in_pane(&w->pane[w->newest], item)) ||
           in_older(w, item, due);
}

static bool has(const struct filter *f, const void *key, size_t size) {
    const struct time_window *w = f->window;
    const struct hashed_item item = {calyx_hash(w->pane->native, key, size),
                                     &(calyx_key){key, size}};
    return in_any(w, &item, rotation_due(w));
}

static size_t has_many(const struct filter *f, const calyx_key *keys, size_t n,
                       bool *found) {
    const uint64_t due = rotation_due(f->window);
    size_t total = 0;
    for (size_t at = 0; at < n; at += FEW) {
        uint64_t hashes[FEW];
        const size_t some = n - at < FEW ? n - at : FEW;
        calyx_hash_many(f->window->pane->native, keys + at, some, hashes);
        for (size_t i = 0; i < some; i++) {
            const struct hashed_item item = {hashes[i], &keys[at + i]};
            found[at + i] = in_any(f->window, &item, due);
            total += found[at + i];
        }
    }
    return total;
}

/* Into the newest pane even if an older one has it, which will be gone sooner.
 */
static calyx_status add_items(struct filter *f, struct addition *a) {
    struct time_window *const w = f->window;
    struct filter *const newest = &w->pane[w->newest];
    calyx_status status = CALYX_OK;
    while (a->done < a->n) {
        const size_t i = a->done;
        const calyx_key *key = &a->keys[i];
        const struct hashed_item item = {
            calyx_hash(newest->native, key->data, key->size), key};
        const bool seen = in_older(w, &item, 0);
        struct addition one = *a;
        one.n = i + 1;
        one.changed = a->fresh;
        status = native_layout.add(newest, &one);
        if (status != CALYX_OK) break;
        a->done++;
        a->changed[i] = a->fresh[i];
        if (seen) a->fresh[i] = false;
    }
    note_bytes(f);
    return status;
}

/* ---- The allow list ------------------------------------------------------ */

static calyx_status disallow(struct filter *f, const calyx_key *item,
                             bool *done, calyx_error *why) {
    struct time_window *const w = f->window;
    calyx_status status = CALYX_OK;
    *done = false;
    for (uint32_t i = 0; i < w->panes && status == CALYX_OK; i++) {
        bool here;
        status = native_layout.disallow(&w->pane[i], item, &here, why);
        *done |= here;
    }
    return status;
}

/* On the list of each pane: one that gets the item later takes it off its own,
 * and the others still know that they do not have it. */
static calyx_status allow(struct filter *f, const calyx_key *item, bool *done,
                          calyx_error *why) {
    struct time_window *const w = f->window;
    bool put[MOST_GENERATIONS + 1] = {false};
    calyx_status status = CALYX_OK;
    *done = false;
    for (uint32_t i = 0; i < w->panes && status == CALYX_OK; i++) {
        status = native_layout.allow(&w->pane[i], item, &put[i], why);
        *done |= put[i];
    }
    if (status == CALYX_OK) return CALYX_OK;
    /* As before: what fails is not replicated. */
    for (uint32_t i = 0; i < w->panes; i++)
        if (put[i]) native_layout.disallow(&w->pane[i], item, &put[i], NULL);
    *done = false;
    return status;
}

/* Items are added to the newest, and so leave its list first. */
static const calyx_filter *with_list(const struct filter *f, calyx_room *room) {
    const struct time_window *const w = f->window;
    return native_of(&w->pane[w->newest], room);
}

/* ---- Description --------------------------------------------------------- */

static uint64_t memory_used(const struct filter *f) {
    struct time_window *const w = f->window;
    /* Panes include their structs. */
    uint64_t sum = sizeof *f + RM_MallocSize(w) + RM_MallocSize(w->pane) -
                   w->panes * sizeof *f;
    if (w->name) sum += RM_MallocSize(w->name);
    for (uint32_t i = 0; i < w->panes; i++)
        sum +=
            native_layout.memory(&w->pane[i]) + RM_MallocSize(w->pane[i].extra);
    return sum;
}

static void describe(const struct filter *f, struct filter_facts *facts) {
    *facts = (struct filter_facts){.size = sizeof *f + sizeof *f->window +
                                           f->window->name_size,
                                   .expansion = f->expansion};
    for (uint32_t i = 0; i < f->window->panes; i++) {
        struct filter_facts pane;
        native_layout.describe(&f->window->pane[i], &pane);
        facts->capacity += pane.capacity;
        facts->size += pane.size;
        facts->parts += pane.parts;
        facts->items += pane.items;
        facts->lines += pane.lines;
        facts->change_lines += pane.change_lines;
    }
}

static bool describe_part(const struct filter *f, uint32_t number,
                          struct part_facts *facts) {
    const struct time_window *w = f->window;
    for (uint32_t i = 1; i <= w->panes; i++) {
        const struct filter *pane = &w->pane[(w->newest + i) % w->panes];
        struct filter_facts all;
        if (native_layout.describe_part(pane, number, facts)) return true;
        native_layout.describe(pane, &all);
        number -= (uint32_t)all.parts;
    }
    return false;
}

/* ---- Soundness ----------------------------------------------------------- */

static bool is_possible(const struct time_window *w) {
    return w->milliseconds >= 1 && w->milliseconds <= MOST_WINDOW &&
           w->began <= INT64_MAX && w->panes >= 2 &&
           w->panes <= MOST_GENERATIONS + 1 && w->newest < w->panes;
}

/* An item is hashed for all panes at once: another seed would be false
 * negatives. And all are made by the same numbers, on which the rate of the
 * whole rests. */
static bool fit_together(const struct filter *a, const struct filter *b) {
    calyx_info x, y;
    calyx_part first, other;
    calyx_info_of(a->native, &x);
    calyx_info_of(b->native, &y);
    if (x.seed != y.seed || strcmp(x.hash, y.hash) != 0 ||
        strcmp(x.kind, y.kind) != 0 || a->expansion != b->expansion)
        return false;
    /* The first part of a table may have doubled. */
    if (x.can & CALYX_CAN_GROW_IN_PLACE)
        return calyx_fits(a->native, b->native, NULL) == CALYX_OK;
    return calyx_part_of(a->native, 0, &first) &&
           calyx_part_of(b->native, 0, &other) && first.bits == other.bits &&
           first.probes == other.probes && first.capacity == other.capacity;
}

static bool are_alike(const struct time_window *w) {
    calyx_info info;
    calyx_info_of(w->pane->native, &info);
    for (uint32_t i = 1; i < w->panes; i++)
        if (!fit_together(w->pane, &w->pane[i])) return false;
    return !(info.can & CALYX_CAN_COUNT);
}

static calyx_status checked(struct filter *f, calyx_status status,
                            calyx_error *why) {
    if (status == CALYX_OK && !are_alike(f->window))
        status = damaged(why, "its generations do not fit together");
    return finish(f, status);
}

/* ---- Dumps --------------------------------------------------------------- */
/*
 *     head    "CALYXBW\1", u64 milliseconds, u64 began, u64 panes, u64 newest,
 *             u64 generation; then of each pane u64 size and its head
 *     piece   as of a native filter; the panes follow each other
 */

static struct piece dump_head(const struct filter *f) {
    const struct time_window *w = f->window;
    const uint64_t numbers[NUMBERS] = {w->milliseconds, w->began, w->panes,
                                       w->newest, extra_of(f)->generation};
    size_t size = HEAD_START;
    uint8_t *head = NULL;
    struct piece heads[MOST_GENERATIONS + 1];
    for (uint32_t i = 0; i < w->panes; i++) {
        heads[i] = native_layout.dump_head(&w->pane[i]);
        size += 8 + heads[i].size;
    }
    uint8_t *to = head = RM_Alloc(size);
    memcpy(to, MAGIC, sizeof MAGIC);
    to += sizeof MAGIC;
    for (int i = 0; i < NUMBERS; i++, to += 8) store_u64(to, numbers[i]);
    for (uint32_t i = 0; i < w->panes; i++) {
        store_u64(to, heads[i].size);
        memcpy(to + 8, heads[i].bytes, heads[i].size);
        to += 8 + heads[i].size;
        RM_Free(heads[i].owned);
    }
    return (struct piece){1, head, size, head};
}

/* The pane with the byte before `end`, and where it begins. */
static struct filter *pane_before(const struct time_window *w, uint64_t end,
                                  uint64_t *base) {
    *base = 0;
    for (uint32_t i = 0; i < w->panes; i++) {
        if (end <= *base + w->pane[i].bytes) return &w->pane[i];
        *base += w->pane[i].bytes;
    }
    return NULL;
}

static struct piece dump_from(const struct filter *f, int64_t at) {
    uint64_t base;
    if (at < 1 || (uint64_t)at > f->arrived) return (struct piece){0};
    const struct filter *pane = pane_before(f->window, (uint64_t)at, &base);
    struct piece piece = native_layout.dump_from(pane, at - (int64_t)base);
    if (piece.at) piece.at += (int64_t)base;
    return piece;
}

static bool is_head(const void *bytes, size_t size) {
    return size >= HEAD_START && memcmp(bytes, MAGIC, sizeof MAGIC) == 0;
}

static calyx_status load_heads(struct filter *f, const uint8_t *from,
                               size_t left, calyx_error *why) {
    for (uint32_t i = 0; i < f->window->panes; i++) {
        const uint64_t size = left < 8 ? UINT64_MAX : load_u64(from);
        if (left < 8 || size > left - 8)
            return damaged(why, "the head ends early");
        struct filter *const pane = &f->window->pane[i];
        const calyx_status status =
            native_layout.load_head(from + 8, (size_t)size, pane, why);
        if (status != CALYX_OK) {
            pane->native = NULL;
            return status;
        }
        from += 8 + size;
        left -= 8 + (size_t)size;
    }
    return left == 0 ? CALYX_OK : damaged(why, "the head is too long");
}

static calyx_status load_head(const void *bytes, size_t size, struct filter *f,
                              calyx_error *why) {
    const uint8_t *const head = bytes;
    if (!is_head(bytes, size))
        return damaged(why, "the bytes are not the head of a window");
    const uint64_t panes = load_u64(head + 24), newest = load_u64(head + 32);
    const struct time_window like = {
        .milliseconds = load_u64(head + 8),
        .began = load_u64(head + 16),
        .panes = panes > UINT32_MAX ? 0 : (uint32_t)panes,
        .newest = newest > UINT32_MAX ? UINT32_MAX : (uint32_t)newest};
    if (!is_possible(&like))
        return damaged(why, "the head of a window has impossible numbers");
    take_window(f, &like);
    if (load_u64(head + 40)) extra_for(f)->generation = load_u64(head + 40);
    return checked(f, load_heads(f, head + HEAD_START, size - HEAD_START, why),
                   why);
}

static calyx_status load_piece(struct filter *f, int64_t at, const void *bytes,
                               size_t size, bool *changed, calyx_error *why) {
    uint64_t base = 0;
    struct filter *const pane =
        at < 1 ? NULL : pane_before(f->window, (uint64_t)at - 1, &base);
    *changed = false;
    if (!pane)
        return damaged(why, "invalid offset - no link found: it would end "
                            "outside of the filter");
    if (base > f->arrived)
        return damaged(why, "received bad data: pieces before it are missing");
    const calyx_status status = native_layout.load_piece(
        pane, at - (int64_t)base, bytes, size, changed, why);
    note_bytes(f);
    return status;
}

/* ---- Saving and loading -------------------------------------------------- */

static void save(const struct filter *f, RedisModuleIO *io) {
    const struct time_window *w = f->window;
    const uint64_t numbers[NUMBERS] = {w->milliseconds, w->began, w->panes,
                                       w->newest, extra_of(f)->generation};
    for (int i = 0; i < NUMBERS; i++) RM_SaveUnsigned(io, numbers[i]);
    for (uint32_t i = 0; i < w->panes; i++) native_layout.save(&w->pane[i], io);
}

static calyx_status load_panes(RedisModuleIO *io, struct filter *f,
                               calyx_error *why) {
    bool complete = true;
    for (uint32_t i = 0; i < f->window->panes; i++) {
        struct filter *const pane = &f->window->pane[i];
        const calyx_status status =
            native_layout.load(io, native_layout.encoding, pane, why);
        if (status != CALYX_OK) {
            pane->native = NULL;
            return status;
        }
        if (!complete && pane->arrived)
            return damaged(why, "its generations do not fit together");
        complete = pane->arrived == pane->bytes;
    }
    return CALYX_OK;
}

static calyx_status load(RedisModuleIO *io, int encoding, struct filter *f,
                         calyx_error *why) {
    (void)encoding;
    uint64_t numbers[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) numbers[i] = RM_LoadUnsigned(io);
    const struct time_window like = {
        .milliseconds = numbers[0],
        .began = numbers[1],
        .panes = numbers[2] > UINT32_MAX ? 0 : (uint32_t)numbers[2],
        .newest = numbers[3] > UINT32_MAX ? UINT32_MAX : (uint32_t)numbers[3]};
    if (RM_IsIOError(io) || !is_possible(&like))
        return damaged(why, "its first numbers are missing or impossible");
    take_window(f, &like);
    if (numbers[4]) extra_for(f)->generation = numbers[4];
    return checked(f, load_panes(io, f, why), why);
}

static void digest_window(const struct filter *f, RedisModuleDigest *digest) {
    const struct time_window *w = f->window;
    const uint64_t numbers[NUMBERS] = {w->milliseconds, w->began, w->panes,
                                       w->newest, extra_of(f)->generation};
    for (int i = 0; i < NUMBERS; i++)
        RM_DigestAddLongLong(digest, (long long)numbers[i]);
    for (uint32_t i = 0; i < w->panes; i++)
        native_layout.digest(&w->pane[i], digest);
}

static void move(struct filter *f, RedisModuleDefragCtx *ctx) {
    rotation_remove(f->window); /* the list has its old place */
    memory_move_plain(ctx, &f->window);
    struct time_window *const w = f->window;
    memory_move_plain(ctx, &w->pane);
    memory_move_plain(ctx, &w->name);
    for (uint32_t i = 0; i < w->panes; i++) {
        memory_move_plain(ctx, &w->pane[i].extra);
        native_layout.move(&w->pane[i], ctx);
    }
    rotation_add(w);
}

const struct filter_layout window_layout = {
    .name = "native", /* RedisBloom has no windows */
    .type = "calyxbw-1",
    .encoding = 1,
    .make = make,
    .copy = copy,
    .free = free_window,
    .make_like = make_like,
    .has = has,
    .has_many = has_many,
    .add = add_items,
    .allow = allow,
    .disallow = disallow,
    .with_list = with_list,
    .describe = describe,
    .memory = memory_used,
    .describe_part = describe_part,
    .dump_head = dump_head,
    .dump_from = dump_from,
    .is_head = is_head,
    .load_head = load_head,
    .load_piece = load_piece,
    .save = save,
    .load = load,
    .digest = digest_window,
    .move = move,
};
