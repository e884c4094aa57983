/* Making, emptying, growing, describing and ending filters. */
#include "filter/filter.h"

#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/memory.h"
#include "filter/allow_list.h"
#include "filter/segments.h"
#include "filter/stripes.h"

/* ---- Memory -------------------------------------------------------------- */

static void *take(const calyx_memory *memory, size_t size) {
    return memory->allocate(memory->context, size, ALIGNMENT);
}

/* A struct needs no line of its own. */
static void *take_struct(const calyx_memory *memory, size_t size) {
    return memory->allocate(memory->context, size, sizeof(uint64_t));
}

static void give(const calyx_memory *memory, void *block, size_t size) {
    memory->release(memory->context, block, size);
}

static uint64_t rounded_bytes(uint64_t bits) {
    return (bits + 8 * ALIGNMENT - 1) / (8 * ALIGNMENT) * ALIGNMENT;
}

uint64_t bits_bytes(const struct kind *kind, const struct shape *shape) {
    return rounded_bytes(kind_bits(kind, shape));
}

uint64_t body_bytes(const struct kind *kind, const struct shape *shape) {
    return bits_bytes(kind, shape) +
           rounded_bytes(kind_counter_bits(kind, shape));
}

bool is_in_pieces(const calyx_filter *f, const struct part *p) {
    return f->kind->is_segment && p->lines;
}

uint8_t *body_at(const calyx_filter *f, const struct part *p, uint64_t from,
                 size_t *size) {
    if (!is_in_pieces(f, p)) return p->body + from;
    const uint64_t first = bits_bytes(f->kind, &p->shape);
    if (from >= first) return p->lines + (from - first);
    if (*size > first - from) *size = (size_t)(first - from);
    return p->body + from;
}

void get_from_body(const calyx_filter *f, const struct part *p, uint64_t from,
                   uint8_t *to, size_t size) {
    while (size > 0) {
        size_t some = size;
        const uint8_t *const at = body_at(f, p, from, &some);
        if (is_shared(f))
            peek_bytes(to, at, some);
        else
            memcpy(to, at, some);
        from += some, to += some, size -= some;
    }
}

void put_to_body(const calyx_filter *f, const struct part *p, uint64_t from,
                 const uint8_t *bytes, size_t size) {
    while (size > 0) {
        size_t some = size;
        uint8_t *const at = body_at(f, p, from, &some);
        memcpy(at, bytes, some);
        from += some, bytes += some, size -= some;
    }
}

/* A body, or the two pieces of one. */
static void free_body(const calyx_filter *f, struct part *p) {
    const uint64_t size = body_bytes(f->kind, &p->shape);
    const uint64_t first =
        is_in_pieces(f, p) ? bits_bytes(f->kind, &p->shape) : size;
    give(&f->memory, p->body, (size_t)first);
    if (first < size) give(&f->memory, p->lines, (size_t)(size - first));
}

void free_part(const calyx_filter *f, struct part *p) {
    if (is_in_pieces(f, p) && has_rows(f))
        leave_rows(f, p);
    else if (!f->release) /* else the body is lent */
        free_body(f, p);
    give(&f->memory, p, sizeof *p);
}

/*
 * Should the lines of a segment be a block of their own? The buckets of a
 * segment are a power of two times those of the first, which allocators have
 * blocks for; with the lines behind them, a sixth of a block is lost. The lines
 * of the first one stay behind its buckets, as calyx_small wants them.
 */
static bool is_apart(const calyx_filter *f, const struct shape *shape) {
    enum { BLOCKS = 16 };
    return f->kind->is_segment && f->growth > 0 && f->newest &&
           shape->blocks >= BLOCKS &&
           f->memory.allocate != memory_default.allocate;
}

static bool take_body(const calyx_filter *f, struct part *p) {
    const uint64_t size = body_bytes(f->kind, &p->shape);
    const uint64_t first =
        is_apart(f, &p->shape) ? bits_bytes(f->kind, &p->shape) : size;
    if (size > SIZE_MAX) return false;
    p->body = take(&f->memory, (size_t)first);
    if (!p->body || first == size) return p->body != NULL;
    p->lines = take(&f->memory, (size_t)(size - first));
    if (p->lines) return true;
    give(&f->memory, p->body, (size_t)first);
    return false;
}

static struct part *make_part(const calyx_filter *f, const struct part *like) {
    struct part *p = take_struct(&f->memory, sizeof *p);
    if (!p) return NULL;
    *p = *like;
    if (f->kind->is_segment) p->lines = NULL;
    if ((f->table && join_rows(f, p)) || take_body(f, p)) return p;
    give(&f->memory, p, sizeof *p);
    return NULL;
}

/* Lookups in a static filter begin with the oldest part. */
static void link_layers(calyx_filter *f) {
    struct part *next = NULL;
    if (!is_static(f)) return;
    for (struct part *p = f->newest; p; next = p, p = p->older)
        p->next_layer = next;
    f->first_layer = next;
}

static void free_newest(calyx_filter *f) {
    struct part *p = f->newest;
    f->newest = p->older;
    free_part(f, p);
}

static calyx_status put_part(calyx_filter *f, struct part *p) {
    if (!p) return CALYX_NO_MEMORY;
    p->older = f->newest;
    __atomic_store_n(&f->newest, p, __ATOMIC_RELEASE);
    link_layers(f);
    if (!f->kind->is_segment || add_segment(f) == CALYX_OK) return CALYX_OK;
    f->newest = p->older;
    return CALYX_NO_MEMORY;
}

/* The table of a filter that has no part yet. */
static calyx_status make_table_before(calyx_filter *f, const struct part *p) {
    return f->kind->is_segment && !f->table ? make_table(f, &p->shape)
                                            : CALYX_OK;
}

calyx_status allocate_part(calyx_filter *f, const struct part *like) {
    if (make_table_before(f, like) != CALYX_OK) return CALYX_NO_MEMORY;
    struct part *const p = make_part(f, like);
    const calyx_status status = put_part(f, p);
    if (status != CALYX_OK && p) free_part(f, p);
    return status;
}

calyx_status borrow_part(calyx_filter *f, const struct part *like,
                         uint8_t *body) {
    if (make_table_before(f, like) != CALYX_OK) return CALYX_NO_MEMORY;
    struct part *p = take_struct(&f->memory, sizeof *p);
    if (p) {
        *p = *like;
        p->body = body;
        if (f->kind->is_segment) p->lines = NULL;
    }
    const calyx_status status = put_part(f, p);
    if (status != CALYX_OK && p) give(&f->memory, p, sizeof *p);
    return status;
}

struct calyx_filter head_of(const calyx_filter *f) {
    return (calyx_filter){
        .kind = f->kind,
        .kernel = f->kernel,
        .hash = f->hash,
        .secret = f->secret,
        .memory = f->memory,
        .fpr = f->fpr,
        .growth = f->growth,
        .strict = f->strict,
        .concurrent = f->concurrent,
    };
}

struct part like_part(const struct part *p) {
    return (struct part){
        .shape = p->shape,
        .capacity = p->capacity,
        .items = items_of(p),
        .fpr = p->fpr,
    };
}

calyx_status allocate_head(const calyx_filter *head, calyx_filter **out) {
    calyx_filter *f = take_struct(&head->memory, sizeof *f);
    if (!f) return CALYX_NO_MEMORY;
    *f = *head;
    f->read_only = is_static(f);
    if (allocate_stripes(f) != CALYX_OK) {
        give(&head->memory, f, sizeof *f);
        return CALYX_NO_MEMORY;
    }
    *out = f;
    return CALYX_OK;
}

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
    const calyx_status status = f->release ? f->release(f, why) : CALYX_OK;
    while (f->newest) free_newest(f);
    if (f->comment) give(&memory, f->comment, COMMENT_BYTES);
    if (f->table) free_table(f);
    if (f->stripes) give(&memory, f->stripes, sizeof *f->stripes);
    drop_properties(f);
    drop_list(f);
    give(&memory, f, sizeof *f);
    return status;
}

void calyx_free(calyx_filter *f) {
    calyx_close(f, NULL);
}

void give_structs(calyx_filter *f) {
    const calyx_memory memory = f->memory;
    for (struct part *p = f->newest, *older; p; p = older) {
        older = p->older;
        give(&memory, p, sizeof *p);
    }
    if (f->table) free_table(f);
    give(&memory, f, sizeof *f);
}

/* Rows stay where they are. */
static void move_body(const calyx_filter *f, struct part *p,
                      calyx_move_function *move, void *context) {
    const size_t size = (size_t)body_bytes(f->kind, &p->shape);
    const size_t first = (size_t)bits_bytes(f->kind, &p->shape);
    if (!is_in_pieces(f, p)) {
        p->body = move(context, p->body, size);
    } else if (!has_rows(f)) {
        p->body = move(context, p->body, first);
        p->lines = move(context, p->lines, size - first);
    }
}

calyx_filter *calyx_relocate(calyx_filter *f, calyx_move_function *move,
                             void *context) {
    if (f->comment) f->comment = move(context, f->comment, COMMENT_BYTES);
    move_properties(f, move, context);
    move_list(f, move, context);
    for (struct part **p = &f->newest; *p; p = &(*p)->older) {
        *p = move(context, *p, sizeof **p);
        if (!f->release) move_body(f, *p, move, context);
    }
    link_layers(f);
    if (f->table) relocate_table(f, move, context);
    if (f->stripes) f->stripes = move(context, f->stripes, sizeof *f->stripes);
    return move(context, f, sizeof *f);
}

uint64_t calyx_memory_bytes(const calyx_filter *f) {
    uint64_t bytes = sizeof *f;
    for (const struct part *p = newest_of(f); p; p = p->older)
        bytes += sizeof *p + (f->release ? 0 : body_bytes(f->kind, &p->shape));
    if (f->table) bytes += table_bytes(f);
    if (f->stripes) bytes += sizeof *f->stripes;
    if (f->comment) bytes += COMMENT_BYTES;
    if (f->properties) bytes += sizeof *f->properties + f->properties->bytes;
    return bytes + list_memory_bytes(f);
}

/* The bits of an image only ever come to be set; that is what makes them safe
 * in a crash. */
calyx_status calyx_clear_by(calyx_filter *f, calyx_zero_function *zero,
                            void *context) {
    if (is_static(f)) return CALYX_CANNOT;
    if (f->image || f->open_small) return CALYX_READ_ONLY;
    while (f->newest->older) free_newest(f);
    struct part *p = f->newest;
    size_t size = (size_t)body_bytes(f->kind, &p->shape), some;
    for (uint64_t from = 0; size > 0; from += some, size -= some) {
        some = size;
        zero(context, body_at(f, p, from, &some), some);
    }
    p->items = 0;
    if (f->table) renew_segments(f);
    return CALYX_OK;
}

static void write_zeros(void *context, void *block, size_t size) {
    (void)context;
    memset(block, 0, size);
}

calyx_status calyx_clear(calyx_filter *f) {
    return calyx_clear_by(f, write_zeros, NULL);
}

/* ---- Growth -------------------------------------------------------------- */

/* Several threads may find the same part full. Each makes the next one; the
 * first publishes it, and the others free theirs. So none waits. */
calyx_status grow(calyx_filter *f, struct part *full) {
    struct part next = {0};
    if (f->image || f->open_small || !plan_growth(f, full, &next))
        return CALYX_FULL;
    struct part *made = make_part(f, &next);
    if (!made) /* unless another thread had more luck */
        return newest_of(f) != full ? CALYX_OK : CALYX_NO_MEMORY;
    made->older = full;
    if (!__atomic_compare_exchange_n(&f->newest, &full, made, false,
                                     __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        free_part(f, made);
    return CALYX_OK;
}

/* ---- Comment ------------------------------------------------------------- */

calyx_status calyx_set_comment(calyx_filter *f, const char *text) {
    if (f->image || f->open_small) return CALYX_READ_ONLY;
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
    const uint64_t at =
        f->ranges ? __atomic_load_n(&f->ranges->damage_at, __ATOMIC_RELAXED)
                  : 0;
    if (at)
        return fail(why, CALYX_DAMAGED,
                    "damaged: the bytes from %llu on do not match their "
                    "checksum",
                    (unsigned long long)at);
    return CALYX_OK;
}

/* Before all the bits of an image are read. */
static void read_ahead(const calyx_filter *f) {
    if (!f->ranges) return;
    f->ranges->verify_rest(f);
    f->ranges->repair_items(f);
}

calyx_status check_whole(const calyx_filter *f, calyx_error *why) {
    read_ahead(f);
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
    };
    lock_table(f); /* a new segment takes over the number of items */
    for (const struct part *p = newest_of(f); p; p = p->older) {
        const uint64_t bytes = body_bytes(f->kind, &p->shape);
        info->parts++;
        info->capacity += p->capacity;
        info->items += items_of(p);
        info->bits += kind_bits(f->kind, &p->shape);
        info->bytes += bytes;
        info->huge_pages |= !f->image && !is_in_pieces(f, p) &&
                            f->memory.allocate == memory_default.allocate &&
                            memory_is_huge((size_t)bytes);
    }
    if (f->table) info->huge_pages |= has_huge_rows(f);
    if (f->growth > 0 && f->kind->is_segment)
        info->grows_to = grows_to(first_part(f));
    unlock_table(f);
}

void calyx_describe(const calyx_filter *f, calyx_info *info) {
    read_ahead(f);
    describe_bits(f, NULL, info);
}

/* The bits of a static filter say nothing about its keys, but its layers know
 * how many they have. As many absent keys as keys are bumped, nearly. */
static void describe_layers(const calyx_filter *f, calyx_info *info) {
    double from_here = 0; /* keys in this layer and those behind it */
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

void describe_bits(const calyx_filter *f, const uint64_t *counts,
                   calyx_info *info) {
    calyx_info_of(f, info);
    if (f->kind->is_segment) {
        describe_segments(f, info);
        return;
    }
    double certainly_not = 1; /* odds that an absent key is not found */
    uint64_t set = 0, bits = 0;
    uint32_t left = info->parts;
    for (const struct part *p = newest_of(f); p; p = p->older) {
        const uint64_t here = counts ? counts[--left] : count_bits(f->kind, p);
        set += here;
        bits += kind_bits(f->kind, &p->shape);
        if (is_static(f)) continue;
        const double keys = keys_for_bits(f->kind, &p->shape, here);
        info->distinct += keys;
        certainly_not *= 1 - expected_rate(f->kind, &p->shape, keys);
    }
    info->fpr_now = 1 - certainly_not;
    info->fill = (double)set / (double)bits;
    if (is_static(f)) describe_layers(f, info);
}

bool calyx_part_of(const calyx_filter *f, uint32_t number, calyx_part *part) {
    const struct part *p = newest_of(f), *sought = NULL;
    for (uint32_t behind = 0; p; p = p->older)
        if (behind++ >= number) sought = sought ? sought->older : newest_of(f);
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
