#define _GNU_SOURCE /* O_TMPFILE, mkostemp, pread, posix_fallocate */
#include "build/temp_file.h"

#include <stdlib.h>

#include "base/compiler.h"

const char *temp_folder(void) {
    const char *const named = getenv("TMPDIR");
    return named && *named ? named : "/tmp";
}

#if CALYX_NO_FILES
int temp_file_open(const char *folder) {
    (void)folder;
    errno = ENOSYS;
    return -1;
}
bool temp_file_write(int fd, const void *bytes, size_t size, uint64_t at) {
    (void)fd, (void)bytes, (void)size, (void)at;
    return false;
}
bool temp_file_read(int fd, void *buffer, size_t size, uint64_t at) {
    (void)fd, (void)buffer, (void)size, (void)at;
    return false;
}
void temp_file_close(int fd) {
    (void)fd;
}
void *temp_file_map(const char *folder, size_t size) {
    (void)folder, (void)size;
    errno = ENOSYS;
    return NULL;
}
#else

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* One call moves at most 2 GiB, and may move less than requested. */
static size_t at_most(size_t size) {
    const size_t most = (size_t)1 << 30;
    return size < most ? size : most;
}

/* Not every file system has nameless files: then the name is removed at once.
 */
int temp_file_open(const char *folder) {
#ifdef O_TMPFILE
    const int nameless = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (nameless >= 0) return nameless;
#endif
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/calyx-XXXXXX", folder) >=
        sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    return fd;
}

bool temp_file_write(int fd, const void *bytes, size_t size, uint64_t at) {
    for (const char *from = bytes; size > 0;) {
        const ssize_t n = pwrite(fd, from, at_most(size), (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = ENOSPC;
        if (n <= 0) return false;
        from += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return true;
}

/* The end of the file comes only if somebody cut it short. */
bool temp_file_read(int fd, void *buffer, size_t size, uint64_t at) {
    for (char *to = buffer; size > 0;) {
        const ssize_t n = pread(fd, to, at_most(size), (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = END_OF_FILE;
        if (n <= 0) return false;
        to += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return true;
}

void temp_file_close(int fd) {
    close(fd);
}

/* Without blocks on the disk, a full disk would be reported by SIGBUS. Where
 * they cannot be had in advance, there are no such mappings. */
static bool reserve(int fd, size_t size) {
#ifdef __linux__
    int error;
    do error = posix_fallocate(fd, 0, (off_t)size);
    while (error == EINTR);
    errno = error;
    return error == 0;
#else
    (void)fd, (void)size;
    errno = ENOSYS;
    return false;
#endif
}

void *temp_file_map(const char *folder, size_t size) {
    const int fd = temp_file_open(folder);
    if (fd < 0) return NULL;
    void *const block =
        reserve(fd, size)
            ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
            : MAP_FAILED;
    const int error = errno;
    close(fd); /* the mapping holds it */
    errno = error;
    return block == MAP_FAILED ? NULL : block;
}
#endif
