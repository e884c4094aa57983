/*
 * Bytes to a filter in memory of its own, in one pass: every byte is compared
 * with its checksum. Everything that is read goes through read_filter.
 */
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "filter/filter.h"
#include "store/encoding.h"
#include "store/ranges.h"

/* ---- Checks beyond the header -------------------------------------------- */

calyx_status check_size(const struct description *d, uint64_t size,
                        calyx_error *why) {
    if (size == d->layout.file_bytes) return CALYX_OK;
    return fail(why, CALYX_DAMAGED,
                "damaged: it should be %llu bytes long, and is %llu",
                (unsigned long long)d->layout.file_bytes,
                (unsigned long long)size);
}

calyx_status check_tails(const calyx_filter *f, calyx_error *why) {
    calyx_status status = CALYX_OK;
    const struct part *p = newest_of(f);
    for (; p && status == CALYX_OK; p = p->older) {
        /* What lies in two pieces has no tail. */
        size_t size = (size_t)body_bytes(f->kind, &p->shape);
        const uint8_t *const body = body_at(f, p, 0, &size);
        status = check_tail(f->kind, &p->shape, 0, body, size, why);
    }
    return status;
}

/* ---- Reading ------------------------------------------------------------- */

struct reader {
    calyx_get_function *get;
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
        calyx_status status = get_bytes(reader, bytes, n, why);
        if (status == CALYX_OK)
            status = check_zeros(bytes, n, reader->at - n, why);
        if (status != CALYX_OK) return status;
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

/* `between` is memory for a chunk that goes to two pieces of a body. */
static calyx_status get_body(struct reader *reader, const calyx_filter *f,
                             uint64_t size, uint8_t *tables, uint8_t *between,
                             uint64_t *number, calyx_error *why) {
    for (uint64_t from = 0; from < size; from += CHUNK) {
        const size_t n = chunk_size(size - from);
        size_t together = n;
        uint8_t *const at = body_at(f, f->newest, from, &together);
        uint8_t *const chunk = together < n ? between : at;
        const calyx_status status = get_bytes(reader, chunk, n, why);
        if (status != CALYX_OK) return status;
        sum_chunk(chunk, n, tables, number);
        if (chunk == between) put_to_body(f, f->newest, from, chunk, n);
    }
    return CALYX_OK;
}

/* Compare the stored checksums with the checksums of the bodies. In a file that
 * is open for writing, a range that is being changed has none. */
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
    const struct file_layout *l = &d->layout;
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
    if (status == CALYX_OK)
        status = check_tables(state, stored, l->tables_bytes, why);
    if (status != CALYX_OK) return status;
    return compare_tables(d, state, stored, computed, why);
}

static calyx_status get_parts(struct reader *reader, calyx_filter *f,
                              const struct description *d, uint8_t *tables,
                              struct state *state, calyx_error *why) {
    const struct file_layout *l = &d->layout;
    uint8_t *const stored = tables + l->tables_bytes;
    uint8_t *const between = stored + l->tables_bytes;
    uint64_t number = 0;
    for (uint32_t i = 0; i < d->parts; i++) {
        if (allocate_part(f, &d->part[i]) != CALYX_OK)
            return fail(why, CALYX_NO_MEMORY,
                        "no memory for the %llu bytes of part %u",
                        (unsigned long long)l->body_bytes[i], i);
        calyx_status status = get_zeros_to(reader, l->body_at[i], why);
        if (status == CALYX_OK)
            status = get_body(reader, f, l->body_bytes[i], tables, between,
                              &number, why);
        if (status != CALYX_OK) return status;
    }
    const calyx_status status = get_end(reader, d, tables, stored, state, why);
    if (status == CALYX_OK)
        f->newest->items = recovered_items(
            f->kind, f->newest, state, stored + first_entry(d, d->parts - 1));
    return status;
}

calyx_status set_list(calyx_filter *f, const struct description *d,
                      const uint8_t *list, calyx_error *why) {
    const calyx_status status = check_list(d, list, why);
    if (status != CALYX_OK) return status;
    if (decode_list(f, list, d->list_bytes) == CALYX_OK) return CALYX_OK;
    return fail(why, CALYX_NO_MEMORY, "no memory for the allow list");
}

static calyx_status get_list(struct reader *reader, calyx_filter *f,
                             const struct description *d, calyx_error *why) {
    const calyx_memory *const memory = &f->memory;
    if (!d->list_bytes) return CALYX_OK;
    uint8_t *const list =
        memory->allocate(memory->context, d->list_bytes, sizeof(uint64_t));
    if (!list)
        return fail(why, CALYX_NO_MEMORY, "no memory to read the allow list");
    calyx_status status = get_bytes(reader, list, d->list_bytes, why);
    if (status == CALYX_OK) status = set_list(f, d, list, why);
    memory->release(memory->context, list, d->list_bytes);
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

static calyx_status share_read(calyx_filter *f, calyx_error *why) {
    const calyx_status status = f->engine->share(f);
    if (status == CALYX_OK) return status;
    if (status == CALYX_NO_MEMORY)
        return fail(why, status, "no memory for a table that threads share");
    return fail(why, CALYX_DAMAGED, "damaged: no table has such entries");
}

calyx_status read_filter(calyx_get_function *get, void *context, uint64_t size,
                         const calyx_open_options *how, calyx_filter **out,
                         struct state *state, calyx_error *why) {
    struct reader reader = {get, context, 0};
    struct description d;
    calyx_status status = get_header(&reader, &d, why);
    if (status == CALYX_OK && size) status = check_size(&d, size, why);
    if (status == CALYX_OK) status = open_head(&d, how, why);
    if (status != CALYX_OK) return status;

    const bool shares_later = d.head.concurrent && doubles_as_whole(&d);
    if (shares_later) d.head.concurrent = false;
    const calyx_memory *memory = &d.head.memory;
    const size_t between =
        d.head.kind->segments ? chunk_size(d.layout.file_bytes) : 0;
    const size_t scratch = 2 * (size_t)d.layout.tables_bytes + between;
    uint8_t *tables = memory->allocate(memory->context, scratch, LINE_ALIGNED);
    calyx_filter *f = NULL;
    if (!tables || allocate_head(&d.head, &f) != CALYX_OK)
        status = fail(why, CALYX_NO_MEMORY, "no memory to read a filter");
    if (status == CALYX_OK) status = get_list(&reader, f, &d, why);
    if (status == CALYX_OK)
        status = get_parts(&reader, f, &d, tables, state, why);
    if (status == CALYX_OK) status = check_tails(f, why);
    if (status == CALYX_OK) status = set_texts(f, &d, why);
    if (status == CALYX_OK && shares_later) status = share_read(f, why);
    if (tables) memory->release(memory->context, tables, scratch);
    if (status != CALYX_OK) {
        calyx_free(f);
        return status;
    }
    *out = f;
    return CALYX_OK;
}

/* ---- The public calls ---------------------------------------------------- */

calyx_status calyx_read(calyx_get_function *get, void *context,
                        const calyx_open_options *how, calyx_filter **out,
                        calyx_error *why) {
    struct state state;
    return read_filter(get, context, 0, how, out, &state, why);
}

struct bytes_left {
    uint8_t *at;
    size_t left;
};

static bool get_from_memory(void *context, void *buffer, size_t size) {
    struct bytes_left *from = context;
    if (size > from->left) return false;
    memcpy(buffer, from->at, size);
    from->at += size;
    from->left -= size;
    return true;
}

calyx_status calyx_decode(const void *bytes, size_t size,
                          const calyx_open_options *how, calyx_filter **out,
                          calyx_error *why) {
    struct bytes_left from = {(uint8_t *)bytes, size};
    struct state state;
    const calyx_status status =
        read_filter(get_from_memory, &from, size, how, out, &state, why);
    /* Memory has no I/O errors: there were too few bytes. */
    if (status != CALYX_IO) return status;
    return fail(why, CALYX_DAMAGED, "damaged: it ends after %llu bytes",
                (unsigned long long)size);
}
