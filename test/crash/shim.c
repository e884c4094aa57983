/*
 * Put before the C library by LD_PRELOAD, this makes the system behave as it
 * may but seldom does, and keeps a log of what reaches it. CALYX_SHIM says how,
 * in words:
 *
 *     one      every write and read moves one byte
 *     half     every write and read moves half of what is requested
 *     eintr    every other write and read is interrupted
 *     nosync   fsync and msync do nothing, and say that all is well
 *     named    there are no nameless files
 *     log=F    (last) append to F every operation on files, with its bytes:
 *              what a power loss may take back
 *
 * A record of the log is a letter, a number, a length and that many bytes.
 *
 *     o fd path    opened for writing; "" if it has no name
 *     w fd bytes   written at the end
 *     s fd bytes   synced; the bytes of its mapping, if there is one
 *     m at bytes   a part of the mapping synced, from there on: its length, in
 *                  8 bytes, and all bytes of the mapping
 *     r 0 from|to  renamed                 a n line     written to stdout
 *     l fd path    a nameless file was given this name
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool one, half, interrupts, nosync, named;
static int log_fd = -1;

/* The one file that is mapped for writing. */
static const uint8_t *mapped;
static size_t mapped_size;
static int mapped_fd = -1;

__attribute__((constructor)) static void read_words(void) {
    const char *words = getenv("CALYX_SHIM");
    if (!words) return;
    one = strstr(words, "one");
    half = strstr(words, "half");
    interrupts = strstr(words, "eintr");
    nosync = strstr(words, "nosync");
    named = strstr(words, "named");
    const char *log = strstr(words, "log=");
    if (log)
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, log + 4,
                              O_WRONLY | O_CREAT | O_APPEND, 0600);
}

static void note(char what, int number, const void *bytes, size_t size) {
    if (log_fd < 0) return;
    struct {
        char what[8];
        uint64_t number, size;
    } head = {{what}, (uint64_t)number, size};
    if (syscall(SYS_write, log_fd, &head, sizeof head) < 0 ||
        (size && syscall(SYS_write, log_fd, bytes, size) < 0))
        abort();
}

/* ---- Moving bytes ---------------------------------------------------------
 */

static bool is_interrupted(void) {
    static bool turn;
    if (!interrupts) return false;
    turn = !turn;
    errno = EINTR;
    return turn;
}

static size_t fewer(size_t size) {
    if (one && size) return 1;
    return half ? (size + 1) / 2 : size;
}

ssize_t write(int fd, const void *bytes, size_t size) {
    if (fd > 2 && is_interrupted()) return -1;
    const ssize_t n =
        syscall(SYS_write, fd, bytes, fd > 2 ? fewer(size) : size);
    if (n > 0) note(fd == 1 ? 'a' : 'w', fd, bytes, (size_t)n);
    return n;
}

ssize_t read(int fd, void *buffer, size_t size) {
    if (fd > 2 && is_interrupted()) return -1;
    return syscall(SYS_read, fd, buffer, fd > 2 ? fewer(size) : size);
}

/* ---- Names ----------------------------------------------------------------
 */

int open(const char *path, int flags, ...) {
    unsigned mode = 0;
    const bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
    if (nameless && named) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (flags & O_CREAT || nameless) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, unsigned);
        va_end(rest);
    }
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0) note('o', fd, path, nameless ? 0 : strlen(path));
    return fd;
}

/* From /proc/self/fd/N. */
int linkat(int folder, const char *from, int to_folder, const char *to,
           int flags) {
    const int status =
        (int)syscall(SYS_linkat, folder, from, to_folder, to, flags);
    if (status == 0) note('l', atoi(strrchr(from, '/') + 1), to, strlen(to));
    return status;
}

int rename(const char *from, const char *to) {
#ifdef SYS_rename /* the call that the C library would make, for traces */
    const int status = (int)syscall(SYS_rename, from, to);
#else
    const int status = (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
#endif
    char both[8192];
    snprintf(both, sizeof both, "%s|%s", from, to);
    if (status == 0) note('r', 0, both, strlen(both));
    return status;
}

/* ---- Mapping and syncing --------------------------------------------------
 */

void *mmap(void *where, size_t size, int access, int flags, int fd, off_t at) {
    void *base = (void *)syscall(SYS_mmap, where, size, access, flags, fd, at);
    if (base != MAP_FAILED && fd >= 0 && flags & MAP_SHARED &&
        access & PROT_WRITE) {
        mapped = base;
        mapped_size = size;
        mapped_fd = fd;
    }
    return base;
}

int munmap(void *base, size_t size) {
    if (base == mapped) mapped = NULL;
    return (int)syscall(SYS_munmap, base, size);
}

/* What is in the mapping when it is synced is what is on disk afterwards. A
 * sync that is swallowed is noted as one that came too late: not at all. */
int fsync(int fd) {
    const bool maps = mapped && fd == mapped_fd;
    if (nosync) return 0;
    const int status = (int)syscall(SYS_fsync, fd);
    if (status == 0) note('s', fd, mapped, maps ? mapped_size : 0);
    return status;
}

int msync(void *base, size_t size, int flags) {
    if (nosync) return 0;
    const int status = (int)syscall(SYS_msync, base, size, flags);
    if (status != 0 || log_fd < 0 || !mapped) return status;
    uint8_t *const bytes = malloc(8 + mapped_size);
    const uint64_t length = size;
    if (!bytes) abort();
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, mapped, mapped_size);
    note('m', (int)((const uint8_t *)base - mapped), bytes, 8 + mapped_size);
    free(bytes);
    return status;
}
