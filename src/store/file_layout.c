/*
 * A file that is read in pieces: where its sections are, whether they are
 * sound, and which bytes of it answer a lookup. The layout holds a filter
 * without bodies, made from the header; only this file uses it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/memory.h"
#include "store/encoding.h"
#include "store/ranges.h"
#include "store/view.h"

struct calyx_layout {
    struct description d;
    struct state state; /* generation 0: no slot was sound */
    const uint8_t *tables;
    bool lacks_key;      /* the hash needs a secret key, which was not given */
    const uint8_t *list; /* the allow list, once it was checked */
};

static calyx_status check_first(const void *bytes, size_t size,
                                struct description *d, calyx_error *why) {
    uint32_t header_bytes;
    const calyx_status status =
        check_first_bytes(bytes, size, &header_bytes, why);
    return status == CALYX_OK ? check_header(bytes, d, why) : status;
}

calyx_status calyx_layout_new(const void *bytes, size_t size,
                              calyx_layout **out, calyx_error *why) {
    calyx_layout *const l = malloc(sizeof *l);
    if (!l) return fail(why, CALYX_NO_MEMORY, "no memory for a layout");
    *l = (calyx_layout){0};
    struct description *const d = &l->d;
    calyx_status status = check_first(bytes, size, d, why);
    if (status == CALYX_OK) {
        l->lacks_key = d->head.hash->keyed;
        d->head.memory = memory_default;
        status = l->lacks_key ? choose_kernel(NULL, &d->head, why)
                              : open_head(d, NULL, why);
    }
    if (status == CALYX_OK &&
        set_records(&d->head, d->records, d->records_bytes) != CALYX_OK)
        status = fail(why, CALYX_NO_MEMORY, "no memory for a layout");
    if (status != CALYX_OK) {
        free(l);
        return status;
    }
    d->head.comment = d->comment;
    for (uint32_t i = 0; i < d->parts; i++) {
        d->part[i].older = d->head.newest;
        d->head.newest = &d->part[i];
    }
    choose_engine(&d->head);
    if (is_static(&d->head)) link_layers(&d->head);
    *out = l;
    return CALYX_OK;
}

void calyx_layout_free(calyx_layout *l) {
    if (l) drop_properties(&l->d.head);
    free(l);
}

calyx_status calyx_layout_set_key(calyx_layout *l, const uint8_t key[16],
                                  calyx_error *why) {
    if (!l->d.head.hash->keyed) return CALYX_OK;
    const struct secret before = l->d.head.secret;
    const calyx_open_options how = {.key = key};
    const calyx_status status = open_head(&l->d, &how, why);
    if (status == CALYX_OK)
        l->lacks_key = false;
    else
        l->d.head.secret = before;
    return status;
}

void calyx_layout_describe(const calyx_layout *l, const uint64_t *set,
                           calyx_info *info) {
    if (set)
        describe_bits(&l->d.head, set, info);
    else
        calyx_info_of(&l->d.head, info);
    info->kernel = "";
    info->huge_pages = false;
    info->memory = 0;
    info->read_only = true;
    if (l->list) info->allowed = encoded_list_keys(l->list, l->d.list_bytes);
}

bool calyx_layout_part(const calyx_layout *l, uint32_t number,
                       calyx_part *part) {
    return calyx_part_of(&l->d.head, number, part);
}

const char *calyx_layout_comment(const calyx_layout *l) {
    return l->d.comment;
}

const char *calyx_layout_property(const calyx_layout *l, const char *name) {
    return calyx_property(&l->d.head, name);
}

/* ---- Sections ------------------------------------------------------------ */

bool calyx_layout_section(const calyx_layout *l, uint32_t index,
                          calyx_section *section) {
    const struct file_layout *const at = &l->d.layout;
    const uint32_t parts = l->d.parts;
    *section = (calyx_section){0};
    const bool has_list = l->d.list_bytes > 0;
    if (has_list && index == 1) {
        *section = (calyx_section){.type = CALYX_SECTION_ALLOW,
                                   .at = list_at(&l->d),
                                   .bytes = l->d.list_bytes,
                                   .step = l->d.list_bytes};
        return true;
    }
    if (has_list && index > 1) index--; /* among the others */
    if (index == 0)
        *section = (calyx_section){.type = CALYX_SECTION_HEADER,
                                   .bytes = at->header_bytes};
    else if (index <= parts)
        *section = (calyx_section){.type = CALYX_SECTION_BODY,
                                   .number = index - 1,
                                   .at = at->body_at[index - 1],
                                   .bytes = at->body_bytes[index - 1],
                                   .step = RANGE_BYTES};
    else if (index == parts + 1)
        *section = (calyx_section){.type = CALYX_SECTION_TABLES,
                                   .at = at->tables_at,
                                   .bytes = at->tables_bytes};
    else if (index <= parts + 3)
        *section = (calyx_section){.type = CALYX_SECTION_SLOT,
                                   .number = index - parts - 2,
                                   .at = at->slot_at[index - parts - 2],
                                   .bytes = SLOT_BYTES};
    else if (index == parts + 4)
        *section =
            (calyx_section){.type = CALYX_SECTION_END, .at = at->file_bytes};
    else
        return false;
    if (!section->step) section->step = section->bytes;
    return true;
}

static calyx_status keep_slot(calyx_layout *l, uint32_t number,
                              const uint8_t *slot, calyx_error *why) {
    if (!check_slot(&l->d, (int)number, slot, &l->state))
        return fail(why, CALYX_DAMAGED,
                    "slot %u is not in use, or does not match its checksum",
                    number);
    l->d.head.newest->items = l->state.items;
    return CALYX_OK;
}

static calyx_status keep_tables(calyx_layout *l, const uint8_t *tables,
                                size_t size, calyx_error *why) {
    if (l->state.generation == 0)
        return fail(why, CALYX_UNSEALED, "no slot was sound");
    const calyx_status status = check_tables(&l->state, tables, size, why);
    if (status != CALYX_OK) return status;
    l->tables = tables;
    return l->state.sealed ? CALYX_OK
                           : fail(why, CALYX_UNSEALED, "the file is open");
}

static calyx_status keep_list(calyx_layout *l, const uint8_t *list,
                              calyx_error *why) {
    const calyx_status status = check_list(&l->d, list, why);
    if (status == CALYX_OK) l->list = list;
    return status;
}

static calyx_status check_body(const calyx_layout *l, uint32_t part,
                               uint64_t from, const uint8_t *bytes, size_t size,
                               calyx_error *why) {
    const uint64_t number =
        first_entry(&l->d, part) / sizeof(uint64_t) + from / RANGE_BYTES;
    const calyx_status status = check_tail(
        l->d.head.kind, &l->d.part[part].shape, from, bytes, size, why);
    if (status != CALYX_OK) return status;
    if (!l->tables)
        return fail(why, CALYX_UNSEALED, "there are no sound tables");
    const uint64_t stored = load64(l->tables + number * sizeof(uint64_t));
    if (stored == range_sum(bytes, size, number)) return CALYX_OK;
    if (stored == UNSEALED && !l->state.sealed)
        return fail(why, CALYX_UNSEALED, "range %llu is being changed",
                    (unsigned long long)number);
    return fail_range(why, l->d.layout.body_at[part] + from);
}

calyx_status calyx_layout_check(calyx_layout *l, uint32_t index, uint64_t from,
                                const void *bytes, size_t size,
                                calyx_error *why) {
    calyx_section s;
    if (!calyx_layout_section(l, index, &s) || from > s.bytes ||
        (s.step && from % s.step) ||
        size != (s.bytes - from < s.step ? s.bytes - from : s.step))
        return fail(why, CALYX_BAD_ARGUMENT,
                    "section %u has no such bytes to check", index);
    switch (s.type) {
        case CALYX_SECTION_BODY:
            return check_body(l, s.number, from, bytes, size, why);
        case CALYX_SECTION_TABLES: return keep_tables(l, bytes, size, why);
        case CALYX_SECTION_SLOT: return keep_slot(l, s.number, bytes, why);
        case CALYX_SECTION_ALLOW: return keep_list(l, bytes, why);
        default: return CALYX_OK; /* the header was checked first */
    }
}

/* ---- Lookups ------------------------------------------------------------- */

calyx_status calyx_layout_hash(const calyx_layout *l, const void *key,
                               size_t size, uint64_t *hash) {
    const calyx_filter *const head = &l->d.head;
    if (l->lacks_key) return CALYX_WRONG_KEY;
    *hash = head->hash->one(&head->secret, key, size);
    return CALYX_OK;
}

static bool has_values(const calyx_layout *l, uint32_t part) {
    return l->d.part[part].shape.values != 0;
}

/* The set that a layer is in (exact_engine.c) begins with this part. */
static uint32_t first_of_set(const calyx_layout *l, uint32_t part) {
    while (part > 0 && (has_values(l, part) || !has_values(l, part - 1)))
        part--;
    return part;
}

/* Each layer of a static filter has its own hash of a key; each set begins with
 * the hash of the key, and so do its value layers. */
static uint64_t hash_in_part(const calyx_layout *l, uint32_t part,
                             uint64_t key) {
    const struct construction *const layers = l->d.head.kind->construction;
    uint64_t hash = key;
    if (!layers) return hash;
    for (uint32_t i = first_of_set(l, part); i <= part; i++) {
        const bool begins = i == 0 || has_values(l, i) != has_values(l, i - 1);
        if (begins) hash = key;
        if (has_values(l, i))
            hash = layers->next_value_hash(hash);
        else if (!begins)
            hash = layers->next_hash(hash);
    }
    return hash;
}

size_t calyx_layout_lines(const calyx_layout *l, uint32_t part, uint64_t hash,
                          uint64_t at[CALYX_LINES_MOST]) {
    if (part >= l->d.parts) return 0;
    const size_t n = kind_offsets(l->d.head.kind, &l->d.part[part].shape,
                                  hash_in_part(l, part, hash), at);
    for (size_t i = 0; i < n; i++)
        at[i] = l->d.layout.body_at[part] +
                at[i] / CALYX_LINE_BYTES * CALYX_LINE_BYTES;
    return n;
}

/* The answer of one part, from its lines. */
static enum layer_answer answer_of(const calyx_layout *l, uint32_t part,
                                   uint64_t key, const void *lines) {
    uint64_t at[CALYX_LINES_MOST];
    const size_t n = calyx_layout_lines(l, part, key, at);
    if (n == 0) return LAYER_YES; /* unknown: it may be there */
    const struct kind *const kind = l->d.head.kind;
    const struct shape *const shape = &l->d.part[part].shape;
    const uint64_t hash = hash_in_part(l, part, key);
    _Alignas(64) uint8_t copies[CALYX_LINES_MOST * CALYX_LINE_BYTES];
    memcpy(copies, lines, n * CALYX_LINE_BYTES);
    if (kind->construction &&
        kind->construction->is_bumped_in_copies(shape, hash, copies))
        return LAYER_BUMPED;
    return kind_has_in_copies(kind, shape, hash, copies) ? LAYER_YES : LAYER_NO;
}

/* Is it a first layer of an exact filter? */
static bool lets_pass(const calyx_layout *l, uint32_t part) {
    return has_values(l, l->d.parts - 1) && !has_values(l, part);
}

bool calyx_layout_has(const calyx_layout *l, uint32_t part, uint64_t hash,
                      const void *lines) {
    return part < l->d.parts && !lets_pass(l, part) &&
           answer_of(l, part, hash, lines) == LAYER_YES;
}

/* After the answer of a set. */
static uint32_t next_set(const calyx_layout *l, uint32_t part) {
    if (!has_values(l, l->d.parts - 1)) return l->d.parts; /* not exact */
    while (part < l->d.parts && lets_pass(l, part)) part++;
    while (part < l->d.parts && has_values(l, part)) part++;
    return part;
}

uint32_t calyx_layout_next(const calyx_layout *l, uint32_t part, uint64_t hash,
                           const void *lines) {
    uint32_t next = part + 1;
    if (next >= l->d.parts) return 0;
    const enum layer_answer answer = answer_of(l, part, hash, lines);
    if (!l->d.head.kind->construction) return answer == LAYER_YES ? 0 : next;
    if (answer == LAYER_YES && lets_pass(l, part))
        while (!has_values(l, next)) next++;
    else if (answer != LAYER_BUMPED ||
             has_values(l, part) != has_values(l, next))
        next = next_set(l, part);
    return next < l->d.parts ? next : 0;
}

calyx_status calyx_layout_add(const calyx_layout *l, uint32_t part,
                              uint64_t hash, void *lines) {
    const struct kind *const kind = l->d.head.kind;
    if (!kind->one_block || !kind->add_to_bits) return CALYX_CANNOT;
    if (part >= l->d.parts) return CALYX_BAD_ARGUMENT;
    const struct shape *const shape = &l->d.part[part].shape;
    const struct shape one = {.blocks = 1, .probes = shape->probes};
    uint64_t at;
    kind_offsets(kind, shape, hash, &at);
    kind->add_to_bits((uint8_t *)lines + at % CALYX_LINE_BYTES, &one, hash);
    return CALYX_OK;
}

bool calyx_layout_allows(const calyx_layout *l, const void *key, size_t size) {
    return l->list && is_in_encoded_list(l->list, l->d.list_bytes, key, size);
}
