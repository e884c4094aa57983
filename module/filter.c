/* What is the same for filters of both layouts: birth, death, and counting. */
#include "filter.h"

#include <string.h>
#include <strings.h>

#include "memory.h"

const struct layout *const layouts[] = {&native_layout, &redisbloom_layout,
                                        NULL};

const struct layout *layout_named(const char *name, size_t size) {
    for (const struct layout *const *l = layouts; *l; l++)
        if (strlen((*l)->name) == size &&
            strncasecmp((*l)->name, name, size) == 0)
            return *l;
    return NULL;
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
    copy->losses = f->losses;
    return keep(copy, f->layout->copy(f, copy, why), out);
}

calyx_status filter_load_head(const void *bytes, size_t size,
                              struct filter **out, calyx_error *why) {
    const struct layout *const *l = layouts;
    while (l[1] && !(*l)->is_head(bytes, size)) l++;
    struct filter *f = take_filter(*l);
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

/* ---- Change -------------------------------------------------------------- */

calyx_status filter_add(struct filter *f, const calyx_key *keys, size_t n,
                        bool *fresh, size_t *done, calyx_error *why) {
    const uint64_t takes = memory_takes();
    const calyx_status status =
        f->layout->add_many(f, keys, n, fresh, done, why);
    uint64_t news = 0;
    for (size_t i = 0; i < *done; i++) news += fresh[i];
    f->counted_items += news;
    items_added += news;
    f->changes += *done;
    if (memory_takes() != takes) filter_count(f);
    return status;
}

calyx_status filter_load_piece(struct filter *f, int64_t at, const void *bytes,
                               size_t size, bool *changed, calyx_error *why) {
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
