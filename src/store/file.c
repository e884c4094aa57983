/*
 * Filters in files. Saving never touches the old file: the new one is written
 * under another name in the same folder, pushed to the disk, and then given the
 * old one's name, in one step. Whoever opens the name finds the old filter or
 * the new one.
 */
#define _DEFAULT_SOURCE /* realpath, fsync, fchmod */
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
    char temporary[PATH_MAX]; /* in the same folder                     */
    int fd;
};

/* Find the file that is meant. It need not exist, but must not be something
 * other than a file. `*mode` is the one to give the new file. */
static calyx_status find_target(struct draft *draft, const char *path,
                                mode_t *mode, bool *exists, calyx_error *why) {
    struct stat is;
    *exists = stat(path, &is) == 0;
    if (!*exists) {
        if (errno != ENOENT) return fail_os(why, path, "look at it");
        if ((size_t)snprintf(draft->path, sizeof draft->path, "%s", path) <
            sizeof draft->path)
            return CALYX_OK;
        errno = ENAMETOOLONG;
        return fail_os(why, path, "name it");
    }
    if (!S_ISREG(is.st_mode)) {
        return fail(why, CALYX_BAD_ARGUMENT,
                    "%.150s: there is something other than a file here", path);
    }
    if (!realpath(path, draft->path)) return fail_os(why, path, "follow it");
    *mode = is.st_mode & 07777;
    return CALYX_OK;
}

/* Of the name of the folder, slash included; 0 if there is none. */
static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* A name that nobody else has: ours if it did not exist before. */
static calyx_status open_draft(struct draft *draft, mode_t mode,
                               calyx_error *why) {
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
        draft->fd =
            open(draft->temporary,
                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (draft->fd >= 0) return CALYX_OK;
        if (errno != EEXIST) break;
    }
    return fail_os(why, draft->path, "make a new file beside it");
}

static calyx_status sync_folder(const struct draft *draft, calyx_error *why) {
    char folder[PATH_MAX];
    const size_t length = folder_length(draft->path);
    snprintf(folder, sizeof folder, "%.*s", length ? (int)length : 1,
             length ? draft->path : ".");
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail_os(why, folder, "open the folder");
    const calyx_status status =
        fsync(fd) == 0 ? CALYX_OK : fail_os(why, folder, "sync the folder");
    close(fd);
    return status;
}

static calyx_status write_draft(const calyx_filter *f, struct draft *draft,
                                bool exists, mode_t mode, calyx_error *why) {
    struct stream stream = {draft->fd, 0};
    const calyx_status status =
        write_filter(f, PAGE_ALIGNED, put_in_file, &stream, why);
    errno = stream.error;
    if (status == CALYX_IO) return fail_os(why, draft->path, "write it");
    if (status != CALYX_OK) return fail_in(why, draft->path, status);
    if (exists && fchmod(draft->fd, mode) != 0)
        return fail_os(why, draft->path, "give it the old permissions");
    if (fsync(draft->fd) != 0)
        return fail_os(why, draft->path, "bring it to the disk");
    return CALYX_OK;
}

calyx_status calyx_save(const calyx_filter *f, const char *path,
                        calyx_error *why) {
    struct draft draft;
    mode_t mode = 0666;
    bool exists;
    calyx_status status = find_target(&draft, path, &mode, &exists, why);
    /* The system takes away what the umask says, so the new file has never more
     * permissions than it will have. */
    if (status == CALYX_OK) status = open_draft(&draft, mode & 0777, why);
    if (status != CALYX_OK) return status;

    status = write_draft(f, &draft, exists, mode, why);
    if (close(draft.fd) != 0 && status == CALYX_OK)
        status = fail_os(why, path, "close it");
    if (status == CALYX_OK && rename(draft.temporary, draft.path) != 0)
        status = fail_os(why, path, "rename the new file to it");
    if (status != CALYX_OK) {
        unlink(draft.temporary);
        return status;
    }
    return sync_folder(&draft, why);
}
