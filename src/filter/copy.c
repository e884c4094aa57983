/*
 * Filters made of filters: copies, folded ones, frozen ones. All three are the
 * old parts anew, in a body that is the same, or smaller, or lacks counters.
 */
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "engine/allow_list.h"
#include "filter/filter.h"

/* ---- Fold ---------------------------------------------------------------- */

/* Walks the blocks of a part and the blocks of a smaller one, where scale64 now
 * sends their keys. A block at a border of the smaller ones may have keys of
 * both sides, unless the smaller number divides the larger. */
struct fold_walk {
    uint64_t from, to; /* numbers of blocks */
    uint64_t next,
        rest; /* the next block ends this far in `next`, in from-ths */
};

static void fold_step(struct fold_walk *w, uint64_t *first, uint64_t *last) {
    *first = w->next;
    w->rest += w->to;
    if (w->rest >= w->from) {
        w->rest -= w->from;
        w->next++;
    }
    *last = w->rest ? w->next : w->next - 1;
}

static void fold_blocks(const struct kind *kind, struct part *to,
                        const struct part *from) {
    const size_t bytes = kind->block_bits / 8;
    struct fold_walk walk = {from->shape.blocks, to->shape.blocks, 0, 0};
    for (uint64_t i = 0; i < from->shape.blocks; i++) {
        const struct block_ref other = {from->body, &from->shape, i};
        uint64_t j, last;
        for (fold_step(&walk, &j, &last); j <= last; j++)
            if (kind->counting)
                kind->counting->join(to->body, &to->shape, j, &other, SUMS);
            else
                or_bits(to->body + j * bytes, from->body + i * bytes, bytes);
    }
}

/* The same for a kind whose blocks are single bits. */
static void fold_bits(struct part *to, const struct part *from) {
    struct fold_walk walk = {from->shape.blocks, to->shape.blocks, 0, 0};
    for (uint64_t at = 0; at < from->shape.blocks; at++) {
        uint64_t bit, last;
        fold_step(&walk, &bit, &last);
        const uint64_t word = peek64(from->body + at / 64 * 8);
        for (; bit <= last && word >> at % 64 & 1; bit++)
            to->body[bit / 8] = (uint8_t)(to->body[bit / 8] | 1u << bit % 8);
    }
}

static void fold_body(const struct kind *kind, struct part *to,
                      const struct part *from) {
    if (kind->block_bits == 1)
        fold_bits(to, from);
    else
        fold_blocks(kind, to, from);
}

/* ---- Any of the three ---------------------------------------------------- */

static void copy_body(calyx_filter *to, const calyx_filter *from,
                      const struct part *p) {
    const uint64_t bytes = body_bytes(to->kind, &to->newest->shape);
    for (uint64_t at = 0; at < bytes;) {
        size_t size = (size_t)(bytes - at);
        uint8_t *const there = body_at(to, to->newest, at, &size);
        get_from_body(from, p, at, there, size);
        at += size;
    }
}

/* Part `p` of `from` and those before it, the oldest first, so that the new
 * parts come to stand in the same order. */
static calyx_status copy_parts(calyx_filter *to, const calyx_filter *from,
                               const struct part *p, uint64_t factor) {
    if (!p) return CALYX_OK;
    struct part like = like_part(p);
    like.shape.blocks /= factor;
    like.capacity = (p->capacity + factor - 1) / factor;
    calyx_status status = copy_parts(to, from, p->older, factor);
    if (status == CALYX_OK) status = allocate_part(to, &like);
    if (status != CALYX_OK) return status;

    if (factor == 1)
        copy_body(to, from, p);
    else
        fold_body(to->kind, to->newest, p);
    return CALYX_OK;
}

calyx_status copy_texts(calyx_filter *to, const calyx_filter *from) {
    const calyx_status status =
        from->comment ? calyx_set_comment(to, from->comment) : CALYX_OK;
    return status == CALYX_OK ? copy_properties(to, from) : status;
}

/* Make a filter with this head of part `p` of `f` and those before it, each
 * `factor` times smaller. `f` may have grown meanwhile. */
static calyx_status make_copy(const calyx_filter *head, const calyx_filter *f,
                              const struct part *p, uint64_t factor,
                              calyx_filter **out, calyx_error *why) {
    const calyx_status whole = check_whole(f, why);
    if (whole != CALYX_OK) return whole;
    calyx_filter *made = NULL;
    calyx_status status = allocate_head(head, &made);
    if (status == CALYX_OK) status = copy_parts(made, f, p, factor);
    if (status == CALYX_OK) status = copy_texts(made, f);
    if (status == CALYX_OK) status = copy_list(made, f);
    if (status != CALYX_OK)
        fail(why, status, "no memory for another %s filter", head->kind->name);
    else
        status = check_whole(f, why);
    if (status != CALYX_OK) {
        calyx_free(made);
        return status;
    }
    *out = made;
    return CALYX_OK;
}

calyx_status calyx_copy(const calyx_filter *f, calyx_filter **out,
                        calyx_error *why) {
    const calyx_filter head = head_of(f);
    lock_whole(f);
    const calyx_status status = make_copy(&head, f, newest_of(f), 1, out, why);
    unlock_whole(f);
    return status;
}

static calyx_status allocate_empty(calyx_filter *to, const struct part *p) {
    if (!p) return CALYX_OK;
    struct part like = like_part(p);
    like.items = 0;
    const calyx_status status = allocate_empty(to, p->older);
    return status == CALYX_OK ? allocate_part(to, &like) : status;
}

/* An empty filter with this part, and those older than it. */
static calyx_status make_empty(const calyx_filter *f, const struct part *newest,
                               calyx_filter **out, calyx_error *why) {
    const calyx_status can =
        check_can(f->kind, CALYX_CAN_ADD, "made empty", why);
    if (can != CALYX_OK) return can;
    const calyx_filter head = head_of(f);
    calyx_filter *made = NULL;
    calyx_status status = allocate_head(&head, &made);
    if (status == CALYX_OK) status = allocate_empty(made, newest);
    if (status == CALYX_OK) status = copy_texts(made, f);
    if (status != CALYX_OK) {
        calyx_free(made);
        return fail(why, status, "no memory for another %s filter",
                    head.kind->name);
    }
    *out = made;
    return CALYX_OK;
}

calyx_status calyx_new_like(const calyx_filter *f, calyx_filter **out,
                            calyx_error *why) {
    const struct part *first = newest_of(f);
    while (first->older) first = first->older;
    calyx_filter *made;
    const calyx_status status = make_empty(f, first, &made, why);
    if (status != CALYX_OK) return status;
    /* A key that is not in `f` is not in an empty filter either, and its bits
     * may be set again. */
    if (copy_list(made, f) == CALYX_OK) {
        *out = made;
        return CALYX_OK;
    }
    calyx_free(made);
    return fail(why, CALYX_NO_MEMORY, "no memory for an allow list");
}

calyx_status calyx_new_alike(const calyx_filter *f, calyx_filter **out,
                             calyx_error *why) {
    return make_empty(f, newest_of(f), out, why);
}

calyx_status calyx_fold(const calyx_filter *f, uint64_t factor,
                        calyx_filter **out, calyx_error *why) {
    const calyx_status can = check_can(f->kind, CALYX_CAN_FOLD, "folded", why);
    if (can != CALYX_OK) return can;
    const struct part *const newest = newest_of(f);
    for (const struct part *p = newest; p; p = p->older)
        if (factor == 0 || p->shape.blocks % factor != 0)
            return fail(why, CALYX_BAD_ARGUMENT,
                        "%llu blocks cannot be folded by %llu, which does not "
                        "divide them",
                        (unsigned long long)p->shape.blocks,
                        (unsigned long long)factor);
    if (is_counting(f) && newest->older)
        return fail(why, CALYX_CANNOT,
                    "a counting filter that has grown cannot be folded: remove "
                    "would no longer find a key where add has put it");
    const calyx_filter head = head_of(f);
    return make_copy(&head, f, newest, factor, out, why);
}

calyx_status calyx_freeze(const calyx_filter *f, calyx_filter **out,
                          calyx_error *why) {
    if (!is_counting(f) || f->kind->is_table)
        return fail(why, CALYX_CANNOT,
                    "only counting filters can be frozen, and this one is of "
                    "kind %s%s",
                    f->kind->name,
                    f->kind->is_table
                        ? ", whose keys are no bits: build a filter of "
                          "kind line from the keys"
                        : "");
    calyx_filter head = head_of(f);
    head.kind = kind_named("line");
    head.kernel = kernel_up_to(head.kind->kernels, f->kernel->level);
    return make_copy(&head, f, newest_of(f), 1, out, why);
}

/* ---- Updates of exact filters -------------------------------------------- */

static bool is_exact(const calyx_filter *f) {
    return newest_of(f)->shape.values != 0;
}

static calyx_status check_update(const calyx_filter *old,
                                 const calyx_filter *changes,
                                 calyx_error *why) {
    if (!is_exact(old) || !is_exact(changes))
        return fail(why, CALYX_CANNOT, "only exact filters can be updated");
    if (first_part(changes)->shape.values)
        return fail(why, CALYX_CANNOT,
                    "over a third of the answers have changed: build another "
                    "filter");
    return calyx_same_hash(old, changes)
               ? CALYX_OK
               : fail(why, CALYX_MISMATCH,
                      "the two filters differ in hash, or in its seed or key");
}

/* The oldest first. */
static calyx_status append_parts(calyx_filter *f, const struct part *p) {
    if (!p) return CALYX_OK;
    calyx_status status = append_parts(f, p->older);
    const struct part like = like_part(p);
    if (status == CALYX_OK) status = allocate_part(f, &like);
    if (status != CALYX_OK) return status;
    f->newest->items = items_of(p);
    memcpy(f->newest->body, p->body, (size_t)body_bytes(f->kind, &p->shape));
    return CALYX_OK;
}

calyx_status calyx_update(const calyx_filter *old, const calyx_filter *changes,
                          uint64_t items, calyx_filter **out,
                          calyx_error *why) {
    enum { MOST_LAYERS = 90 }; /* in a file, with room for another set */
    calyx_filter *f;
    calyx_info is;
    calyx_status status = check_update(old, changes, why);
    calyx_info_of(old, &is);
    const uint32_t parts = is.parts;
    if (status != CALYX_OK) return status;
    calyx_info_of(changes, &is);
    if (parts + is.parts > MOST_LAYERS)
        return fail(why, CALYX_FULL,
                    "it was updated too often, and has %u layers: build "
                    "another filter",
                    parts);
    status = calyx_copy(old, &f, why);
    if (status != CALYX_OK) return status;
    const struct part *const before = newest_of(f);
    status = append_parts(f, newest_of(changes));
    if (status != CALYX_OK) {
        calyx_free(f);
        return fail(why, status, "no memory for an updated filter");
    }
    struct part *p = f->newest, *values = p;
    for (; p != before; p = p->older)
        if (p->shape.values) values = p;
    values->items = items;
    calyx_info_of(f, &is);
    f->fpr = is.fpr;
    *out = f;
    return CALYX_OK;
}

/* ---- Fold, and like another ---------------------------------------------- */

static calyx_status check_fold_like(const calyx_filter *f,
                                    const calyx_filter *like,
                                    calyx_error *why) {
    const struct part *const from = newest_of(f), *const to = newest_of(like);
    const calyx_status can = check_can(f->kind, CALYX_CAN_FOLD, "folded", why);
    const calyx_status same =
        can == CALYX_OK ? check_same_hash(f, like, why) : can;
    if (same != CALYX_OK) return same;
    if (from->older || to->older)
        return fail(why, CALYX_CANNOT,
                    "a filter that has grown cannot be folded to the size of "
                    "another: it has a size of its own in each part");
    if (from->shape.probes != to->shape.probes)
        return fail(why, CALYX_MISMATCH,
                    "one filter has %u probes for each key, the other %u; make "
                    "both with the same number",
                    from->shape.probes, to->shape.probes);
    if (from->shape.blocks < to->shape.blocks)
        return fail(why, CALYX_MISMATCH,
                    "a filter of %llu blocks cannot be folded to %llu, which "
                    "are more: fold the larger one",
                    (unsigned long long)from->shape.blocks,
                    (unsigned long long)to->shape.blocks);
    if (is_counting(f) && from->shape.blocks % to->shape.blocks != 0)
        return fail(why, CALYX_CANNOT,
                    "%llu blocks do not divide the %llu of the larger filter, "
                    "so some keys would be counted twice",
                    (unsigned long long)to->shape.blocks,
                    (unsigned long long)from->shape.blocks);
    return check_whole(f, why);
}

calyx_status calyx_fold_like(const calyx_filter *f, const calyx_filter *like,
                             calyx_filter **out, calyx_error *why) {
    calyx_status status = check_fold_like(f, like, why);
    if (status != CALYX_OK) return status;
    const struct part *const from = newest_of(f);
    struct part smaller = like_part(newest_of(like));
    smaller.items = items_of(from);
    const calyx_filter head = head_of(f);
    calyx_filter *made = NULL;
    status = allocate_head(&head, &made);
    if (status == CALYX_OK) status = allocate_part(made, &smaller);
    if (status == CALYX_OK) status = copy_texts(made, f);
    if (status != CALYX_OK) {
        calyx_free(made);
        return fail(why, status, "no memory for another %s filter",
                    head.kind->name);
    }
    fold_body(made->kind, made->newest, from);
    status = check_whole(f, why);
    if (status != CALYX_OK) {
        calyx_free(made);
        return status;
    }
    *out = made;
    return CALYX_OK;
}
