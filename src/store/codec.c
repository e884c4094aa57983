/*
 * Filters to bytes and back, in one pass each way: everything that is written
 * goes through write_described, and everything that is read into memory through
 * read_filter.
 */
#include "store/codec.h"

#include <string.h>

#include "base/bits.h"
#include "base/error.h"

/* ---- Checks beyond the header ---------------------------------------------
 */

static calyx_status check_size(const struct description *d, uint64_t size,
                               calyx_error *why) {
    if (size == d->layout.file_bytes) return CALYX_OK;
    return fail(why, CALYX_DAMAGED,
                "damaged: it should be %llu bytes long, and is %llu",
                (unsigned long long)d->layout.file_bytes,
                (unsigned long long)size);
}

static calyx_status check_tail(const uint8_t *body, uint64_t from_bit,
                               uint64_t to_byte, calyx_error *why) {
    for (uint64_t bit = from_bit; bit < 8 * to_byte; bit++)
        if (body[bit / 8] >> bit % 8 & 1)
            return fail(why, CALYX_DAMAGED,
                        "damaged: bit %llu is set, behind the last",
                        (unsigned long long)bit);
    return CALYX_OK;
}

/* Bits behind the last block, or its counters, up to the end of its 64 bytes,
 * are no key's. */
static calyx_status check_tails(const calyx_filter *f, calyx_error *why) {
    calyx_status status = CALYX_OK;
    const struct part *p = newest_of(f);
    for (; p && status == CALYX_OK; p = p->older) {
        const uint64_t blocks = p->shape.blocks;
        const uint64_t bits = bits_bytes(f->kind, &p->shape);
        const uint64_t all = body_bytes(f->kind, &p->shape);
        status = check_tail(p->body, blocks * f->kind->block_bits, bits, why);
        if (status == CALYX_OK)
            status = check_tail(
                p->body, 8 * bits + blocks * f->kind->counter_bits, all, why);
    }
    return status;
}

static calyx_status check_gap(const struct image *image, uint64_t from,
                              uint64_t to, calyx_error *why) {
    for (; from < to; from++)
        if (image->base[from])
            return fail(why, CALYX_DAMAGED,
                        "damaged: byte %llu is not 0, as it should be",
                        (unsigned long long)from);
    return CALYX_OK;
}

/* Between the sections, and around the slots, there are zeros. */
static calyx_status check_gaps(const struct image *image, calyx_error *why) {
    const struct layout *l = &image->d.layout;
    calyx_status status = CALYX_OK;
    for (uint32_t i = 0; i < image->d.parts && status == CALYX_OK; i++) {
        const uint64_t next =
            i + 1 < image->d.parts ? l->body_at[i + 1] : l->tables_at;
        status = check_gap(image, l->body_at[i] + l->body_bytes[i], next, why);
    }
    if (status == CALYX_OK)
        status = check_gap(image, l->tables_at + l->tables_bytes, l->slot_at[0],
                           why);
    if (status == CALYX_OK)
        status =
            check_gap(image, l->slot_at[0] + SLOT_BYTES, l->slot_at[1], why);
    if (status == CALYX_OK)
        status =
            check_gap(image, l->slot_at[1] + SLOT_BYTES, l->file_bytes, why);
    return status;
}

/* ---- Out ----------------------------------------------------------------- */

struct writer {
    calyx_put *put;
    void *context;
    uint64_t at;
    bool broken;
};

static void put_bytes(struct writer *writer, const void *bytes, size_t size) {
    if (!writer->broken && size > 0)
        writer->broken = !writer->put(writer->context, bytes, size);
    writer->at += size;
}

static void put_zeros_to(struct writer *writer, uint64_t at) {
    static const uint8_t zeros[PAGE_ALIGNED];
    while (writer->at < at) {
        const uint64_t left = at - writer->at;
        put_bytes(writer, zeros,
                  left < sizeof zeros ? (size_t)left : sizeof zeros);
    }
}

static bool is_shared(const calyx_filter *f) {
    return f->concurrent || f->image;
}

/* Others may be adding to the body of a filter that is concurrent, or in a file
 * that another process has mapped too. What is written is
 * a copy, which has every key that was added before, and fits its checksum. */
static void copy_piece(uint8_t *to, const uint8_t *from, size_t size) {
    for (size_t i = 0; i < size; i += 8) store64(to + i, peek64(from + i));
}

/* The checksums of all ranges of a piece, into the tables from range *number
 * on. */
static void sum_piece(const uint8_t *piece, size_t size, uint8_t *tables,
                      uint64_t *number) {
    for (uint64_t from = 0; from < size; from += RANGE_BYTES, ++*number)
        store64(tables + *number * sizeof(uint64_t),
                range_sum(piece + from, range_size(size, from), *number));
}

static size_t piece_size(uint64_t left) {
    return left < PIECE ? (size_t)left : PIECE;
}

static void put_body(struct writer *writer, const calyx_filter *f,
                     const uint8_t *body, uint64_t size, uint8_t *copy,
                     uint8_t *tables, uint64_t *number) {
    for (uint64_t from = 0; from < size; from += PIECE) {
        const size_t n = piece_size(size - from);
        const uint8_t *piece = body + from;
        if (is_shared(f)) {
            copy_piece(copy, piece, n);
            piece = copy;
        }
        sum_piece(piece, n, tables, number);
        put_bytes(writer, piece, n);
    }
}

static void put_pieces(struct writer *writer, const uint8_t *bytes,
                       uint64_t size) {
    for (uint64_t from = 0; from < size; from += PIECE)
        put_bytes(writer, bytes + from, piece_size(size - from));
}

static calyx_status write_described(const calyx_filter *f,
                                    struct description *d, calyx_put *put,
                                    void *context, calyx_error *why) {
    const calyx_status whole = check_whole(f, why);
    if (whole != CALYX_OK) return whole;
    const struct layout *l = &d->layout;
    const size_t scratch =
        (size_t)(l->tables_bytes + (is_shared(f) ? PIECE : 0));
    uint8_t *const tables =
        f->memory.take(f->memory.context, scratch, LINE_ALIGNED);
    if (!tables)
        return fail(why, CALYX_NO_MEMORY,
                    "no memory for the %llu bytes that writing takes",
                    (unsigned long long)scratch);

    struct writer writer = {put, context, 0, false};
    uint8_t header[MOST_HEADER];
    store_header(d, header);
    put_bytes(&writer, header, l->header_bytes);
    uint64_t number = 0;
    for (uint32_t i = 0; i < d->parts && !writer.broken; i++) {
        put_zeros_to(&writer, l->body_at[i]);
        put_body(&writer, f, d->part[i].body, l->body_bytes[i],
                 tables + l->tables_bytes, tables, &number);
    }
    put_zeros_to(&writer, l->tables_at);
    put_pieces(&writer, tables, l->tables_bytes);

    const struct state state = {
        .generation = 1,
        .sealed = true,
        .items = d->part[d->parts - 1].items,
        .tables_sum = checksum(tables, (size_t)l->tables_bytes, 0),
    };
    uint8_t slot[SLOT_BYTES];
    store_slot(d, &state, slot);
    put_zeros_to(&writer, l->slot_at[0]);
    put_bytes(&writer, slot, sizeof slot);
    put_zeros_to(&writer, l->file_bytes);

    f->memory.give(f->memory.context, tables, scratch);
    if (writer.broken) return fail(why, CALYX_IO, "writing was stopped");
    return check_whole(f, why);
}

static calyx_status describe(const calyx_filter *f, uint32_t alignment,
                             struct description *d, calyx_error *why) {
    if (describe_filter(f, alignment, d)) return CALYX_OK;
    return fail(why, CALYX_CANNOT, "%u parts are more than the %d of a file",
                d->parts, MOST_PARTS);
}

calyx_status write_filter(const calyx_filter *f, uint32_t alignment,
                          calyx_put *put, void *context, calyx_error *why) {
    struct description d;
    const calyx_status status = describe(f, alignment, &d, why);
    if (status != CALYX_OK) return status;
    return write_described(f, &d, put, context, why);
}

/* ---- In ------------------------------------------------------------------ */

struct reader {
    calyx_get *get;
    void *context;
    uint64_t at;
};

static calyx_status get_bytes(struct reader *reader, void *buffer, size_t size,
                              calyx_error *why) {
    if (size > 0 && !reader->get(reader->context, buffer, size))
        return fail(why, CALYX_IO, "no more bytes after the first %llu",
                    (unsigned long long)reader->at);
    reader->at += size;
    return CALYX_OK;
}

static calyx_status get_zeros_to(struct reader *reader, uint64_t at,
                                 calyx_error *why) {
    while (reader->at < at) {
        uint8_t bytes[PAGE_ALIGNED];
        const uint64_t left = at - reader->at;
        const size_t n = left < sizeof bytes ? (size_t)left : sizeof bytes;
        const calyx_status status = get_bytes(reader, bytes, n, why);
        if (status != CALYX_OK) return status;
        for (size_t i = 0; i < n; i++)
            if (bytes[i])
                return fail(why, CALYX_DAMAGED,
                            "damaged: byte %llu is not 0, as it should be",
                            (unsigned long long)(reader->at - n + i));
    }
    return CALYX_OK;
}

static calyx_status get_header(struct reader *reader, struct description *d,
                               calyx_error *why) {
    uint8_t header[MOST_HEADER];
    uint32_t size;
    calyx_status status = get_bytes(reader, header, FIXED_BYTES, why);
    if (status == CALYX_OK) status = check_start(header, &size, why);
    if (status == CALYX_OK)
        status =
            get_bytes(reader, header + FIXED_BYTES, size - FIXED_BYTES, why);
    return status == CALYX_OK ? check_header(header, d, why) : status;
}

static calyx_status get_body(struct reader *reader, uint8_t *body,
                             uint64_t size, uint8_t *tables, uint64_t *number,
                             calyx_error *why) {
    for (uint64_t from = 0; from < size; from += PIECE) {
        const size_t n = piece_size(size - from);
        const calyx_status status = get_bytes(reader, body + from, n, why);
        if (status != CALYX_OK) return status;
        sum_piece(body + from, n, tables, number);
    }
    return CALYX_OK;
}

/* Compare the checksums that were stored with those of the bodies. A range that
 * is being changed has none, in a filter that is open. */
static calyx_status compare_tables(const struct description *d,
                                   const struct state *state,
                                   const uint8_t *stored,
                                   const uint8_t *computed, calyx_error *why) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < d->parts; i++)
        for (uint64_t from = 0; from < d->layout.body_bytes[i];
             from += RANGE_BYTES, at += sizeof(uint64_t))
            if (load64(stored + at) != load64(computed + at) &&
                (state->sealed || load64(stored + at) != UNSEALED))
                return fail_range(why, d->layout.body_at[i] + from);
    return CALYX_OK;
}

/* Tables and trailer, given the checksums of what was read. */
static calyx_status get_end(struct reader *reader, const struct description *d,
                            const uint8_t *computed, uint8_t *stored,
                            struct state *state, calyx_error *why) {
    const struct layout *l = &d->layout;
    uint8_t slot[2][SLOT_BYTES];
    const uint8_t *const slots[2] = {slot[0], slot[1]};
    calyx_status status = get_zeros_to(reader, l->tables_at, why);
    if (status == CALYX_OK)
        status = get_bytes(reader, stored, (size_t)l->tables_bytes, why);
    for (int i = 0; i < 2; i++) {
        if (status == CALYX_OK)
            status = get_zeros_to(reader, l->slot_at[i], why);
        if (status == CALYX_OK)
            status = get_bytes(reader, slot[i], SLOT_BYTES, why);
    }
    if (status == CALYX_OK) status = get_zeros_to(reader, l->file_bytes, why);
    if (status == CALYX_OK)
        status = check_slots(d, (const uint8_t **)slots, state, why);
    if (status != CALYX_OK) return status;
    if (state->sealed &&
        checksum(stored, (size_t)l->tables_bytes, 0) != state->tables_sum)
        return fail(why, CALYX_DAMAGED,
                    "damaged: the table of checksums does not match its own");
    return compare_tables(d, state, stored, computed, why);
}

static calyx_status get_parts(struct reader *reader, calyx_filter *f,
                              const struct description *d, uint8_t *tables,
                              struct state *state, calyx_error *why) {
    const struct layout *l = &d->layout;
    uint64_t number = 0;
    for (uint32_t i = 0; i < d->parts; i++) {
        if (allocate_part(f, &d->part[i]) != CALYX_OK)
            return fail(why, CALYX_NO_MEMORY,
                        "no memory for the %llu bytes of part %u",
                        (unsigned long long)l->body_bytes[i], i);
        calyx_status status = get_zeros_to(reader, l->body_at[i], why);
        if (status == CALYX_OK)
            status = get_body(reader, f->newest->body, l->body_bytes[i], tables,
                              &number, why);
        if (status != CALYX_OK) return status;
    }
    uint8_t *const stored = tables + l->tables_bytes;
    const calyx_status status = get_end(reader, d, tables, stored, state, why);
    if (status == CALYX_OK)
        f->newest->items = recovered_items(
            f->kind, f->newest, state, stored + first_entry(d, d->parts - 1));
    return status;
}

calyx_status set_texts(calyx_filter *f, const struct description *d,
                       calyx_error *why) {
    calyx_status status =
        *d->comment ? calyx_set_comment(f, d->comment) : CALYX_OK;
    if (status == CALYX_OK)
        status = set_records(f, d->records, d->records_bytes);
    if (status == CALYX_OK) return CALYX_OK;
    return fail(why, status, "no memory for the comment and properties");
}

calyx_status read_filter(calyx_get *get, void *context, uint64_t size,
                         const calyx_opening *how, calyx_filter **out,
                         struct state *state, calyx_error *why) {
    struct reader reader = {get, context, 0};
    struct description d;
    calyx_status status = get_header(&reader, &d, why);
    if (status == CALYX_OK && size) status = check_size(&d, size, why);
    if (status == CALYX_OK) status = open_head(&d, how, why);
    if (status != CALYX_OK) return status;

    const calyx_memory *memory = &d.head.memory;
    const size_t scratch = 2 * (size_t)d.layout.tables_bytes;
    uint8_t *tables = memory->take(memory->context, scratch, LINE_ALIGNED);
    calyx_filter *f = NULL;
    if (!tables || allocate_head(&d.head, &f) != CALYX_OK)
        status = fail(why, CALYX_NO_MEMORY, "no memory to read a filter");
    if (status == CALYX_OK)
        status = get_parts(&reader, f, &d, tables, state, why);
    if (status == CALYX_OK) status = check_tails(f, why);
    if (status == CALYX_OK) status = set_texts(f, &d, why);
    if (tables) memory->give(memory->context, tables, scratch);
    if (status != CALYX_OK) {
        calyx_free(f);
        return status;
    }
    *out = f;
    return CALYX_OK;
}

/* ---- In place ------------------------------------------------------------ */

static calyx_status drop_image(calyx_filter *f, calyx_error *why) {
    (void)why;
    close_ranges(f);
    f->memory.give(f->memory.context, f->image, sizeof(struct image));
    return CALYX_OK;
}

static calyx_status borrow_parts(calyx_filter *f, const struct image *image,
                                 calyx_error *why) {
    for (uint32_t i = 0; i < image->d.parts; i++) {
        struct part p = image->d.part[i];
        p.range = first_entry(&image->d, i) / sizeof(uint64_t);
        if (i + 1 == image->d.parts) p.items = image->state.items;
        if (borrow_part(f, &p, image->base + image->d.layout.body_at[i]) !=
            CALYX_OK)
            return fail(why, CALYX_NO_MEMORY, "no memory for part %u", i);
    }
    return CALYX_OK;
}

calyx_status check_end(const struct image *image, struct state *state,
                       calyx_error *why) {
    const uint64_t *at = image->d.layout.slot_at;
    const uint8_t *slots[2] = {image->base + at[0], image->base + at[1]};
    return check_slots(&image->d, slots, state, why);
}

static calyx_status check_image(struct image *image, uint64_t size,
                                const calyx_opening *how, calyx_error *why) {
    uint32_t header_bytes;
    if (size < FIXED_BYTES)
        return fail(why, CALYX_DAMAGED,
                    "not a calyx filter: it has only %llu bytes",
                    (unsigned long long)size);
    calyx_status status = check_start(image->base, &header_bytes, why);
    if (status == CALYX_OK && size < header_bytes)
        status = fail(why, CALYX_DAMAGED, "damaged: it ends in its header");
    if (status != CALYX_OK) return status;
    /* A copy: who shares the bytes cannot change it between check and use. */
    uint8_t header[MOST_HEADER] = {0};
    memcpy(header, image->base, header_bytes);
    status = check_header(header, &image->d, why);
    if (status == CALYX_OK) status = check_size(&image->d, size, why);
    if (status == CALYX_OK) status = open_head(&image->d, how, why);
    if (status != CALYX_OK) return status;
    return check_end(image, &image->state, why);
}

calyx_status view_image(uint8_t *base, uint64_t size, const calyx_opening *how,
                        calyx_filter **out, calyx_error *why) {
    struct image image = {.base = base, .fd = -1};
    calyx_status status = check_image(&image, size, how, why);
    if (status != CALYX_OK) return status;
    const calyx_memory *memory = &image.d.head.memory;
    void *kept = memory->take(memory->context, sizeof image, LINE_ALIGNED);
    calyx_filter *f = NULL;
    if (!kept || allocate_head(&image.d.head, &f) != CALYX_OK) {
        if (kept) memory->give(memory->context, kept, sizeof image);
        return fail(why, CALYX_NO_MEMORY, "no memory to open a filter");
    }
    status = set_texts(f, &image.d, why);
    f->image = memcpy(kept, &image, sizeof image);
    f->release = drop_image;
    const calyx_verification when = how ? how->verify : CALYX_VERIFY_LAZY;
    if (status == CALYX_OK)
        status = open_ranges(f, when != CALYX_VERIFY_NONE, why);
    if (status == CALYX_OK) status = borrow_parts(f, &image, why);
    if (status == CALYX_OK) status = check_tails(f, why);
    if (status == CALYX_OK && when == CALYX_VERIFY_WHOLE) {
        status = calyx_verify(f, why);
        if (status == CALYX_UNSEALED) status = CALYX_OK; /* as far as it goes */
    }
    if (status != CALYX_OK) {
        calyx_free(f);
        return status;
    }
    f->read_only = true;
    *out = f;
    return CALYX_OK;
}

/* Whether the tables match their own checksum, and all ranges theirs. */
static calyx_status verify_sums(const calyx_filter *f,
                                const struct state *state, calyx_error *why) {
    const struct image *image = f->image;
    const struct layout *l = &image->d.layout;
    if (state->sealed &&
        checksum(image->base + l->tables_at, (size_t)l->tables_bytes, 0) !=
            state->tables_sum)
        return fail(why, CALYX_DAMAGED,
                    "damaged: the table of checksums does not match its own");
    const calyx_status status = verify_all_ranges(f, why);
    return status == CALYX_OK ? check_gaps(image, why) : status;
}

calyx_status calyx_verify(const calyx_filter *f, calyx_error *why) {
    const struct image *image = f->image;
    if (!image) return CALYX_OK;
    /* Another process may have changed the file since it was opened, and may do
     * so while it is read. */
    struct state state, after;
    calyx_status status = check_end(image, &state, why);
    if (status == CALYX_OK) status = verify_sums(f, &state, why);
    if (status == CALYX_DAMAGED && check_end(image, &after, NULL) == CALYX_OK &&
        after.generation != state.generation)
        return fail(why, CALYX_UNSEALED,
                    "it was changed in place while it was verified");
    if (status != CALYX_OK || state.sealed) return status;
    return fail(why, CALYX_UNSEALED,
                "it was changed in place and not closed since; its keys are "
                "there, but checksums cannot vouch for what was changed");
}

/* ---- The public calls ---------------------------------------------------- */

calyx_status calyx_write(const calyx_filter *f, calyx_put *put, void *context,
                         calyx_error *why) {
    return write_filter(f, LINE_ALIGNED, put, context, why);
}

calyx_status calyx_read(calyx_get *get, void *context, const calyx_opening *how,
                        calyx_filter **out, calyx_error *why) {
    struct state state;
    return read_filter(get, context, 0, how, out, &state, why);
}

uint64_t calyx_encoded_size(const calyx_filter *f) {
    struct description d;
    return describe_filter(f, LINE_ALIGNED, &d) ? d.layout.file_bytes : 0;
}

/* Bytes in memory, as a source or a sink. */
struct span {
    uint8_t *at;
    size_t left;
};

static bool put_in_span(void *context, const void *bytes, size_t size) {
    struct span *span = context;
    memcpy(span->at, bytes, size); /* the size was compared before */
    span->at += size;
    return true;
}

static bool get_from_span(void *context, void *buffer, size_t size) {
    struct span *span = context;
    if (size > span->left) return false;
    memcpy(buffer, span->at, size);
    span->at += size;
    span->left -= size;
    return true;
}

calyx_status calyx_encode(const calyx_filter *f, void *buffer, size_t size,
                          calyx_error *why) {
    struct description d;
    const calyx_status status = describe(f, LINE_ALIGNED, &d, why);
    if (status != CALYX_OK) return status;
    if (size != d.layout.file_bytes)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "the buffer has %llu bytes; the filter takes %llu",
                    (unsigned long long)size,
                    (unsigned long long)d.layout.file_bytes);
    struct span span = {buffer, size};
    return write_described(f, &d, put_in_span, &span, why);
}

calyx_status calyx_decode(const void *bytes, size_t size,
                          const calyx_opening *how, calyx_filter **out,
                          calyx_error *why) {
    struct span span = {(uint8_t *)bytes, size};
    struct state state;
    const calyx_status status =
        read_filter(get_from_span, &span, size, how, out, &state, why);
    /* Bytes in memory do not fail; there are too few of them. */
    if (status != CALYX_IO) return status;
    return fail(why, CALYX_DAMAGED, "damaged: it ends after %llu bytes",
                (unsigned long long)size);
}

calyx_status calyx_view(const void *bytes, size_t size,
                        const calyx_opening *how, calyx_filter **out,
                        calyx_error *why) {
    if ((uintptr_t)bytes % LINE_ALIGNED != 0)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "the address of the bytes must be a multiple of 64");
    return view_image((uint8_t *)bytes, size, how, out, why);
}
