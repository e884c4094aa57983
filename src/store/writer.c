/*
 * Filters to bytes, in one pass: header, bodies, checksums, trailer. Everything
 * that is written goes through write_described.
 */
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "filter/filter.h"
#include "store/encoding.h"

struct writer {
    calyx_put_function *put;
    void *context;
    uint64_t at;
    bool broken; /* `put` returned false */
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

/* A part, or where its body comes from if that is NULL. */
struct body_input {
    const calyx_filter *f;
    const struct part *part;
    const struct body_source *source;
    uint8_t *copy; /* of a chunk, unless the body is used as it is */
};

static calyx_status get_chunk(const struct body_input *in, uint64_t from,
                              size_t n, const uint8_t **chunk,
                              calyx_error *why) {
    *chunk = in->copy;
    if (!in->part->body)
        return in->source->read(in->source->context, from, in->copy, n, why);
    size_t together = n;
    const uint8_t *const at = body_at(in->f, in->part, from, &together);
    if (is_shared(in->f) || together < n)
        /* of a shared one, has every key added before; its sum fits */
        get_from_body(in->f, in->part, from, in->copy, n);
    else
        *chunk = at;
    return CALYX_OK;
}

static calyx_status put_body(struct writer *writer, const struct body_input *in,
                             uint64_t size, uint8_t *tables, uint64_t *number,
                             calyx_error *why) {
    calyx_status status = CALYX_OK;
    for (uint64_t from = 0; from < size && status == CALYX_OK; from += CHUNK) {
        const size_t n = chunk_size(size - from);
        const uint8_t *chunk;
        status = get_chunk(in, from, n, &chunk, why);
        if (status != CALYX_OK) break;
        sum_chunk(chunk, n, tables, number);
        put_bytes(writer, chunk, n);
    }
    return status;
}

static void put_chunks(struct writer *writer, const uint8_t *bytes,
                       uint64_t size) {
    for (uint64_t from = 0; from < size; from += CHUNK)
        put_bytes(writer, bytes + from, chunk_size(size - from));
}

calyx_status write_described(const calyx_filter *f, struct description *d,
                             const struct body_source *source,
                             calyx_put_function *put, void *context,
                             calyx_error *why) {
    const struct file_layout *l = &d->layout;
    const bool copies = is_shared(f) || source || f->engine->take_body;
    const size_t scratch = (size_t)(l->tables_bytes + (copies ? CHUNK : 0));
    uint8_t *const tables =
        f->memory.allocate(f->memory.context, scratch, LINE_ALIGNED);
    if (!tables)
        return fail(why, CALYX_NO_MEMORY,
                    "no memory for the %llu bytes that writing takes",
                    (unsigned long long)scratch);

    struct writer writer = {put, context, 0, false};
    uint8_t header[MOST_HEADER];
    store_header(d, header);
    put_bytes(&writer, header, l->header_bytes);
    put_bytes(&writer, d->list, d->list_bytes);
    uint64_t number = 0;
    calyx_status status = CALYX_OK;
    for (uint32_t i = 0; i < d->parts && !writer.broken && status == CALYX_OK;
         i++) {
        const struct body_input in = {f, &d->part[i], source,
                                      tables + l->tables_bytes};
        put_zeros_to(&writer, l->body_at[i]);
        status = put_body(&writer, &in, l->body_bytes[i], tables, &number, why);
    }
    if (status != CALYX_OK) {
        f->memory.release(f->memory.context, tables, scratch);
        return status;
    }
    put_zeros_to(&writer, l->tables_at);
    put_chunks(&writer, tables, l->tables_bytes);

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

    f->memory.release(f->memory.context, tables, scratch);
    if (writer.broken) return fail(why, CALYX_IO, "writing was stopped");
    return check_whole(f, why);
}

/* Describes the filter after check_whole, which may correct the number of
 * keys. The list is to be released. */
static calyx_status describe(const calyx_filter *f, uint32_t alignment,
                             struct description *d, struct encoded_list *list,
                             calyx_error *why) {
    *list = (struct encoded_list){0};
    const calyx_status whole = check_whole(f, why);
    if (whole != CALYX_OK) return whole;
    if (!describe_filter(f, alignment, d))
        return fail(why, CALYX_CANNOT,
                    "%u parts are more than the %d of a file", d->parts,
                    MOST_PARTS);
    const calyx_status status = encode_list(f, list, why);
    if (status == CALYX_OK) describe_list(d, list->bytes, list->size);
    return status;
}

calyx_status write_filter(const calyx_filter *f, uint32_t alignment,
                          calyx_put_function *put, void *context,
                          calyx_error *why) {
    struct description d;
    struct encoded_list list;
    lock_whole(f);
    calyx_status status = describe(f, alignment, &d, &list, why);
    if (status == CALYX_OK)
        status = write_described(f, &d, NULL, put, context, why);
    release_encoded_list(f, &list);
    unlock_whole(f);
    return status;
}

/* ---- The public calls ---------------------------------------------------- */

calyx_status calyx_write(const calyx_filter *f, calyx_put_function *put,
                         void *context, calyx_error *why) {
    return write_filter(f, LINE_ALIGNED, put, context, why);
}

uint64_t calyx_encoded_size(const calyx_filter *f) {
    struct description d;
    return describe_filter(f, LINE_ALIGNED, &d) ? d.layout.file_bytes : 0;
}

/* calyx_encode has compared the sizes. */
static bool put_in_memory(void *context, const void *bytes, size_t size) {
    uint8_t **const at = context;
    memcpy(*at, bytes, size);
    *at += size;
    return true;
}

calyx_status calyx_encode(const calyx_filter *f, void *buffer, size_t size,
                          calyx_error *why) {
    struct description d;
    struct encoded_list list;
    uint8_t *at = buffer;
    lock_whole(f);
    calyx_status status = describe(f, LINE_ALIGNED, &d, &list, why);
    if (status == CALYX_OK && size != d.layout.file_bytes)
        status = fail(why, CALYX_BAD_ARGUMENT,
                      "the buffer has %llu bytes; the filter takes %llu",
                      (unsigned long long)size,
                      (unsigned long long)d.layout.file_bytes);
    if (status == CALYX_OK)
        status = write_described(f, &d, NULL, put_in_memory, &at, why);
    release_encoded_list(f, &list);
    unlock_whole(f);
    return status;
}
