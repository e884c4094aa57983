/*
 * Filters in files. Saving never changes the old file: the new one is written
 * without a name in the same folder (O_TMPFILE), synced, and renamed to the old
 * name in one step. A reader finds the old filter or the new one.
 *
 * A nameless file disappears with the process. A link cannot replace a file, so
 * if there is an old one, the new file gets a temporary name by link and then
 * the final one by rename; a kill in between leaves it, complete. Systems
 * without O_TMPFILE use the temporary name from the beginning.
 */
#include "base/compiler.h"
#if !CALYX_NO_FILES
#define _GNU_SOURCE /* O_TMPFILE; realpath, fsync, fchmod */
#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "store/encoding.h"

/* Say which file an error is about. */
calyx_status fail_in(calyx_error *why, const char *path, calyx_status status) {
    if (!why || status == CALYX_OK) return status;
    const calyx_error inner = *why;
    fail(why, status, "%.100s: %s", path, inner.text);
    why->os_code = inner.os_code;
    return status;
}

bool was_interrupted(int tries) {
    return errno == EINTR && tries < 1000;
}

/* fsync of macOS leaves the bytes in the cache of the drive. Network drives
 * have no F_FULLFSYNC. */
static int flush(int fd) {
#ifdef F_FULLFSYNC
    if (fcntl(fd, F_FULLFSYNC) == 0) return 0;
#endif
    return fsync(fd);
}

bool sync_file(int fd) {
    for (int tries = 0; flush(fd) != 0; tries++)
        if (!was_interrupted(tries)) return false;
    return true;
}

/* ---- Bytes of a file ----------------------------------------------------- */

/* One call moves at most 2 GiB, and may move less than requested. */
static const size_t MOST_AT_ONCE = (size_t)1 << 30;

static size_t at_most(size_t size) {
    return size < MOST_AT_ONCE ? size : MOST_AT_ONCE;
}

/* An open file, and the errno of the call that failed on it; 0 is the end of
 * the file. */
struct open_file {
    int fd, error;
};

static bool put_in_file(void *context, const void *bytes, size_t size) {
    struct open_file *file = context;
    for (const char *at = bytes; size > 0;) {
        const ssize_t n = write(file->fd, at, at_most(size));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            file->error = n < 0 ? errno : ENOSPC;
            return false;
        }
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool get_from_file(void *context, void *buffer, size_t size) {
    struct open_file *file = context;
    for (char *at = buffer; size > 0;) {
        const ssize_t n = read(file->fd, at, at_most(size));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            file->error = n < 0 ? errno : 0;
            return false;
        }
        at += n;
        size -= (size_t)n;
    }
    return true;
}

/* ---- Load ---------------------------------------------------------------- */

calyx_status open_regular(const char *path, int flags, int *fd, uint64_t *size,
                          calyx_error *why) {
    /* O_NONBLOCK: do not wait for the writer of a FIFO. */
    *fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0) return fail_os(why, path, "open it");
    struct stat is = {0};
    calyx_status status = CALYX_OK;
    if (fstat(*fd, &is) != 0)
        status = fail_os(why, path, "look at it");
    else if (!S_ISREG(is.st_mode))
        status = fail(why, CALYX_DAMAGED, "%.150s: not a regular file", path);
    else if (is.st_size == 0)
        status = fail(why, CALYX_DAMAGED,
                      "%.150s: not a calyx filter: it is empty", path);
    if (status != CALYX_OK) close(*fd);
    *size = (uint64_t)is.st_size;
    return status;
}

static calyx_status load_open(int fd, uint64_t size, const char *path,
                              const calyx_open_options *how, calyx_filter **out,
                              struct state *state, calyx_error *why) {
    struct open_file file = {fd, 0};
    const calyx_status status =
        read_filter(get_from_file, &file, size, how, out, state, why);
    if (status != CALYX_IO) return fail_in(why, path, status);
    if (file.error == 0)
        return fail(why, CALYX_DAMAGED,
                    "%.100s: damaged: it ends before its %llu bytes", path,
                    (unsigned long long)size);
    errno = file.error;
    return fail_os(why, path, "read it");
}

calyx_status calyx_load(const char *path, const calyx_open_options *how,
                        calyx_filter **out, calyx_error *why) {
    int fd;
    uint64_t size;
    calyx_status status = open_regular(path, O_RDONLY, &fd, &size, why);
    if (status != CALYX_OK) return status;
    /* A writer may seal the file while it is read: then the checksums are newer
     * than the bodies, and the generation has changed. Read again. */
    struct state state = {0};
    uint64_t last;
    int tries = 0;
    do {
        last = state.generation;
        status = load_open(fd, size, path, how, out, &state, why);
    } while (status == CALYX_DAMAGED && state.generation != last &&
             ++tries < 10 && lseek(fd, 0, SEEK_SET) == 0);
    close(fd);
    return status;
}

/* ---- Save ---------------------------------------------------------------- */

/* The new file, until it takes its name. */
struct new_file {
    char path[PATH_MAX];      /* of the file to replace, links followed */
    char temporary[PATH_MAX]; /* in the same folder; "": it has no name */
    int fd;
    bool replaces;   /* there is a file */
    struct stat old; /* which is this   */
};

/* Resolve the path. It need not exist; if it does, it must be a regular file.
 */
static calyx_status find_target(struct new_file *new, const char *path,
                                calyx_error *why) {
    new->replaces = stat(path, &new->old) == 0;
    if (!new->replaces) {
        if (errno != ENOENT) return fail_os(why, path, "look at it");
        if ((size_t)snprintf(new->path, sizeof new->path, "%s", path) <
            sizeof new->path)
            return CALYX_OK;
        errno = ENAMETOOLONG;
        return fail_os(why, path, "name it");
    }
    if (!S_ISREG(new->old.st_mode)) {
        return fail(why, CALYX_BAD_ARGUMENT,
                    "%.150s: there is something other than a file here", path);
    }
    if (!realpath(path, new->path)) return fail_os(why, path, "follow it");
    return CALYX_OK;
}

/* Length of the folder's name with its slash; 0 if there is none. */
static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static const char *folder_of(const struct new_file *new,
                             char folder[static PATH_MAX]) {
    const size_t length = folder_length(new->path);
    snprintf(folder, PATH_MAX, "%.*s", length ? (int)length : 1,
             length ? new->path : ".");
    return folder;
}

/* Try temporary names until `take` finds a free one. */
static bool take_name(struct new_file *new,
                      bool (*take)(struct new_file *new)) {
    const size_t folder = folder_length(new->path);
    for (unsigned try = 0; try < 1000; try++) {
        const int length = snprintf(
            new->temporary, sizeof new->temporary, "%.*s.%.200s.%ld.%u.new",
            (int)folder, new->path, new->path + folder, (long)getpid(), try);
        if (length < 0 || (size_t)length >= sizeof new->temporary) {
            errno = ENAMETOOLONG;
            break;
        }
        if (take(new)) return true;
        if (errno != EEXIST) break;
    }
    new->temporary[0] = '\0';
    return false;
}

/* A file that replaces another is private until it has its owner and group. The
 * system applies the umask. */
static mode_t first_mode(const struct new_file *new) {
    return new->replaces ? new->old.st_mode & 0700 : 0666;
}

static bool open_named(struct new_file *new) {
    new->fd = open(new->temporary,
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                   first_mode(new));
    return new->fd >= 0;
}

#ifdef O_TMPFILE
static const char *link_of(const struct new_file *new, char link[static 64]) {
    snprintf(link, 64, "/proc/self/fd/%d", new->fd);
    return link;
}

static bool open_nameless(struct new_file *new) {
    char folder[PATH_MAX], link[64];
    new->temporary[0] = '\0';
    new->fd = open(folder_of(new, folder), O_TMPFILE | O_WRONLY | O_CLOEXEC,
                   first_mode(new));
    if (new->fd < 0) return false;
    if (access(link_of(new, link), F_OK) == 0) return true;
    close(new->fd); /* no /proc, and so no way to name it */
    return false;
}

static bool link_to(const struct new_file *new, const char *path) {
    char link[64];
    return linkat(AT_FDCWD, link_of(new, link), AT_FDCWD, path,
                  AT_SYMLINK_FOLLOW) == 0;
}

static bool link_temporary(struct new_file *new) {
    return link_to(new, new->temporary);
}
#else
static bool open_nameless(struct new_file *new) {
    (void)new;
    return false;
}
static bool link_to(const struct new_file *new, const char *path) {
    (void)new, (void)path;
    return false;
}
static bool link_temporary(struct new_file *new) {
    (void)new;
    return false;
}
#endif

/* The new group gets no more than it had as one of "others". */
static mode_t without_group(mode_t mode) {
    return (mode & ~(mode_t)(S_ISUID | S_ISGID | 070)) |
           (mode & 070 & (mode & 07) << 3);
}

/* Set owner, group and permissions of the old file, before the first byte is
 * written. Only root may change the owner; others set what they may. */
static bool take_access(const struct new_file *new) {
    const struct stat *const old = &new->old;
    mode_t mode = old->st_mode & 07777;
    if (fchown(new->fd, old->st_uid, old->st_gid) != 0) {
        mode &= ~(mode_t)S_ISUID;
        if (fchown(new->fd, (uid_t)-1, old->st_gid) != 0)
            mode = without_group(mode);
    }
    return fchmod(new->fd, mode) == 0;
}

static void drop_new_file(const struct new_file *new) {
    close(new->fd);
    if (new->temporary[0]) unlink(new->temporary);
}

static calyx_status open_new_file(struct new_file *new, calyx_error *why) {
    if (!open_nameless(new) && !take_name(new, open_named))
        return fail_os(why, new->path, "make a new file beside it");
    if (!new->replaces || take_access(new)) return CALYX_OK;
    fail_os(why, new->path, "give it the old permissions");
    drop_new_file(new);
    return CALYX_IO;
}

static calyx_status sync_folder(const struct new_file *new, calyx_error *why) {
    char folder[PATH_MAX];
    const int fd =
        open(folder_of(new, folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail_os(why, folder, "open the folder");
    const calyx_status status =
        sync_file(fd) ? CALYX_OK : fail_os(why, folder, "sync the folder");
    close(fd);
    return status;
}

/* On some file systems only close(2) reports errors. Close a duplicate: the
 * file itself stays open until it has its name. */
static bool close_one(int fd) {
    const int twin = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return twin >= 0 && close(twin) == 0;
}

static calyx_status write_new_file(write_bytes *write, void *what,
                                   struct new_file *new, calyx_error *why) {
    struct open_file file = {new->fd, 0};
    const calyx_status status = write(what, put_in_file, &file, why);
    errno = file.error;
    if (status == CALYX_IO && errno) return fail_os(why, new->path, "write it");
    if (status != CALYX_OK) return status; /* of what is read for it */
    if (!sync_file(new->fd))
        return fail_os(why, new->path, "bring it to the disk");
    if (!close_one(new->fd)) return fail_os(why, new->path, "close it");
    return CALYX_OK;
}

/* Give the new file its name, in one step. */
static calyx_status publish(struct new_file *new, calyx_error *why) {
    if (!new->temporary[0]) {
        if (!new->replaces && link_to(new, new->path)) return CALYX_OK;
        if (!take_name(new, link_temporary))
            return fail_os(why, new->path, "name the new file beside it");
    }
    if (rename(new->temporary, new->path) != 0)
        return fail_os(why, new->path, "rename the new file to it");
    new->temporary[0] = '\0';
    return CALYX_OK;
}

calyx_status save_by(write_bytes *write, void *what, const char *path,
                     calyx_error *why) {
    struct new_file new;
    calyx_status status = find_target(&new, path, why);
    if (status == CALYX_OK) status = open_new_file(&new, why);
    if (status != CALYX_OK) return status;

    status = write_new_file(write, what, &new, why);
    if (status == CALYX_OK) status = publish(&new, why);
    drop_new_file(&new);
    return status == CALYX_OK ? sync_folder(&new, why) : status;
}

struct saved_filter {
    const calyx_filter *f;
    const char *path;
};

static calyx_status write_filter_file(void *what, calyx_put_function *put,
                                      void *context, calyx_error *why) {
    const struct saved_filter *const saved = what;
    const calyx_status status =
        write_filter(saved->f, PAGE_ALIGNED, put, context, why);
    return status == CALYX_IO ? status : fail_in(why, saved->path, status);
}

calyx_status calyx_save(const calyx_filter *f, const char *path,
                        calyx_error *why) {
    struct saved_filter saved = {f, path};
    return save_by(write_filter_file, &saved, path, why);
}

#else

#include "base/error.h"
#include "store/file.h"

static calyx_status without_files(calyx_error *why, const char *path,
                                  const char *what) {
    return fail(why, CALYX_CANNOT,
                "%.100s: cannot %s: this library was built without files", path,
                what);
}

calyx_status save_by(write_bytes *write, void *what, const char *path,
                     calyx_error *why) {
    (void)write, (void)what;
    return without_files(why, path, "save to it");
}

calyx_status calyx_save(const calyx_filter *f, const char *path,
                        calyx_error *why) {
    (void)f;
    return without_files(why, path, "save to it");
}

calyx_status calyx_join(const char *const *parts, size_t n,
                        const calyx_builder_options *how, const char *path,
                        calyx_error *why) {
    (void)parts, (void)n, (void)how;
    return without_files(why, path, "save to it");
}

calyx_status calyx_load(const char *path, const calyx_open_options *how,
                        calyx_filter **out, calyx_error *why) {
    (void)how, (void)out;
    return without_files(why, path, "load it");
}

calyx_status calyx_map(const char *path, calyx_access access,
                       const calyx_open_options *how, calyx_filter **out,
                       calyx_error *why) {
    (void)access, (void)how, (void)out;
    return without_files(why, path, "map it");
}

calyx_status calyx_sync(calyx_filter *f, calyx_error *why) {
    (void)f;
    return fail(why, CALYX_READ_ONLY,
                "only a filter mapped for writing can be synced");
}

calyx_status calyx_live_open(const char *path, const calyx_open_options *how,
                             calyx_live **out, calyx_error *why) {
    (void)how, (void)out;
    return without_files(why, path, "open it");
}

calyx_status calyx_live_refresh(calyx_live *live, bool *changed,
                                calyx_error *why) {
    (void)live;
    if (changed) *changed = false;
    return fail(why, CALYX_CANNOT, "this live filter follows no file");
}

#endif
