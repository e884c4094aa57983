/*
 * The engine of static filters. Their parts are layers, of which the oldest is
 * the first; a key is in the filter if the first layer that has not bumped it
 * has it.
 */
#include <string.h>

#include "base/compiler.h"
#include "engine/engine.h"
#include "engine/prefetch_hint.h"
#include "kind/batch_loops.h"

/* The only branch is on whether the hash was bumped. */
static bool layers_has(const calyx_filter *f, uint64_t hash) {
    for (const struct part *p = f->first_layer; p; p = p->next_layer) {
        const enum layer_answer answer =
            f->kernel->has_in_layer(p->body, &p->shape, hash);
        if (answer != LAYER_BUMPED) return answer == LAYER_YES;
        hash = f->kind->construction->next_hash(hash);
    }
    return false;
}

/* Verifies the ranges that a lookup reads on its way. */
static bool is_intact(const calyx_filter *f, uint64_t hash) {
    for (const struct part *p = f->first_layer; p; p = p->next_layer) {
        if (!f->lent->is_intact(f, p, hash)) return false;
        if (f->kernel->has_in_layer(p->body, &p->shape, hash) != LAYER_BUMPED)
            return true;
        hash = f->kind->construction->next_hash(hash);
    }
    return true;
}

static uint32_t layers_count(const calyx_filter *f, uint64_t hash) {
    return layers_has(f, hash);
}

calyx_status refuse_add(calyx_filter *f, uint64_t hash, bool *fresh) {
    (void)f, (void)hash, (void)fresh;
    return CALYX_CANNOT;
}

calyx_status refuse_add_some(calyx_filter *f, struct key_window *w, bool *fresh,
                             size_t *done) {
    (void)f, (void)w, (void)fresh, (void)done;
    return CALYX_CANNOT;
}

/* ---- Many hashes --------------------------------------------------------- */

/* Hashes that a layer has bumped, for the next one, and whose they are. */
struct bumped_list {
    size_t n;
    uint64_t hashes[BATCH_MAX];
    size_t places[BATCH_MAX];
};

/* Answer all of a list by the layers after the first, and empty it. `found`
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

/* What the first layer bumps, 4 % of the keys, waits until there is a batch of
 * it: a few at a time would wait for memory, and take twice as long. */
static NOINLINE size_t has_by(const calyx_filter *f,
                              const struct key_list *keys, uint64_t *buffer,
                              bool *found) {
    bool here[BATCH_MAX];
    struct bumped_list list;
    struct key_window w;
    size_t yes = 0;
    list.n = 0;
    open_window(f, keys, &w, buffer, BATCH_MAX);
    while (w.batch.n > 0) {
        const size_t n = w.batch.n;
        yes += has_in_first_layer(f, w.batch, found ? found + w.done : here,
                                  &list, w.done, found);
        note_prefetched(&w.batch, n);
        advance_window(f, &w, n);
    }
    return yes + has_in_next_layers(f, &list, found);
}

static NOINLINE size_t has_hashed(const calyx_filter *f,
                                  const struct key_list *keys, bool *found) {
    uint64_t buffer[WINDOW_MOST];
    return has_by(f, keys, buffer, found);
}

/* The batches of `mapped` are hashes: they need no second buffer. */
static size_t layers_has_many(const calyx_filter *f,
                              const struct key_list *keys, bool *found) {
    return keys->hashes ? has_by(f, keys, NULL, found)
                        : has_hashed(f, keys, found);
}

/* ---- Parts --------------------------------------------------------------- */

/* Lookups begin with the oldest part. */
void link_layers(calyx_filter *f) {
    struct part *next = NULL;
    for (struct part *p = f->newest; p; next = p, p = p->older)
        p->next_layer = next;
    f->first_layer = next;
}

/* A value layer makes the filter exact. */
calyx_status take_layer(calyx_filter *f) {
    link_layers(f);
    return choose_engine_again(f);
}

bool fill_layer_hint(const calyx_filter *f, struct prefetch_hint *hint) {
    hint_of_parts(f, f->first_layer, hint);
    return true;
}

/* The bits of a static filter say nothing about its keys, but its layers know
 * how many they have. As many absent keys as keys are bumped, nearly. */
static void describe_layers(const calyx_filter *f, const uint64_t *counts,
                            calyx_info *info) {
    describe_parts(f, counts, info);
    double from_here = 0; /* keys in this layer and those after it */
    double rate = 0;
    for (const struct part *p = newest_of(f); p; p = p->older) {
        const double here = (double)items_of(p);
        const double bumped =
            from_here > 0 ? from_here / (from_here + here) : 0;
        rate = bumped * rate +
               (1 - bumped) * expected_rate(f->kind, &p->shape, here);
        from_here += here;
    }
    info->distinct = from_here;
    info->fpr_now = from_here > 0 ? rate : 0;
}

const struct engine layers_engine = {
    .calls =
        {
            .has = layers_has,
            .add = refuse_add,
            .count = layers_count,
            .has_many = layers_has_many,
            .add_some = refuse_add_some,
            .most_hashes = BATCH_MAX,
        },
    .is_intact = is_intact,
    .take_part = take_layer,
    .renew = link_layers,
    .describe = describe_layers,
    .check_alike = check_alike_parts,
    .fill_hint = fill_layer_hint,
};
