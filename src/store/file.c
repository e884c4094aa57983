/*
 * Filters in files. Saving never touches the old file: the new one is written
 * without a name in the same folder, pushed to the disk, and then given the
 * old one's name, in one step. Whoever opens the name finds the old filter or
 * the new one.
 *
 * A nameless file goes with the process, however that ends. As a link can't
 * replace a file, only a rename can, the new one has a name of its own between
 * the two calls if there is an old one; a kill just there leaves it, complete.
 * Where there are no nameless files, it has that name from the beginning.
 */
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
#include "store/codec.h"

calyx_status fail_os(calyx_error *why, const char *path, const char *what) {
    const int code = errno;
    fail(why, CALYX_IO, "%.120s: cannot %s: %.60s", path, what, strerror(code));
    if (why) why->os_code = code;
    return CALYX_IO;
}

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

bool sync_file(int fd) {
    for (int tries = 0; fsync(fd) != 0; tries++)
        if (!was_interrupted(tries)) return false;
    return true;
}

/* ---- Bytes of a file ----------------------------------------------------- */

/* One call moves at most 2 GiB, and may move less than it was asked to. */
static const size_t MOST_AT_ONCE = (size_t)1 << 30;

static size_t at_most(size_t size) {
    return size < MOST_AT_ONCE ? size : MOST_AT_ONCE;
}

/* An open file, and the errno of what failed on it: other calls may come before
 * anybody asks. 0 is the end of the file. */
struct stream {
    int fd, error;
};

static bool put_in_file(void *context, const void *bytes, size_t size) {
    struct stream *stream = context;
    for (const char *at = bytes; size > 0;) {
        const ssize_t n = write(stream->fd, at, at_most(size));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            stream->error = n < 0 ? errno : ENOSPC;
            return false;
        }
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool get_from_file(void *context, void *buffer, size_t size) {
    struct stream *stream = context;
    for (char *at = buffer; size > 0;) {
        const ssize_t n = read(stream->fd, at, at_most(size));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            stream->error = n < 0 ? errno : 0;
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
    /* Not waiting for a writer, should this be a FIFO. */
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
                              const calyx_opening *how, calyx_filter **out,
                              struct state *state, calyx_error *why) {
    struct stream stream = {fd, 0};
    const calyx_status status =
        read_filter(get_from_file, &stream, size, how, out, state, why);
    if (status != CALYX_IO) return fail_in(why, path, status);
    if (stream.error == 0)
        return fail(why, CALYX_DAMAGED,
                    "%.100s: damaged: it ends before its %llu bytes", path,
                    (unsigned long long)size);
    errno = stream.error;
    return fail_os(why, path, "read it");
}

calyx_status calyx_load(const char *path, const calyx_opening *how,
                        calyx_filter **out, calyx_error *why) {
    int fd;
    uint64_t size;
    calyx_status status = open_regular(path, O_RDONLY, &fd, &size, why);
    if (status != CALYX_OK) return status;
    /* A writer that seals the file while it is read leaves new checksums for
     * old bodies. What is damaged stays so, in the same generation. */
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
struct draft {
    char path[PATH_MAX];      /* of the file to replace, links followed */
    char temporary[PATH_MAX]; /* in the same folder; "": it has no name */
    int fd;
    bool replaces;   /* there is a file */
    struct stat old; /* which is this   */
};

/* Find the file that is meant. It need not exist, but must not be something
 * other than a file. */
static calyx_status find_target(struct draft *draft, const char *path,
                                calyx_error *why) {
    draft->replaces = stat(path, &draft->old) == 0;
    if (!draft->replaces) {
        if (errno != ENOENT) return fail_os(why, path, "look at it");
        if ((size_t)snprintf(draft->path, sizeof draft->path, "%s", path) <
            sizeof draft->path)
            return CALYX_OK;
        errno = ENAMETOOLONG;
        return fail_os(why, path, "name it");
    }
    if (!S_ISREG(draft->old.st_mode)) {
        return fail(why, CALYX_BAD_ARGUMENT,
                    "%.150s: there is something other than a file here", path);
    }
    if (!realpath(path, draft->path)) return fail_os(why, path, "follow it");
    return CALYX_OK;
}

/* Of the name of the folder, slash included; 0 if there is none. */
static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static const char *folder_of(const struct draft *draft,
                             char folder[static PATH_MAX]) {
    const size_t length = folder_length(draft->path);
    snprintf(folder, PATH_MAX, "%.*s", length ? (int)length : 1,
             length ? draft->path : ".");
    return folder;
}

/* Try names that nobody else has, until `take` does not find one taken. */
static bool take_name(struct draft *draft, bool (*take)(struct draft *draft)) {
    const size_t folder = folder_length(draft->path);
    for (unsigned try = 0; try < 1000; try++) {
        const int length =
            snprintf(draft->temporary, sizeof draft->temporary,
                     "%.*s.%.200s.%ld.%u.new", (int)folder, draft->path,
                     draft->path + folder, (long)getpid(), try);
        if (length < 0 || (size_t)length >= sizeof draft->temporary) {
            errno = ENAMETOOLONG;
            break;
        }
        if (take(draft)) return true;
        if (errno != EEXIST) break;
    }
    draft->temporary[0] = '\0';
    return false;
}

/* Until it has its owner and group, a file that replaces another is for nobody
 * else. What the umask says is taken away by the system. */
static mode_t first_mode(const struct draft *draft) {
    return draft->replaces ? draft->old.st_mode & 0700 : 0666;
}

static bool open_named(struct draft *draft) {
    draft->fd = open(draft->temporary,
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     first_mode(draft));
    return draft->fd >= 0;
}

#ifdef O_TMPFILE
static const char *link_of(const struct draft *draft, char link[static 64]) {
    snprintf(link, 64, "/proc/self/fd/%d", draft->fd);
    return link;
}

static bool open_nameless(struct draft *draft) {
    char folder[PATH_MAX], link[64];
    draft->temporary[0] = '\0';
    draft->fd = open(folder_of(draft, folder), O_TMPFILE | O_WRONLY | O_CLOEXEC,
                     first_mode(draft));
    if (draft->fd < 0) return false;
    if (access(link_of(draft, link), F_OK) == 0) return true;
    close(draft->fd); /* no /proc, and so no way to name it */
    return false;
}

static bool link_to(const struct draft *draft, const char *path) {
    char link[64];
    return linkat(AT_FDCWD, link_of(draft, link), AT_FDCWD, path,
                  AT_SYMLINK_FOLLOW) == 0;
}

static bool link_temporary(struct draft *draft) {
    return link_to(draft, draft->temporary);
}
#else
static bool open_nameless(struct draft *draft) {
    (void)draft;
    return false;
}
static bool link_to(const struct draft *draft, const char *path) {
    (void)draft, (void)path;
    return false;
}
static bool link_temporary(struct draft *draft) {
    (void)draft;
    return false;
}
#endif

/* The group's permissions mean another group now: it gets no more than it had
 * as one of the others. */
static mode_t without_group(mode_t mode) {
    return (mode & ~(mode_t)(S_ISUID | S_ISGID | 070)) |
           (mode & 070 & (mode & 07) << 3);
}

/* Owner, group and permissions of the file that it replaces, before its first
 * byte. Only root may give a file away; the others keep what they can. */
static bool take_access(const struct draft *draft) {
    const struct stat *const old = &draft->old;
    mode_t mode = old->st_mode & 07777;
    if (fchown(draft->fd, old->st_uid, old->st_gid) != 0) {
        mode &= ~(mode_t)S_ISUID;
        if (fchown(draft->fd, (uid_t)-1, old->st_gid) != 0)
            mode = without_group(mode);
    }
    return fchmod(draft->fd, mode) == 0;
}

static void drop_draft(const struct draft *draft) {
    close(draft->fd);
    if (draft->temporary[0]) unlink(draft->temporary);
}

static calyx_status open_draft(struct draft *draft, calyx_error *why) {
    if (!open_nameless(draft) && !take_name(draft, open_named))
        return fail_os(why, draft->path, "make a new file beside it");
    if (!draft->replaces || take_access(draft)) return CALYX_OK;
    fail_os(why, draft->path, "give it the old permissions");
    drop_draft(draft);
    return CALYX_IO;
}

static calyx_status sync_folder(const struct draft *draft, calyx_error *why) {
    char folder[PATH_MAX];
    const int fd =
        open(folder_of(draft, folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail_os(why, folder, "open the folder");
    const calyx_status status =
        sync_file(fd) ? CALYX_OK : fail_os(why, folder, "sync the folder");
    close(fd);
    return status;
}

/* Closing tells of errors too, on some file systems; but the last of it must
 * wait until the file has its name. */
static bool close_one(int fd) {
    const int twin = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return twin >= 0 && close(twin) == 0;
}

static calyx_status write_draft(const calyx_filter *f, struct draft *draft,
                                calyx_error *why) {
    struct stream stream = {draft->fd, 0};
    const calyx_status status =
        write_filter(f, PAGE_ALIGNED, put_in_file, &stream, why);
    errno = stream.error;
    if (status == CALYX_IO) return fail_os(why, draft->path, "write it");
    if (status != CALYX_OK) return fail_in(why, draft->path, status);
    if (!sync_file(draft->fd))
        return fail_os(why, draft->path, "bring it to the disk");
    if (!close_one(draft->fd)) return fail_os(why, draft->path, "close it");
    return CALYX_OK;
}

/* Give the new file its name, in one step. */
static calyx_status publish(struct draft *draft, calyx_error *why) {
    if (!draft->temporary[0]) {
        if (!draft->replaces && link_to(draft, draft->path)) return CALYX_OK;
        if (!take_name(draft, link_temporary))
            return fail_os(why, draft->path, "name the new file beside it");
    }
    if (rename(draft->temporary, draft->path) != 0)
        return fail_os(why, draft->path, "rename the new file to it");
    draft->temporary[0] = '\0';
    return CALYX_OK;
}

calyx_status calyx_save(const calyx_filter *f, const char *path,
                        calyx_error *why) {
    struct draft draft;
    calyx_status status = find_target(&draft, path, why);
    if (status == CALYX_OK) status = open_draft(&draft, why);
    if (status != CALYX_OK) return status;

    status = write_draft(f, &draft, why);
    if (status == CALYX_OK) status = publish(&draft, why);
    drop_draft(&draft);
    return status == CALYX_OK ? sync_folder(&draft, why) : status;
}
