/*
 * Filters used in place answer from no range that they did not compare with its
 * checksum. A range that is damaged makes them say yes, and say that it is
 * damaged; it makes nothing else say yes, and nobody signs it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "store/ranges.h"
#include "support.h"
#include "support_files.h"

/* ---- Filters in files ---------------------------------------------------- */

enum { KEYS = 3000, ASKED = 2 * KEYS };
static const uint64_t BITS = UINT64_C(10) << 19; /* 10 ranges of a body */

static calyx_options of_kind(const char *kind) {
    return (calyx_options){.kind = kind, .bits = BITS, .capacity = 300000};
}

/* A filter of KEYS numbers, and the same in the file. */
static calyx_filter *save_numbers(calyx_options want) {
    calyx_filter *f = make_filter(want);
    add_numbers(f, 0, KEYS);
    assert_ok(calyx_save(f, path, NULL));
    return f;
}

static calyx_filter *map_as(calyx_access access, calyx_verification verify) {
    calyx_filter *f = NULL;
    calyx_error why;
    const calyx_open_options how = {.verify = verify};
    if (calyx_map(path, access, &how, &f, &why) != CALYX_OK)
        fail_msg("%s", why.text);
    return f;
}

static uint64_t body_begins(void) {
    calyx_filter *f = map(path, CALYX_READ);
    const uint64_t at = image_of(f)->d.layout.body_at[0];
    calyx_free(f);
    return at;
}

static void zero_file(uint64_t at, size_t size) {
    const int fd = open(path, O_RDWR);
    uint8_t *const zeros = calloc(1, size);
    assert_int_equal(pwrite(fd, zeros, size, (off_t)at), size);
    free(zeros);
    close(fd);
}

/* Damage one page of a range of the first part. */
static void damage(uint64_t range) {
    zero_file(body_begins() + range * RANGE_BYTES + 8192, 4096);
}

static bool touches(const calyx_filter *f, uint64_t number, uint64_t range) {
    uint64_t numbers[MOST_RANGES_OF_KEY], key = little64(number);
    const uint64_t hash = calyx_hash(f, &key, sizeof key);
    bool any = false;
    for (const struct part *p = f->newest; p; p = p->older) {
        const size_t n = ranges_of_key(f, p, hash, numbers);
        assert_true(n > 0);
        for (size_t i = 0; i < n; i++) any |= numbers[i] == range;
    }
    return any;
}

static calyx_status health(const calyx_filter *f) {
    return calyx_health(f, NULL);
}

/* ---- Reading ------------------------------------------------------------- */

/* One at a time, or as many at a time as these. */
static void ask(const calyx_filter *f, size_t at_once, bool *found) {
    static uint64_t numbers[ASKED];
    for (uint64_t i = 0; i < ASKED; i++) numbers[i] = i;
    for (size_t i = 0; i < ASKED; i += at_once)
        if (at_once == 1) {
            found[i] = calyx_has_u64(f, i);
        } else {
            const size_t left = ASKED - i, n = left < at_once ? left : at_once;
            size_t yes = 0;
            assert_int_equal(calyx_has_many_u64(f, numbers + i, n, NULL),
                             calyx_has_many_u64(f, numbers + i, n, found + i));
            for (size_t j = 0; j < n; j++) yes += found[i + j];
            assert_int_equal(calyx_has_many_u64(f, numbers + i, n, NULL), yes);
        }
}

static void assert_yes_where_damaged(const calyx_filter *right, size_t at_once,
                                     uint64_t range) {
    static bool found[ASKED];
    calyx_filter *f = map(path, CALYX_READ);
    assert_ok(health(f));
    ask(f, at_once, found);
    size_t here = 0;
    for (uint64_t i = 0; i < ASKED; i++) {
        const bool bad = touches(f, i, range);
        assert_int_equal(found[i], bad || calyx_has_u64(right, i));
        here += bad;
    }
    assert_true(here > ASKED / 100 && here < ASKED);
    calyx_error why = {0};
    assert_int_equal(calyx_health(f, &why), CALYX_DAMAGED);
    char place[40];
    snprintf(place, sizeof place, "bytes from %llu on",
             (unsigned long long)(image_of(f)->d.layout.body_at[0] +
                                  range * RANGE_BYTES));
    assert_non_null(strstr(why.text, place));
    assert_int_equal(calyx_verify(f, NULL), CALYX_DAMAGED);
    assert_true(calyx_count(f, "\0\0\0\0\0\0\0", 8) > 0);
    calyx_free(f);
}

static void damage_makes_keys_there_and_no_others_say_yes(void **state) {
    (void)state;
    static const size_t at_once[] = {1, 5, 700, ASKED};
    EACH_KIND_OF_BITS(kind)
    for (int grows = 0; grows < 2; grows++) {
        calyx_options want = of_kind(*kind);
        if (grows)
            want = (calyx_options){
                .kind = *kind, .capacity = 400, .growth = 2, .fpr = 1e-3};
        calyx_filter *right = save_numbers(want);
        const uint64_t range = grows ? 0 : 3;
        if (!grows)
            damage(range);
        else
            zero_file(body_begins(), 512); /* all of the oldest part's */
        for (size_t i = 0; i < sizeof at_once / sizeof *at_once; i++)
            if (!grows)
                assert_yes_where_damaged(right, at_once[i], range);
            else {
                static bool found[ASKED];
                calyx_filter *f = map(path, CALYX_READ);
                ask(f, at_once[i], found);
                for (uint64_t j = 0; j < ASKED; j++) assert_true(found[j]);
                assert_int_equal(health(f), CALYX_DAMAGED);
                calyx_free(f);
            }
        calyx_free(right);
    }
}

static void a_lookup_compares_the_ranges_of_its_key_and_no_others(
    void **state) {
    (void)state;
    EACH_KIND_OF_BITS(kind) {
        calyx_free(save_numbers(of_kind(*kind)));
        damage(3);
        calyx_filter *f = map(path, CALYX_READ);
        const uint64_t all = number_of_ranges(image_of(f));
        assert_int_equal(f->lent->unverified, all);
        uint64_t i = 0;
        while (touches(f, i, 3)) i++;
        assert_true(calyx_has_u64(f, i));
        assert_true(f->lent->unverified < all);
        assert_true(f->lent->unverified + f->newest->shape.probes >= all);
        assert_ok(health(f));
        while (!touches(f, i, 3)) i++;
        assert_true(calyx_has_u64(f, i));
        assert_int_equal(health(f), CALYX_DAMAGED);
        calyx_free(f);
    }
}

static void once_all_is_compared_nothing_is_left_to_do(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *right = save_numbers(of_kind(*kind));
        static bool found[ASKED];
        calyx_filter *f = map(path, CALYX_READ);
        ask(f, ASKED, found);
        assert_int_equal(f->lent->unverified, 0);
        assert_int_equal(f->lent->damaged, 0);
        assert_ok(health(f));
        for (uint64_t i = 0; i < ASKED; i++)
            assert_int_equal(found[i], calyx_has_u64(right, i));
        calyx_free(f);
        calyx_free(right);
    }
}

static void a_filter_may_be_compared_whole_or_not_at_all(void **state) {
    (void)state;
    calyx_free(save_numbers(of_kind("line")));
    calyx_filter *f = map_as(CALYX_READ, CALYX_VERIFY_WHOLE);
    assert_int_equal(f->lent->unverified, 0);
    calyx_free(f);
    damage(7);
    const calyx_open_options how = {.verify = CALYX_VERIFY_WHOLE};
    calyx_error why = {0};
    f = NULL;
    for (int writes = 0; writes < 2; writes++) {
        assert_int_equal(
            calyx_map(path, writes ? CALYX_WRITE : CALYX_READ, &how, &f, &why),
            CALYX_DAMAGED);
        assert_null(f);
        assert_non_null(strstr(why.text, path));
    }
    f = map_as(CALYX_READ, CALYX_VERIFY_NONE);
    size_t missing = 0;
    for (uint64_t i = 0; i < KEYS; i++) missing += !calyx_has_u64(f, i);
    assert_true(missing > 0);
    assert_ok(health(f));
    assert_int_equal(calyx_verify(f, NULL), CALYX_DAMAGED);
    assert_int_equal(health(f), CALYX_DAMAGED);
    assert_has_numbers(f, 0, KEYS);
    calyx_free(f);
}

static bool put_nowhere(void *context, const void *bytes, size_t size) {
    (void)context, (void)bytes, (void)size;
    return true;
}

static void nothing_is_made_of_a_damaged_filter(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *right = save_numbers(of_kind(*kind));
        damage(2);
        calyx_filter *f = map(path, CALYX_READ), *made = NULL;
        const size_t size = (size_t)calyx_encoded_size(f);
        void *bytes = malloc(size);
        calyx_overlap overlap;
        const calyx_status no = CALYX_DAMAGED;
        assert_int_equal(calyx_copy(f, &made, NULL), no);
        if (calyx_kind_can(*kind) & CALYX_CAN_FOLD)
            assert_int_equal(calyx_fold(f, 1, &made, NULL), no);
        if (calyx_kind_can(*kind) & CALYX_CAN_MERGE) {
            assert_int_equal(calyx_fits(right, f, NULL), no);
            assert_int_equal(calyx_merge(right, f, NULL), no);
        }
        if (calyx_kind_can(*kind) & CALYX_CAN_INTERSECT) {
            assert_int_equal(calyx_intersect(right, f, NULL), no);
            assert_int_equal(calyx_compare(right, f, &overlap, NULL), no);
        }
        if (is_counting(f) && !is_table(*kind))
            assert_int_equal(calyx_freeze(f, &made, NULL), no);
        assert_int_equal(calyx_encode(f, bytes, size, NULL), no);
        assert_int_equal(calyx_write(f, put_nowhere, NULL, NULL), no);
        assert_int_equal(calyx_save(f, other_path, NULL), no);
        assert_int_equal(calyx_get_bits(f, 0, bytes, 64), no);
        uint64_t bits;
        assert_null(calyx_bits(f, &bits));
        assert_null(made);
        assert_int_equal(access(other_path, F_OK), -1);
        calyx_info info;
        calyx_describe(f, &info); /* cannot say so itself */
        assert_int_equal(health(f), no);
        free(bytes);
        calyx_free(f);
        calyx_free(right);
    }
}

/* A mark in a file that is sealed is damage, though its table be signed. */
static void a_sealed_file_has_no_marks(void **state) {
    (void)state;
    calyx_filter *f = make_filter(of_kind("line")), *g = NULL;
    add_numbers(f, 0, KEYS);
    const size_t size = (size_t)calyx_encoded_size(f);
    uint8_t *const bytes = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_ok(calyx_encode(f, bytes, size, NULL));
    struct description d;
    assert_true(describe_filter(f, LINE_ALIGNED, &d));
    uint8_t *const tables = bytes + d.layout.tables_at;
    uint8_t *const slot = bytes + d.layout.slot_at[0];
    for (int sealed = 0; sealed < 2; sealed++) {
        store64(tables + 8, UNSEALED);
        store32(slot + 8, sealed ? 1 : 2);
        store64(slot + 24, checksum(tables, (size_t)d.layout.tables_bytes, 0));
        store64(slot + 56, checksum(slot, 56, 0));
        const calyx_status wanted = sealed ? CALYX_DAMAGED : CALYX_OK;
        assert_int_equal(calyx_decode(bytes, size, NULL, &g, NULL), wanted);
        if (!sealed) calyx_free(g);
        assert_ok(calyx_view(bytes, size, NULL, &g, NULL));
        assert_int_equal(calyx_verify(g, NULL),
                         sealed ? CALYX_DAMAGED : CALYX_UNSEALED);
        calyx_free(g);
        assert_ok(calyx_view(bytes, size, NULL, &g, NULL));
        for (uint64_t i = 0; i < KEYS; i++) assert_true(calyx_has_u64(g, i));
        assert_int_equal(health(g), wanted);
        calyx_free(g);
    }
    free(bytes);
    calyx_free(f);
}

/* ---- Writing ------------------------------------------------------------- */

static void damage_is_never_added_to_nor_signed(void **state) {
    (void)state;
    for (const char *const *kind = adding_kinds(); *kind; kind++)
        for (int many = 0; many < 3; many++) {
            if (!is_bits_alone(*kind)) continue;
            calyx_free(save_numbers(of_kind(*kind)));
            damage(4);
            calyx_filter *f = map(path, CALYX_WRITE);
            for (uint64_t i = KEYS; i < ASKED; i++) {
                const bool bad = touches(f, i, 4);
                const uint64_t numbers[3] = {i, KEYS, KEYS};
                size_t done = 9;
                const calyx_status status =
                    many == 0 ? calyx_add_u64(f, i, NULL)
                              : calyx_add_many_u64(f, numbers, 1, NULL, &done);
                assert_int_equal(status, bad ? CALYX_DAMAGED : CALYX_OK);
                if (many) assert_int_equal(done, !bad);
                if (many == 2) break; /* few ranges only */
            }
            assert_int_equal(many == 2 ? CALYX_DAMAGED : health(f),
                             CALYX_DAMAGED);
            assert_ok(calyx_close(f, NULL));

            f = map(path, CALYX_READ);
            calyx_error why;
            assert_int_equal(calyx_verify(f, &why), CALYX_DAMAGED);
            assert_int_equal(f->lent->damaged, 1);
            assert_int_equal(f->lent->damage_at,
                             image_of(f)->d.layout.body_at[0] +
                                 4 * RANGE_BYTES);
            calyx_free(f);
        }
}

static void a_batch_stops_at_the_first_key_in_damage(void **state) {
    (void)state;
    calyx_free(save_numbers(of_kind("line")));
    damage(4);
    calyx_filter *f = map(path, CALYX_WRITE);
    uint64_t numbers[KEYS];
    bool fresh[KEYS];
    size_t first = 0, done = 0;
    for (size_t i = 0; i < KEYS; i++) numbers[i] = KEYS + i;
    while (!touches(f, numbers[first], 4)) first++;
    assert_int_equal(calyx_add_many_u64(f, numbers, KEYS, fresh, &done),
                     CALYX_DAMAGED);
    assert_int_equal(done, first);
    assert_int_equal(info_of(f).items, KEYS + first);
    calyx_free(f);
}

static uint64_t marks_in_file(void) {
    calyx_filter *f = map(path, CALYX_READ);
    uint64_t n = 0;
    for (uint64_t i = 0; i < number_of_ranges(image_of(f)); i++)
        n += load64(entry_of(image_of(f), i)) == UNSEALED;
    calyx_free(f);
    return n;
}

/* A filter of 1000 ranges; the work is counted by what was marked. */
static void marking_is_for_what_is_added_and_takes_few_syncs(void **state) {
    (void)state;
    calyx_free(save_numbers(
        (calyx_options){.bits = UINT64_C(1000) << 19, .capacity = 1000000}));
    calyx_filter *f = map(path, CALYX_WRITE);
    assert_int_equal(marks_in_file(), 0);
    uint64_t last = 0, syncs = 0;
    for (uint64_t i = KEYS; i < KEYS + 10000; i++) {
        assert_ok(calyx_add_u64(f, i, NULL));
        const uint64_t marked = image_of(f)->marked;
        if (marked != last) syncs++;
        if (i == KEYS) assert_int_equal(marked, 1);
        if (i == KEYS + 9) assert_in_range(marked, 9, 10);
        assert_true(marked <= 17 * (i - KEYS + 1));
        last = marked;
    }
    assert_int_equal(last, 1000);
    assert_true(syncs <= 64 + 1000 / 16);
    assert_int_equal(marks_in_file(), 1000);
    assert_ok(calyx_close(f, NULL));
    assert_int_equal(marks_in_file(), 0);
    f = map_as(CALYX_READ, CALYX_VERIFY_WHOLE);
    for (uint64_t i = 0; i < KEYS + 10000; i++)
        assert_true(calyx_has_u64(f, i));
    calyx_free(f);
}

static void what_is_merged_into_a_file_is_marked_and_sealed(void **state) {
    (void)state;
    EACH_KIND(kind) {
        if (!is_bits_alone(*kind)) continue;
        calyx_free(save_numbers(of_kind(*kind)));
        calyx_filter *more = make_filter(of_kind(*kind));
        add_numbers(more, KEYS, ASKED);
        calyx_filter *f = map(path, CALYX_WRITE);
        assert_ok(calyx_merge(f, more, NULL));
        assert_true(marks_in_file() > 0);
        assert_ok(calyx_close(f, NULL));
        f = map_as(CALYX_READ, CALYX_VERIFY_WHOLE);
        assert_has_numbers(f, 0, ASKED);
        assert_ok(calyx_verify(f, NULL));
        calyx_free(f);
        damage(1);
        f = map(path, CALYX_WRITE);
        assert_int_equal(calyx_merge(f, more, NULL), CALYX_DAMAGED);
        calyx_free(f);
        calyx_free(more);
    }
}

/* ---- Sudden death -------------------------------------------------------- */

/* Add some numbers in a process that dies: after a sync of the first, if any.
 */
static void add_and_die(uint64_t from, uint64_t synced, uint64_t to) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        calyx_filter *f = NULL;
        if (calyx_map(path, CALYX_WRITE, NULL, &f, NULL) != CALYX_OK) _exit(1);
        for (uint64_t i = from; i < to; i++) {
            if (i == synced && calyx_sync(f, NULL) != CALYX_OK) _exit(2);
            const calyx_status status = calyx_add_u64(f, i, NULL);
            if (status != CALYX_OK) _exit(3);
        }
        kill(getpid(), SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void what_a_dead_writer_did_not_touch_is_still_protected(void **state) {
    (void)state;
    EACH_KIND(kind) {
        if (!is_bits_alone(*kind)) continue;
        if (strcmp(*kind, "flat") == 0) continue; /* a key touches them all */
        calyx_free(save_numbers(of_kind(*kind)));
        add_and_die(KEYS, 0, KEYS + 1);
        calyx_filter *f = map(path, CALYX_READ), *g = NULL;
        assert_int_equal(calyx_verify(f, NULL), CALYX_UNSEALED);
        assert_has_numbers(f, 0, KEYS + 1);
        assert_ok(health(f));
        uint64_t range = 0;
        while (touches(f, KEYS, range)) range++;
        calyx_free(f);
        assert_in_range(marks_in_file(), 1, 2);

        damage(range);
        f = map(path, CALYX_READ);
        assert_int_equal(calyx_verify(f, NULL), CALYX_DAMAGED);
        assert_has_numbers(f, 0, KEYS + 1);
        assert_int_equal(health(f), CALYX_DAMAGED);
        calyx_free(f);
        assert_int_equal(calyx_load(path, NULL, &g, NULL), CALYX_DAMAGED);
        f = map(path, CALYX_WRITE); /* nor does the next writer sign it */
        assert_ok(calyx_close(f, NULL));
        assert_int_equal(calyx_load(path, NULL, &g, NULL), CALYX_DAMAGED);
    }
}

static void assert_about(uint64_t is, uint64_t wanted) {
    if (is < wanted - wanted / 50 || is > wanted + wanted / 50)
        fail_msg("%llu is not about %llu", (unsigned long long)is,
                 (unsigned long long)wanted);
}

/* As encoded in a head, which has it of the newest part, too. */
static uint64_t items_in_head(const calyx_filter *f) {
    const size_t size = calyx_head_size(f);
    void *const head = malloc(size);
    calyx_filter *made = NULL;
    assert_ok(calyx_encode_head(f, head, size, NULL));
    assert_ok(calyx_decode_head(head, size, NULL, &made, NULL));
    calyx_info info;
    calyx_info_of(made, &info);
    calyx_free(made);
    free(head);
    return info.items;
}

/* A reader that has not looked at its number of keys before it is written. */
static void the_number_of_keys_is_written_as_it_survived(void **state) {
    (void)state;
    enum { MORE = 30000 };
    EACH_KIND(kind) {
        if (!is_bits_alone(*kind)) continue;
        calyx_free(save_numbers(of_kind(*kind)));
        add_and_die(KEYS, 0, KEYS + MORE);
        calyx_filter *f = map(path, CALYX_READ), *made = NULL;
        assert_ok(calyx_save(f, other_path, NULL));
        calyx_free(f);
        assert_ok(calyx_load(other_path, NULL, &made, NULL));
        assert_about(info_of(made).items, KEYS + MORE);
        calyx_free(made);

        f = map(path, CALYX_READ);
        const size_t size = (size_t)calyx_encoded_size(f);
        void *const bytes = malloc(size);
        assert_ok(calyx_encode(f, bytes, size, NULL));
        calyx_free(f);
        assert_ok(calyx_decode(bytes, size, NULL, &made, NULL));
        assert_about(info_of(made).items, KEYS + MORE);
        calyx_free(made);
        free(bytes);

        f = map(path, CALYX_READ);
        assert_about(items_in_head(f), KEYS + MORE);
        calyx_free(f);
    }
}

/* However it is opened; and the next writer goes on from there. */
static void the_number_of_keys_survives_sudden_death(void **state) {
    (void)state;
    enum { MORE = 30000 };
    EACH_KIND(kind) {
        if (!is_bits_alone(*kind)) continue;
        calyx_free(save_numbers(of_kind(*kind)));
        for (uint64_t n = KEYS, round = 0; round < 3; round++, n += MORE) {
            add_and_die(n, n + 100, n + MORE);
            calyx_filter *f = map(path, CALYX_READ);
            assert_about(info_of(f).items, n + MORE);
            calyx_filter *copy = NULL;
            assert_ok(calyx_copy(f, &copy, NULL));
            assert_about(info_of(copy).items, n + MORE);
            calyx_free(copy);
            calyx_free(f);
            assert_ok(calyx_load(path, NULL, &f, NULL));
            assert_about(info_of(f).items, n + MORE);
            calyx_free(f);
        }
        calyx_filter *f = map(path, CALYX_WRITE);
        calyx_info info;
        calyx_info_of(f, &info);
        assert_about(info.items, KEYS + 3 * MORE);
        assert_ok(calyx_close(f, NULL));
        f = map(path, CALYX_READ);
        calyx_info_of(f, &info);
        assert_about(info.items, KEYS + 3 * MORE);
        calyx_free(f);
    }
}

static void a_strict_filter_stays_strict_after_sudden_death(void **state) {
    (void)state;
    calyx_options want = {.capacity = 100000, .strict = true};
    calyx_free(save_numbers(want));
    add_and_die(KEYS, 0, 60000);
    add_and_die(60000, 0, 98000);
    calyx_filter *f = map(path, CALYX_WRITE);
    uint64_t i = 98000;
    while (i < 110000 && calyx_add_u64(f, i, NULL) == CALYX_OK) i++;
    assert_true(i > 99000 && i < 101500);
    calyx_free(f);
}

/* A count that is right is not made wrong by judging it anew. */
static void a_synced_number_of_keys_is_exact(void **state) {
    (void)state;
    EACH_KIND(kind) {
        if (!is_bits_alone(*kind)) continue;
        for (uint64_t n = 1; n < 30000; n *= 3) {
            calyx_filter *f = make_filter(of_kind(*kind));
            assert_ok(calyx_save(f, path, NULL));
            calyx_free(f);
            add_and_die(0, n - 1, n - 1 + 1);
            f = map(path, CALYX_READ);
            const uint64_t items = info_of(f).items;
            /* some seem to be there already */
            assert_true(items + 3 + n / 1000 >= n && items <= n);
            calyx_free(f);
        }
    }
}

/* ---- Two processes ------------------------------------------------------- */

static void a_reader_beside_a_writer_sees_no_damage(void **state) {
    (void)state;
    enum { ROUNDS = 40, EACH = 200 };
    calyx_free(save_numbers(
        (calyx_options){.bits = UINT64_C(4) << 19, .capacity = 200000}));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (uint64_t round = 0; round < ROUNDS; round++) {
            calyx_filter *f = NULL;
            if (calyx_map(path, CALYX_WRITE, NULL, &f, NULL) != CALYX_OK)
                _exit(1);
            for (uint64_t i = 0; i < EACH; i++)
                if (calyx_add_u64(f, KEYS + round * EACH + i, NULL) != CALYX_OK)
                    _exit(2);
            if (calyx_close(f, NULL) != CALYX_OK) _exit(3);
        }
        _exit(0);
    }
    int status, done = 0;
    uint64_t looks = 0;
    for (; !done; looks++) {
        done = waitpid(child, &status, WNOHANG);
        calyx_filter *f = map(path, CALYX_READ), *loaded = NULL;
        for (uint64_t i = looks % 7; i < KEYS; i += 7)
            assert_true(calyx_has_u64(f, i));
        assert_ok(health(f));
        const calyx_status verified = calyx_verify(f, NULL);
        assert_true(verified == CALYX_OK || verified == CALYX_UNSEALED);
        assert_ok(health(f));
        calyx_free(f);
        calyx_error why;
        if (calyx_load(path, NULL, &loaded, &why) != CALYX_OK)
            fail_msg("%s", why.text);
        calyx_free(loaded);
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    calyx_filter *f = map_as(CALYX_READ, CALYX_VERIFY_WHOLE);
    for (uint64_t i = 0; i < KEYS + ROUNDS * EACH; i++)
        assert_true(calyx_has_u64(f, i));
    assert_ok(calyx_verify(f, NULL));
    calyx_free(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(damage_makes_keys_there_and_no_others_say_yes),
        IN_FOLDER(a_lookup_compares_the_ranges_of_its_key_and_no_others),
        IN_FOLDER(once_all_is_compared_nothing_is_left_to_do),
        IN_FOLDER(a_filter_may_be_compared_whole_or_not_at_all),
        IN_FOLDER(nothing_is_made_of_a_damaged_filter),
        IN_FOLDER(a_sealed_file_has_no_marks),
        IN_FOLDER(damage_is_never_added_to_nor_signed),
        IN_FOLDER(a_batch_stops_at_the_first_key_in_damage),
        IN_FOLDER(marking_is_for_what_is_added_and_takes_few_syncs),
        IN_FOLDER(what_is_merged_into_a_file_is_marked_and_sealed),
        IN_FOLDER(what_a_dead_writer_did_not_touch_is_still_protected),
        IN_FOLDER(the_number_of_keys_survives_sudden_death),
        IN_FOLDER(the_number_of_keys_is_written_as_it_survived),
        IN_FOLDER(a_strict_filter_stays_strict_after_sudden_death),
        IN_FOLDER(a_synced_number_of_keys_is_exact),
        IN_FOLDER(a_reader_beside_a_writer_sees_no_damage),
    };
    return RUN_TESTS(tests);
}
