/*
 * The builder: from keys in any order and of any number to a filter.
 *
 * Hashes go to a spool (hash_spool.h), which hands them out sorted, each once.
 * Filters that keys are added to are made for their number, and the hashes
 * added in order: each block of the bits is filled while it is in the cache.
 * Static filters are built layer by layer (kind.h): each layer takes the spool
 * of hashes that the one before has bumped.
 *
 * A filter that is bits alone, of a size that is decided and within the memory
 * of the builder, needs no spool: its bits are the same in whatever order keys
 * come. Only the number of keys that found a bit missing is not, so the keys of
 * such a filter are counted by its bits.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "build/part_file.h"
#include "build/temp_file.h"
#include "store/file.h"

struct calyx_builder {
    calyx_options want; /* without pointers to memory of the caller */
    calyx_filter head;  /* of such a filter */
    uint64_t memory_bytes;
    uint32_t threads;
    bool file_backed;
    struct hash_spool spool;
    struct hash_spool excluded; /* of an exact filter */
    uint32_t part, parts;       /* 0: the whole filter */
    struct part first;          /* of the filter, if that is in parts */
    struct part_range range;
    calyx_filter *added; /* the filter, or the range alone; NULL if the keys
                            wait in the spool */
    uint8_t *block;      /* with the bytes of the range */
    size_t size;         /* of this struct, with the name of the folder */
    char folder[];       /* of temporary files */
};

/* ---- Options ------------------------------------------------------------- */

static const uint64_t MEMORY_DEFAULT = UINT64_C(160) << 20;
static const uint64_t MEMORY_LEAST = UINT64_C(64) << 10;

static calyx_status check_options(const calyx_builder_options *want,
                                  calyx_error *why) {
    if (want->threads > THREADS_MOST)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "threads must be at most %d, not %u", THREADS_MOST,
                    want->threads);
    if (want->memory_bytes && want->memory_bytes < MEMORY_LEAST)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "memory_bytes must be at least %llu, not %llu",
                    (unsigned long long)MEMORY_LEAST,
                    (unsigned long long)want->memory_bytes);
    if (want->file_backed && want->filter.memory)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "file_backed and filter.memory are both given; a filter is "
                    "in one memory");
    if (want->parts > CALYX_PARTS_MOST || want->part > want->parts ||
        (want->parts && !want->part))
        return fail(why, CALYX_BAD_ARGUMENT,
                    "part must be from 1 to parts, and parts at most %d, not "
                    "%u of %u",
                    CALYX_PARTS_MOST, want->part, want->parts);
    return check_reserved(want->reserved, sizeof want->reserved / 8,
                          "calyx_builder_options", why);
}

static bool is_size_decided(const calyx_options *want) {
    return want->capacity || (want->bits && want->fpr != 0);
}

/* Counters count the copies of a key. A table has a slot for each copy, so it
 * would be as large as the list, not as the set: it gets each key once. */
static bool counts_copies(const struct kind *kind) {
    return kind->can & CALYX_CAN_COUNT && !kind->is_table;
}

/* Is the filter bits alone, of a size that no key changes? Its bits then show
 * the number of keys within 0.1 %. */
static bool is_counted_by_bits(const calyx_builder *b) {
    enum { MANY = 1 << 20 };
    const struct kind *const kind = b->head.kind;
    return is_size_decided(&b->want) && b->want.growth == 0 &&
           !b->want.strict && !kind->construction && !kind->counting &&
           !kind->is_table && kind_bits(kind, &b->first.shape) >= MANY;
}

/* The options for this number of distinct keys. */
static calyx_options options_for(const calyx_builder *b, uint64_t keys) {
    calyx_options want = b->want;
    if (b->head.kind->construction || !is_size_decided(&want))
        want.capacity = keys;
    if (!is_size_decided(&want)) want.capacity = 1;
    return want;
}

/* All parts must come to the same shape, whatever keys they get. */
static calyx_status check_parts(const calyx_builder_options *want,
                                const struct kind *kind, calyx_error *why) {
    const calyx_options *const filter = &want->filter;
    if (!want->parts) return CALYX_OK;
    const calyx_status can =
        check_can(kind, CALYX_CAN_PARTS, "made of parts", why);
    if (can != CALYX_OK) return can;
    if (filter->growth != 0 || filter->strict || filter->concurrent ||
        want->file_backed)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "a filter made of parts has a fixed size: it is not "
                    "strict, concurrent or file_backed, and does not grow");
    if (filter->exact)
        return fail(why, CALYX_CANNOT,
                    "an exact filter is not made of parts: which excluded keys "
                    "its second half is for depends on all of its first");
    if (!is_size_decided(filter) || (kind->construction && filter->bits))
        return fail(why, CALYX_BAD_ARGUMENT,
                    "a filter made of parts needs its capacity%s: the distinct "
                    "keys of all parts",
                    kind->construction ? ", and no bits" : "");
    return CALYX_OK;
}

/* What is wrong is reported before keys are added. */
static calyx_status plan_head(const calyx_builder_options *want,
                              calyx_filter *head, struct part *first,
                              calyx_error *why) {
    calyx_options some = want->filter;
    if (!is_size_decided(&some)) some.capacity = 1000;
    const calyx_status status = plan_filter(&some, head, first, why);
    return status == CALYX_OK ? check_parts(want, head->kind, why) : status;
}

/* ---- Begin and end ------------------------------------------------------- */

/* Point the options to what the builder owns, or what is there for ever. */
static void own_options(calyx_builder *b) {
    b->want.kind = b->head.kind->name;
    b->want.hash = b->head.hash->name;
    b->want.seeded = true; /* the same keys make the same filter */
    if (b->want.kernel) b->want.kernel = cpu_level_name(b->head.kernel->level);
    if (b->want.key) b->want.key = b->head.secret.key;
    if (b->want.memory) b->want.memory = &b->head.memory;
}

/* ---- One part ------------------------------------------------------------ */

/* A block of the bytes of the range, with room to lie as in the whole body. */
static size_t block_bytes(const calyx_builder *b) {
    return (size_t)b->range.bytes + ALIGNMENT;
}

static uint8_t *range_bytes(const calyx_builder *b) {
    return b->block + b->range.at % ALIGNMENT;
}

/* Where the whole body would begin, of which only the range is in memory. No
 * kernel and no construction touches bytes of hashes outside the range. */
static uint8_t *body_around_range(const calyx_builder *b) {
    return (uint8_t *)((uintptr_t)range_bytes(b) - (uintptr_t)b->range.at);
}

static calyx_status allocate_range(calyx_builder *b, calyx_error *why) {
    const calyx_memory *const memory = &b->head.memory;
    if (b->range.bytes < SIZE_MAX - ALIGNMENT)
        b->block = memory->allocate(memory->context, block_bytes(b), ALIGNMENT);
    if (b->block) return CALYX_OK;
    return fail(why, CALYX_NO_MEMORY,
                "no memory for the %llu bytes of part %u of %u",
                (unsigned long long)b->range.bytes, b->part, b->parts);
}

static void release_range(calyx_builder *b) {
    const calyx_memory *const memory = &b->head.memory;
    if (b->block) memory->release(memory->context, b->block, block_bytes(b));
    b->block = NULL;
}

/* A filter of the first part, without texts, to be written or added to. */
static calyx_status borrow_range(const calyx_builder *b, calyx_filter **out,
                                 calyx_error *why) {
    calyx_filter head = head_of(&b->head), *f;
    if (allocate_head(&head, &f) != CALYX_OK)
        return fail(why, CALYX_NO_MEMORY, "no memory for a filter");
    if (borrow_part(f, &b->first, body_around_range(b)) != CALYX_OK) {
        calyx_free(f);
        return fail(why, CALYX_NO_MEMORY, "no memory for a filter");
    }
    *out = f;
    return CALYX_OK;
}

/* Keys that are added one by one are added at once, in the order in which they
 * come; a static part waits for all of them. */
static calyx_status begin_part(calyx_builder *b, calyx_error *why) {
    b->range = range_of_part(b->head.kind, &b->first.shape, b->part, b->parts);
    if (b->head.kind->construction) return CALYX_OK;
    const calyx_status status = allocate_range(b, why);
    return status == CALYX_OK ? borrow_range(b, &b->added, why) : status;
}

static void free_borrower(calyx_filter *f) {
    if (f) return_first_part(f);
    calyx_free(f);
}

/* ---- Keys that are added as they come ------------------------------------ */

/* A filter to be mapped from a file is written in order. */
static bool adds_at_once(const calyx_builder *b) {
    return !b->file_backed && is_counted_by_bits(b) &&
           body_bytes(b->head.kind, &b->first.shape) <= b->memory_bytes;
}

static uint64_t count_added(const calyx_builder *b) {
    struct part *const p = b->added->newest;
    return p->items = keys_by_bits(b->head.kind, p);
}

static calyx_status begin(calyx_builder *b, calyx_error *why) {
    if (b->parts) return begin_part(b, why);
    return adds_at_once(b) ? calyx_new(&b->want, &b->added, why) : CALYX_OK;
}

static void end(calyx_builder *b) {
    if (b->parts)
        free_borrower(b->added);
    else
        calyx_free(b->added);
    release_range(b);
}

bool calyx_builder_range(const calyx_builder *b, uint64_t *first,
                         uint64_t *last) {
    *first = b->parts ? b->range.first_hash : 0;
    *last = b->parts ? b->range.last_hash : UINT64_MAX;
    return !b->parts || b->range.units.first < b->range.units.end;
}

calyx_status calyx_builder_new(const calyx_builder_options *want,
                               calyx_builder **out, calyx_error *why) {
    calyx_filter head;
    struct part first;
    calyx_status status = check_options(want, why);
    if (status == CALYX_OK) status = plan_head(want, &head, &first, why);
    if (status != CALYX_OK) return status;

    const char *const folder = want->folder ? want->folder : temp_folder();
    const size_t size = sizeof(calyx_builder) + strlen(folder) + 1;
    calyx_builder *const b =
        head.memory.allocate(head.memory.context, size, sizeof(uint64_t));
    if (!b) return fail(why, CALYX_NO_MEMORY, "no memory for a builder");
    *b = (calyx_builder){
        .want = want->filter,
        .head = head,
        .memory_bytes =
            want->memory_bytes ? want->memory_bytes : MEMORY_DEFAULT,
        .threads = want->threads ? want->threads : 1,
        .file_backed = want->file_backed,
        .part = want->part,
        .parts = want->parts,
        .first = first,
        .size = size,
    };
    strcpy(b->folder, folder);
    own_options(b);
    const uint32_t copies = counts_copies(head.kind) ? 15 : 1;
    const uint64_t share = b->memory_bytes / (b->want.exact ? 2 : 1);
    spool_init(&b->spool, &head.memory, spool_hashes(share), b->folder, copies);
    spool_init(&b->excluded, &head.memory, spool_hashes(share), b->folder, 1);
    status = begin(b, why);
    if (status == CALYX_OK)
        *out = b;
    else
        calyx_builder_free(b);
    return status;
}

void calyx_builder_free(calyx_builder *b) {
    if (!b) return;
    const calyx_memory memory = b->head.memory;
    end(b);
    spool_end(&b->spool);
    spool_end(&b->excluded);
    drop_properties(&b->head);
    if (b->head.comment)
        memory.release(memory.context, b->head.comment, COMMENT_BYTES);
    memory.release(memory.context, b, b->size);
}

calyx_status calyx_builder_copy_texts(calyx_builder *b,
                                      const calyx_filter *from,
                                      calyx_error *why) {
    calyx_status status = copy_texts(&b->head, from);
    if (status == CALYX_OK && b->added && !b->parts)
        status = copy_texts(b->added, from);
    return status == CALYX_OK
               ? status
               : fail(why, status, "no memory for the texts of a filter");
}

/* ---- Adding -------------------------------------------------------------- */

enum { HASHED_AT_ONCE = 1024 };

static calyx_status add_hashes(calyx_builder *b, const uint64_t *hashes,
                               size_t n, calyx_error *why) {
    if (!b->added) return spool_add(&b->spool, hashes, n, why);
    const calyx_status status =
        calyx_add_hashes(b->added, hashes, n, NULL, NULL);
    return status == CALYX_OK
               ? status
               : fail(why, status, "%s", calyx_status_text(status));
}

/* Hashes of other parts are left out. */
static calyx_status select_for_part(calyx_builder *b, const uint64_t *hashes,
                                    size_t n, calyx_error *why) {
    uint64_t ours[HASHED_AT_ONCE];
    calyx_status status = CALYX_OK;
    for (size_t some; n > 0 && status == CALYX_OK; hashes += some, n -= some) {
        size_t count = 0;
        some = n < HASHED_AT_ONCE ? n : HASHED_AT_ONCE;
        for (size_t i = 0; i < some; i++) {
            ours[count] = hashes[i];
            count += is_in_range(&b->range, hashes[i]);
        }
        status = add_hashes(b, ours, count, why);
    }
    return status;
}

calyx_status calyx_builder_add_hashes(calyx_builder *b, const uint64_t *hashes,
                                      size_t n, calyx_error *why) {
    return b->parts ? select_for_part(b, hashes, n, why)
                    : add_hashes(b, hashes, n, why);
}

calyx_status calyx_builder_add(calyx_builder *b, const void *key, size_t size,
                               calyx_error *why) {
    const uint64_t hash = b->head.hash->one(&b->head.secret, key, size);
    return calyx_builder_add_hashes(b, &hash, 1, why);
}

calyx_status calyx_builder_add_many(calyx_builder *b, const calyx_key *keys,
                                    size_t n, calyx_error *why) {
    uint64_t hashes[HASHED_AT_ONCE];
    calyx_status status = CALYX_OK;
    for (size_t some; n > 0 && status == CALYX_OK; keys += some, n -= some) {
        some = n < HASHED_AT_ONCE ? n : HASHED_AT_ONCE;
        b->head.hash->many(b->head.hash, &b->head.secret, keys, some, n - some,
                           hashes);
        status = calyx_builder_add_hashes(b, hashes, some, why);
    }
    return status;
}

calyx_status calyx_builder_add_many_u64(calyx_builder *b,
                                        const uint64_t *numbers, size_t n,
                                        calyx_error *why) {
    uint64_t hashes[HASHED_AT_ONCE];
    calyx_status status = CALYX_OK;
    for (size_t some; n > 0 && status == CALYX_OK; numbers += some, n -= some) {
        some = n < HASHED_AT_ONCE ? n : HASHED_AT_ONCE;
        b->head.hash->numbers(b->head.hash, &b->head.secret,
                              b->head.kernel->level, numbers, some, hashes);
        status = calyx_builder_add_hashes(b, hashes, some, why);
    }
    return status;
}

/* ---- Excluding ----------------------------------------------------------- */

calyx_status calyx_builder_exclude_hashes(calyx_builder *b,
                                          const uint64_t *hashes, size_t n,
                                          calyx_error *why) {
    if (!b->want.exact)
        return fail(why, CALYX_CANNOT,
                    "only a builder of an exact filter excludes keys");
    return spool_add(&b->excluded, hashes, n, why);
}

calyx_status calyx_builder_exclude(calyx_builder *b, const void *key,
                                   size_t size, calyx_error *why) {
    const uint64_t hash = b->head.hash->one(&b->head.secret, key, size);
    return calyx_builder_exclude_hashes(b, &hash, 1, why);
}

static bool have_same_hash(const calyx_filter *a, const calyx_filter *b) {
    return a->hash == b->hash && a->secret.seed == b->secret.seed &&
           memcmp(a->secret.key, b->secret.key, sizeof a->secret.key) == 0;
}

calyx_status calyx_builder_merge(calyx_builder *b, calyx_builder *other,
                                 calyx_error *why) {
    if (b == other) return CALYX_OK;
    if (b->parts || other->parts)
        return fail(why, CALYX_CANNOT,
                    "builders of parts cannot be merged: add all keys of a "
                    "part to one builder");
    if (b->head.kind != other->head.kind)
        return fail(why, CALYX_MISMATCH,
                    "one builder is for a %s filter, the other for %s",
                    b->head.kind->name, other->head.kind->name);
    if (!have_same_hash(&b->head, &other->head))
        return fail(why, CALYX_MISMATCH,
                    "the builders differ in hash, or in its seed or key");
    if (!b->added != !other->added)
        return fail(why, CALYX_MISMATCH,
                    "the builders differ in capacity, bits, growth or memory");
    if (b->want.exact != other->want.exact)
        return fail(why, CALYX_MISMATCH,
                    "one builder is for an exact filter, the other is not");
    calyx_status status;
    if (b->added) {
        status = calyx_merge(b->added, other->added, why);
        return status == CALYX_OK ? calyx_clear(other->added) : status;
    }
    status = spool_merge(&b->spool, &other->spool, why);
    return status == CALYX_OK ? spool_merge(&b->excluded, &other->excluded, why)
                              : status;
}

/* ---- Bits in a file ------------------------------------------------------ */

/* Memory of a filter under construction. Large blocks are mappings of temporary
 * files; memory_default can release them. */
struct block_source {
    const char *folder;
    uint64_t most; /* bytes of a block in memory */
    int error;     /* errno of the block that there is none of */
};

static void *allocate_in_file(void *context, size_t size, size_t alignment) {
    struct block_source *const source = context;
    const size_t mapped = size > source->most ? memory_mapped_bytes(size) : 0;
    if (!mapped) return memory_default.allocate(NULL, size, alignment);
    void *const block = temp_file_map(source->folder, mapped);
    if (!block) source->error = errno;
    return block;
}

static void release_in_file(void *context, void *block, size_t size) {
    (void)context;
    memory_default.release(NULL, block, size);
}

/* ---- Kinds that keys are added to ---------------------------------------- */

static calyx_status count_range(void *context, const struct hash_range *range,
                                calyx_error *why) {
    (void)why;
    __atomic_fetch_add((uint64_t *)context, range->distinct, __ATOMIC_RELAXED);
    return CALYX_OK;
}

/* After the last key. */
static calyx_status count_spool(const calyx_builder *b, struct hash_spool *s,
                                uint64_t *distinct, calyx_error *why) {
    *distinct = 0;
    const calyx_status status = spool_seal(s, b->threads, why);
    if (status != CALYX_OK) return status;
    return spool_read_all(s, b->threads, count_range, distinct, false, why);
}

static calyx_status count_keys(calyx_builder *b, uint64_t *distinct,
                               calyx_error *why) {
    *distinct = b->added ? count_added(b) : 0;
    return b->added ? CALYX_OK : count_spool(b, &b->spool, distinct, why);
}

struct adding {
    calyx_filter *f;
    uint64_t added;
};

static calyx_status add_range(void *context, const struct hash_range *range,
                              calyx_error *why) {
    struct adding *const work = context;
    const calyx_status status =
        calyx_add_hashes(work->f, range->hashes, range->n, NULL, NULL);
    work->added += range->n;
    return status == CALYX_OK
               ? status
               : fail(why, status, "%s", calyx_status_text(status));
}

static calyx_status add_all(const calyx_builder *b, calyx_filter *f,
                            calyx_error *why) {
    struct adding work = {.f = f};
    const calyx_status status =
        spool_read_all(&b->spool, b->threads, add_range, &work, true, why);
    /* More copies of a key than a counter can count are not added. */
    if (counts_copies(b->head.kind))
        f->newest->items += b->spool.added - work.added;
    if (is_counted_by_bits(b))
        f->newest->items = keys_by_bits(f->kind, f->newest);
    return status;
}

static calyx_status build_by_adding(const calyx_builder *b,
                                    const calyx_options *want,
                                    calyx_filter **out, calyx_error *why) {
    calyx_filter *f;
    calyx_status status = calyx_new(want, &f, why);
    if (status != CALYX_OK) return status;
    status = add_all(b, f, why);
    if (status == CALYX_OK)
        *out = f;
    else
        calyx_free(f);
    return status;
}

/* ---- Static kinds -------------------------------------------------------- */

static struct layer_options layer_options_of(const calyx_builder *b) {
    return (struct layer_options){&b->head.memory, b->folder, b->threads};
}

static calyx_status build_layers(const calyx_builder *b,
                                 const calyx_options *want, uint64_t keys,
                                 calyx_filter **out, calyx_error *why) {
    calyx_filter head, *f;
    struct part first;
    calyx_status status = plan_filter(want, &head, &first, why);
    if (status != CALYX_OK) return status;
    if (allocate_head(&head, &f) != CALYX_OK)
        return fail(why, CALYX_NO_MEMORY, "no memory for a filter");
    first.items = keys;
    const struct layer_options how = layer_options_of(b);
    const uint64_t memory = memory_of_next(b->memory_bytes);
    if (!first.shape.values)
        status = add_layers(&how, f, &first, &b->spool, memory, 0, why);
    const struct universe all = {&b->spool, &b->excluded, keys + want->excluded,
                                 keys};
    if (status == CALYX_OK && want->exact)
        status = add_value_layers(&how, f, &all, memory, why);
    if (status == CALYX_OK)
        *out = f;
    else
        calyx_free(f);
    return status;
}

static uint64_t bytes_over(const calyx_filter *f, uint64_t most) {
    calyx_info info;
    calyx_info_of(f, &info);
    return info.bytes > most ? info.bytes - most : 0;
}

/* How many hashes a layer bumps is chance, and so is the size. The plan leaves
 * room for that; if it does not suffice, the filter is built again. */
static calyx_status build_within(const calyx_builder *b,
                                 const calyx_options *want, uint64_t keys,
                                 calyx_filter **out, calyx_error *why) {
    calyx_options smaller = *want;
    uint64_t less = 0, over;
    calyx_filter *f;
    do {
        smaller.bits -= less < smaller.bits ? less : 0;
        const calyx_status status = build_layers(b, &smaller, keys, &f, why);
        if (status != CALYX_OK) return status;
        over = bytes_over(f, want->bits / 8);
        less = 8 * over + 8 * ALIGNMENT;
        if (over && less < smaller.bits) calyx_free(f);
    } while (over && less < smaller.bits);
    *out = f;
    return CALYX_OK;
}

/* The keys are what they are: of a size and a rate, the size is a limit. */
static calyx_status build_static(const calyx_builder *b,
                                 const calyx_options *want, uint64_t keys,
                                 calyx_filter **out, calyx_error *why) {
    calyx_options by_rate = *want;
    calyx_filter *f;
    if (want->bits && want->fpr == 0)
        return build_within(b, want, keys, out, why);
    by_rate.bits = 0;
    const calyx_status status = build_layers(b, &by_rate, keys, &f, why);
    if (status != CALYX_OK) return status;
    const uint64_t over = want->bits ? bytes_over(f, want->bits / 8) : 0;
    if (!over) {
        *out = f;
        return CALYX_OK;
    }
    calyx_free(f);
    return fail(why, CALYX_FULL,
                "%llu keys at a rate of %g take %llu bytes more than the %llu "
                "that were given",
                (unsigned long long)keys, want->fpr, (unsigned long long)over,
                (unsigned long long)(want->bits / 8));
}

/* ---- Saving a part ------------------------------------------------------- */

static calyx_status save_content(const calyx_builder *b, uint64_t items,
                                 const struct hash_spool *bumped,
                                 const char *path, calyx_error *why) {
    struct part_content content = {.number = b->part,
                                   .count = b->parts,
                                   .items = items,
                                   .range = b->range,
                                   .body = range_bytes(b),
                                   .bumped = bumped};
    calyx_filter *f;
    calyx_status status = borrow_range(b, &f, why);
    if (status != CALYX_OK) return status;
    content.f = f;
    status = copy_texts(f, &b->head) == CALYX_OK
                 ? save_by(write_part, &content, path, why)
                 : fail(why, CALYX_NO_MEMORY, "no memory for texts");
    free_borrower(f);
    return status;
}

/* The lots of the first layer. The next layers depend on what all parts bump:
 * calyx_join makes them. */
static calyx_status save_lots(calyx_builder *b, uint64_t keys, const char *path,
                              calyx_error *why) {
    const struct layer_options how = layer_options_of(b);
    struct hash_spool next;
    calyx_status status = allocate_range(b, why);
    if (status != CALYX_OK) return status;
    spool_init(&next, &b->head.memory,
               spool_hashes(memory_of_next(b->memory_bytes)), b->folder, 1);
    status = build_lots(&how, b->head.kind, &b->first.shape, b->range.units,
                        &b->spool, keys, body_around_range(b), &next, why);
    if (status == CALYX_OK) status = spool_seal(&next, b->threads, why);
    if (status == CALYX_OK) status = save_content(b, keys, &next, path, why);
    spool_end(&next);
    release_range(b);
    return status;
}

static calyx_status save_part(calyx_builder *b, const char *path,
                              calyx_error *why) {
    uint64_t keys;
    if (b->added)
        return save_content(b, b->added->newest->items, NULL, path, why);
    const calyx_status status = count_keys(b, &keys, why);
    return status == CALYX_OK ? save_lots(b, keys, path, why) : status;
}

/* ---- Finishing ----------------------------------------------------------- */

static calyx_status build(const calyx_builder *b, const calyx_options *want,
                          uint64_t keys, calyx_filter **out, calyx_error *why) {
    return b->head.kind->construction ? build_static(b, want, keys, out, why)
                                      : build_by_adding(b, want, out, why);
}

/* The same with its bits in files. What the filter allocates later comes from
 * the default memory, which can also release what it has. */
static calyx_status build_in_files(const calyx_builder *b, calyx_options want,
                                   uint64_t keys, calyx_filter **out,
                                   calyx_error *why) {
    struct block_source source = {.folder = b->folder,
                                  .most = b->memory_bytes / 4};
    const calyx_memory memory = {allocate_in_file, release_in_file, &source};
    want.memory = &memory;
    const calyx_status status = build(b, &want, keys, out, why);
    if (status == CALYX_OK) (*out)->memory = memory_default;
    if (status != CALYX_NO_MEMORY || !source.error) return status;
    errno = source.error;
    return fail_os(why, b->folder,
                   "make a temporary file for the bits of the filter");
}

static calyx_status finish(calyx_builder *b, bool in_files, calyx_filter **out,
                           calyx_error *why) {
    uint64_t keys;
    if (b->parts)
        return fail(why, CALYX_CANNOT,
                    "part %u of %u is no filter by itself: save it, and join "
                    "all parts",
                    b->part, b->parts);
    calyx_status status = count_keys(b, &keys, why);
    if (status != CALYX_OK) return status;
    if (b->added) return calyx_copy(b->added, out, why);
    calyx_options want = options_for(b, keys);
    if (want.exact) status = count_spool(b, &b->excluded, &want.excluded, why);
    if (status != CALYX_OK) return status;
    calyx_filter *f;
    status = in_files ? build_in_files(b, want, keys, &f, why)
                      : build(b, &want, keys, &f, why);
    if (status != CALYX_OK) return status;
    if (copy_texts(f, &b->head) != CALYX_OK) {
        calyx_free(f);
        return fail(why, CALYX_NO_MEMORY, "no memory for texts");
    }
    *out = f;
    return CALYX_OK;
}

calyx_status calyx_builder_count(calyx_builder *b, uint64_t *distinct,
                                 calyx_error *why) {
    if (b->parts)
        return fail(why, CALYX_CANNOT, "a part of a filter has no count");
    return count_keys(b, distinct, why);
}

calyx_status calyx_builder_finish(calyx_builder *b, calyx_filter **out,
                                  calyx_error *why) {
    return finish(b, b->file_backed, out, why);
}

calyx_status calyx_builder_save(calyx_builder *b, const char *path,
                                calyx_error *why) {
    calyx_filter *f = NULL;
    if (b->parts) return save_part(b, path, why);
    if (b->added) {
        count_added(b);
        return calyx_save(b->added, path, why);
    }
    calyx_status status = finish(b, !b->want.memory, &f, why);
    if (status != CALYX_OK) return status;
    status = calyx_save(f, path, why);
    calyx_free(f);
    return status;
}
