/* Making, emptying, describing and ending filters. */
#include "filter/filter.h"

#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/allow_list.h"

/* ---- Birth and death ----------------------------------------------------- */

static calyx_status no_memory(calyx_error *why, const struct kind *kind,
                              const struct part *p) {
    return fail(why, CALYX_NO_MEMORY,
                "no memory for the %llu bytes of a %s filter of %llu keys at "
                "a rate of %g",
                (unsigned long long)body_bytes(kind, &p->shape), kind->name,
                (unsigned long long)p->capacity, p->fpr);
}

/* The first kind that has this ability, and can remove keys if this one can. */
static const char *other_kind(const struct kind *kind, uint32_t ability) {
    const uint32_t wanted = ability | (kind->can & CALYX_CAN_REMOVE);
    for (const char *const *name = calyx_kinds(); *name; name++)
        if ((calyx_kind_can(*name) & wanted) == wanted) return *name;
    return calyx_kinds()[0];
}

/* There are many ways to change a filter, and for a static one the same ways
 * out. */
calyx_status check_can(const struct kind *kind, uint32_t ability,
                       const char *done, calyx_error *why) {
    if (kind->can & ability) return CALYX_OK;
    if (!kind->construction)
        return fail(why, CALYX_CANNOT,
                    "filters of kind %s cannot be %s: make one of all keys, or "
                    "use kind %s",
                    kind->name, done, other_kind(kind, ability));
    return fail(why, CALYX_CANNOT,
                "%s filters are built once from all their keys, and cannot be "
                "%s: build another, or use a second filter of kind %s beside "
                "it",
                kind->name, done, calyx_kinds()[0]);
}

/* Growing filters take keys that nobody knows beforehand, and some may be
 * chosen to harm: unless a seed was given, theirs is random. */
static calyx_status choose_seed(const calyx_options *want, calyx_filter *head,
                                calyx_error *why) {
    if (want->seeded || want->seed || head->growth == 0 || head->hash->keyed)
        return CALYX_OK;
    return calyx_random(&head->secret.seed, sizeof head->secret.seed, why);
}

calyx_status calyx_new(const calyx_options *want, calyx_filter **out,
                       calyx_error *why) {
    calyx_filter head, *f;
    struct part first;
    calyx_status planned = plan_filter(want, &head, &first, why);
    if (planned == CALYX_OK)
        planned = check_can(head.kind, CALYX_CAN_ADD, "made empty", why);
    if (planned == CALYX_OK) planned = choose_seed(want, &head, why);
    if (planned != CALYX_OK) return planned;
    if (allocate_head(&head, &f) != CALYX_OK)
        return no_memory(why, head.kind, &first);
    if (allocate_part(f, &first) != CALYX_OK) {
        calyx_free(f);
        return no_memory(why, head.kind, &first);
    }
    *out = f;
    return CALYX_OK;
}

calyx_status calyx_close(calyx_filter *f, calyx_error *why) {
    if (!f) return CALYX_OK;
    const calyx_memory memory = f->memory;
    const calyx_status status = f->lent ? f->lent->release(f, why) : CALYX_OK;
    while (f->newest) free_newest(f);
    if (f->comment) give_block(&memory, f->comment, COMMENT_BYTES);
    if (f->engine->close) f->engine->close(f);
    drop_properties(f);
    drop_list(f);
    give_block(&memory, f, sizeof *f);
    return status;
}

void calyx_free(calyx_filter *f) {
    calyx_close(f, NULL);
}

static void move_body(const calyx_filter *f, struct part *p,
                      calyx_move_function *move, void *context) {
    if (f->lent) return;
    if (f->engine->move_body)
        f->engine->move_body(f, p, move, context);
    else
        p->body =
            move(context, p->body, (size_t)body_bytes(f->kind, &p->shape));
}

calyx_filter *calyx_relocate(calyx_filter *f, calyx_move_function *move,
                             void *context) {
    if (f->comment) f->comment = move(context, f->comment, COMMENT_BYTES);
    move_properties(f, move, context);
    move_list(f, move, context);
    for (struct part **p = &f->newest; *p; p = &(*p)->older) {
        *p = move(context, *p, sizeof **p);
        move_body(f, *p, move, context);
    }
    if (f->engine->relocate) f->engine->relocate(f, move, context);
    if (f->engine->renew) f->engine->renew(f);
    return move(context, f, sizeof *f);
}

/* The bits of an image only ever come to be set; that is what makes them safe
 * in a crash. */
calyx_status calyx_clear_by(calyx_filter *f, calyx_zero_function *zero,
                            void *context) {
    if (is_static(f)) return CALYX_CANNOT;
    if (is_in_place(f)) return CALYX_READ_ONLY;
    while (f->newest->older) free_newest(f);
    struct part *p = f->newest;
    size_t size = (size_t)body_bytes(f->kind, &p->shape), some;
    for (uint64_t from = 0; size > 0; from += some, size -= some) {
        some = size;
        zero(context, body_at(f, p, from, &some), some);
    }
    p->items = 0;
    if (f->engine->renew) f->engine->renew(f);
    return CALYX_OK;
}

static void write_zeros(void *context, void *block, size_t size) {
    (void)context;
    memset(block, 0, size);
}

calyx_status calyx_clear(calyx_filter *f) {
    return calyx_clear_by(f, write_zeros, NULL);
}

/* ---- Comment ------------------------------------------------------------- */

calyx_status calyx_set_comment(calyx_filter *f, const char *text) {
    if (is_in_place(f)) return CALYX_READ_ONLY;
    if (strlen(text) >= COMMENT_BYTES) return CALYX_BAD_ARGUMENT;
    if (!f->comment) f->comment = take_struct(&f->memory, COMMENT_BYTES);
    if (!f->comment) return CALYX_NO_MEMORY;
    strcpy(f->comment, text);
    return CALYX_OK;
}

const char *calyx_comment(const calyx_filter *f) {
    return f->comment ? f->comment : "";
}

calyx_status calyx_health(const calyx_filter *f, calyx_error *why) {
    if (is_truncated(f))
        return fail(why, CALYX_DAMAGED,
                    "damaged: the file under the filter was cut short");
    const uint64_t at = damage_at(f);
    if (at)
        return fail(why, CALYX_DAMAGED,
                    "damaged: the bytes from %llu on do not match their "
                    "checksum",
                    (unsigned long long)at);
    return CALYX_OK;
}

calyx_status check_whole(const calyx_filter *f, calyx_error *why) {
    verify_whole(f);
    return calyx_health(f, why);
}

/* ---- Description --------------------------------------------------------- */

uint64_t count_bits(const struct kind *kind, const struct part *p) {
    const uint64_t bytes = bits_bytes(kind, &p->shape);
    uint64_t set = 0;
    for (uint64_t at = 0; at < bytes; at += 8)
        set += (uint64_t)__builtin_popcountll(peek64(p->body + at));
    return set;
}

/* A key of k bits leaves any one bit unset with odds 1 - k/m, in every kind; so
 * n keys leave a share (1 - k/m)^n. A body with no bit unset counts
 * as one with half a bit unset: a lower bound. */
double keys_for_bits(const struct kind *kind, const struct shape *shape,
                     uint64_t set) {
    const double bits = (double)kind_bits(kind, shape);
    return keys_for_unset(kind, shape, fmax(0.5, bits - (double)set) / bits);
}

uint64_t keys_by_bits(const struct kind *kind, const struct part *p) {
    return (uint64_t)round(keys_for_bits(kind, &p->shape, count_bits(kind, p)));
}

double keys_for_unset(const struct kind *kind, const struct shape *shape,
                      double unset) {
    const double bits = (double)kind_bits(kind, shape);
    const double one_key = fmin(0.5, bits_of_key(kind, shape) / bits);
    return unset < 1 ? log(unset) / log1p(-one_key) : 0;
}

double bits_of_key(const struct kind *kind, const struct shape *shape) {
    return kind->bits_of_key ? kind->bits_of_key(shape->probes)
                             : (double)shape->probes;
}

/* The part that holds most keys. */
static const struct part *main_part(const calyx_filter *f) {
    const struct part *p = newest_of(f);
    while (is_static(f) && p->older) p = p->older;
    return p;
}

/* Of the filter itself: without parts, and what the engine has beside them. */
static uint64_t head_bytes(const calyx_filter *f) {
    return sizeof *f + (f->comment ? COMMENT_BYTES : 0) +
           (f->properties ? sizeof *f->properties + f->properties->bytes : 0) +
           list_memory_bytes(f);
}

void calyx_info_of(const calyx_filter *f, calyx_info *info) {
    *info = (calyx_info){
        .kind = f->kind->name,
        .kernel = cpu_level_name(f->kernel->level),
        .hash = f->hash->name,
        .seed = f->secret.seed,
        .probes = main_part(f)->shape.probes,
        .growth = f->growth,
        .fpr = f->fpr,
        .strict = f->strict,
        .concurrent = f->concurrent,
        .read_only = f->read_only,
        .can = f->kind->can,
        .allowed = listed_keys(f),
        .memory = head_bytes(f),
    };
    lock_whole(f); /* a new segment takes over the number of items */
    for (const struct part *p = newest_of(f); p; p = p->older) {
        const uint64_t bytes = body_bytes(f->kind, &p->shape);
        info->parts++;
        info->capacity += p->capacity;
        info->items += items_of(p);
        info->bits += kind_bits(f->kind, &p->shape);
        info->bytes += bytes;
        info->row_bytes += bits_bytes(f->kind, &p->shape);
        info->memory += sizeof *p + (f->lent ? 0 : bytes);
        info->huge_pages |= !f->lent && !is_in_pieces(p) &&
                            f->memory.allocate == memory_default.allocate &&
                            memory_is_huge((size_t)bytes);
    }
    if (f->engine->add_info) f->engine->add_info(f, info);
    unlock_whole(f);
}

void calyx_describe(const calyx_filter *f, calyx_info *info) {
    verify_whole(f);
    describe_bits(f, NULL, info);
}

void describe_bits(const calyx_filter *f, const uint64_t *counts,
                   calyx_info *info) {
    calyx_info_of(f, info);
    f->engine->describe(f, counts, info);
}

/* Keys are spread evenly over the blocks, so the first ones are a fair sample:
 * 8 Mi bits that are half set give the fill to 0.04 %. */
enum { SAMPLE_BITS = 8 << 20 };

static uint64_t estimate_set_bits(const struct kind *kind,
                                  const struct part *p) {
    const uint64_t bits = kind_bits(kind, &p->shape);
    if (bits <= SAMPLE_BITS) return count_bits(kind, p);
    const struct part sample = {
        .body = p->body,
        .shape = {SAMPLE_BITS / kind->block_bits, .probes = p->shape.probes}};
    const double share = (double)count_bits(kind, &sample) / SAMPLE_BITS;
    return (uint64_t)(share * (double)bits);
}

void calyx_estimate(const calyx_filter *f, calyx_info *info) {
    const struct part *const p = newest_of(f);
    if (p->older || is_static(f) || f->kind->is_table) {
        calyx_describe(f, info);
        return;
    }
    const uint64_t set = estimate_set_bits(f->kind, p);
    describe_bits(f, &set, info);
}

bool calyx_part_of(const calyx_filter *f, uint32_t number, calyx_part *part) {
    const struct part *p = newest_of(f), *sought = NULL;
    for (uint32_t after = 0; p; p = p->older)
        if (after++ >= number) sought = sought ? sought->older : newest_of(f);
    if (!sought) return false;
    *part = (calyx_part){
        .capacity = sought->capacity,
        .items = items_of(sought),
        .bits = kind_bits(f->kind, &sought->shape),
        .bytes = body_bytes(f->kind, &sought->shape),
        .probes = sought->shape.probes,
        .fpr = sought->fpr,
    };
    return true;
}
