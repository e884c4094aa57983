#include "store/format.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h" /* before xxhash.h */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/memory.h"

uint64_t checksum(const void *bytes, size_t size, uint64_t seed) {
    return XXH3_64bits_withSeed(bytes, size, seed);
}

static uint64_t not_unsealed(uint64_t sum) {
    return sum + (sum == UNSEALED);
}

uint64_t range_sum(const void *bytes, size_t size, uint64_t number) {
    return not_unsealed(checksum(bytes, size, number));
}

uint64_t range_sum_shared(const void *bytes, size_t size, uint64_t number) {
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset_withSeed(&state, number);
    uint8_t copy[1024];
    const uint8_t *at = bytes;
    for (size_t n; size > 0; size -= n, at += n) {
        n = size < sizeof copy ? size : sizeof copy;
        for (size_t i = 0; i < n; i += 8) store64(copy + i, peek64(at + i));
        XXH3_64bits_update(&state, copy, n);
    }
    return not_unsealed(XXH3_64bits_digest(&state));
}

void sum_chunk(const uint8_t *chunk, size_t size, uint8_t *tables,
               uint64_t *number) {
    for (uint64_t from = 0; from < size; from += RANGE_BYTES, ++*number)
        store64(tables + *number * sizeof(uint64_t),
                range_sum(chunk + from, range_size(size, from), *number));
}

/* A high bit, a name, both kinds of line ends and an end-of-file mark: what is
 * lost when bytes pass for text. */
static const uint8_t magic[8] = {0x89, 'C', 'L', 'X', '\r', '\n', 0x1A, '\n'};
static const uint32_t VERSION = 1;
static const uint32_t BYTE_ORDER_WORD = 0x0A0B0C0D;

/* Features that a reader must understand. A program that does not know the
 * allow list could add a key of it, and leave it there; one that does not know
 * value layers would ask them in vain. */
enum { MUST_LIST = 1, MUST_EXACT = 2, MUST_KNOWN = MUST_LIST | MUST_EXACT };

enum { STRICT = 1 }; /* flags */

/* Places in the fixed part of the header. */
enum {
    AT_VERSION = 8,
    AT_BYTE_ORDER = 12,
    AT_MUST = 16,
    AT_MAY = 20,
    AT_FILE_BYTES = 24,
    AT_HEADER_BYTES = 32,
    AT_ALIGNMENT = 36,
    AT_KIND = 40,
    AT_HASH = 42,
    AT_FLAGS = 44,
    AT_SEED = 48,
    AT_HASH_CHECK = 56,
    AT_FPR = 64,
    AT_GROWTH = 72,
    AT_PARTS = 80,
    AT_COMMENT_BYTES = 84,
    AT_RECORDS_BYTES = 88,
    AT_LIST_BYTES = 92,
    AT_LIST_SUM = 96,
    AT_RESERVED = 104
};

/* Places in the record of a part. */
enum {
    OF_BLOCKS = 0,
    OF_PROBES = 8,
    OF_VALUES = 12,
    OF_CAPACITY = 16,
    OF_ITEMS = 24,
    OF_FPR = 32,
    OF_BODY_AT = 40,
    OF_BODY_BYTES = 48,
    OF_WIDE = 56
};

/* Places in a slot. */
enum {
    IN_GENERATION = 0,
    IN_STATE = 8,
    IN_UNUSED = 12,
    IN_ITEMS = 16,
    IN_TABLES_SUM = 24,
    IN_HEADER_SUM = 32,
    IN_SEALED_ITEMS = 40,
    IN_RESERVED = 48,
    IN_SUM = 56
};
enum { SEALED = 1, OPEN = 2 };

static double load_double(const uint8_t *p) {
    const uint64_t bits = load64(p);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void store_double(uint8_t *p, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    store64(p, bits);
}

bool all_zero(const uint8_t *bytes, size_t size) {
    uint8_t any = 0;
    for (size_t i = 0; i < size; i++) any |= bytes[i];
    return any == 0;
}

/* ---- Where things are ---------------------------------------------------- */

static uint64_t round_up(uint64_t n, uint64_t unit) {
    return (n + unit - 1) / unit * unit;
}

/* Shapes were checked, so no body is over 2^44 bytes and no sum overflows. */
static void lay_out(struct description *d, uint32_t alignment) {
    struct file_layout *l = &d->layout;
    const uint64_t used = FIXED_BYTES + (uint64_t)d->parts * RECORD_BYTES +
                          strlen(d->comment) + d->records_bytes +
                          sizeof(uint64_t);
    l->alignment = alignment;
    l->header_bytes = (uint32_t)round_up(used, alignment);
    uint64_t at =
        round_up((uint64_t)l->header_bytes + d->list_bytes, alignment);
    l->tables_bytes = 0;
    for (uint32_t i = 0; i < d->parts; i++) {
        l->body_at[i] = at;
        l->body_bytes[i] = body_bytes(d->head.kind, &d->part[i].shape);
        l->tables_bytes += ranges_of(l->body_bytes[i]) * sizeof(uint64_t);
        at = round_up(at + l->body_bytes[i], alignment);
    }
    l->tables_at = at;
    /* A disk writes 512 bytes whole or not at all. */
    const uint64_t apart = alignment == PAGE_ALIGNED ? 512 : SLOT_BYTES;
    l->slot_at[0] = round_up(at + l->tables_bytes, apart);
    l->slot_at[1] = l->slot_at[0] + apart;
    l->file_bytes = l->slot_at[1] + apart;
}

/* ---- Writing ------------------------------------------------------------- */

static bool is_exact(const struct description *d) {
    return d->part[d->parts - 1].shape.values != 0;
}

static uint64_t hash_check(const struct hash *hash,
                           const struct secret *secret) {
    static const char words[] = "calyx: is this the same hash?";
    return hash->one(secret, words, sizeof words - 1);
}

bool describe_filter(const calyx_filter *f, uint32_t alignment,
                     struct description *d) {
    *d = (struct description){.head = head_of(f)};
    /* Other threads may put newer parts before this one. */
    const struct part *const newest = newest_of(f);
    for (const struct part *p = newest; p; p = p->older) d->parts++;
    if (d->parts > MOST_PARTS) return false;
    uint32_t i = d->parts;
    for (const struct part *p = newest; p; p = p->older) {
        d->part[--i] = like_part(p);
        d->part[i].body = p->body;
        d->part[i].lines = p->lines;
    }
    strcpy(d->comment, calyx_comment(f));
    if (f->properties) {
        d->records_bytes = f->properties->bytes;
        memcpy(d->records, f->properties->records, d->records_bytes);
    }
    d->hash_check = hash_check(f->hash, &f->secret);
    d->list_bytes = encoded_list_bytes(f);
    lay_out(d, alignment);
    return true;
}

void describe_list(struct description *d, const uint8_t *list, uint32_t bytes) {
    d->list = list;
    d->list_bytes = bytes;
    d->list_sum = bytes ? checksum(list, bytes, 0) : 0;
    lay_out(d, d->layout.alignment);
}

void store_header(struct description *d, uint8_t *h) {
    const struct file_layout *l = &d->layout;
    memset(h, 0, l->header_bytes);
    memcpy(h, magic, sizeof magic);
    store32(h + AT_VERSION, VERSION);
    store32(h + AT_BYTE_ORDER, BYTE_ORDER_WORD);
    store64(h + AT_FILE_BYTES, l->file_bytes);
    store32(h + AT_HEADER_BYTES, l->header_bytes);
    store32(h + AT_ALIGNMENT, l->alignment);
    store16(h + AT_KIND, d->head.kind->code);
    store16(h + AT_HASH, d->head.hash->code);
    store32(h + AT_FLAGS, d->head.strict ? STRICT : 0);
    store64(h + AT_SEED, d->head.secret.seed);
    store64(h + AT_HASH_CHECK, d->hash_check);
    store_double(h + AT_FPR, d->head.fpr);
    store_double(h + AT_GROWTH, d->head.growth);
    store32(h + AT_PARTS, d->parts);
    store32(h + AT_COMMENT_BYTES, (uint32_t)strlen(d->comment));
    store32(h + AT_RECORDS_BYTES, d->records_bytes);
    store32(h + AT_MUST,
            (d->list_bytes ? MUST_LIST : 0) | (is_exact(d) ? MUST_EXACT : 0));
    store32(h + AT_LIST_BYTES, d->list_bytes);
    store64(h + AT_LIST_SUM, d->list_sum);

    uint8_t *record = h + FIXED_BYTES;
    for (uint32_t i = 0; i < d->parts; i++, record += RECORD_BYTES) {
        const struct part *p = &d->part[i];
        store64(record + OF_BLOCKS, p->shape.blocks);
        store32(record + OF_PROBES, p->shape.probes);
        store32(record + OF_VALUES, p->shape.values);
        store64(record + OF_CAPACITY, p->capacity);
        store64(record + OF_ITEMS, p->items);
        store_double(record + OF_FPR, p->fpr);
        store64(record + OF_BODY_AT, l->body_at[i]);
        store64(record + OF_BODY_BYTES, l->body_bytes[i]);
        store64(record + OF_WIDE, p->shape.variable);
    }
    memcpy(record, d->comment, strlen(d->comment));
    memcpy(record + strlen(d->comment), d->records, d->records_bytes);
    const uint32_t end = l->header_bytes - (uint32_t)sizeof(uint64_t);
    d->header_sum = checksum(h, end, 0);
    store64(h + end, d->header_sum);
}

/* A slot carries the checksum of the header that it belongs to. */
void store_slot(const struct description *d, const struct state *state,
                uint8_t slot[SLOT_BYTES]) {
    memset(slot, 0, SLOT_BYTES);
    store64(slot + IN_GENERATION, state->generation);
    store32(slot + IN_STATE, state->sealed ? SEALED : OPEN);
    store64(slot + IN_ITEMS, state->items);
    store64(slot + IN_TABLES_SUM, state->tables_sum);
    store64(slot + IN_HEADER_SUM, d->header_sum);
    store64(slot + IN_SEALED_ITEMS, state->sealed_items);
    store64(slot + IN_SUM, checksum(slot, IN_SUM, 0));
}

/* ---- The gate ------------------------------------------------------------ */

static calyx_status damaged(calyx_error *why, const char *what) {
    return fail(why, CALYX_DAMAGED, "damaged: %s", what);
}

calyx_status check_start(const uint8_t start[FIXED_BYTES],
                         uint32_t *header_bytes, calyx_error *why) {
    /* doc/FORMAT.md: the other files of Calyx differ in one letter. */
    if (memcmp(start, magic, 3) == 0 && start[3] == 'P')
        return fail(why, CALYX_DAMAGED,
                    "not a whole calyx filter, but a part of one: join all "
                    "parts first");
    if (memcmp(start, magic, sizeof magic) != 0)
        return load32(start + AT_BYTE_ORDER) == BYTE_ORDER_WORD
                   ? damaged(why, "its first 8 bytes are not the first bytes "
                                  "of a filter")
                   : fail(why, CALYX_DAMAGED,
                          "not a calyx filter: it starts with other bytes");
    if (load32(start + AT_BYTE_ORDER) != BYTE_ORDER_WORD)
        return damaged(why, "its bytes are in another order");
    const uint32_t version = load32(start + AT_VERSION);
    if (version != VERSION)
        return fail(why, CALYX_TOO_NEW,
                    "it is of format version %u; this library reads version %u",
                    version, VERSION);
    const uint32_t must = load32(start + AT_MUST);
    if (must & ~(uint32_t)MUST_KNOWN)
        return fail(why, CALYX_TOO_NEW,
                    "it needs features (mask %#x) that this library lacks",
                    must & ~(uint32_t)MUST_KNOWN);
    const uint32_t size = load32(start + AT_HEADER_BYTES);
    if (size < FIXED_BYTES + RECORD_BYTES + sizeof(uint64_t) ||
        size > MOST_HEADER)
        return fail(why, CALYX_DAMAGED,
                    "damaged: it claims a header of %u bytes", size);
    *header_bytes = size;
    return CALYX_OK;
}

calyx_status check_first_bytes(const uint8_t *bytes, uint64_t size,
                               uint32_t *header_bytes, calyx_error *why) {
    if (size < FIXED_BYTES)
        return fail(why, CALYX_DAMAGED,
                    "not a calyx filter: it has %llu bytes, fewer than the %d "
                    "that all begin with",
                    (unsigned long long)size, FIXED_BYTES);
    const calyx_status status = check_start(bytes, header_bytes, why);
    if (status != CALYX_OK || size >= *header_bytes) return status;
    return fail(why, CALYX_DAMAGED,
                "damaged: it ends after %llu of the %u bytes of its header",
                (unsigned long long)size, *header_bytes);
}

/* Written so that NaN fails too. A size that was given outright may come to a
 * rate of nearly 0 or nearly 1, and so to either. */
static bool is_rate(double x) {
    return x >= 0 && x <= 1;
}

static bool is_growth(double x) {
    return x == 0 || (x >= 1.25 && x <= 16);
}

static bool is_shape(const struct kind *kind, const struct shape *s) {
    return s->blocks >= 1 && s->blocks <= kind->most_blocks && s->probes >= 1 &&
           s->probes <= kind->most_probes &&
           s->probes % kind->probe_step == 0 &&
           (kind->is_shape ? kind->is_shape(s) : s->variable == 0);
}

/*
 * A filter grows by its capacity and its rate: a small file must not make it
 * allocate gigabytes. No kind has a lower rate than the textbook's, (1 -
 * e^(-kn/m))^k; twice its keys are allowed. A table must keep the rate of its
 * first segment with a few keys a block, else it would grow with every key.
 */
static bool can_have(const struct kind *kind, uint32_t i,
                     const struct part *p) {
    enum { FEW = 4 };
    const double capacity = (double)p->capacity, k = p->shape.probes;
    const double bits = (double)kind_bits(kind, &p->shape);
    const double few = fmin(capacity, FEW * (double)p->shape.blocks);
    if (kind->segments)
        return capacity <= bits &&
               (i > 0 || expected_rate(kind, &p->shape, few) <= p->fpr);
    const double most = -log1p(-pow(p->fpr, 1 / k)) / k;
    return capacity <= 2 * bits * fmin(most, 64);
}

static calyx_status check_record(const uint8_t *record, struct description *d,
                                 uint32_t i, calyx_error *why) {
    struct part *p = &d->part[i];
    p->shape.blocks = load64(record + OF_BLOCKS);
    p->shape.probes = load32(record + OF_PROBES);
    p->shape.values = load32(record + OF_VALUES);
    p->shape.variable = load64(record + OF_WIDE);
    p->capacity = load64(record + OF_CAPACITY);
    p->items = load64(record + OF_ITEMS);
    p->fpr = load_double(record + OF_FPR);
    if (!is_shape(d->head.kind, &p->shape))
        return fail(why, CALYX_DAMAGED,
                    "damaged: part %u claims %llu blocks with %u probes, which "
                    "no %s filter has (%llu of them with one more)",
                    i, (unsigned long long)p->shape.blocks, p->shape.probes,
                    d->head.kind->name, (unsigned long long)p->shape.variable);
    /* A layer may have bumped all its keys. */
    const uint64_t least = d->head.kind->construction ? 0 : 1;
    if (p->capacity < least || p->capacity > UINT64_C(1) << 44 ||
        !is_rate(p->fpr))
        return fail(why, CALYX_DAMAGED,
                    "damaged: the numbers of part %u make no sense", i);
    if (d->head.growth > 0 && !can_have(d->head.kind, i, p))
        return fail(why, CALYX_DAMAGED,
                    "damaged: part %u claims a capacity of %llu keys at a rate "
                    "of %g, which its %llu blocks cannot have",
                    i, (unsigned long long)p->capacity, p->fpr,
                    (unsigned long long)p->shape.blocks);
    return CALYX_OK;
}

/* An exact filter ends with value layers, each of one bit. */
static calyx_status check_values(const uint8_t *h, const struct description *d,
                                 calyx_error *why) {
    const bool exact = load32(h + AT_MUST) & MUST_EXACT;
    for (uint32_t i = 0; i < d->parts; i++) {
        const struct shape *const shape = &d->part[i].shape;
        const uint32_t most = exact && d->head.kind->construction;
        if (shape->values > most ||
            (shape->values && (shape->probes != 1 || shape->wide != 0)))
            return fail(why, CALYX_DAMAGED,
                        "damaged: part %u claims to be a value layer, which it "
                        "cannot be",
                        i);
    }
    return is_exact(d) == exact
               ? CALYX_OK
               : damaged(why, "the last part of an exact filter is no value "
                              "layer");
}

/* The parts of a table are its segments; all but the newest are in use from
 * end to end. */
static calyx_status check_segments(const struct description *d,
                                   calyx_error *why) {
    const struct kind *const kind = d->head.kind;
    const bool is_fixed = kind->is_table && !kind->segments;
    if ((is_fixed && (d->parts != 1 || d->head.growth > 0)) ||
        (kind->fixed && d->head.growth == 0))
        return fail(why, CALYX_DAMAGED,
                    "damaged: a %s table of %u parts does not have a growth "
                    "of %g",
                    is_fixed ? "fixed" : "growing", d->parts, d->head.growth);
    for (uint32_t i = 0; kind->segments && i < d->parts; i++) {
        const struct shape *const shape = &d->part[i].shape;
        if (!kind->segments->is_segment(&d->part[0].shape, i, shape) ||
            (i > 0 && i + 1 < d->parts && shape->in_use != shape->blocks))
            return fail(why, CALYX_DAMAGED,
                        "damaged: part %u, with %llu blocks, is no segment of "
                        "the table that part 0 begins",
                        i, (unsigned long long)shape->blocks);
    }
    return CALYX_OK;
}

bool doubles_as_whole(const struct description *d) {
    return d->head.kind->segments && d->part[0].shape.spare > 0;
}

calyx_status check_shared(const struct description *d, calyx_error *why) {
    if (!d->head.concurrent || !doubles_as_whole(d)) return CALYX_OK;
    return fail(why, CALYX_CANNOT,
                "a small table doubles as a whole, which threads that share it "
                "must not see; read it into memory");
}

/* The places of bodies follow from their sizes; what the records say of them
 * must be the same. */
static calyx_status check_layout(const uint8_t *header, struct description *d,
                                 calyx_error *why) {
    const struct file_layout *l = &d->layout;
    for (uint32_t i = 0; i < d->parts; i++) {
        const uint8_t *record = header + FIXED_BYTES + i * RECORD_BYTES;
        if (load64(record + OF_BODY_AT) != l->body_at[i] ||
            load64(record + OF_BODY_BYTES) != l->body_bytes[i])
            return fail(why, CALYX_DAMAGED,
                        "damaged: part %u claims a body of %llu bytes at %llu; "
                        "its shape takes %llu at %llu",
                        i, (unsigned long long)load64(record + OF_BODY_BYTES),
                        (unsigned long long)load64(record + OF_BODY_AT),
                        (unsigned long long)l->body_bytes[i],
                        (unsigned long long)l->body_at[i]);
    }
    const uint64_t claimed = load64(header + AT_FILE_BYTES);
    if (claimed != l->file_bytes)
        return fail(why, CALYX_DAMAGED,
                    "damaged: it claims to be %llu bytes long; its parts take "
                    "%llu",
                    (unsigned long long)claimed,
                    (unsigned long long)l->file_bytes);
    return CALYX_OK;
}

/* Of what the header says of it. */
static bool has_sound_list(const uint8_t *h, const struct description *d) {
    const bool has_list = load32(h + AT_MUST) & MUST_LIST;
    return has_list ? d->list_bytes > 0 && d->list_bytes <= CALYX_ALLOW_MOST
                    : d->list_bytes == 0 && d->list_sum == 0;
}

calyx_status check_list(const struct description *d, const uint8_t *list,
                        calyx_error *why) {
    if (d->list_bytes == 0) return CALYX_OK;
    if (checksum(list, d->list_bytes, 0) != d->list_sum)
        return damaged(why, "the allow list does not match its checksum");
    if (!is_encoded_list(list, d->list_bytes))
        return damaged(why, "the keys of the allow list make no sense");
    return CALYX_OK;
}

/* Kind, hash and the numbers after them. */
static calyx_status check_numbers(const uint8_t *h, struct description *d,
                                  calyx_error *why) {
    const uint32_t kind = load16(h + AT_KIND), hash = load16(h + AT_HASH);
    d->head.kind = kind_coded(kind);
    d->head.hash = hash_coded(hash);
    const struct left_out *const left_out = kind_left_out(NULL, kind);
    if (left_out)
        return fail(why, CALYX_TOO_NEW,
                    "it is a %s filter, and this library was built without "
                    "that kind (%s)",
                    left_out->name, left_out->by);
    if (!d->head.kind || !d->head.hash)
        return fail(why, CALYX_TOO_NEW,
                    "it is of kind %u with hash %u; this library lacks %s",
                    kind, hash, d->head.kind ? "that hash" : "that kind");
    const uint32_t alignment = load32(h + AT_ALIGNMENT);
    const uint32_t flags = load32(h + AT_FLAGS);
    d->parts = load32(h + AT_PARTS);
    d->records_bytes = load32(h + AT_RECORDS_BYTES);
    d->list_bytes = load32(h + AT_LIST_BYTES);
    d->list_sum = load64(h + AT_LIST_SUM);
    d->head.strict = flags & STRICT;
    d->head.secret.seed = load64(h + AT_SEED);
    d->hash_check = load64(h + AT_HASH_CHECK);
    d->head.fpr = load_double(h + AT_FPR);
    d->head.growth = load_double(h + AT_GROWTH);
    if ((alignment != PAGE_ALIGNED && alignment != LINE_ALIGNED) ||
        flags & ~(uint32_t)STRICT ||
        (d->head.hash->keyed && d->head.secret.seed) || !is_rate(d->head.fpr) ||
        !is_growth(d->head.growth) ||
        load32(h + AT_COMMENT_BYTES) >= COMMENT_BYTES ||
        d->records_bytes > PROPERTIES_BYTES || !has_sound_list(h, d) ||
        !all_zero(h + AT_RESERVED, FIXED_BYTES - AT_RESERVED))
        return damaged(why, "the numbers of the header make no sense");
    const struct construction *const layers = d->head.kind->construction;
    if (layers && (d->head.strict || d->head.growth != 0))
        return damaged(why, "a static filter claims to grow, or to be strict");
    const bool one_list = layers && !(load32(h + AT_MUST) & MUST_EXACT);
    if (d->parts < 1 ||
        d->parts > (one_list ? layers->most_layers : MOST_PARTS))
        return fail(why, CALYX_DAMAGED, "damaged: it claims %u parts",
                    d->parts);
    return CALYX_OK;
}

/* Comment and properties, after the records of the parts; only zeros follow,
 * up to `end`. */
static calyx_status check_texts(const uint8_t *h, uint32_t end,
                                struct description *d, calyx_error *why) {
    const uint32_t comment_bytes = load32(h + AT_COMMENT_BYTES);
    const uint32_t comment_at = FIXED_BYTES + d->parts * RECORD_BYTES;
    const uint32_t used = comment_at + comment_bytes + d->records_bytes;
    if (used > end || !all_zero(h + used, end - used))
        return damaged(why, "the header is longer or shorter than its parts");
    memcpy(d->comment, h + comment_at, comment_bytes);
    if (strlen(d->comment) != comment_bytes)
        return damaged(why, "the comment has a NUL in it");
    memcpy(d->records, h + comment_at + comment_bytes, d->records_bytes);
    if (!are_records(d->records, d->records_bytes))
        return damaged(why, "the properties in its header make no sense");
    return CALYX_OK;
}

calyx_status check_header(const uint8_t *h, struct description *d,
                          calyx_error *why) {
    *d = (struct description){0};
    uint32_t size = 0;
    calyx_status status = check_start(h, &size, why);
    if (status != CALYX_OK) return status;
    const uint32_t end = size - (uint32_t)sizeof(uint64_t);
    d->header_sum = load64(h + end);
    if (d->header_sum != checksum(h, end, 0))
        return damaged(why, "the header does not match its checksum");

    status = check_numbers(h, d, why);
    if (status == CALYX_OK) status = check_texts(h, end, d, why);
    for (uint32_t i = 0; status == CALYX_OK && i < d->parts; i++)
        status = check_record(h + FIXED_BYTES + i * RECORD_BYTES, d, i, why);
    if (status == CALYX_OK) status = check_segments(d, why);
    if (status == CALYX_OK) status = check_values(h, d, why);
    if (status != CALYX_OK) return status;
    lay_out(d, load32(h + AT_ALIGNMENT));
    if (d->layout.header_bytes != size)
        return damaged(why, "the header is longer or shorter than its parts");
    return check_layout(h, d, why);
}

bool check_slot(const struct description *d, int number, const uint8_t *slot,
                struct state *state) {
    const uint64_t generation = load64(slot + IN_GENERATION);
    const uint32_t is = load32(slot + IN_STATE);
    if (load64(slot + IN_SUM) != checksum(slot, IN_SUM, 0) ||
        load64(slot + IN_HEADER_SUM) != d->header_sum ||
        (is != SEALED && is != OPEN) || generation <= state->generation ||
        generation >> 63 || load32(slot + IN_UNUSED) != 0 ||
        (is == SEALED && load64(slot + IN_SEALED_ITEMS) != 0) ||
        load64(slot + IN_SEALED_ITEMS) > load64(slot + IN_ITEMS) ||
        !all_zero(slot + IN_RESERVED, IN_SUM - IN_RESERVED))
        return false;
    *state = (struct state){
        .slot = number,
        .generation = generation,
        .sealed = is == SEALED,
        .items = load64(slot + IN_ITEMS),
        .tables_sum = load64(slot + IN_TABLES_SUM),
        .sealed_items = load64(slot + IN_SEALED_ITEMS),
    };
    return true;
}

calyx_status check_slots(const struct description *d, const uint8_t *slots[2],
                         struct state *state, calyx_error *why) {
    state->generation = 0;
    for (int i = 0; i < 2; i++) check_slot(d, i, slots[i], state);
    if (state->generation == 0)
        return damaged(why, "the end does not belong to the header");
    return CALYX_OK;
}

calyx_status check_tables(const struct state *state, const uint8_t *tables,
                          uint64_t size, calyx_error *why) {
    if (!state->sealed ||
        checksum(tables, (size_t)size, 0) == state->tables_sum)
        return CALYX_OK;
    return damaged(why, "the table of checksums does not match its own");
}

calyx_status check_zeros(const uint8_t *bytes, uint64_t size, uint64_t at,
                         calyx_error *why) {
    for (uint64_t i = 0; i < size; i++)
        if (bytes[i])
            return fail(why, CALYX_DAMAGED,
                        "damaged: byte %llu is not 0, as it should be",
                        (unsigned long long)(at + i));
    return CALYX_OK;
}

/* Those from bit `first` to `end` of the body. */
static calyx_status check_bits(uint64_t first, uint64_t end, uint64_t from,
                               const uint8_t *bytes, size_t size,
                               calyx_error *why) {
    const uint64_t start = 8 * from, stop = 8 * (from + size);
    for (uint64_t i = first > start ? first : start; i < end && i < stop; i++)
        if (bytes[(i - start) / 8] >> i % 8 & 1)
            return fail(why, CALYX_DAMAGED,
                        "damaged: bit %llu is set, after the last",
                        (unsigned long long)i);
    return CALYX_OK;
}

calyx_status check_tail(const struct kind *kind, const struct shape *shape,
                        uint64_t from, const uint8_t *bytes, size_t size,
                        calyx_error *why) {
    const uint64_t bits = 8 * bits_bytes(kind, shape);
    const calyx_status status =
        check_bits(kind_bits(kind, shape), bits, from, bytes, size, why);
    if (status != CALYX_OK) return status;
    return check_bits(bits + kind_counter_bits(kind, shape),
                      8 * body_bytes(kind, shape), from, bytes, size, why);
}

calyx_status open_head(struct description *d, const calyx_open_options *how,
                       calyx_error *why) {
    static const calyx_open_options plain = {0};
    if (!how) how = &plain;
    calyx_filter *head = &d->head;
    const calyx_status known = check_reserved(
        how->reserved, sizeof how->reserved / 8, "calyx_open_options", why);
    if (known != CALYX_OK) return known;
    if (how->most_bytes && d->layout.file_bytes > how->most_bytes)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "it is of %llu bytes; the limit is %llu",
                    (unsigned long long)d->layout.file_bytes,
                    (unsigned long long)how->most_bytes);
    if (head->hash->keyed && !how->key)
        return fail(why, CALYX_WRONG_KEY,
                    "it was made with a secret key; give the key to open it");
    if (head->hash->keyed)
        memcpy(head->secret.key, how->key, sizeof head->secret.key);
    if (hash_check(head->hash, &head->secret) != d->hash_check)
        return fail(why, CALYX_WRONG_KEY,
                    head->hash->keyed
                        ? "it was made with another secret key"
                        : "its %s hash is not the one of this library",
                    head->hash->name);
    if (how->concurrent && head->kind->construction)
        return check_can(head->kind, CALYX_CAN_SHARE, "added to", why);
    if (how->concurrent && !head->kind->atomic_kernels)
        return fail(why, CALYX_CANNOT,
                    "%s filters take one writer at a time, not concurrent ones",
                    head->kind->name);
    head->concurrent = how->concurrent;
    head->memory = how->memory ? *how->memory : memory_default;
    return choose_kernel(how->kernel, head, why);
}
