/* What is the same for filters of both layouts: birth, death, and counting. */
#include "filter.h"

#include <string.h>
#include <strings.h>

#include "memory.h"
#include "steps.h"
#include "thread.h"

const struct layout *const layouts[] = {&native_layout, &redisbloom_layout,
                                        NULL};

const struct layout *layout_named(const char *name, size_t size) {
    for (const struct layout *const *l = layouts; *l; l++)
        if (strlen((*l)->name) == size &&
            strncasecmp((*l)->name, name, size) == 0)
            return *l;
    return NULL;
}

bool wish_counts(const struct wish *wish) {
    return wish->kind && strcmp(wish->kind, "counting") == 0;
}

/* ---- Totals -------------------------------------------------------------- */

/* Filters are freed by another thread, too; but only one adds, for which an
 * atomic addition would take longer than the rest of the counting. */
static struct totals totals;
static uint64_t items_added;

static void add_to(uint64_t *total, uint64_t more) {
    __atomic_fetch_add(total, more, __ATOMIC_RELAXED);
}

struct totals filter_totals(void) {
    return (struct totals){
        .filters = __atomic_load_n(&totals.filters, __ATOMIC_RELAXED),
        .bytes = __atomic_load_n(&totals.bytes, __ATOMIC_RELAXED),
        .items = items_added + __atomic_load_n(&totals.items, __ATOMIC_RELAXED),
    };
}

static void count(struct filter *f, uint64_t items, uint64_t bytes) {
    add_to(&totals.items, items - f->counted_items);
    add_to(&totals.bytes, bytes - f->counted_bytes);
    f->counted_items = items;
    f->counted_bytes = bytes;
}

void filter_count(struct filter *f) {
    struct facts facts;
    f->layout->tell(f, &facts);
    count(f, facts.items, facts.size);
}

/* ---- Birth and death ----------------------------------------------------- */

/* Numbers that no other filter has, nor one of this server before a restart. */
static uint64_t next_life(void) {
    static uint64_t lives;
    if (!lives) RM_GetRandomBytes((unsigned char *)&lives, sizeof lives);
    return ++lives;
}

static struct filter *take_filter(const struct layout *layout) {
    struct filter *f = RM_Calloc(1, sizeof *f);
    f->layout = layout;
    f->life = next_life();
    add_to(&totals.filters, 1);
    return f;
}

static void give_filter(struct filter *f) {
    add_to(&totals.filters, (uint64_t)-1);
    RM_Free(f);
}

struct filter *filter_hollow(const struct layout *layout) {
    return take_filter(layout);
}

static calyx_status keep(struct filter *f, calyx_status status,
                         struct filter **out) {
    if (status != CALYX_OK) {
        give_filter(f);
        return status;
    }
    if (f->layout == &native_layout) {
        calyx_info info;
        calyx_outline(f->native, &info);
        f->counts = f->repeats_matter = strcmp(info.kind, "counting") == 0;
    }
    filter_count(f);
    *out = f;
    return CALYX_OK;
}

calyx_status filter_new(struct wish *wish, struct filter **out,
                        calyx_error *why) {
    struct filter *f = take_filter(wish->layout);
    return keep(f, f->layout->make(wish, f, why), out);
}

calyx_status filter_copy(const struct filter *f, struct filter **out,
                         calyx_error *why) {
    struct filter *copy = take_filter(f->layout);
    copy->generation = f->generation;
    copy->rewrites = f->rewrites;
    return keep(copy, f->layout->copy(f, copy, why), out);
}

static calyx_status filter_like(const struct filter *f, struct filter **out,
                                calyx_error *why) {
    struct filter *like = take_filter(f->layout);
    return keep(like, f->layout->make_like(f, like, why), out);
}

calyx_status filter_alike(const struct filter *f, struct filter **out,
                          calyx_error *why) {
    struct filter *made = take_filter(&native_layout);
    made->expansion = f->expansion;
    made->rewrites = f->rewrites;
    made->bytes = made->arrived = f->bytes;
    return keep(made, calyx_new_alike(f->native, &made->native, why), out);
}

calyx_status filter_load_head(const void *bytes, size_t size,
                              struct filter **out, calyx_error *why) {
    const struct layout *const *l = layouts;
    while (l[1] && !(*l)->is_head(bytes, size)) l++;
    const bool window = window_layout.is_head(bytes, size);
    struct filter *f = take_filter(window ? &window_layout : *l);
    return keep(f, f->layout->load_head(bytes, size, f, why), out);
}

calyx_status filter_load(const struct layout *layout, RedisModuleIO *io,
                         int encoding, struct filter **out, calyx_error *why) {
    struct filter *f = take_filter(layout);
    return keep(f, layout->load(io, encoding, f, why), out);
}

void filter_free(struct filter *f) {
    count(f, 0, 0);
    f->layout->free(f);
    give_filter(f);
}

static void *free_it(void *f) {
    filter_free(f);
    return NULL;
}

/* In a thread of its own, unless that is more trouble than freeing it here. */
static void free_later(struct filter *f) {
    static const uint64_t LARGE = 4 << 20;
    if (f->bytes < LARGE || !thread_start(free_it, f)) filter_free(f);
}

calyx_status filter_clear(struct filter *f, calyx_error *why) {
    struct filter *old = NULL;
    const calyx_status status = filter_like(f, &old, why);
    if (status != CALYX_OK) return status;
    /* The key keeps its struct: what is within goes over. */
    const struct filter empty = *old;
    *old = *f;
    f->native = empty.native;
    f->bytes = empty.bytes;
    f->arrived = empty.arrived;
    f->counted_items = empty.counted_items;
    f->counted_bytes = empty.counted_bytes;
    f->rewrites++;
    f->life = next_life(); /* to those who ask in steps it is another one */
    f->loaded_sum = 0;     /* it is not what was loaded any more */
    free_later(old);
    return CALYX_OK;
}

/* ---- Change -------------------------------------------------------------- */

calyx_status filter_add(struct filter *f, const calyx_key *keys, size_t n,
                        bool *fresh, bool *changed, size_t *done,
                        calyx_error *why) {
    const uint64_t takes = memory_takes();
    const calyx_status status =
        f->layout->add_many(f, keys, n, fresh, changed, done, why);
    uint64_t news = 0;
    for (size_t i = 0; i < *done; i++) news += changed[i];
    f->counted_items += news;
    items_added += news;
    if (f->counts) f->rewrites += *done;
    if (memory_takes() != takes) filter_count(f);
    return status;
}

size_t filter_remove(struct filter *f, const calyx_key *keys, size_t n,
                     bool *found) {
    size_t removed = 0;
    calyx_remove_many(f->native, keys, n, found, &removed);
    f->rewrites += removed;
    if (removed) filter_count(f);
    return removed;
}

bool filter_take_as_whole(struct filter *f) {
    if (f->layout != &redisbloom_layout || !filter_is_partial(f)) return false;
    f->chain->arrived = f->arrived = f->bytes;
    return true;
}

calyx_status filter_load_piece(struct filter *f, int64_t at, const void *bytes,
                               size_t size, bool *changed, calyx_error *why) {
    if (!filter_is_partial(f)) steps_see_change(f);
    return f->layout->load_piece(f, at, bytes, size, changed, why);
}

/* ---- Guessing ------------------------------------------------------------ */

static struct {
    calyx_aim aim;
    const struct filter *at; /* only compared: it may be gone */
    uint64_t takes;
} guess;

void filter_guess(const void *item, size_t size) {
    calyx_prefetch(&guess.aim, item, size);
}

void filter_aim(const struct filter *f) {
    if (guess.at == f && guess.takes == memory_takes()) return;
    guess.at = f;
    guess.takes = memory_takes();
    guess.aim = (calyx_aim){{0}};
    if (f->layout == &native_layout) calyx_take_aim(f->native, &guess.aim);
}
