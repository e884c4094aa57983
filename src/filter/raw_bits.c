/*
 * Raw bits: the bits that lookups read, without header and checksums, for
 * exchange with other programs. The files of store/ have both.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "filter/filter.h"

static uint64_t bytes_for(uint64_t bits) {
    return bits / 8 + (bits % 8 != 0);
}

const void *calyx_bits(const calyx_filter *f, uint64_t *size) {
    const struct part *const p = newest_of(f);
    if (p->older || is_static(f) || f->kind->is_table ||
        check_whole(f, NULL) != CALYX_OK)
        return NULL;
    *size = bytes_for(kind_bits(f->kind, &p->shape));
    return p->body;
}

/* A wrong number of probes would cause false negatives. */
static calyx_status check_given(const calyx_options *want,
                                const struct calyx_filter *head,
                                calyx_error *why) {
    const struct kind *const kind = head->kind;
    if (is_static(head))
        return fail(why, CALYX_CANNOT,
                    "a %s filter cannot be made of bits: they do not say how "
                    "it is laid out; use its file",
                    kind->name);
    if (has_counters(kind))
        return fail(why, CALYX_CANNOT,
                    "a %s filter cannot be made of bits: it has counters",
                    kind->name);
    if (want->probes == 0 && kind->most_probes != kind->probe_step)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "the probes that the bits of a %s filter were set with "
                    "must be given",
                    kind->name);
    return CALYX_OK;
}

static calyx_status check_bits(uint64_t bits, const struct kind *kind,
                               const uint8_t *bytes, uint64_t size,
                               calyx_error *why) {
    if (bits % kind->block_bits != 0)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "%s filters have a multiple of %u bits, not %llu",
                    kind->name, kind->block_bits, (unsigned long long)bits);
    if (size != bytes_for(bits))
        return fail(why, CALYX_BAD_ARGUMENT,
                    "%llu bits take %llu bytes, but %llu are given",
                    (unsigned long long)bits,
                    (unsigned long long)bytes_for(bits),
                    (unsigned long long)size);
    if (bits % 8 && bytes[size - 1] >> bits % 8)
        return fail(why, CALYX_DAMAGED,
                    "a bit is set after the last of the %llu bits",
                    (unsigned long long)bits);
    return CALYX_OK;
}

calyx_status calyx_from_bits(const calyx_options *want, const void *bytes,
                             size_t size, calyx_filter **out,
                             calyx_error *why) {
    if (size == 0)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "a filter cannot be made of no bits");
    calyx_options sized = *want;
    if (!sized.bits) sized.bits = 8 * (uint64_t)size;
    struct calyx_filter head;
    struct part first;
    calyx_status status = plan_filter(&sized, &head, &first, why);
    if (status == CALYX_OK) status = check_given(want, &head, why);
    if (status == CALYX_OK)
        status = check_bits(sized.bits, head.kind, bytes, size, why);
    calyx_filter *f;
    if (status == CALYX_OK) status = calyx_new(&sized, &f, why);
    if (status != CALYX_OK) return status;

    struct part *const p = f->newest;
    memcpy(p->body, bytes, size);
    p->items = keys_by_bits(f->kind, p);
    *out = f;
    return CALYX_OK;
}
