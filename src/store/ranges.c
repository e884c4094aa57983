/*
 * Checksums by range: bytes that a filter uses in place are compared with their
 * checksums before their first use, 64 KiB at a time.
 *
 * A reader verifies a range when the first lookup needs it, and stores the
 * result. If a range is damaged, lookups there return "yes", and calyx_health
 * returns CALYX_DAMAGED.
 *
 * A writer marks a range in the tables before it sets the first bit there
 * (map.c). So even in a file that is open for writing, a range without the mark
 * must match its checksum. Bits are only ever set, and a replaced checksum
 * never returns. So a reader that finds a mismatch, and then the same checksum
 * again, has found damage and not a writer.
 */
#include "base/compiler.h"
#if !CALYX_NO_FILES
#define _DEFAULT_SOURCE /* madvise */
#include <sys/mman.h>
#endif
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "store/ranges.h"

/* ---- Where ranges are ---------------------------------------------------- */

uint64_t first_entry(const struct description *d, uint32_t part) {
    uint64_t number = 0;
    for (uint32_t i = 0; i < part; i++)
        number += ranges_of(d->layout.body_bytes[i]);
    return number * sizeof(uint64_t);
}

uint8_t *entry_of(const struct image *image, uint64_t number) {
    return image->base + image->d.layout.tables_at + number * sizeof(uint64_t);
}

uint64_t number_of_ranges(const struct image *image) {
    return image->d.layout.tables_bytes / sizeof(uint64_t);
}

struct byte_range range_at(const struct image *image, uint64_t number) {
    const struct file_layout *l = &image->d.layout;
    uint32_t part = 0;
    while (number >= ranges_of(l->body_bytes[part]))
        number -= ranges_of(l->body_bytes[part++]);
    const uint64_t from = number * RANGE_BYTES;
    return (struct byte_range){l->body_at[part] + from,
                               range_size(l->body_bytes[part], from)};
}

size_t ranges_of_key(const calyx_filter *f, const struct part *p, uint64_t hash,
                     uint64_t *numbers) {
    const size_t n = kind_offsets(f->kind, &p->shape, hash, numbers);
    for (size_t i = 0; i < n; i++)
        numbers[i] = p->range + numbers[i] / RANGE_BYTES;
    return n;
}

/* ---- States -------------------------------------------------------------- */

enum range_state state_of(const struct image *image, uint64_t number) {
    return __atomic_load_n(&image->range_states[number], __ATOMIC_ACQUIRE);
}

static void count(uint64_t *number, int by) {
    __atomic_fetch_add(number, (uint64_t)(int64_t)by, __ATOMIC_RELEASE);
}

static void note_damage(struct image *image, uint64_t number) {
    uint64_t none = 0;
    __atomic_compare_exchange_n(&image->lent.damage_at, &none,
                                range_at(image, number).at, false,
                                __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Several threads may find the state of a range at once; one of them counts it.
 */
static bool change_state(struct image *image, uint64_t number, uint8_t from,
                         enum range_state to) {
    struct lent_bytes *const r = &image->lent;
    if (from == to) return true;
    if (!change_byte(&image->range_states[number], from, (uint8_t)to))
        return false;
    if (to == RANGE_DAMAGED) note_damage(image, number);
    if (to == RANGE_DAMAGED) count(&r->damaged, 1);
    if (from == RANGE_UNVERIFIED) count(&r->unverified, -1);
    if (from < RANGE_MARKED && to >= RANGE_MARKED) count(&r->unmarked, -1);
    return true;
}

void set_state(struct image *image, uint64_t number, enum range_state to) {
    while (!change_state(image, number, (uint8_t)state_of(image, number), to))
        ;
}

/* ---- Comparing ----------------------------------------------------------- */

static uint64_t entry(const struct image *image, uint64_t number) {
    const uint64_t *const at =
        (const uint64_t *)(const void *)entry_of(image, number);
    return little64(__atomic_load_n(at, __ATOMIC_ACQUIRE));
}

static uint64_t sum_of(const calyx_filter *f, uint64_t number) {
    const struct image *image = image_of(f);
    const struct byte_range place = range_at(image, number);
    const uint8_t *const bytes = image->base + place.at;
    return f->concurrent && image->fd >= 0
               ? range_sum_shared(bytes, place.size, number)
               : range_sum(bytes, place.size, number);
}

/* A sealed file has no marks. It was sealed throughout if it is sealed before
 * and after with the same generation. */
static bool is_mark_valid(const struct image *image, uint64_t number) {
    struct state before, after;
    if (image->fd >= 0) return true; /* this process marked it */
    if (check_end(image, &before, NULL) != CALYX_OK) return false;
    if (!before.sealed) return true;
    return entry(image, number) != UNSEALED ||
           check_end(image, &after, NULL) != CALYX_OK ||
           after.generation != before.generation;
}

static bool matches(const calyx_filter *f, uint64_t number) {
    const struct image *image = image_of(f);
    for (;;) {
        const uint64_t stored = entry(image, number);
        if (stored == UNSEALED) return is_mark_valid(image, number);
        if (sum_of(f, number) == stored) return true;
        __sync_synchronize(); /* first the bytes, then the entry again */
        if (entry(image, number) == stored) return false;
    }
}

/* By default the system reads megabytes around each byte that is used. After a
 * pass over all ranges it must forget the pass: what is read in sequence is the
 * first to leave memory. */
enum expected_reads { ONE_RANGE, FEW_RANGES, ALL_RANGES, ANY_BYTES };

static void advise(const struct image *image, struct byte_range place,
                   enum expected_reads reads) {
#if CALYX_NO_FILES
    (void)image, (void)place, (void)reads;
#else
    static const int advice[] = {
        [ONE_RANGE] = MADV_WILLNEED,
        [FEW_RANGES] = MADV_RANDOM,
        [ALL_RANGES] = MADV_SEQUENTIAL,
        [ANY_BYTES] = MADV_NORMAL,
    };
    if (image->is_mapped)
        madvise(image->base + place.at, place.size, advice[reads]);
#endif
}

static void advise_all(const struct image *image, enum expected_reads reads) {
    const struct byte_range all = {0, (size_t)image->d.layout.file_bytes};
    advise(image, all, reads);
}

void expect_few_reads(struct image *image) {
    image->is_mapped = true;
    if (image->lent.unverified > 0) advise_all(image, FEW_RANGES);
}

bool verify_range(const calyx_filter *f, uint64_t number) {
    struct image *const image = image_of(f);
    const enum range_state state = state_of(image, number);
    if (state != RANGE_UNVERIFIED) return state != RANGE_DAMAGED;
    advise(image, range_at(image, number), ONE_RANGE);
    const bool sound = matches(f, number);
    change_state(image, number, RANGE_UNVERIFIED,
                 sound ? RANGE_INTACT : RANGE_DAMAGED);
    return sound;
}

calyx_status fail_range(calyx_error *why, uint64_t at) {
    return fail(why, CALYX_DAMAGED,
                "damaged: the bytes from %llu on do not match their checksum",
                (unsigned long long)at);
}

calyx_status verify_all_ranges(const calyx_filter *f, calyx_error *why) {
    struct image *const image = image_of(f);
    uint64_t bad = UINT64_MAX;
    advise_all(image, ALL_RANGES);
    for (uint64_t i = number_of_ranges(image); i-- > 0;)
        if (!matches(f, i)) {
            bad = i;
            set_state(image, i, RANGE_DAMAGED);
        } else {
            change_state(image, i, RANGE_UNVERIFIED, RANGE_INTACT);
        }
    advise_all(image, ANY_BYTES);
    return bad == UINT64_MAX ? CALYX_OK
                             : fail_range(why, range_at(image, bad).at);
}

/* ---- For the filter ------------------------------------------------------ */

static bool verify_ranges(const calyx_filter *f, uint64_t from, uint64_t n) {
    const struct image *const image = image_of(f);
    const bool reads =
        __atomic_load_n(&image->lent.unverified, __ATOMIC_RELAXED) > 0;
    bool sound = true;
    if (reads) advise_all(image, ALL_RANGES);
    for (uint64_t i = 0; i < n; i++) sound &= verify_range(f, from + i);
    if (reads) advise_all(image, ANY_BYTES);
    return sound;
}

static bool is_part_intact(const calyx_filter *f, const struct part *p) {
    return verify_ranges(f, p->range,
                         ranges_of(body_bytes(f->kind, &p->shape)));
}

static bool is_intact(const calyx_filter *f, const struct part *p,
                      uint64_t hash) {
    uint64_t numbers[MOST_RANGES_OF_KEY];
    const size_t n = ranges_of_key(f, p, hash, numbers);
    if (n == 0) return is_part_intact(f, p);
    bool sound = true;
    for (size_t i = 0; i < n; i++) sound &= verify_range(f, numbers[i]);
    return sound;
}

static void verify_rest(const calyx_filter *f) {
    const struct image *image = image_of(f);
    if (__atomic_load_n(&image->lent.unverified, __ATOMIC_RELAXED) == 0) return;
    verify_ranges(f, 0, number_of_ranges(image));
}

/* ---- The number of keys -------------------------------------------------- */

/* Number of bits in the unsealed ranges of a part; `*set` of them are set. */
static uint64_t unsealed_bits(const struct kind *kind, const struct part *p,
                              const uint8_t *entries, uint64_t *set) {
    const uint64_t bytes = bits_bytes(kind, &p->shape);
    const uint64_t all = kind_bits(kind, &p->shape);
    uint64_t bits = 0;
    for (uint64_t from = 0; from < bytes;
         from += RANGE_BYTES, entries += sizeof(uint64_t)) {
        if (peek64(entries) != UNSEALED) continue;
        const uint64_t to = from + range_size(bytes, from);
        bits += (8 * to < all ? 8 * to : all) - 8 * from;
        for (uint64_t at = from; at < to; at += 8)
            *set += (uint64_t)__builtin_popcountll(peek64(p->body + at));
    }
    return bits;
}

/*
 * A writer that died left the number of keys of its last sync. The keys added
 * since are in the ranges that it marked: estimate the keys in these ranges
 * from their set bits (Swamidass and Baldi 2007), then subtract the known ones,
 * which are all of this writer's and a proportional share of the older ones.
 * The estimate counts only if it is four standard deviations higher (Papapetrou
 * et al. 2010 give the variance), so that a correct number is never replaced.
 */
uint64_t recovered_items(const struct kind *kind, const struct part *p,
                         const struct state *state, const uint8_t *entries) {
    uint64_t set = 0;
    const uint64_t items = state->items;
    const uint64_t here = state->sealed || kind->construction
                              ? 0
                              : unsealed_bits(kind, p, entries, &set);
    if (here == 0) return items;
    const double bits = (double)here, k = bits_of_key(kind, &p->shape);
    const double share = bits / (double)kind_bits(kind, &p->shape);
    const double unset = fmax(0.5, bits - (double)set) / bits;
    const double keys = share * keys_for_unset(kind, &p->shape, unset);
    const double load = keys * k / bits;
    const double before = (double)state->sealed_items;
    const double known = before * share + ((double)items - before);
    const double deviation = sqrt(bits * (exp(load) - 1 - load) / (k * k) +
                                  before * share * (1 - share));
    const double more = keys - known;
    return more > 4 * deviation ? items + (uint64_t)round(more) : items;
}

/* For readers: the writer may have died, or be ahead of its last slot. A writer
 * counts its own keys. */
static void repair_items(const calyx_filter *f) {
    const struct image *image = image_of(f);
    struct part *const p = newest_of(f);
    struct state state;
    if (image->fd >= 0 || check_end(image, &state, NULL) != CALYX_OK) return;
    const uint64_t items =
        recovered_items(f->kind, p, &state, entry_of(image, p->range));
    __atomic_store_n(&p->items, items, __ATOMIC_RELAXED);
}

void seal_ranges(const struct image *image) {
    const uint64_t n = number_of_ranges(image);
    for (uint64_t i = 0; i < n; i++) {
        if (entry(image, i) != UNSEALED) continue;
        const struct byte_range place = range_at(image, i);
        uint64_t *const to = (uint64_t *)(void *)entry_of(image, i);
        const uint64_t sum = range_sum(image->base + place.at, place.size, i);
        __atomic_store_n(to, little64(sum), __ATOMIC_RELEASE);
    }
}

/* ---- Beginning and end --------------------------------------------------- */

/* Whole words, for change_byte(). */
static size_t states_bytes(const struct image *image) {
    return (size_t)(number_of_ranges(image) + 3) / 4 * 4;
}

calyx_status open_ranges(calyx_filter *f, bool verifies, calyx_error *why) {
    struct image *const image = image_of(f);
    const uint64_t n = number_of_ranges(image);
    image->range_states = f->memory.allocate(f->memory.context,
                                             states_bytes(image), LINE_ALIGNED);
    if (!image->range_states)
        return fail(why, CALYX_NO_MEMORY, "no memory to verify %llu ranges",
                    (unsigned long long)n);
    if (!verifies) memset(image->range_states, RANGE_INTACT, (size_t)n);
    image->lent.unverified = verifies ? n : 0;
    image->lent.unmarked = n;
    image->lent.is_intact = is_intact;
    image->lent.verify_rest = verify_rest;
    image->lent.repair_items = repair_items;
    choose_calls(f);
    return CALYX_OK;
}

void close_ranges(calyx_filter *f) {
    struct image *const image = image_of(f);
    if (image->range_states)
        f->memory.release(f->memory.context, image->range_states,
                          states_bytes(image));
}
