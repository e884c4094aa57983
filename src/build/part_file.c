#include "build/part_file.h"

#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/memory.h"

/* ---- Ranges -------------------------------------------------------------- */

static uint64_t units_of(const struct kind *kind, const struct shape *shape) {
    return kind->construction ? kind->construction->lots(shape) : shape->blocks;
}

static uint64_t lowest_hash(const struct kind *kind, const struct shape *shape,
                            uint64_t unit) {
    return kind->construction ? kind->construction->lot(shape, unit).first
                              : lowest_scaled64(unit, shape->blocks);
}

/* The first unit whose lowest hash is not below this one. */
static uint64_t unit_from(const struct kind *kind, const struct shape *shape,
                          uint64_t hash) {
    uint64_t from = 0, to = units_of(kind, shape);
    while (from < to) {
        const uint64_t middle = from + (to - from) / 2;
        if (lowest_hash(kind, shape, middle) < hash)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static uint64_t byte_of_unit(const struct kind *kind, const struct shape *shape,
                             uint64_t unit) {
    if (unit == units_of(kind, shape)) return body_bytes(kind, shape);
    return kind->construction ? kind->construction->lot(shape, unit).at
                              : unit * (kind->block_bits / 8);
}

struct part_range range_of_part(const struct kind *kind,
                                const struct shape *shape, uint32_t number,
                                uint32_t count) {
    struct part_range range = {.last_hash = UINT64_MAX};
    const uint64_t units = units_of(kind, shape);
    range.units.first =
        unit_from(kind, shape, lowest_scaled64(number - 1, count));
    range.units.end =
        number == count
            ? units
            : unit_from(kind, shape, lowest_scaled64(number, count));
    if (range.units.first < units)
        range.first_hash = lowest_hash(kind, shape, range.units.first);
    if (range.units.end < units)
        range.last_hash = lowest_hash(kind, shape, range.units.end) - 1;
    range.at = byte_of_unit(kind, shape, range.units.first);
    range.bytes = byte_of_unit(kind, shape, range.units.end) - range.at;
    return range;
}

/* ---- Sums ---------------------------------------------------------------- */

uint64_t body_pieces(const struct part_range *range) {
    if (range->bytes == 0) return 0;
    return (range->at + range->bytes - 1) / RANGE_BYTES -
           range->at / RANGE_BYTES + 1;
}

enum { HASHES_IN_PIECE = 8192 }; /* 64 KiB */

uint64_t bumped_pieces(uint64_t bumped) {
    return bumped / HASHES_IN_PIECE + (bumped % HASHES_IN_PIECE != 0);
}

/* Not the seeds of ranges of a body. */
uint64_t bumped_sum(const void *bytes, size_t size, uint64_t number) {
    return range_sum(bytes, size, UINT64_C(1) << 63 | number);
}

uint64_t last_sum(const uint8_t *sums, size_t size, const uint8_t *head) {
    return checksum(sums, size, checksum(head, PART_HEAD_BYTES, 0));
}

/* ---- The head ------------------------------------------------------------ */

/* Differs in one letter from the magic bytes of a filter file. */
static const uint8_t magic[8] = {0x89, 'C', 'L', 'P', '\r', '\n', 0x1A, '\n'};
static const uint32_t PART_VERSION = 1, PART_BYTE_ORDER = 0x0A0B0C0D;

/* Places in the head. */
enum {
    PART_AT_VERSION = 8,
    PART_AT_BYTE_ORDER = 12,
    PART_AT_NUMBER = 16,
    PART_AT_COUNT = 20,
    PART_AT_FILE_BYTES = 24,
    PART_AT_ITEMS = 32,
    PART_AT_BUMPED = 40,
    PART_AT_BODY_FROM = 48,
    PART_AT_BODY_BYTES = 56,
    PART_AT_RESERVED = 64,
    PART_AT_SUM = 120
};

static void lay_out_part(struct part_head *head, uint32_t header_bytes) {
    head->body_at = PART_HEAD_BYTES + (uint64_t)header_bytes;
    head->bumped_at = head->body_at + head->range.bytes;
    head->sums_at = head->bumped_at + 8 * head->bumped;
    head->file_bytes = head->sums_at + 8 * (body_pieces(&head->range) +
                                            bumped_pieces(head->bumped) + 1);
}

static void store_part_head(const struct part_head *head, uint8_t *to) {
    memset(to, 0, PART_HEAD_BYTES);
    memcpy(to, magic, sizeof magic);
    store32(to + PART_AT_VERSION, PART_VERSION);
    store32(to + PART_AT_BYTE_ORDER, PART_BYTE_ORDER);
    store32(to + PART_AT_NUMBER, head->number);
    store32(to + PART_AT_COUNT, head->count);
    store64(to + PART_AT_FILE_BYTES, head->file_bytes);
    store64(to + PART_AT_ITEMS, head->items);
    store64(to + PART_AT_BUMPED, head->bumped);
    store64(to + PART_AT_BODY_FROM, head->range.at);
    store64(to + PART_AT_BODY_BYTES, head->range.bytes);
    store64(to + PART_AT_SUM, checksum(to, PART_AT_SUM, 0));
}

/* The numbers that do not depend on the header. */
static calyx_status check_numbers(const uint8_t *bytes, size_t size,
                                  struct part_head *head, calyx_error *why) {
    if (size < PART_HEAD_BYTES || memcmp(bytes, magic, sizeof magic) != 0)
        return fail(why, CALYX_DAMAGED,
                    "not a part of a calyx filter: it starts with other bytes");
    if (load32(bytes + PART_AT_BYTE_ORDER) != PART_BYTE_ORDER)
        return fail(why, CALYX_DAMAGED,
                    "damaged: its bytes are in another order");
    const uint32_t version = load32(bytes + PART_AT_VERSION);
    if (version != PART_VERSION)
        return fail(why, CALYX_TOO_NEW,
                    "it is a part file of version %u; this library reads "
                    "version %u",
                    version, PART_VERSION);
    if (load64(bytes + PART_AT_SUM) != checksum(bytes, PART_AT_SUM, 0))
        return fail(why, CALYX_DAMAGED,
                    "damaged: its head does not match its checksum");
    head->number = load32(bytes + PART_AT_NUMBER);
    head->count = load32(bytes + PART_AT_COUNT);
    head->items = load64(bytes + PART_AT_ITEMS);
    head->bumped = load64(bytes + PART_AT_BUMPED);
    if (head->number < 1 || head->number > head->count ||
        head->count > CALYX_PARTS_MOST || head->items > UINT64_C(1) << 44 ||
        head->bumped > head->items ||
        !all_zero(bytes + PART_AT_RESERVED, PART_AT_SUM - PART_AT_RESERVED))
        return fail(why, CALYX_DAMAGED,
                    "damaged: the numbers of its head make no sense");
    return CALYX_OK;
}

/* Is this the header of a filter that can be made of parts, with no key in it?
 */
static bool is_whole_header(const struct description *d,
                            const struct part_head *head) {
    return d->head.kind->can & CALYX_CAN_PARTS && d->parts == 1 &&
           d->part[0].items == 0 && d->head.growth == 0 && !d->head.strict &&
           d->layout.alignment == PAGE_ALIGNED && d->list_bytes == 0 &&
           (head->bumped == 0 || d->head.kind->construction);
}

calyx_status check_part_head(const uint8_t *bytes, size_t size,
                             struct part_head *head, struct description *d,
                             calyx_error *why) {
    uint32_t header_bytes = 0;
    calyx_status status = check_numbers(bytes, size, head, why);
    if (status != CALYX_OK) return status;
    const uint8_t *const header = bytes + PART_HEAD_BYTES;
    status =
        check_first_bytes(header, size - PART_HEAD_BYTES, &header_bytes, why);
    if (status == CALYX_OK) status = check_header(header, d, why);
    if (status != CALYX_OK) return status;
    if (!is_whole_header(d, head))
        return fail(why, CALYX_DAMAGED,
                    "damaged: no filter of parts has its header");
    head->range = range_of_part(d->head.kind, &d->part[0].shape, head->number,
                                head->count);
    lay_out_part(head, header_bytes);
    if (load64(bytes + PART_AT_BODY_FROM) != head->range.at ||
        load64(bytes + PART_AT_BODY_BYTES) != head->range.bytes ||
        load64(bytes + PART_AT_FILE_BYTES) != head->file_bytes)
        return fail(why, CALYX_DAMAGED,
                    "damaged: it claims other bytes of the filter than those "
                    "of part %u of %u",
                    head->number, head->count);
    return CALYX_OK;
}

/* ---- Writing ------------------------------------------------------------- */

struct part_writer {
    calyx_put_function *put;
    void *context;
    bool broken; /* `put` returned false */
    uint8_t *sums;
    uint64_t sum_count, bumped_count;
    uint8_t *piece; /* of bumped hashes */
    size_t in_piece;
};

static void put_some(struct part_writer *w, const void *bytes, uint64_t size) {
    const uint8_t *at = bytes;
    for (size_t n; size > 0 && !w->broken; at += n, size -= n) {
        n = chunk_size(size);
        w->broken = !w->put(w->context, at, n);
    }
}

static void note_sum(struct part_writer *w, uint64_t sum) {
    store64(w->sums + 8 * w->sum_count++, sum);
}

static void put_range(struct part_writer *w, const struct part_range *range,
                      const uint8_t *body) {
    const uint64_t end = range->at + range->bytes;
    size_t n;
    for (uint64_t at = range->at; at < end; at += n) {
        n = piece_size(at, end);
        note_sum(w, range_sum(body + (at - range->at), n, at / RANGE_BYTES));
    }
    put_some(w, body, range->bytes);
}

static void end_piece(struct part_writer *w) {
    if (w->in_piece == 0) return;
    note_sum(w, bumped_sum(w->piece, 8 * w->in_piece, w->bumped_count++));
    put_some(w, w->piece, 8 * w->in_piece);
    w->in_piece = 0;
}

static calyx_status put_bumped(void *context, const struct hash_range *range,
                               calyx_error *why) {
    struct part_writer *const w = context;
    (void)why;
    for (size_t i = 0; i < range->n; i++) {
        store64(w->piece + 8 * w->in_piece++, range->hashes[i]);
        if (w->in_piece == HASHES_IN_PIECE) end_piece(w);
    }
    return CALYX_OK;
}

static calyx_status put_all_bumped(struct part_writer *w,
                                   const struct hash_spool *s,
                                   calyx_error *why) {
    if (!s || !s->added) return CALYX_OK;
    const calyx_status status = spool_read_all(s, 1, put_bumped, w, true, why);
    end_piece(w);
    return status;
}

static calyx_status put_part(struct part_writer *w,
                             const struct part_content *c,
                             struct part_head *head, calyx_error *why) {
    struct description d;
    uint8_t start[PART_HEADERS_MOST];
    describe_filter(c->f, PAGE_ALIGNED, &d);
    d.part[0].items = 0;
    store_header(&d, start + PART_HEAD_BYTES);
    lay_out_part(head, d.layout.header_bytes);
    store_part_head(head, start);
    put_some(w, start, PART_HEAD_BYTES + d.layout.header_bytes);
    put_range(w, &c->range, c->body);
    const calyx_status status = put_all_bumped(w, c->bumped, why);
    if (status != CALYX_OK) return status;
    const size_t size = (size_t)(8 * w->sum_count);
    uint8_t last[8];
    store64(last, last_sum(w->sums, size, start));
    put_some(w, w->sums, size);
    put_some(w, last, sizeof last);
    return w->broken ? fail(why, CALYX_IO, "writing was stopped") : CALYX_OK;
}

calyx_status write_part(void *content, calyx_put_function *put, void *context,
                        calyx_error *why) {
    const struct part_content *const c = content;
    const calyx_memory *const memory = &c->f->memory;
    struct part_head head = {.number = c->number,
                             .count = c->count,
                             .items = c->items,
                             .bumped = c->bumped ? c->bumped->added : 0,
                             .range = c->range};
    const uint64_t sums = body_pieces(&c->range) + bumped_pieces(head.bumped);
    const size_t scratch = (size_t)(8 * sums) + RANGE_BYTES;
    uint8_t *const block =
        memory->allocate(memory->context, scratch, ALIGNMENT);
    if (!block)
        return fail(why, CALYX_NO_MEMORY,
                    "no memory for the %llu bytes that writing takes",
                    (unsigned long long)scratch);
    struct part_writer w = {.put = put,
                            .context = context,
                            .piece = block,
                            .sums = block + RANGE_BYTES};
    const calyx_status status = put_part(&w, c, &head, why);
    memory->release(memory->context, block, scratch);
    return status;
}
