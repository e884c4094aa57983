/*
 * The engine of exact filters, which answer without an error for all keys of a
 * universe (kind.h, struct construction).
 *
 *     set     = first layers, value layers
 *     filter  = set, set, ...
 *
 * The first layers say which keys pass: all included ones, and few others. For
 * keys that pass, the value layers have the answer. A set without first layers
 * lets all keys pass. Later sets have the keys whose answer has changed since
 * the sets before them were made: the answer of the filter is the exclusive or
 * of the answers of its sets.
 */
#include <string.h>

#include "engine/engine.h"
#include "kind/batch_loops.h"

/* ---- Sets ---------------------------------------------------------------- */

/* The layers from this one on that are first layers, or value layers, as it is:
 * the layer after them. */
static const struct part *after_stage(const struct part *p) {
    const uint32_t values = p->shape.values;
    while (p && p->shape.values == values) p = p->next_layer;
    return p;
}

static const struct part *value_layers(const struct part *set) {
    return set->shape.values ? set : after_stage(set);
}

static const struct part *next_set(const struct part *set) {
    return after_stage(value_layers(set));
}

static uint64_t hash_after(const calyx_filter *f, const struct part *p,
                           uint64_t hash) {
    const struct construction *const kind = f->kind->construction;
    return p->shape.values ? kind->next_value_hash(hash)
                           : kind->next_hash(hash);
}

/* ---- One hash ------------------------------------------------------------ */

/* LAYER_BUMPED: the bytes that have the answer are damaged. */
static enum layer_answer ask_stage(const calyx_filter *f, const struct part *p,
                                   uint64_t hash, bool verify) {
    const struct part *const end = after_stage(p);
    for (; p != end; p = p->next_layer) {
        if (verify && !f->lent->is_intact(f, p, hash)) return LAYER_BUMPED;
        const enum layer_answer answer =
            f->kernel->has_in_layer(p->body, &p->shape, hash);
        if (answer != LAYER_BUMPED) return answer;
        hash = hash_after(f, p, hash);
    }
    return LAYER_NO;
}

static enum layer_answer ask_set(const calyx_filter *f, const struct part *set,
                                 uint64_t hash, bool verify) {
    const struct part *const values = value_layers(set);
    const enum layer_answer passes =
        set == values ? LAYER_YES : ask_stage(f, set, hash, verify);
    return passes == LAYER_YES
               ? ask_stage(f, values, hash_after(f, values, hash), verify)
               : passes;
}

static bool exact_has(const calyx_filter *f, uint64_t hash) {
    bool yes = false;
    for (const struct part *p = f->first_layer; p; p = next_set(p))
        yes ^= ask_set(f, p, hash, false) == LAYER_YES;
    return yes;
}

static bool is_intact(const calyx_filter *f, uint64_t hash) {
    for (const struct part *p = f->first_layer; p; p = next_set(p))
        if (ask_set(f, p, hash, true) == LAYER_BUMPED) return false;
    return true;
}

static uint32_t exact_count(const calyx_filter *f, uint64_t hash) {
    return exact_has(f, hash);
}

/* ---- Many hashes --------------------------------------------------------- */

/* Hashes for the next layer, and whose they are. */
struct places {
    size_t n;
    uint64_t hashes[BATCH_MAX];
    uint16_t at[BATCH_MAX];
};

/* Ask the layers of a stage about all of `list`, which is empty then. `yes`
 * becomes the places of those they have. */
static void ask_stage_batch(const calyx_filter *f, const struct part *p,
                            struct places *list, struct places *yes) {
    bool here[BATCH_MAX];
    uint16_t bumped[BATCH_MAX + 1];
    const struct part *const end = after_stage(p);
    yes->n = 0;
    for (; p != end && list->n > 0; p = p->next_layer) {
        const size_t n = list->n;
        list->n = f->kernel->has_batch_in_layer(
            p->body, &p->shape, batch_of(list->hashes, n), here, bumped);
        for (size_t i = 0; i < n; i++) {
            yes->at[yes->n] = list->at[i];
            yes->n += here[i];
        }
        for (size_t i = 0; i < list->n; i++) {
            list->hashes[i] = hash_after(f, p, list->hashes[bumped[i]]);
            list->at[i] = list->at[bumped[i]];
        }
    }
    list->n = 0;
}

/* Change the answers of the keys that a set has. */
static void ask_set_batch(const calyx_filter *f, const struct part *set,
                          const uint64_t *hashes, size_t n, bool *found) {
    const struct part *const values = value_layers(set);
    struct places list, yes; /* not set to 0: they are large */
    list.n = yes.n = n;
    for (size_t i = 0; i < n; i++) yes.at[i] = (uint16_t)i;
    if (set != values) {
        memcpy(list.hashes, hashes, n * sizeof *hashes);
        memcpy(list.at, yes.at, n * sizeof *yes.at);
        ask_stage_batch(f, set, &list, &yes);
    }
    list.n = yes.n;
    for (size_t i = 0; i < yes.n; i++) {
        list.hashes[i] = hash_after(f, values, hashes[yes.at[i]]);
        list.at[i] = yes.at[i];
    }
    ask_stage_batch(f, values, &list, &yes);
    for (size_t i = 0; i < yes.n; i++) found[yes.at[i]] ^= true;
}

static size_t exact_has_batch(const calyx_filter *f, struct batch batch,
                              bool *found) {
    bool answers[BATCH_MAX];
    bool *const to = found ? found : answers;
    memset(to, 0, batch.n * sizeof *to);
    for (const struct part *p = f->first_layer; p; p = next_set(p))
        ask_set_batch(f, p, batch.hashes, batch.n, to);
    return count_true(to, batch.n);
}

static size_t exact_has_many(const calyx_filter *f, const struct key_list *keys,
                             bool *found) {
    return has_in_batches(f, keys, found, exact_has_batch, false);
}

/* ---- Descriptions -------------------------------------------------------- */

/* A key outside of the universe passes the first layers at their rate; then
 * each answer of a value layer is as likely. */
static double rate_outside(const calyx_filter *f, const struct part *set) {
    return 0.5 *
           (set->shape.values ? 1 : expected_rate(f->kind, &set->shape, 0));
}

/* The first value layer of each set says how many keys are in the universe, and
 * how many of them are included. */
static void add_info(const calyx_filter *f, calyx_info *info) {
    double rate = 0;
    for (const struct part *p = f->first_layer; p; p = next_set(p)) {
        const double here = rate_outside(f, p);
        const struct part *const values = value_layers(p);
        rate = rate * (1 - here) + (1 - rate) * here;
        info->universe = values->capacity;
        info->capacity = info->items = items_of(values);
    }
    info->fpr = rate;
}

static void describe_exact(const calyx_filter *f, const uint64_t *counts,
                           calyx_info *info) {
    describe_parts(f, counts, info);
    info->distinct = (double)info->items;
    info->fpr_now = info->fpr;
}

const struct engine exact_engine = {
    .calls =
        {
            .has = exact_has,
            .add = refuse_add,
            .count = exact_count,
            .has_many = exact_has_many,
            .add_some = refuse_add_some,
            .most_hashes = BATCH_MAX,
        },
    .is_intact = is_intact,
    .take_part = take_layer,
    .renew = link_layers,
    .add_info = add_info,
    .describe = describe_exact,
    .check_alike = check_alike_parts,
    .fill_hint = fill_layer_hint,
};
