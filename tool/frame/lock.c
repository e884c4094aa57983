#include "frame/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double patience; /* seconds */

void parse_wait(const struct verb_option *o, const char *value) {
    patience = INFINITY;
    if (value && !time_from(value, &patience))
        fail("--%s: expected a time such as 10s, 5min or 1h, found '%s'",
             o->name, value);
}

/* The system has no flock with a time limit, and calyx_map locks by itself:
 * so the lock is tried again and again. */
void await_other_writer(const char *path) {
    static double since;
    if (since == 0) since = seconds_now();
    if (seconds_now() - since >= patience)
        fail_at(path, 0,
                "another process changes it now; try again when it is done, "
                "or wait for it: 'calyx add' and 'calyx remove' have --wait");
    const struct timespec moment = {.tv_nsec = 20000000};
    nanosleep(&moment, NULL);
}

static int held = -1;
static struct stat held_is;

static bool is_held(const struct stat *is) {
    return held >= 0 && is->st_dev == held_is.st_dev &&
           is->st_ino == held_is.st_ino;
}

bool is_named(const char *path, const struct stat *file) {
    struct stat is;
    if (stat(path, &is) == 0)
        return is.st_dev == file->st_dev && is.st_ino == file->st_ino;
    if (errno != ENOENT && errno != ENOTDIR) fail_os(path, "look at it");
    return false;
}

bool lock_holds(const char *path) {
    return held >= 0 && is_named(path, &held_is);
}

static void release(void) {
    if (held >= 0) close(held);
    held = -1;
}

bool try_lock(int fd, const char *path) {
    int status;
    do status = flock(fd, LOCK_EX | LOCK_NB);
    while (status != 0 && errno == EINTR);
    if (status != 0 && errno != EWOULDBLOCK) fail_os(path, "lock it");
    return status == 0;
}

bool lock_file(const char *path) {
    for (;;) {
        struct stat is;
        if (stat(path, &is) != 0) {
            if (errno == ENOENT) return false;
            fail_os(path, "look at it");
        }
        if (!S_ISREG(is.st_mode)) return false;
        if (is_held(&is)) return true;
        release();
        /* for writing if possible: else NFS gives no exclusive lock */
        int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 && errno != ENOENT)
            fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 && errno == ENOENT) continue;
        if (fd < 0 && errno == EACCES) return false;
        if (fd < 0) fail_os(path, "open it, to lock it");
        if (!try_lock(fd, path)) {
            close(fd);
            await_other_writer(path);
            continue;
        }
        held = fd;
        if (fstat(fd, &held_is) != 0) fail_os(path, "look at it");
        if (lock_holds(path)) return true;
        release(); /* it was replaced just now: look again */
    }
}
