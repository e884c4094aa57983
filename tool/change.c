#include "change.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source.h"

static const char *path;
static calyx_filter *filter;
static bool in_place;

static void save(void) {
    begin_change();
    if (!in_place) filter_save(filter, path, true);
    calyx_free(filter); /* seals what was changed in place */
    filter = NULL;
    end_change();
}

/* As calyx_map locks what it maps: two copies would lose each other's keys. */
static void lock_file(void) {
    const int fd =
        open(path, O_RDONLY | O_CLOEXEC); /* until the process ends */
    if (fd < 0) fail_os(path, "open it");
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        fail_os(path, errno == EWOULDBLOCK
                          ? "change it, as another process does so now"
                          : "lock it");
    struct stat ours, named;
    if (fstat(fd, &ours) != 0 || stat(path, &named) != 0)
        fail_os(path, "look at it");
    if (ours.st_dev != named.st_dev || ours.st_ino != named.st_ino)
        fail_at(path, 0, "it was replaced by another process just now");
}

calyx_filter *change_load(const char *name) {
    path = name;
    if (strcmp(path, "-") == 0)
        fail("standard input cannot be changed; name a file");
    lock_file();
    filter = filter_load(path, false);
    return filter;
}

static bool is_packed(void) {
    struct source *const source = source_open(path);
    const bool packed = !source_is_plain_file(source);
    if (!packed) source_expect_filter(source);
    source_close(source);
    return packed;
}

/* A filter grows only in memory. */
static bool grows(const calyx_filter *f) {
    calyx_info info;
    calyx_describe(f, &info);
    return info.growth > 0;
}

static bool map(void) {
    const calyx_opening how = {.key = secret_key()};
    calyx_error why;
    reserve_blocks(path);
    const calyx_status status =
        calyx_map(path, CALYX_WRITE, &how, &filter, &why);
    if (status == CALYX_CANNOT) return false; /* it counts */
    if (status != CALYX_OK) fail_with(&why);
    if (!grows(filter)) return true;
    calyx_free(filter);
    return false;
}

calyx_filter *change_open(const char *name) {
    path = name;
    in_place = strcmp(path, "-") != 0 && !is_packed() && map();
    if (!in_place) change_load(path);
    at_early_end = save;
    return filter;
}

void change_close(void) {
    begin_change();
    at_early_end = NULL;
    save();
    end_change();
}
