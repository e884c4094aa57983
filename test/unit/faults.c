/*
 * Every call to the system that may fail while a file is written fails once,
 * and the caller learns of it. The calls stand in this program, before the
 * calls of the C library.
 */
#define _GNU_SOURCE /* syscall */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "store/ranges.h"
#include "support.h"
#include "support_files.h"

/* ---- Calls that fail ----------------------------------------------------- */

enum call { NO_CALL, CLOSE, FSYNC, MSYNC, FSTAT, CALLS };

static struct {
    enum call call;
    int at, error; /* which of these calls is to fail, from 1 on, and how */
    int seen;
} plan;

static void (*before_flock)(void);

static bool fails(enum call call) {
    if (plan.call != call || ++plan.seen != plan.at) return false;
    errno = plan.error;
    return true;
}

int close(int fd) {
    const int status = (int)syscall(SYS_close, fd); /* it is closed anyway */
    return fails(CLOSE) ? -1 : status;
}

int fsync(int fd) {
    return fails(FSYNC) ? -1 : (int)syscall(SYS_fsync, fd);
}

int msync(void *from, size_t size, int flags) {
    return fails(MSYNC) ? -1 : (int)syscall(SYS_msync, from, size, flags);
}

int fstat(int fd, struct stat *is) {
    return fails(FSTAT) ? -1 : fstatat(fd, "", is, AT_EMPTY_PATH);
}

int flock(int fd, int how) {
    if (before_flock) before_flock();
    before_flock = NULL;
    return (int)syscall(SYS_flock, fd, how);
}

static void expect(enum call call, int at, int error) {
    plan.call = call;
    plan.at = at;
    plan.error = error;
    plan.seen = 0;
}

/* ---- Files ----------------------------------------------------------------
 */

static void save(const char *name, const char *key) {
    calyx_filter *f = make_filter((calyx_options){0});
    add(f, key);
    assert_ok(calyx_save(f, name, NULL));
    calyx_free(f);
}

/* ---- The tests ----------------------------------------------------------- */

static const int errors[] = {EIO, ENOSPC, EDQUOT};
enum { ERRORS = sizeof errors / sizeof errors[0] };

/* Let the calls fail one by one, until there are no more of them. */
static void closing_reports_every_call_that_failed(void **state) {
    (void)state;
    for (enum call call = CLOSE; call < CALLS; call++)
        for (size_t i = 0; i < ERRORS; i++) {
            int at = 0;
            do {
                save(path, "rose");
                calyx_filter *f = map(path, CALYX_WRITE);
                add(f, "iris");
                calyx_error why = {0};
                expect(call, ++at, errors[i]);
                const calyx_status status = calyx_close(f, &why);
                const bool failed = plan.seen >= at;
                expect(NO_CALL, 0, 0);
                assert_int_equal(status, failed ? CALYX_IO : CALYX_OK);
                if (failed) assert_int_equal(why.os_code, errors[i]);
                if (failed) assert_non_null(strstr(why.text, path));
                if (!failed) break;
                /* What is there is sound in any case; the next writer repairs
                 * it. */
                assert_in_range(verify_file(path) - CALYX_UNSEALED, 0, 9);
                assert_ok(calyx_close(map(path, CALYX_WRITE), NULL));
                assert_ok(verify_file(path));
            } while (at < 100);
            assert_in_range(at, 2, 10);
        }
}

static void syncing_reports_every_call_that_failed(void **state) {
    (void)state;
    for (enum call call = FSYNC; call < CALLS; call++) {
        int at = 0;
        do {
            save(path, "rose");
            calyx_filter *f = map(path, CALYX_WRITE);
            add(f, "iris");
            calyx_error why = {0};
            expect(call, ++at, EIO);
            const calyx_status status = calyx_sync(f, &why);
            const bool failed = plan.seen >= at;
            expect(NO_CALL, 0, 0);
            assert_int_equal(status, failed ? CALYX_IO : CALYX_OK);
            if (failed) assert_int_equal(why.os_code, EIO);
            /* and so says the end */
            assert_int_equal(calyx_close(f, NULL), status);
            if (!failed) break;
        } while (at < 100);
        assert_in_range(at, 2, 10);
    }
}

/* Without its mark on the disk, no bit may be set. */
static void a_mark_that_cannot_be_synced_stops_the_key(void **state) {
    (void)state;
    save(path, "rose");
    calyx_filter *f = map(path, CALYX_WRITE);
    const uint64_t set = count_bits(f->kind, f->newest);
    expect(MSYNC, 1, EIO);
    assert_int_equal(calyx_add(f, "iris", 4, NULL), CALYX_IO);
    expect(NO_CALL, 0, 0);
    assert_int_equal(calyx_add(f, "iris", 4, NULL), CALYX_IO); /* nor later */
    assert_int_equal(count_bits(f->kind, f->newest), set);
    calyx_error why = {0};
    assert_int_equal(calyx_close(f, &why), CALYX_IO);
    assert_int_equal(why.os_code, EIO);
}

static void an_interrupted_sync_is_tried_again(void **state) {
    (void)state;
    for (enum call call = FSYNC; call <= MSYNC; call++)
        for (int at = 1; at < 4; at++) {
            save(path, "rose");
            calyx_filter *f = map(path, CALYX_WRITE);
            expect(call, at, EINTR);
            add(f, "iris");
            assert_ok(calyx_sync(f, NULL));
            assert_ok(calyx_close(f, NULL));
            assert_true(plan.seen > at);
            expect(NO_CALL, 0, 0);
            assert_ok(verify_file(path));
        }
}

static void saving_reports_every_call_that_failed(void **state) {
    (void)state;
    calyx_filter *f = make_filter((calyx_options){0});
    for (enum call call = CLOSE; call <= FSYNC; call++) {
        unlink(path);
        calyx_error why = {0};
        expect(call, 1, EIO);
        assert_int_equal(calyx_save(f, path, &why), CALYX_IO);
        expect(NO_CALL, 0, 0);
        assert_int_equal(why.os_code, EIO);
        assert_int_equal(access(path, F_OK), -1);
    }
    calyx_free(f);
}

static void replace(void) {
    assert_int_equal(rename(other_path, path), 0);
}

/* Another file takes the name when this one is open and not locked yet. */
static void a_file_replaced_before_it_is_locked_is_not_written(void **state) {
    (void)state;
    save(path, "rose");
    save(other_path, "iris");
    before_flock = replace;
    calyx_filter *f = NULL;
    calyx_error why = {0};
    assert_int_equal(calyx_map(path, CALYX_WRITE, NULL, &f, &why), CALYX_IO);
    assert_null(f);
    assert_int_equal(why.os_code, ESTALE);
    assert_non_null(strstr(why.text, path));
    f = map(path, CALYX_WRITE);
    assert_true(has(f, "iris") && !has(f, "rose"));
    assert_ok(calyx_close(f, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(closing_reports_every_call_that_failed),
        IN_FOLDER(syncing_reports_every_call_that_failed),
        IN_FOLDER(a_mark_that_cannot_be_synced_stops_the_key),
        IN_FOLDER(an_interrupted_sync_is_tried_again),
        IN_FOLDER(saving_reports_every_call_that_failed),
        IN_FOLDER(a_file_replaced_before_it_is_locked_is_not_written),
    };
    return RUN_TESTS(tests);
}
