#include "files/change.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/filter_file.h"
#include "frame/draft.h"
#include "frame/lock.h"
#include "input/source.h"

static const char *path;
static calyx_filter *filter;
static bool in_place;
static struct stat opened; /* in place: the file that is mapped */

/* ---- Saving ------------------------------------------------------------- */

static _Noreturn void fail_replaced(void) {
    fail_at(path, 0,
            "another process replaced or removed the file while it was being "
            "changed: what this process changed is not in the file of that "
            "name; do it again");
}

static bool is_still_named(void) {
    return in_place ? is_named(path, &opened) : lock_holds(path);
}

static void close_in_place(void) {
    calyx_error why;
    calyx_filter *const f = filter;
    filter = NULL;
    const calyx_status status = calyx_close(f, &why);
    if (status == CALYX_IO && why.os_code == ESTALE) fail_replaced();
    if (status != CALYX_OK) fail_with(&why);
}

static void save_whole(void) {
    if (!is_still_named()) fail_replaced();
    filter_save(filter, path, true);
    calyx_free(filter);
    filter = NULL;
}

void change_close(void) {
    begin_change();
    at_early_end = NULL; /* so that an error in it does not recurse */
    (in_place ? close_in_place : save_whole)();
    end_change();
}

void change_check(void) {
    filter_expect_health(filter, path);
    if (is_still_named()) return;
    change_close();
    fail_replaced(); /* even if it has the name again by now */
}

/* ---- Making it, if there is none ---------------------------------------- */

static bool is_missing(void) {
    struct stat is;
    return stat(path, &is) != 0 && errno == ENOENT;
}

/* A name in the same folder with the same ending, which says how the file is
 * compressed. */
static char *name_beside(void) {
    const char *const slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + 1 : 0;
    char *const name = alloc_memory(strlen(path) + 40);
    sprintf(name, "%.*s.%ld.new.%s", folder, path, (long)getpid(),
            path + folder);
    return name;
}

/* Of several processes that do this at once, the first gives the file its name,
 * and all go on with that file: so no key is added to another. */
static void create(calyx_filter *f) {
    char *const temporary = name_beside();
    begin_change();
    remember_file(temporary);
    filter_save(f, temporary, false);
    calyx_free(f);
    if (link(temporary, path) != 0 && (errno != EEXIST || is_missing()))
        fail_os(path, "make it");
    unlink(temporary);
    forget_file(temporary);
    sync_folder(path);
    end_change();
    free(temporary);
}

/* ---- Opening ------------------------------------------------------------ */

static bool is_packed(void) {
    struct byte_source *const source = source_open(path);
    const bool packed = !source_is_plain_file(source);
    if (!packed) source_expect_filter(source);
    source_close(source);
    return packed;
}

/* A filter grows only in memory. */
static bool grows(const calyx_filter *f) {
    calyx_info info;
    calyx_info_of(f, &info);
    return info.growth > 0;
}

/* Map it, if it can be changed in place. */
static bool map(void) {
    const calyx_open_options how = {.key = secret_key()};
    calyx_error why;
    for (;;) {
        if (is_packed()) return false;
        reserve_blocks(path);
        const calyx_status status =
            calyx_map(path, CALYX_WRITE, &how, &filter, &why);
        if (status == CALYX_OK) break;
        if (status == CALYX_CANNOT) return false; /* it counts, say */
        if (status != CALYX_IO) fail_with(&why);
        if (why.os_code == EWOULDBLOCK)
            await_other_writer(path);
        else if (why.os_code != ESTALE) /* replaced just now: look again */
            fail_with(&why);
    }
    if (!grows(filter)) return true;
    calyx_free(filter);
    return false;
}

static void expect_file(calyx_filter *(*make)(void), const char *hint) {
    if (strcmp(path, "-") == 0)
        fail("standard input cannot be changed; name a file");
    if (!is_missing()) return;
    if (is_http_url(path)) fail_os(path, "open it");
    if (!make) fail_at(path, 0, "there is no such file%s", hint);
    create(make());
}

static void load(void) {
    const bool locked = lock_file(path);
    filter = filter_load(path, false);
    if (!locked) fail_at(path, 0, "expected a filter in a regular file");
}

calyx_filter *change_load(const char *name) {
    path = name;
    expect_file(NULL, "");
    load();
    return filter;
}

calyx_filter *change_open(const char *name, calyx_filter *(*make)(void)) {
    path = name;
    expect_file(make, "; 'calyx add --create' makes it");
    in_place = map();
    if (!in_place) load();
    filter_expect_changeable(filter, path, "added to",
                             "put new keys into a second filter and query "
                             "both: calyx check -f OLD -f NEW");
    if (in_place && stat(path, &opened) != 0) fail_os(path, "look at it");
    at_early_end = change_close;
    return filter;
}

bool change_is_in_place(void) {
    return in_place;
}

/* Without reading the whole file. Beyond its capacity many keys are false
 * positives, which `items` leaves out, so the rate comes from the bits. */
static void outline_in_place(calyx_info *info) {
    calyx_info_of(filter, info);
    if (info->items > info->capacity) {
        calyx_estimate(filter, info);
        return;
    }
    const calyx_options same = {.kind = info->kind,
                                .capacity = info->capacity,
                                .bits = info->bits,
                                .probes = info->probes};
    calyx_rate_at(&same, info->items, &info->fpr_now, NULL);
}

calyx_info change_outline(void) {
    calyx_info info;
    begin_change(); /* an early end closes the filter */
    if (in_place)
        outline_in_place(&info);
    else
        calyx_describe(filter, &info);
    end_change();
    return info;
}
