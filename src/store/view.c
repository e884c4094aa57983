/*
 * Filters used where their bytes are: in memory (calyx_view) or in a mapped
 * file (map.c). Nothing is copied but the header. ranges.c compares the bits
 * with their checksums.
 */
#include "store/view.h"

#include <string.h>

#include "base/error.h"
#include "store/encoding.h"
#include "store/ranges.h"

static calyx_status drop_image(calyx_filter *f, calyx_error *why) {
    (void)why;
    close_ranges(f);
    f->memory.release(f->memory.context, image_of(f), sizeof(struct image));
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
                                const calyx_open_options *how,
                                calyx_error *why) {
    uint32_t header_bytes;
    calyx_status status =
        check_first_bytes(image->base, size, &header_bytes, why);
    if (status != CALYX_OK) return status;
    /* A copy, which nobody can change between check and use. */
    uint8_t header[MOST_HEADER] = {0};
    memcpy(header, image->base, header_bytes);
    status = check_header(header, &image->d, why);
    if (status == CALYX_OK) status = check_size(&image->d, size, why);
    if (status == CALYX_OK) status = open_head(&image->d, how, why);
    if (status != CALYX_OK) return status;
    return check_end(image, &image->state, why);
}

calyx_status view_image(uint8_t *base, uint64_t size,
                        const calyx_open_options *how, calyx_filter **out,
                        calyx_error *why) {
    struct image image = {.lent.release = drop_image, .base = base, .fd = -1};
    calyx_status status = check_image(&image, size, how, why);
    if (status == CALYX_OK) status = check_shared(&image.d, why);
    if (status != CALYX_OK) return status;
    const calyx_memory *memory = &image.d.head.memory;
    struct image *const copy =
        memory->allocate(memory->context, sizeof image, LINE_ALIGNED);
    calyx_filter *f = NULL;
    if (!copy || allocate_head(&image.d.head, &f) != CALYX_OK) {
        if (copy) memory->release(memory->context, copy, sizeof image);
        return fail(why, CALYX_NO_MEMORY, "no memory to open a filter");
    }
    status = set_texts(f, &image.d, why);
    if (status == CALYX_OK)
        status = set_list(f, &image.d, image.base + list_at(&image.d), why);
    memcpy(copy, &image, sizeof image);
    f->lent = &copy->lent;
    const calyx_verification when = how ? how->verify : CALYX_VERIFY_LAZY;
    if (status == CALYX_OK)
        status = open_ranges(f, when != CALYX_VERIFY_NONE, why);
    if (status == CALYX_OK) status = borrow_parts(f, &image, why);
    if (status == CALYX_OK) status = check_tails(f, why);
    if (status == CALYX_OK && when == CALYX_VERIFY_WHOLE) {
        status = calyx_verify(f, why);
        if (status == CALYX_UNSEALED) status = CALYX_OK;
    }
    if (status != CALYX_OK) {
        calyx_free(f);
        return status;
    }
    f->read_only = true;
    *out = f;
    return CALYX_OK;
}

calyx_status calyx_view(const void *bytes, size_t size,
                        const calyx_open_options *how, calyx_filter **out,
                        calyx_error *why) {
    if ((uintptr_t)bytes % LINE_ALIGNED != 0)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "the address of the bytes must be a multiple of 64");
    return view_image((uint8_t *)bytes, size, how, out, why);
}

/* ---- Verify every byte --------------------------------------------------- */

static calyx_status check_gap(const struct image *image, uint64_t from,
                              uint64_t to, calyx_error *why) {
    return check_zeros(image->base + from, to - from, from, why);
}

/* Between the sections, and around the slots, there are zeros. */
static calyx_status check_gaps(const struct image *image, calyx_error *why) {
    const struct file_layout *l = &image->d.layout;
    calyx_status status = check_gap(
        image, list_at(&image->d) + image->d.list_bytes, l->body_at[0], why);
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

/* Whether the tables match their own checksum, and all ranges theirs. */
static calyx_status verify_sums(const calyx_filter *f,
                                const struct state *state, calyx_error *why) {
    const struct image *image = image_of(f);
    const struct file_layout *l = &image->d.layout;
    calyx_status status =
        check_tables(state, image->base + l->tables_at, l->tables_bytes, why);
    if (status == CALYX_OK) status = verify_all_ranges(f, why);
    if (status == CALYX_OK)
        status = check_list(&image->d, image->base + list_at(&image->d), why);
    return status == CALYX_OK ? check_gaps(image, why) : status;
}

calyx_status calyx_verify(const calyx_filter *f, calyx_error *why) {
    const struct image *image = image_of(f);
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
