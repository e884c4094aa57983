/*
 * A filter in sections, in any order: the head, which is the header of the
 * format, and any bytes of the bits. The bits have no checksums here, since
 * these would need all bits at once.
 */
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "filter/filter.h"
#include "store/encoding.h"

/* ---- The head ------------------------------------------------------------ */

/* The header, and the allow list up to where the bodies begin. */
static size_t head_bytes(const struct description *d) {
    return (size_t)d->layout.body_at[0];
}

size_t calyx_head_size(const calyx_filter *f) {
    struct description d;
    return describe_filter(f, LINE_ALIGNED, &d) ? head_bytes(&d) : 0;
}

static calyx_status store_head(struct description *d,
                               const struct encoded_list *list, uint8_t *buffer,
                               size_t size, calyx_error *why) {
    describe_list(d, list->bytes, list->size);
    if (size != head_bytes(d))
        return fail(why, CALYX_BAD_ARGUMENT,
                    "the buffer has %llu bytes; the head takes %llu",
                    (unsigned long long)size,
                    (unsigned long long)head_bytes(d));
    uint8_t header[MOST_HEADER];
    store_header(d, header);
    memset(buffer, 0, size);
    memcpy(buffer, header, d->layout.header_bytes);
    if (list->size) memcpy(buffer + list_at(d), list->bytes, list->size);
    return CALYX_OK;
}

calyx_status calyx_encode_head(const calyx_filter *f, void *buffer, size_t size,
                               calyx_error *why) {
    struct description d;
    struct encoded_list list;
    calyx_status status = check_whole(f, why);
    if (status != CALYX_OK) return status;
    if (!describe_filter(f, LINE_ALIGNED, &d))
        return fail(why, CALYX_CANNOT,
                    "%u parts are more than the %d of a head", d.parts,
                    MOST_PARTS);
    status = encode_list(f, &list, why);
    if (status == CALYX_OK) status = store_head(&d, &list, buffer, size, why);
    release_encoded_list(f, &list);
    return status;
}

static calyx_status check_head_size(size_t size, uint64_t wanted,
                                    calyx_error *why) {
    if (size == wanted) return CALYX_OK;
    return fail(why, CALYX_DAMAGED,
                "damaged: the head should be %llu bytes long, and is %llu",
                (unsigned long long)wanted, (unsigned long long)size);
}

static calyx_status check_head(const uint8_t *bytes, size_t size,
                               struct description *d, calyx_error *why) {
    uint32_t header_bytes;
    calyx_status status = check_first_bytes(bytes, size, &header_bytes, why);
    if (status == CALYX_OK) status = check_header(bytes, d, why);
    if (status == CALYX_OK) status = check_head_size(size, head_bytes(d), why);
    if (status != CALYX_OK) return status;
    const uint64_t used = list_at(d) + d->list_bytes;
    return check_zeros(bytes + used, size - used, used, why);
}

calyx_status calyx_decode_head(const void *bytes, size_t size,
                               const calyx_open_options *how,
                               calyx_filter **out, calyx_error *why) {
    struct description d;
    calyx_status status = check_head(bytes, size, &d, why);
    if (status == CALYX_OK) status = open_head(&d, how, why);
    if (status == CALYX_OK) status = check_shared(&d, why);
    if (status != CALYX_OK) return status;
    calyx_filter *f = NULL;
    if (allocate_head(&d.head, &f) != CALYX_OK)
        return fail(why, CALYX_NO_MEMORY, "no memory for a filter");
    status = set_texts(f, &d, why);
    if (status == CALYX_OK)
        status = set_list(f, &d, (const uint8_t *)bytes + list_at(&d), why);
    for (uint32_t i = 0; i < d.parts && status == CALYX_OK; i++)
        if (allocate_part(f, &d.part[i]) != CALYX_OK)
            status = fail(why, CALYX_NO_MEMORY,
                          "no memory for the %llu bytes of part %u",
                          (unsigned long long)d.layout.body_bytes[i], i);
    if (status != CALYX_OK) {
        calyx_free(f);
        return status;
    }
    *out = f;
    return CALYX_OK;
}

/* ---- The bits ------------------------------------------------------------ */

/* The bytes of a part that are within a section of the row. */
struct common_bytes {
    uint64_t in_part, in_range;
    size_t size;
};

static struct common_bytes common_bytes(uint64_t part_at, uint64_t part_bytes,
                                        uint64_t from, size_t size) {
    const uint64_t to = from + size, part_to = part_at + part_bytes;
    const uint64_t start = from > part_at ? from : part_at;
    const uint64_t end = to < part_to ? to : part_to;
    if (start >= end) return (struct common_bytes){0};
    return (struct common_bytes){start - part_at, start - from,
                                 (size_t)(end - start)};
}

static uint64_t all_bytes(const calyx_filter *f) {
    uint64_t bytes = 0;
    for (const struct part *p = newest_of(f); p; p = p->older)
        bytes += body_bytes(f->kind, &p->shape);
    return bytes;
}

static bool lies_within(uint64_t from, size_t size, uint64_t bytes) {
    return from <= bytes && size <= bytes - from;
}

calyx_status calyx_get_bits(const calyx_filter *f, uint64_t from, void *buffer,
                            size_t size) {
    uint64_t at = all_bytes(f);
    if (!lies_within(from, size, at)) return CALYX_BAD_ARGUMENT;
    const calyx_status whole = check_whole(f, NULL);
    if (whole != CALYX_OK) return whole;
    for (const struct part *p = newest_of(f); p; p = p->older) {
        const uint64_t bytes = body_bytes(f->kind, &p->shape);
        at -= bytes;
        const struct common_bytes o = common_bytes(at, bytes, from, size);
        if (o.size)
            get_from_body(f, p, o.in_part, (uint8_t *)buffer + o.in_range,
                          o.size);
    }
    return CALYX_OK;
}

static void set_bits(uint8_t *to, const uint8_t *from, size_t size) {
    for (; size >= 8; size -= 8, to += 8, from += 8)
        store64(to, load64(to) | load64(from));
    while (size--) *to++ |= *from++;
}

static void set_bits_of(const calyx_filter *f, const struct part *p,
                        const struct common_bytes *o, const uint8_t *from) {
    for (size_t done = 0, some; done < o->size; done += some) {
        some = o->size - done;
        uint8_t *const to = body_at(f, p, o->in_part + done, &some);
        set_bits(to, from + done, some);
    }
}

calyx_status calyx_put_bits(calyx_filter *f, uint64_t from, const void *bytes,
                            size_t size) {
    if (f->lent) return CALYX_READ_ONLY;
    const uint64_t all = all_bytes(f);
    if (!lies_within(from, size, all)) return CALYX_BAD_ARGUMENT;
    for (int sets = 0; sets <= 1; sets++) { /* check all, then set all */
        uint64_t at = all;
        for (struct part *p = f->newest; p; p = p->older) {
            const uint64_t there = body_bytes(f->kind, &p->shape);
            at -= there;
            const struct common_bytes o = common_bytes(at, there, from, size);
            const uint8_t *const here = (const uint8_t *)bytes + o.in_range;
            if (sets) set_bits_of(f, p, &o, here);
            if (check_tail(f->kind, &p->shape, o.in_part, here, o.size, NULL) !=
                CALYX_OK)
                return CALYX_DAMAGED;
        }
    }
    return CALYX_OK;
}

/* ---- The lines of a key -------------------------------------------------- */

enum { MOST_LINES = CALYX_LINES_MOST + MOST_COUNTER_OFFSETS };

/* Byte offsets in the body of a part; returns their number, 0 if unknown. */
static size_t offsets_of_key(const struct kind *kind, const struct shape *shape,
                             uint64_t hash, uint64_t *at) {
    const size_t n = kind_offsets(kind, shape, hash, at);
    if (n == 0 || !kind->counter_bits) return n;
    if (!kind->counting || !kind->counting->counter_offsets) return 0;
    return n + kind->counting->counter_offsets(shape, hash, at + n);
}

/* Keys are added to the newest part, and where they are counted, again to the
 * part that has them. */
size_t calyx_lines_of_key(const calyx_filter *f, const void *key, size_t size,
                          uint64_t *at, size_t most) {
    const uint64_t hash = calyx_hash(f, key, size);
    uint64_t begins = all_bytes(f), offsets[MOST_LINES];
    size_t lines = 0;
    for (const struct part *p = newest_of(f); p; p = p->older) {
        begins -= body_bytes(f->kind, &p->shape);
        if (p != newest_of(f) && !(is_counting(f) && in_part(f, p, hash)))
            continue;
        const size_t n = offsets_of_key(f->kind, &p->shape, hash, offsets);
        if (n == 0) return 0;
        for (size_t i = 0; i < n; i++, lines++)
            if (lines < most)
                at[lines] =
                    begins + offsets[i] / CALYX_LINE_BYTES * CALYX_LINE_BYTES;
    }
    return lines;
}
