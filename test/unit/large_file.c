/*
 * Files over 2 and over 4 GiB, and bodies whose bits number around 2^31, 2^32
 * and 2^33: where a size or a place in too narrow an integer would
 * show. This takes gigabytes and seconds, so it is done once, with the scalar
 * kernel, and not under a sanitizer; and only where there is room.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/bits.h"
#include "store/ranges.h"
#include "support.h"
#include "support_files.h"

#define GIB (UINT64_C(1) << 30)

/* ---- Is there room? ------------------------------------------------------ */

static uint64_t free_memory(void) {
    FILE *file = fopen("/proc/meminfo", "r");
    if (!file) return 0;
    char line[200];
    unsigned long long kilobytes = 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu", &kilobytes) == 1) break;
    fclose(file);
    return (uint64_t)kilobytes << 10;
}

static uint64_t free_bytes(const char *where) {
    struct statvfs is;
    return statvfs(where, &is) == 0 ? (uint64_t)is.f_bavail * is.f_frsize : 0;
}

/* A name for a file in that folder; or the test is skipped, and says why. */
static void need(const char *where, uint64_t bytes, uint64_t memory) {
    snprintf(path, sizeof path, "%s/calyx_large_%ld", where, (long)getpid());
    if (free_bytes(where) >= bytes && free_memory() >= memory) return;
    print_message("SKIPPED: it takes %llu MiB in %s and %llu MiB of memory\n",
                  (unsigned long long)(bytes >> 20), where,
                  (unsigned long long)(memory >> 20));
    skip();
}

static int remove_file(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

/* ---- Large filters ------------------------------------------------------- */

/* Few, since each key touches a page or more, which is then there. */
enum { KEYS = 50 };

static void add_keys(calyx_filter *f) {
    add_numbers(f, 0, KEYS);
}

/* All that were added; and, in so large a filter, hardly one that was not. */
static void assert_answers(const calyx_filter *f) {
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < KEYS; i++) {
        assert_true(calyx_has_u64(f, i));
        wrong += calyx_has_u64(f, KEYS + i);
    }
    assert_true(wrong < 3);
}

/* ---- In place, in a file that is mostly a hole --------------------------- */

/* An empty filter, of which header and end are written, and the checksums of
 * the first ranges, which a writer marks, and of those that have bits of the
 * keys below, absent ones too. The others are never read. Returns its bits. */
static uint64_t make_sparse(const char *kind, uint64_t bits) {
    enum { FIRST = 2048 };
    calyx_filter *f = make_filter((calyx_options){
        .kind = kind, .bits = bits, .probes = 8, .memory = &sparse_memory});
    const uint64_t made = f->newest->shape.blocks * f->kind->block_bits;
    struct file_layout layout;
    const int fd = save_sparse(f, path, &layout);
    for (uint64_t i = 0; i < FIRST; i++) write_sum(fd, &layout, i);
    for (uint64_t key = 0; key < 2 * KEYS; key++) {
        uint8_t bytes[8];
        store64(bytes, key);
        write_sums(fd, &layout, f, calyx_hash(f, bytes, sizeof bytes));
    }
    calyx_free(f);
    close(fd);
    return made;
}

/* End a writer without sealing, which would read the hole from end to end. */
static void leave_open(calyx_filter *f) {
    image_of(f)->failed = true;
    calyx_free(f);
}

static void assert_works_in_place(void) {
    calyx_filter *f = map(path, CALYX_WRITE);
    add_keys(f);
    assert_ok(calyx_sync(f, NULL));
    leave_open(f);
    f = map(path, CALYX_READ);
    assert_answers(f);
    calyx_free(f);
}

/* A hole takes no room, in memory neither; and there, no sync waits for a
 * disk. */
static const char *place_for_holes(void) {
    return temporary_or(free_bytes("/dev/shm") >= GIB ? "/dev/shm"
                                                      : "/var/tmp");
}

static void bits_may_number_around_powers_of_two(void **state) {
    (void)state;
    need(place_for_holes(), GIB, 2 * GIB);
    for (int power = 31; power <= 33; power++)
        for (int more = -1; more <= 1; more++) {
            const uint64_t bits =
                (UINT64_C(1) << power) + (uint64_t)(int64_t)more;
            const uint64_t made = make_sparse("flat", bits);
            assert_true(made <= bits && made > bits - (1 << 20));
            assert_works_in_place();
        }
    static const char *const kinds[] = {"line", "line2", "split"};
    for (int i = 0; i < 3; i++) {
        make_sparse(kinds[i], (UINT64_C(1) << 33) + 512);
        assert_works_in_place();
    }
}

static void a_file_may_be_far_larger_than_memory(void **state) {
    (void)state;
    need(place_for_holes(), GIB, 2 * GIB);
    make_sparse("line", 8 * 22 * GIB / 10);
    assert_works_in_place();
    make_sparse("line", 8 * 43 * GIB / 10);
    assert_works_in_place();
    make_sparse("flat", 8 * 100 * GIB);
    assert_works_in_place();
}

/* ---- In full ------------------------------------------------------------- */

/* A save writes every zero, past 2 GiB and past 4. A disk would take a minute
 * for it, so it goes to one in memory, where it takes 12 s: so only if
 * CALYX_LONG is set. */
static void a_file_over_4_gib_is_saved_and_loaded(void **state) {
    (void)state;
    if (!getenv("CALYX_LONG")) {
        print_message("SKIPPED: only with CALYX_LONG\n");
        skip();
    }
    need("/dev/shm", 5 * GIB, 12 * GIB);
    calyx_filter *f = make_filter((calyx_options){.bits = 8 * 41 * GIB / 10});
    add_keys(f);
    calyx_error why;
    if (calyx_save(f, path, &why) != CALYX_OK) fail_msg("%s", why.text);
    calyx_free(f);
    struct stat is;
    assert_int_equal(stat(path, &is), 0);
    assert_true((uint64_t)is.st_size > 4 * GIB);

    if (calyx_load(path, NULL, &f, &why) != CALYX_OK) fail_msg("%s", why.text);
    assert_answers(f);
    calyx_free(f);
}

int main(void) {
    const char *kernel = getenv("CALYX_KERNEL");
    if (SANITIZED || (kernel && strcmp(kernel, "scalar") != 0)) {
        print_message("large files are tested with the scalar kernel, and not "
                      "under a sanitizer\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(bits_may_number_around_powers_of_two,
                                  remove_file),
        cmocka_unit_test_teardown(a_file_may_be_far_larger_than_memory,
                                  remove_file),
        cmocka_unit_test_teardown(a_file_over_4_gib_is_saved_and_loaded,
                                  remove_file),
    };
    return RUN_TESTS(tests);
}
