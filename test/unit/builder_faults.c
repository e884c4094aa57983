/*
 * Every call to the system that a builder's temporary files need fails once, or
 * from then on: the caller learns of it, and no key is lost. The calls stand in
 * this program, before the calls of the C library.
 */
#define _GNU_SOURCE /* syscall, O_TMPFILE */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "build/hash_spool.h"
#include "support.h"
#include "support_files.h"

/* ---- Calls that fail ----------------------------------------------------- */

enum call { NO_CALL, OPEN, PWRITE, PREAD, FALLOCATE, CALLS };

static struct {
    enum call call;
    int at, error; /* which of these calls is to fail, from 1 on, and how */
    bool for_good; /* and all after it */
    int seen;
} plan;

static bool in_parts; /* calls move less than was requested */

static bool fails(enum call call) {
    if (plan.call != call) return false;
    plan.seen++;
    if (plan.seen != plan.at && !(plan.for_good && plan.seen > plan.at))
        return false;
    errno = plan.error;
    return true;
}

int open(const char *name, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const int mode =
        flags & O_TMPFILE || flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    if ((flags & O_TMPFILE) == O_TMPFILE && fails(OPEN)) return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
    if (fails(PWRITE)) return -1;
    if (in_parts && size > 1) size = (size + 1) / 2;
    return syscall(SYS_pwrite64, fd, bytes, size, at);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t at) {
    if (fails(PREAD)) return -1;
    if (in_parts && size > 1) size = (size + 1) / 2;
    return syscall(SYS_pread64, fd, bytes, size, at);
}

int posix_fallocate(int fd, off_t at, off_t size) {
    if (fails(FALLOCATE)) return plan.error;
    return syscall(SYS_fallocate, fd, 0, at, size) ? errno : 0;
}

static void expect(enum call call, int at, int error, bool for_good) {
    plan.call = call;
    plan.at = at;
    plan.error = error;
    plan.for_good = for_good;
    plan.seen = 0;
}

/* ---- A build ------------------------------------------------------------- */

/* More hashes than fit into memory, and over 1 MiB of bits. */
enum { KEYS = 400000, MEMORY = 1 << 20 };

static uint64_t numbers[KEYS];

/* Kinds are built in two ways; one kind of each is enough. */
#define EACH_WAY(kind)                                           \
    for (const char *const *kind = calyx_kinds(); *kind; kind++) \
        if (kind == calyx_kinds() || calyx_kind_can(*kind) & CALYX_CAN_STATIC)

static calyx_builder *make_builder(const char *kind) {
    calyx_builder *b = NULL;
    calyx_builder_options want = {
        .filter = {.kind = kind}, .folder = folder, .memory_bytes = MEMORY};
    if (calyx_kind_can(kind) & CALYX_CAN_STATIC)
        want.filter.fpr = 1e-9;
    else
        want.filter.bits = 1 << 24;
    for (uint64_t i = 0; i < KEYS; i++) numbers[i] = i;
    assert_ok(calyx_builder_new(&want, &b, NULL));
    return b;
}

static calyx_status build(calyx_builder *b, calyx_error *why) {
    const calyx_status status =
        calyx_builder_add_many_u64(b, numbers, KEYS, why);
    return status == CALYX_OK ? calyx_builder_save(b, path, why) : status;
}

static void assert_saved(void) {
    calyx_filter *const f = load(path);
    assert_has_numbers(f, 0, KEYS);
    calyx_free(f);
    unlink(path);
}

/* ---- The tests ----------------------------------------------------------- */

static void every_call_that_fails_is_reported_and_no_key_is_lost(void **state) {
    (void)state;
    static const char *const words[CALLS] = {[OPEN] = "make a temporary file",
                                             [PWRITE] = "write 8 bytes",
                                             [PREAD] = "read hashes back",
                                             [FALLOCATE] = "the bits"};
    EACH_WAY(kind)
    for (enum call call = OPEN; call < CALLS; call++) {
        int at = 0;
        for (bool failed = true; failed && at < 6;) {
            /* Without O_TMPFILE a file gets a name, and loses it at once. */
            const bool recovers = call == OPEN;
            calyx_builder *const b = make_builder(*kind);
            calyx_error why = {0};
            expect(call, ++at, call == PREAD ? EIO : ENOSPC, true);
            const calyx_status status = build(b, &why);
            failed = plan.seen >= at;
            expect(NO_CALL, 0, 0, false);
            if (failed && !recovers) {
                assert_int_equal(status, CALYX_IO);
                assert_int_equal(why.os_code, call == PREAD ? EIO : ENOSPC);
                assert_non_null(strstr(why.text, folder));
                assert_non_null(strstr(why.text, words[call]));
                assert_int_equal(access(path, F_OK), -1);
                assert_ok(build(b, &why)); /* there is room again */
            } else {
                assert_ok(status);
            }
            assert_saved();
            calyx_builder_free(b);
        }
        assert_true(at > 1);
    }
}

static void interrupted_and_partial_calls_go_on(void **state) {
    (void)state;
    EACH_WAY(kind)
    for (enum call call = PWRITE; call < CALLS; call++)
        for (int at = 1; at < 4; at++) {
            calyx_builder *const b = make_builder(*kind);
            expect(call, at, EINTR, false);
            in_parts = call < FALLOCATE;
            assert_ok(build(b, NULL));
            in_parts = false;
            assert_true(plan.seen >= at || call == FALLOCATE);
            expect(NO_CALL, 0, 0, false);
            assert_saved();
            calyx_builder_free(b);
        }
}

/* The file is not longer than what was written: reading beyond its end. */
static void a_temporary_file_that_lost_its_end_is_an_error(void **state) {
    (void)state;
    calyx_builder *const b = make_builder("line");
    calyx_filter *f = NULL;
    calyx_error why = {0};
    assert_ok(calyx_builder_add_many_u64(b, numbers, KEYS, NULL));
    assert_ok(calyx_builder_finish(b, &f, NULL));
    calyx_free(f);
    f = NULL;
    for (int fd = 3; fd < 64; fd++) {
        struct stat is;
        if (fstat(fd, &is) == 0 && S_ISREG(is.st_mode) && is.st_nlink == 0)
            assert_int_equal(ftruncate(fd, 5000), 0);
    }
    assert_int_equal(calyx_builder_finish(b, &f, &why), CALYX_IO);
    assert_non_null(strstr(why.text, "read hashes back"));
    assert_null(f);
    calyx_builder_free(b);
}

/* A merge that fails half-way has moved some hashes: none is in both. */
static void a_merge_that_fails_leaves_each_hash_in_one_spool(void **state) {
    (void)state;
    enum { N = SPOOL_LEAST - 100, ALL = 2 * N };
    static uint64_t hashes[ALL];
    for (size_t i = 0; i < ALL; i++) hashes[i] = i;
    struct hash_spool a, b;
    spool_init(&a, &memory_default, SPOOL_LEAST, folder, 1);
    spool_init(&b, &memory_default, SPOOL_LEAST, folder, 1);
    assert_ok(spool_add(&a, hashes, N, NULL));
    assert_ok(spool_add(&b, hashes + N, N, NULL));
    expect(PWRITE, 1, ENOSPC, true);
    assert_int_equal(spool_merge(&a, &b, NULL), CALYX_IO);
    expect(NO_CALL, 0, 0, false);
    assert_int_equal(a.added, SPOOL_LEAST);
    assert_int_equal(a.added + b.added, ALL);
    assert_int_equal(b.used, b.added);
    assert_int_equal(b.hashes[0], SPOOL_LEAST);
    assert_ok(spool_merge(&a, &b, NULL));
    assert_int_equal(a.added, ALL);
    assert_int_equal(b.added, 0);
    spool_end(&a);
    spool_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_call_that_fails_is_reported_and_no_key_is_lost),
        IN_FOLDER(interrupted_and_partial_calls_go_on),
        IN_FOLDER(a_temporary_file_that_lost_its_end_is_an_error),
        IN_FOLDER(a_merge_that_fails_leaves_each_hash_in_one_spool),
    };
    return RUN_TESTS(tests);
}
