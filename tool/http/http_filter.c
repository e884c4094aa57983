#include "http/http_filter.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "http/unit_cache.h"
#include "input/key_options.h"
#include "input/look.h"

/* A request costs 300 to 500 bytes of headers, so that reading as many bytes
 * between two places is cheaper. */
enum { NEAR_BYTES = 512, MOST_REQUEST_BYTES = 1 << 20 };

struct http_filter {
    struct range_client *client;
    calyx_layout *layout;
    calyx_info info;
    bool verify;
    bool wants_all_sums; /* a range without a checksum is an error */
    uint8_t *slots;
    size_t slots_size;
    uint8_t *tables; /* NULL: not read yet */
    uint8_t *list;   /* the allow list; NULL: there is none */
    struct unit_cache *cache;
    pthread_mutex_t lock; /* of all above */
};

static _Noreturn void fail_here(const struct http_filter *f,
                                const calyx_error *why) {
    fail_at(range_client_name(f->client), 0, "%s", why->text);
}

/* ---- Sections ----------------------------------------------------------- */

/* The first section of this type, from `index` on; false if there is none. */
static bool find_section(const struct http_filter *f, calyx_section_type type,
                         uint32_t *index, calyx_section *section) {
    for (; calyx_layout_section(f->layout, *index, section); ++*index)
        if (section->type == type) return true;
    return false;
}

static uint8_t *read_bytes(struct http_filter *f, uint64_t at, uint64_t size) {
    uint8_t *const bytes = alloc_memory((size_t)size + 1);
    const struct http_range range = {at, (size_t)size, bytes};
    if (size) range_client_read(f->client, &range, 1);
    return bytes;
}

/* Both slots, one after another, by one request if the server takes two
 * ranges in one: then the first lookups can rely on that. */
enum { MOST_SLOTS = 2 };
static uint8_t *read_slots(struct http_filter *f, size_t *size) {
    struct http_range slots[MOST_SLOTS];
    size_t n = 0;
    calyx_section s;
    *size = 0;
    for (uint32_t i = 0; find_section(f, CALYX_SECTION_SLOT, &i, &s); i++)
        slots[n++] = (struct http_range){s.at, (size_t)s.bytes, NULL};
    for (size_t i = 0; i < n; i++) *size += slots[i].size;
    uint8_t *const bytes = alloc_memory(*size);
    for (size_t i = 0, at = 0; i < n; at += slots[i++].size)
        slots[i].bytes = bytes + at;
    range_client_read(f->client, slots, n);
    return bytes;
}

/* Has the file another header than when it was opened? */
static bool has_changed(struct http_filter *f, const uint8_t *header,
                        size_t size) {
    uint8_t *const now = read_bytes(f, 0, size);
    const bool is_other = memcmp(now, header, size) != 0;
    free(now);
    return is_other;
}

/* The size, and the slots, of which one must be sound. */
static void check_end(struct http_filter *f, const uint8_t *header,
                      size_t header_size) {
    const uint64_t size = range_client_file_bytes(f->client);
    calyx_section slot, end;
    uint32_t index = 0;
    find_section(f, CALYX_SECTION_END, &index, &end);
    if (end.at != size)
        fail_at(range_client_name(f->client), 0,
                "damaged: it has %" PRIu64
                " bytes, and its header says %" PRIu64,
                size, end.at);
    f->slots = read_slots(f, &f->slots_size);
    const uint8_t *at = f->slots;
    bool sound = false;
    for (index = 0; find_section(f, CALYX_SECTION_SLOT, &index, &slot);
         index++) {
        sound |= calyx_layout_check(f->layout, index, 0, at, (size_t)slot.bytes,
                                    NULL) == CALYX_OK;
        at += slot.bytes;
    }
    if (!sound && has_changed(f, header, header_size))
        range_client_fail_changed(f->client);
    if (!sound)
        fail_at(range_client_name(f->client), 0,
                "damaged: neither of its slots is sound");
}

/* The slots have checksums of the header and of all bits, so another file has
 * others. Where the ETag may miss a change, they are compared after what was
 * read. */
static void expect_same_file(struct http_filter *f) {
    size_t size;
    if (!range_client_is_young(f->client)) return;
    uint8_t *const now = read_slots(f, &size);
    if (memcmp(now, f->slots, f->slots_size) != 0)
        range_client_fail_changed(f->client);
    free(now);
}

/* CALYX_UNSEALED: a writer is changing the file, or died; what has no checksum
 * answers then, as it does in a file that is mapped. */
static void expect_check(struct http_filter *f, uint32_t index, uint64_t from,
                         const uint8_t *bytes, size_t size) {
    calyx_error why;
    const calyx_status status =
        calyx_layout_check(f->layout, index, from, bytes, size, &why);
    if (status == CALYX_OK || (status == CALYX_UNSEALED && !f->wants_all_sums))
        return;
    fail_here(f, &why);
}

/* The allow list is short, and the answer depends on all of it. */
static void read_list(struct http_filter *f) {
    calyx_section s;
    uint32_t index = 0;
    if (!find_section(f, CALYX_SECTION_ALLOW, &index, &s)) return;
    f->list = read_bytes(f, s.at, s.bytes);
    expect_same_file(f);
    expect_check(f, index, 0, f->list, (size_t)s.bytes);
}

static void read_tables(struct http_filter *f) {
    calyx_section s;
    uint32_t index = 0;
    if (f->tables) return;
    find_section(f, CALYX_SECTION_TABLES, &index, &s);
    f->tables = read_bytes(f, s.at, s.bytes);
    expect_same_file(f);
    expect_check(f, index, 0, f->tables, (size_t)s.bytes);
}

/* Compare what was read of the bodies with its checksums, range by range, as
 * far as whole ranges were read. */
static void check_ranges(struct http_filter *f, const struct http_range *r) {
    calyx_section s;
    const uint64_t end = r->at + r->size;
    for (uint32_t i = 0; find_section(f, CALYX_SECTION_BODY, &i, &s); i++) {
        if (s.at >= end || s.at + s.bytes <= r->at) continue;
        uint64_t from = r->at > s.at ? r->at - s.at : 0;
        from = (from + s.step - 1) / s.step * s.step;
        while (from < s.bytes) {
            const uint64_t left = s.bytes - from;
            const uint64_t size = left < s.step ? left : s.step;
            if (s.at + from + size > end) break;
            read_tables(f);
            expect_check(f, i, from, r->bytes + (s.at + from - r->at),
                         (size_t)size);
            from += size;
        }
    }
}

/* ---- Units: what is read and kept at a time ----------------------------- */

/* A line; or, to verify, the range that it is in. */
static struct unit unit_of_line(const struct http_filter *f, uint64_t line) {
    calyx_section s;
    if (!f->verify) return (struct unit){line, CALYX_LINE_BYTES};
    for (uint32_t i = 0; find_section(f, CALYX_SECTION_BODY, &i, &s); i++) {
        if (line < s.at || line - s.at >= s.bytes) continue;
        const uint64_t from = (line - s.at) / s.step * s.step;
        const uint64_t left = s.bytes - from;
        return (struct unit){s.at + from, left < s.step ? left : s.step};
    }
    return (struct unit){line, CALYX_LINE_BYTES}; /* no line is elsewhere */
}

static int compare_units(const void *a, const void *b) {
    const struct unit *const x = a, *const y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Join units that are near each other to requests; returns their number. The
 * units are sorted; those between two that are joined are read, too. */
static size_t join_units(const struct unit *units, size_t n,
                         struct http_range *requests) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        struct http_range *const last = count ? &requests[count - 1] : NULL;
        const uint64_t end = units[i].at + units[i].size;
        if (last && end <= last->at + last->size) continue; /* twice */
        if (last && units[i].at <= last->at + last->size + NEAR_BYTES &&
            end - last->at <= MOST_REQUEST_BYTES)
            last->size = (size_t)(end - last->at);
        else
            requests[count++] =
                (struct http_range){units[i].at, (size_t)units[i].size, NULL};
    }
    return count;
}

/* Read these units into the cache. */
static void read_units(struct http_filter *f, struct unit *units, size_t n) {
    struct http_range *const requests =
        alloc_memory((n + 1) * sizeof *requests);
    qsort(units, n, sizeof *units, compare_units);
    const size_t count = join_units(units, n, requests);
    size_t all = 0;
    for (size_t i = 0; i < count; i++) all += requests[i].size;
    uint8_t *const bytes = alloc_memory(all + 1);
    for (size_t i = 0, at = 0; i < count; at += requests[i++].size)
        requests[i].bytes = bytes + at;
    range_client_read(f->client, requests, count);
    expect_same_file(f);
    for (size_t i = 0; i < count; i++) check_ranges(f, &requests[i]);
    size_t r = 0;
    for (size_t i = 0; i < n; i++) {
        while (units[i].at >= requests[r].at + requests[r].size) r++;
        unit_cache_put(f->cache, units[i],
                       requests[r].bytes + (units[i].at - requests[r].at));
    }
    free(bytes);
    free(requests);
}

/* ---- Lookups ------------------------------------------------------------ */

/* Hashes, the indexes of those that have no answer yet, and the part of each
 * that has the next lines. */
struct lookups {
    const uint64_t *hashes;
    size_t *active;
    uint32_t *part;
    size_t count;
    size_t lines; /* in all parts together, of all hashes */
};

/* The lines of a lookup in all parts together; and in the one that has most. */
static size_t lines_of_key(const struct http_filter *f, uint64_t hash,
                           size_t *most) {
    uint64_t at[CALYX_LINES_MOST];
    size_t all = 0;
    *most = 0;
    for (uint32_t part = 0; part < f->info.parts; part++) {
        const size_t n = calyx_layout_lines(f->layout, part, hash, at);
        if (n > *most) *most = n;
        all += n;
    }
    return all;
}

/* The units of these lookups, in their parts or in all, that are not in the
 * cache; some may be listed twice. Returns their number. */
static size_t list_missing(const struct http_filter *f, const struct lookups *l,
                           bool all, struct unit *units) {
    uint64_t at[CALYX_LINES_MOST];
    size_t n = 0;
    for (size_t i = 0; i < l->count; i++) {
        const uint32_t first = l->part[l->active[i]];
        const uint32_t last = all ? f->info.parts - 1 : first;
        const uint64_t hash = l->hashes[l->active[i]];
        for (uint32_t part = first; part <= last; part++) {
            const size_t lines = calyx_layout_lines(f->layout, part, hash, at);
            for (size_t j = 0; j < lines; j++) {
                const struct unit unit = unit_of_line(f, at[j]);
                if (!unit_cache_find(f->cache, unit.at)) units[n++] = unit;
            }
        }
    }
    return n;
}

/* Have the lines of these lookups, in their parts or in all, in the cache. */
static void have_lines(struct http_filter *f, const struct lookups *l,
                       bool all) {
    struct unit *const units = alloc_memory((l->lines + 1) * sizeof *units);
    size_t n = list_missing(f, l, all, units);
    if (n > unit_cache_room(f->cache)) {
        unit_cache_clear(f->cache);
        n = list_missing(f, l, all, units);
    }
    if (n) read_units(f, units, n);
    free(units);
}

/* The lines of a lookup, from the cache, one after another. */
static void copy_lines(const struct http_filter *f, uint32_t part,
                       uint64_t hash, uint8_t *lines) {
    uint64_t at[CALYX_LINES_MOST];
    const size_t n = calyx_layout_lines(f->layout, part, hash, at);
    for (size_t i = 0; i < n; i++) {
        const struct unit unit = unit_of_line(f, at[i]);
        const uint8_t *const bytes = unit_cache_find(f->cache, unit.at);
        memcpy(lines + i * CALYX_LINE_BYTES, bytes + (at[i] - unit.at),
               CALYX_LINE_BYTES);
    }
}

/* Answer each lookup from one part; those that are not done stay active. */
static void look_into(struct http_filter *f, struct lookups *l, bool *found) {
    uint8_t lines[CALYX_LINES_MOST * CALYX_LINE_BYTES];
    size_t left = 0;
    have_lines(f, l, false);
    for (size_t i = 0; i < l->count; i++) {
        const size_t key = l->active[i];
        const uint32_t part = l->part[key];
        const uint64_t hash = l->hashes[key];
        copy_lines(f, part, hash, lines);
        found[key] ^= calyx_layout_has(f->layout, part, hash, lines);
        l->part[key] = calyx_layout_next(f->layout, part, hash, lines);
        if (l->part[key]) l->active[left++] = key;
    }
    l->count = left;
}

/* Part after part, since a key that is found needs no other. But where few keys
 * go through all parts, read all of these at once: that takes one round trip.
 * In a static filter, whose parts are layers, hardly any key goes on. */
static void look_up(struct http_filter *f, struct lookups l, bool *found) {
    enum { FEW_LINES = 256 };
    l.active = alloc_memory(l.count * sizeof *l.active);
    l.part = alloc_memory(l.count * sizeof *l.part);
    for (size_t i = 0; i < l.count; i++) {
        l.active[i] = i;
        l.part[i] = 0;
        found[i] = false;
    }
    if (l.lines <= FEW_LINES && !(f->info.can & CALYX_CAN_STATIC) && !f->verify)
        have_lines(f, &l, true);
    while (l.count) look_into(f, &l, found);
    free(l.active);
    free(l.part);
}

/* At a time, as many keys as have room for their lines of one part. */
void http_filter_has(struct http_filter *f, const uint64_t *hashes, size_t n,
                     bool *found) {
    pthread_mutex_lock(&f->lock);
    const size_t room = unit_cache_capacity(f->cache);
    for (size_t from = 0; from < n;) {
        struct lookups l = {.hashes = hashes + from};
        size_t in_part = 0;
        while (from + l.count < n) {
            size_t most;
            const size_t all = lines_of_key(f, l.hashes[l.count], &most);
            if ((in_part += most) > room) break;
            l.lines += all;
            l.count++;
        }
        look_up(f, l, found + from);
        from += l.count;
    }
    pthread_mutex_unlock(&f->lock);
}

bool http_filter_has_list(const struct http_filter *f) {
    return f->list;
}

void http_filter_take_back(const struct http_filter *f, const calyx_key *keys,
                           size_t n, bool *found) {
    for (size_t i = 0; i < n; i++)
        if (found[i] &&
            calyx_layout_allows(f->layout, keys[i].data, keys[i].size))
            found[i] = false;
}

/* ---- Opening and closing ------------------------------------------------ */

void http_filter_expect_lookups(const struct http_filter *f) {
    uint64_t at[CALYX_LINES_MOST];
    for (uint32_t part = 0; part < f->info.parts; part++)
        if (calyx_layout_lines(f->layout, part, 0, at) == 0)
            fail_at(range_client_name(f->client), 0,
                    "a lookup in a %s filter learns what to read only while it "
                    "reads; download the file and query that",
                    f->info.kind);
}

/* What is read at a time: lines, or ranges that have a checksum. */
static size_t unit_bytes(const struct http_filter *f) {
    calyx_section body;
    uint32_t index = 0;
    find_section(f, CALYX_SECTION_BODY, &index, &body);
    return f->verify ? (size_t)body.step : CALYX_LINE_BYTES;
}

/* Places in a compressed file are not places in the filter. */
static void expect_unpacked(const struct http_filter *f, const uint8_t *first,
                            size_t size) {
    bool more;
    const struct look *const is = look_at(first, size, &more);
    if (is && is->kind == PACKED_DATA)
        fail_at(range_client_name(f->client), 0,
                "it is compressed, so that parts of it cannot be read; unpack "
                "it on the server, or download it and query that");
}

/* From as many bytes as a header may have. */
static void read_layout(struct http_filter *f) {
    const uint64_t bytes = range_client_file_bytes(f->client);
    const uint64_t size = bytes < CALYX_HEADER_MOST ? bytes : CALYX_HEADER_MOST;
    uint8_t *const first = read_bytes(f, 0, size);
    calyx_error why;
    if (calyx_layout_new(first, (size_t)size, &f->layout, &why) != CALYX_OK)
        fail_here(f, &why);
    free(first);
}

struct http_filter *http_filter_open(const char *url, const uint8_t *key,
                                     bool verify) {
    enum { USUAL_HEADER = 4096 };
    uint8_t first[USUAL_HEADER];
    size_t size = sizeof first;
    struct http_filter *const f = alloc_memory(sizeof *f);
    *f = (struct http_filter){.client = range_client_open(url, first, &size),
                              .verify = verify,
                              .lock = PTHREAD_MUTEX_INITIALIZER};
    calyx_error why;
    if (calyx_layout_new(first, size, &f->layout, NULL) != CALYX_OK) {
        expect_unpacked(f, first, size);
        read_layout(f);
    }
    if (calyx_layout_set_key(f->layout, key, &why) != CALYX_OK)
        fail_here(f, &why);
    check_end(f, first, size);
    read_list(f);
    calyx_layout_describe(f->layout, NULL, &f->info);
    f->cache = unit_cache_new(unit_bytes(f));
    return f;
}

void http_filter_close(struct http_filter *f) {
    range_client_close(f->client);
    calyx_layout_free(f->layout);
    unit_cache_free(f->cache);
    free(f->tables);
    free(f->list);
    free(f->slots);
    free(f);
}

calyx_filter *http_filter_stand_in(const struct http_filter *f,
                                   const uint8_t *key) {
    const calyx_options same = {
        .capacity = 1, .hash = f->info.hash, .seed = f->info.seed, .key = key};
    const char *const options = http_filter_facts(f).key_options;
    calyx_filter *filter;
    calyx_error why;
    if (calyx_new(&same, &filter, &why) != CALYX_OK) fail_here(f, &why);
    if (options) key_options_set(filter, options);
    return filter;
}

struct http_facts http_filter_facts(const struct http_filter *f) {
    return (struct http_facts){.info = f->info,
                               .comment = calyx_layout_comment(f->layout),
                               .key_options = key_options_of_layout(f->layout)};
}

/* ---- All of it ---------------------------------------------------------- */

/* Requests that are read together, 32 MiB of them. */
struct whole_read {
    struct http_range requests[64];
    size_t count, bytes;
    uint8_t *room;
};
enum { READ_AT_ONCE = 32 << 20 };

static void expect_zeros(const struct http_filter *f,
                         const struct http_range *gap) {
    for (size_t i = 0; i < gap->size; i++)
        if (gap->bytes[i])
            fail_at(range_client_name(f->client), 0,
                    "damaged: byte %" PRIu64 " lies between sections and is "
                    "not 0",
                    gap->at + i);
}

/* Whether a request lies in a body; the others are gaps. */
static bool is_in_body(const struct http_filter *f, uint64_t at) {
    calyx_section s;
    for (uint32_t i = 0; find_section(f, CALYX_SECTION_BODY, &i, &s); i++)
        if (at >= s.at && at - s.at < s.bytes) return true;
    return false;
}

static void flush(struct http_filter *f, struct whole_read *all) {
    range_client_read(f->client, all->requests, all->count);
    for (size_t i = 0; i < all->count; i++)
        if (is_in_body(f, all->requests[i].at))
            check_ranges(f, &all->requests[i]);
        else
            expect_zeros(f, &all->requests[i]);
    all->count = all->bytes = 0;
}

/* Read these bytes, at most MOST_REQUEST_BYTES at a time, which are whole
 * ranges of a body. */
static void read_stretch(struct http_filter *f, struct whole_read *all,
                         uint64_t at, uint64_t size) {
    const size_t most = sizeof all->requests / sizeof *all->requests;
    for (uint64_t from = 0, n; from < size; from += n) {
        n = size - from < MOST_REQUEST_BYTES ? size - from : MOST_REQUEST_BYTES;
        if (all->count == most || all->bytes + n > READ_AT_ONCE) flush(f, all);
        all->requests[all->count++] =
            (struct http_range){at + from, (size_t)n, all->room + all->bytes};
        all->bytes += (size_t)n;
    }
}

void http_filter_verify(struct http_filter *f) {
    struct whole_read all = {.room = alloc_memory(READ_AT_ONCE)};
    calyx_section s;
    uint64_t end = 0;
    f->wants_all_sums = true;
    read_tables(f);
    for (uint32_t i = 0; calyx_layout_section(f->layout, i, &s); i++) {
        read_stretch(f, &all, end, s.at - end);
        if (s.type == CALYX_SECTION_BODY) read_stretch(f, &all, s.at, s.bytes);
        end = s.at + s.bytes;
    }
    flush(f, &all);
    expect_same_file(f);
    free(all.room);
}

struct http_traffic http_filter_traffic(const struct http_filter *f) {
    return range_client_traffic(f->client);
}
