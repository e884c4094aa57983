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

struct pen {
    calyx_put *put;
    void *context;
    uint64_t at;
    bool broken;
};

static void put_bytes(struct pen *pen, const void *bytes, size_t size) {
    if (!pen->broken && size > 0)
        pen->broken = !pen->put(pen->context, bytes, size);
    pen->at += size;
}

static void put_zeros_to(struct pen *pen, uint64_t at) {
    static const uint8_t zeros[PAGE_ALIGNED];
    while (pen->at < at) {
        const uint64_t left = at - pen->at;
        put_bytes(pen, zeros,
                  left < sizeof zeros ? (size_t)left : sizeof zeros);
    }
}

static bool is_shared(const calyx_filter *f) {
    return f->concurrent || f->image;
}

/* Others may be adding to the body of a filter that is concurrent, or in a file
 * that another process has mapped too. What is written is
 * a copy, which has every key that was added before, and fits its checksum. */
static void copy_chunk(uint8_t *to, const uint8_t *from, size_t size) {
    for (size_t i = 0; i < size; i += 8) store64(to + i, peek64(from + i));
}

static void put_body(struct pen *pen, const calyx_filter *f,
                     const uint8_t *body, uint64_t size, uint8_t *copy,
                     uint8_t **sum, uint64_t *chunks) {
    for (uint64_t from = 0; from < size; from += CHUNK) {
        const uint64_t left = size - from;
        const size_t n = (size_t)(left < CHUNK ? left : CHUNK);
        const uint8_t *chunk = body + from;
        if (is_shared(f)) {
            copy_chunk(copy, chunk, n);
            chunk = copy;
        }
        store64(*sum, checksum(chunk, n, (*chunks)++));
        *sum += sizeof(uint64_t);
        put_bytes(pen, chunk, n);
    }
}

static void put_pieces(struct pen *pen, const uint8_t *bytes, uint64_t size) {
    for (uint64_t from = 0; from < size; from += CHUNK)
        put_bytes(pen, bytes + from,
                  (size_t)(size - from < CHUNK ? size - from : CHUNK));
}

static calyx_status write_described(const calyx_filter *f,
                                    struct description *d, calyx_put *put,
                                    void *context, calyx_error *why) {
    const struct layout *l = &d->layout;
    const size_t scratch =
        (size_t)(l->tables_bytes + (is_shared(f) ? CHUNK : 0));
    uint8_t *const tables =
        f->memory.take(f->memory.context, scratch, LINE_ALIGNED);
    if (!tables)
        return fail(why, CALYX_NO_MEMORY,
                    "no memory for the %llu bytes that writing takes",
                    (unsigned long long)scratch);

    struct pen pen = {put, context, 0, false};
    uint8_t header[MOST_HEADER];
    store_header(d, header);
    put_bytes(&pen, header, l->header_bytes);
    uint8_t *sum = tables;
    uint64_t chunks = 0;
    for (uint32_t i = 0; i < d->parts && !pen.broken; i++) {
        put_zeros_to(&pen, l->body_at[i]);
        put_body(&pen, f, d->part[i].body, l->body_bytes[i],
                 tables + l->tables_bytes, &sum, &chunks);
    }
    put_zeros_to(&pen, l->tables_at);
    put_pieces(&pen, tables, l->tables_bytes);

    const struct state state = {
        .generation = 1,
        .sealed = true,
        .items = d->part[d->parts - 1].items,
        .tables_sum = checksum(tables, (size_t)l->tables_bytes, 0),
    };
    uint8_t slot[SLOT_BYTES];
    store_slot(d, &state, slot);
    put_zeros_to(&pen, l->slot_at[0]);
    put_bytes(&pen, slot, sizeof slot);
    put_zeros_to(&pen, l->file_bytes);

    f->memory.give(f->memory.context, tables, scratch);
    if (pen.broken) return fail(why, CALYX_IO, "writing was stopped");
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

struct eye {
    calyx_get *get;
    void *context;
    uint64_t at;
};

static calyx_status get_bytes(struct eye *eye, void *buffer, size_t size,
                              calyx_error *why) {
    if (size > 0 && !eye->get(eye->context, buffer, size))
        return fail(why, CALYX_IO, "no more bytes after the first %llu",
                    (unsigned long long)eye->at);
    eye->at += size;
    return CALYX_OK;
}

static calyx_status get_zeros_to(struct eye *eye, uint64_t at,
                                 calyx_error *why) {
    while (eye->at < at) {
        uint8_t bytes[PAGE_ALIGNED];
        const uint64_t left = at - eye->at;
        const size_t n = left < sizeof bytes ? (size_t)left : sizeof bytes;
        const calyx_status status = get_bytes(eye, bytes, n, why);
        if (status != CALYX_OK) return status;
        for (size_t i = 0; i < n; i++)
            if (bytes[i])
                return fail(why, CALYX_DAMAGED,
                            "damaged: byte %llu is not 0, as it should be",
                            (unsigned long long)(eye->at - n + i));
    }
    return CALYX_OK;
}

static calyx_status get_header(struct eye *eye, struct description *d,
                               calyx_error *why) {
    uint8_t header[MOST_HEADER];
    uint32_t size;
    calyx_status status = get_bytes(eye, header, FIXED_BYTES, why);
    if (status == CALYX_OK) status = check_start(header, &size, why);
    if (status == CALYX_OK)
        status = get_bytes(eye, header + FIXED_BYTES, size - FIXED_BYTES, why);
    return status == CALYX_OK ? check_header(header, d, why) : status;
}

static calyx_status get_body(struct eye *eye, uint8_t *body, uint64_t size,
                             uint8_t **sum, uint64_t *chunks,
                             calyx_error *why) {
    for (uint64_t from = 0; from < size; from += CHUNK) {
        const uint64_t left = size - from;
        const size_t n = (size_t)(left < CHUNK ? left : CHUNK);
        const calyx_status status = get_bytes(eye, body + from, n, why);
        if (status != CALYX_OK) return status;
        store64(*sum, checksum(body + from, n, (*chunks)++));
        *sum += sizeof(uint64_t);
    }
    return CALYX_OK;
}

/* Compare the checksums that were stored with those of the bodies. */
static calyx_status compare_tables(const struct description *d,
                                   const uint8_t *stored,
                                   const uint8_t *computed, calyx_error *why) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < d->parts; i++)
        for (uint64_t from = 0; from < d->layout.body_bytes[i];
             from += CHUNK, at += sizeof(uint64_t))
            if (memcmp(stored + at, computed + at, sizeof(uint64_t)) != 0)
                return fail(why, CALYX_DAMAGED,
                            "damaged: the bytes from %llu on do not match "
                            "their checksum",
                            (unsigned long long)(d->layout.body_at[i] + from));
    return CALYX_OK;
}

/* Tables and trailer, given the checksums of what was read. A filter that was
 * changed in place and not sealed has bodies that are right and tables that are
 * not; the slot says so. */
static calyx_status get_end(struct eye *eye, const struct description *d,
                            const uint8_t *computed, uint8_t *stored,
                            struct state *state, calyx_error *why) {
    const struct layout *l = &d->layout;
    uint8_t slot[2][SLOT_BYTES];
    const uint8_t *const slots[2] = {slot[0], slot[1]};
    calyx_status status = get_zeros_to(eye, l->tables_at, why);
    if (status == CALYX_OK)
        status = get_bytes(eye, stored, (size_t)l->tables_bytes, why);
    for (int i = 0; i < 2; i++) {
        if (status == CALYX_OK) status = get_zeros_to(eye, l->slot_at[i], why);
        if (status == CALYX_OK)
            status = get_bytes(eye, slot[i], SLOT_BYTES, why);
    }
    if (status == CALYX_OK) status = get_zeros_to(eye, l->file_bytes, why);
    if (status == CALYX_OK)
        status = check_slots(d, (const uint8_t **)slots, state, why);
    if (status != CALYX_OK || !state->sealed) return status;
    if (checksum(stored, (size_t)l->tables_bytes, 0) != state->tables_sum)
        return fail(why, CALYX_DAMAGED,
                    "damaged: the table of checksums does not match its own");
    return compare_tables(d, stored, computed, why);
}

static calyx_status get_parts(struct eye *eye, calyx_filter *f,
                              const struct description *d, uint8_t *tables,
                              calyx_error *why) {
    const struct layout *l = &d->layout;
    uint8_t *sum = tables;
    uint64_t chunks = 0;
    for (uint32_t i = 0; i < d->parts; i++) {
        if (take_part(f, &d->part[i]) != CALYX_OK)
            return fail(why, CALYX_NO_MEMORY,
                        "no memory for the %llu bytes of part %u",
                        (unsigned long long)l->body_bytes[i], i);
        calyx_status status = get_zeros_to(eye, l->body_at[i], why);
        if (status == CALYX_OK)
            status = get_body(eye, f->newest->body, l->body_bytes[i], &sum,
                              &chunks, why);
        if (status != CALYX_OK) return status;
    }
    struct state state;
    const calyx_status status =
        get_end(eye, d, tables, tables + l->tables_bytes, &state, why);
    if (status == CALYX_OK) f->newest->items = state.items;
    return status;
}

calyx_status keep_texts(calyx_filter *f, const struct description *d,
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
                         calyx_error *why) {
    struct eye eye = {get, context, 0};
    struct description d;
    calyx_status status = get_header(&eye, &d, why);
    if (status == CALYX_OK && size) status = check_size(&d, size, why);
    if (status == CALYX_OK) status = open_head(&d, how, why);
    if (status != CALYX_OK) return status;

    const calyx_memory *memory = &d.head.memory;
    const size_t scratch = 2 * (size_t)d.layout.tables_bytes;
    uint8_t *tables = memory->take(memory->context, scratch, LINE_ALIGNED);
    calyx_filter *f = NULL;
    if (!tables || take_head(&d.head, &f) != CALYX_OK)
        status = fail(why, CALYX_NO_MEMORY, "no memory to read a filter");
    if (status == CALYX_OK) status = get_parts(&eye, f, &d, tables, why);
    if (status == CALYX_OK) status = check_tails(f, why);
    if (status == CALYX_OK) status = keep_texts(f, &d, why);
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
    f->memory.give(f->memory.context, f->image, sizeof(struct image));
    return CALYX_OK;
}

static calyx_status lend_parts(calyx_filter *f, const struct image *image,
                               calyx_error *why) {
    for (uint32_t i = 0; i < image->d.parts; i++) {
        struct part p = image->d.part[i];
        if (i + 1 == image->d.parts) p.items = image->state.items;
        if (lend_part(f, &p, image->base + image->d.layout.body_at[i]) !=
            CALYX_OK)
            return fail(why, CALYX_NO_MEMORY, "no memory for part %u", i);
    }
    return CALYX_OK;
}

static calyx_status check_end(const struct image *image, struct state *state,
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
    if (!kept || take_head(&image.d.head, &f) != CALYX_OK) {
        if (kept) memory->give(memory->context, kept, sizeof image);
        return fail(why, CALYX_NO_MEMORY, "no memory to open a filter");
    }
    status = keep_texts(f, &image.d, why);
    f->image = memcpy(kept, &image, sizeof image);
    f->release = drop_image;
    if (status == CALYX_OK) status = lend_parts(f, &image, why);
    if (status == CALYX_OK) status = check_tails(f, why);
    if (status != CALYX_OK) {
        calyx_free(f);
        return status;
    }
    f->read_only = true;
    *out = f;
    return CALYX_OK;
}

void sum_bodies(const struct image *image, uint8_t *tables) {
    const struct layout *l = &image->d.layout;
    uint64_t chunks = 0;
    for (uint32_t i = 0; i < image->d.parts; i++)
        for (uint64_t from = 0; from < l->body_bytes[i]; from += CHUNK) {
            const uint64_t left = l->body_bytes[i] - from;
            store64(tables + chunks * sizeof(uint64_t),
                    checksum(image->base + l->body_at[i] + from,
                             (size_t)(left < CHUNK ? left : CHUNK), chunks));
            chunks++;
        }
}

calyx_status calyx_verify(const calyx_filter *f, calyx_error *why) {
    const struct image *image = f->image;
    if (!image) return CALYX_OK;
    /* Another process may have changed the file since it was opened. */
    struct state state;
    const calyx_status whole = check_end(image, &state, why);
    if (whole != CALYX_OK) return whole;
    if (!state.sealed)
        return fail(why, CALYX_UNSEALED,
                    "it was changed in place and not closed since; its keys "
                    "are there, but its checksums cannot vouch for them");
    const size_t size = (size_t)image->d.layout.tables_bytes;
    const uint8_t *stored = image->base + image->d.layout.tables_at;
    if (checksum(stored, size, 0) != state.tables_sum)
        return fail(why, CALYX_DAMAGED,
                    "damaged: the table of checksums does not match its own");
    uint8_t *tables = f->memory.take(f->memory.context, size, LINE_ALIGNED);
    if (!tables)
        return fail(why, CALYX_NO_MEMORY, "no memory for %llu checksums",
                    (unsigned long long)(size / sizeof(uint64_t)));
    sum_bodies(image, tables);
    calyx_status status = compare_tables(&image->d, stored, tables, why);
    f->memory.give(f->memory.context, tables, size);
    if (status == CALYX_OK) status = check_gaps(image, why);
    struct state after;
    if (status == CALYX_DAMAGED && check_end(image, &after, NULL) == CALYX_OK &&
        after.generation != state.generation)
        return fail(why, CALYX_UNSEALED,
                    "it was changed in place while it was verified");
    return status;
}

/* ---- The public calls ---------------------------------------------------- */

calyx_status calyx_write(const calyx_filter *f, calyx_put *put, void *context,
                         calyx_error *why) {
    return write_filter(f, LINE_ALIGNED, put, context, why);
}

calyx_status calyx_read(calyx_get *get, void *context, const calyx_opening *how,
                        calyx_filter **out, calyx_error *why) {
    return read_filter(get, context, 0, how, out, why);
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
    const calyx_status status =
        read_filter(get_from_span, &span, size, how, out, why);
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
