/* What all layouts share: making, freeing, statistics. */
#include "layout/layout.h"

#include <string.h>
#include <strings.h>

#include "layout/rebuild.h"
#include "server/allocator.h"
#include "server/steps.h"
#include "server/thread.h"

const struct filter_layout *const layouts[] = {&native_layout, &valkey_layout,
                                               &redisbloom_layout, NULL};

const struct filter_layout *layout_named(const char *name, size_t size) {
    for (const struct filter_layout *const *l = layouts; *l; l++)
        if (strlen((*l)->name) == size &&
            strncasecmp((*l)->name, name, size) == 0)
            return *l;
    return NULL;
}

bool params_can_remove(const struct filter_params *params) {
    if (!params->kind) return params->removable;
    return calyx_kind_can(params->kind) & CALYX_CAN_REMOVE;
}

/* ---- Totals -------------------------------------------------------------- */

/* Other threads free filters, so totals are atomic. Only the main thread adds
 * items: there a plain counter saves the cost of an atomic addition. */
static struct module_totals all_totals[2]; /* the second of cuckoo filters */
static uint64_t items_added[2];

static struct module_totals *totals_of(const struct filter *f) {
    return &all_totals[f->layout->is_cuckoo];
}

static void add_to(uint64_t *total, uint64_t more) {
    __atomic_fetch_add(total, more, __ATOMIC_RELAXED);
}

struct module_totals filter_totals(bool cuckoo) {
    const struct module_totals *const t = &all_totals[cuckoo];
    return (struct module_totals){
        .filters = __atomic_load_n(&t->filters, __ATOMIC_RELAXED),
        .bytes = __atomic_load_n(&t->bytes, __ATOMIC_RELAXED),
        .items =
            items_added[cuckoo] + __atomic_load_n(&t->items, __ATOMIC_RELAXED),
    };
}

/* A small filter counts itself. */
static void count(struct filter *f, uint64_t items, uint64_t bytes) {
    add_to(&totals_of(f)->items, items - f->counted_items);
    add_to(&totals_of(f)->bytes, bytes - f->counted_bytes);
    f->counted_items = items;
    f->counted_bytes = bytes;
}

void filter_count(struct filter *f) {
    struct filter_facts facts;
    if (f->is_small) return;
    f->layout->describe(f, &facts);
    count(f, facts.items, facts.size);
}

/* ---- Making and freeing -------------------------------------------------- */

/* Numbers that no other filter has, nor one of this server before a restart. */
static uint64_t next_identity(void) {
    static uint64_t last;
    if (!last) RM_GetRandomBytes((unsigned char *)&last, sizeof last);
    return ++last;
}

static struct filter *allocate_filter(const struct filter_layout *layout) {
    struct filter *f = RM_Calloc(1, sizeof *f);
    f->layout = layout;
    add_to(&totals_of(f)->filters, 1);
    return f;
}

static void release_filter(struct filter *f) {
    add_to(&totals_of(f)->filters, (uint64_t)-1);
    rebuild_end(f);
    if (f->extra) RM_Free(f->extra);
    RM_Free(f);
}

const struct extra *extra_of(const struct filter *f) {
    static const struct extra none;
    return f->extra ? f->extra : &none;
}

struct extra *extra_for(struct filter *f) {
    if (!f->extra) f->extra = RM_Calloc(1, sizeof *f->extra);
    return f->extra;
}

/* Assigned on first use. */
uint64_t filter_identity(const struct filter *f) {
    struct extra *const extra = extra_for((struct filter *)(uintptr_t)f);
    if (!extra->identity) extra->identity = next_identity();
    return extra->identity;
}

struct filter *filter_placeholder(const struct filter_layout *layout) {
    return allocate_filter(layout);
}

/* ---- Small ones ---------------------------------------------------------- */

/* Bytes: for larger filters it would save less than 1 %. */
enum { MOST_SMALL = 32 << 10 };

static uint64_t size_of(const struct filter *f) {
    struct filter_facts facts;
    f->layout->describe(f, &facts);
    return facts.size;
}

void filter_compact(struct filter *f) {
    calyx_small small;
    void *bits;
    if (f->layout != &native_layout || f->is_small || filter_is_partial(f) ||
        filter_bytes(f) > MOST_SMALL ||
        !calyx_make_small(f->native, &small, &bits))
        return;
    const struct filter before = *f;
    f->bits = bits;
    f->small = small;
    f->is_small = true;
    add_to(&totals_of(f)->bytes, size_of(f) - before.counted_bytes);
}

void filter_note_bytes(struct filter *f) {
    calyx_info info;
    calyx_info_of(f->native, &info);
    f->bytes = f->arrived = info.bytes;
}

calyx_filter *native_for(struct filter *f) {
    calyx_filter *native;
    if (!f->is_small) return f->native;
    const struct filter before = *f;
    const uint64_t size = size_of(f), bytes = filter_bytes(f);
    if (calyx_from_small(&f->small, f->bits, &aligned_memory, &native) !=
        CALYX_OK)
        return NULL;
    f->is_small = false;
    f->native = native;
    f->bytes = f->arrived = bytes;
    f->counted_items = before.small.items;
    f->counted_bytes = size;
    filter_count(f);
    return native;
}

calyx_filter *native_of(const struct filter *f, calyx_room *room) {
    return f->is_small
               ? calyx_open_small(&f->small, f->bits, &aligned_memory, room)
               : f->native;
}

static calyx_status finish(struct filter *f, calyx_status status,
                           struct filter **out) {
    if (status != CALYX_OK) {
        release_filter(f);
        return status;
    }
    if (f->layout == &native_layout) {
        calyx_info info;
        calyx_info_of(f->native, &info);
        f->can_remove = f->repeats_matter = (info.can & CALYX_CAN_REMOVE) != 0;
    }
    filter_count(f);
    filter_compact(f);
    *out = f;
    return CALYX_OK;
}

calyx_status filter_new(struct filter_params *params, struct filter **out,
                        calyx_error *why) {
    struct filter *f = allocate_filter(params->layout);
    return finish(f, f->layout->make(params, f, why), out);
}

calyx_status filter_copy(const struct filter *f, struct filter **out,
                         calyx_error *why) {
    struct filter *copy = allocate_filter(f->layout);
    if (extra_of(f)->generation || extra_of(f)->rewrites) {
        extra_for(copy)->generation = f->extra->generation;
        extra_for(copy)->rewrites = f->extra->rewrites;
    }
    return finish(copy, f->layout->copy(f, copy, why), out);
}

static calyx_status filter_like(const struct filter *f, struct filter **out,
                                calyx_error *why) {
    struct filter *like = allocate_filter(f->layout);
    return finish(like, f->layout->make_like(f, like, why), out);
}

/* A native one that refuses lookups until its bits are there. */
static struct filter *allocate_alike(const struct filter *f) {
    struct filter *made = allocate_filter(&native_layout);
    made->expansion = f->expansion;
    if (extra_of(f)->rewrites) extra_for(made)->rewrites = f->extra->rewrites;
    made->bytes = made->arrived = filter_bytes(f);
    made->uncommitted = true;
    return made;
}

calyx_status filter_alike(const struct filter *f, struct filter **out,
                          calyx_error *why) {
    struct filter *made = allocate_alike(f);
    calyx_room room;
    return finish(
        made, calyx_new_alike(native_of(f, &room), &made->native, why), out);
}

calyx_status filter_copy_head(const struct filter *f, struct filter **out,
                              calyx_error *why) {
    const calyx_open_options how = {.memory = &aligned_memory};
    struct filter *made = allocate_alike(f);
    calyx_room room;
    const calyx_filter *const native = native_of(f, &room);
    const size_t size = calyx_head_size(native);
    void *const head = RM_Alloc(size);
    calyx_status status = calyx_encode_head(native, head, size, why);
    if (status == CALYX_OK)
        status = calyx_decode_head(head, size, &how, &made->native, why);
    RM_Free(head);
    return finish(made, status, out);
}

const struct filter_layout *layout_of_head(const void *bytes, size_t size) {
    const struct filter_layout *const *l = layouts;
    if (window_layout.is_head(bytes, size)) return &window_layout;
    while (l[1] && !(*l)->is_head(bytes, size)) l++;
    return *l;
}

calyx_status filter_load_head(const struct filter_layout *layout,
                              const void *bytes, size_t size,
                              struct filter **out, calyx_error *why) {
    struct filter *f = allocate_filter(layout);
    return finish(f, layout->load_head(bytes, size, f, why), out);
}

calyx_status filter_load(const struct filter_layout *layout, RedisModuleIO *io,
                         int encoding, struct filter **out, calyx_error *why) {
    if (encoding != layout->encoding && !layout->reads_older)
        return layout_fail(why, CALYX_TOO_NEW,
                           "its encoding is %d; this module reads %d", encoding,
                           layout->encoding);
    struct filter *f = allocate_filter(layout);
    return finish(f, layout->load(io, encoding, f, why), out);
}

calyx_status filter_begin_payload(const void *payload, size_t size,
                                  struct filter **out, calyx_error *why) {
    struct filter *f = allocate_filter(&valkey_layout);
    return finish(f, valkey_begin_filter(payload, size, f, why), out);
}

static void uncount(struct filter *f) {
    if (!f->is_small) {
        count(f, 0, 0);
        return;
    }
    add_to(&totals_of(f)->items, -(uint64_t)f->small.items);
    add_to(&totals_of(f)->bytes, -size_of(f));
}

void filter_free(struct filter *f) {
    uncount(f);
    f->layout->free(f);
    release_filter(f);
}

static void *free_in_thread(void *f) {
    filter_free(f);
    return NULL;
}

/* In another thread if it is large. */
static void free_later(struct filter *f) {
    static const uint64_t LARGE = 4 << 20;
    if (filter_bytes(f) < LARGE || !thread_start(free_in_thread, f))
        filter_free(f);
}

calyx_status filter_clear(struct filter *f, calyx_error *why) {
    struct filter *old = NULL;
    const calyx_status status = filter_like(f, &old, why);
    if (status != CALYX_OK) return status;
    /* The key holds this struct: exchange the contents. */
    struct filter empty = *old;
    *old = *f;
    old->extra = empty.extra;
    empty.extra = f->extra;
    *f = empty;
    extra_for(f)->rewrites++;
    /* Jobs must not take it for the old one; its bits are no longer the bits
     * that were loaded. */
    f->extra->identity = next_identity();
    f->extra->loaded_sum = 0;
    free_later(old);
    return CALYX_OK;
}

/* ---- Change -------------------------------------------------------------- */

calyx_status filter_add(struct filter *f, struct addition *a) {
    const uint64_t before = memory_allocations();
    const uint64_t items = filter_items(f);
    const size_t from = a->done;
    const calyx_status status = f->layout->add(f, a);
    uint64_t news = 0;
    for (size_t i = from; i < a->done; i++) news += a->changed[i];
    if (!f->is_small) f->counted_items = items + news;
    items_added[f->layout->is_cuckoo] += news;
    if (memory_allocations() != before) {
        filter_count(f);
        filter_compact(f);
    }
    return status;
}

size_t filter_remove(struct filter *f, const calyx_key *keys, size_t n,
                     bool *found) {
    const size_t removed = f->layout->remove(f, keys, n, found);
    if (removed) filter_count(f);
    return removed;
}

void filter_end_compaction(struct filter *f) {
    if (f->layout->compact_some) f->layout->compact_some(f, false);
}

bool filter_compaction_step(struct filter *f) {
    if (!f->layout->compact_some) return true;
    const uint64_t lines = f->layout->compact_some(f, true);
    if (lines) steps_count(lines);
    return !filter_is_compacting(f);
}

bool filter_accept_partial(struct filter *f) {
    if (!f->layout->accept_partial || !filter_is_partial(f)) return false;
    f->layout->accept_partial(f);
    filter_count(f);
    return true;
}

calyx_status filter_load_piece(struct filter *f, int64_t at, const void *bytes,
                               size_t size, bool *changed, calyx_error *why) {
    if (f->layout == &native_layout && !native_for(f))
        return why->status = CALYX_NO_MEMORY;
    const calyx_status status =
        f->layout->load_piece(f, at, bytes, size, changed, why);
    filter_compact(f);
    return status;
}

/* ---- Prefetching --------------------------------------------------------- */

static struct {
    calyx_prefetch_hint hint;
    struct cuckoo_hint cuckoo; /* without slots: it is no cuckoo filter */
    const struct filter *at;   /* only compared: it may be gone         */
    uint64_t allocations;
} prefetched;

void filter_prefetch(const void *item, size_t size) {
    if (prefetched.cuckoo.slots)
        cuckoo_prefetch(&prefetched.cuckoo, cuckoo_hash_of(item, size));
    else
        calyx_prefetch(&prefetched.hint, item, size);
}

/* noinline: mostly it is the same filter again, and no stack is needed. */
static __attribute__((noinline)) void take_hint(const struct filter *f) {
    prefetched.at = f;
    prefetched.allocations = memory_allocations();
    prefetched.hint = (calyx_prefetch_hint){{0}};
    prefetched.cuckoo = (struct cuckoo_hint){0};
    calyx_room room;
    if (f->layout == &cuckoo_layout)
        prefetched.cuckoo = cuckoo_hint_of(f->cuckoo);
    if (f->layout == &native_layout)
        calyx_prefetch_hint_of(native_of(f, &room), &prefetched.hint);
}

void filter_prefetch_next(const struct filter *f) {
    if (prefetched.at != f || prefetched.allocations != memory_allocations())
        take_hint(f);
}
