/*
 * Mapped files. If another program truncates a mapped file, or the disk fails
 * or has no block for a hole, the next access raises SIGBUS. That ends the
 * process with a message, like any other error of a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

/* ---- SIGBUS --------------------------------------------------------------
 *
 * All of this runs in a signal handler, and calls only what may be called
 * there. */

static size_t read_maps(char *text, size_t room) {
    size_t size = 0;
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t n = 1; fd >= 0 && n > 0 && size < room; size += (size_t)n)
        if ((n = read(fd, text + size, room - size)) < 0) break;
    if (fd >= 0) close(fd);
    return size;
}

static const char *take_address(const char *at, uintptr_t *address) {
    for (*address = 0; hex_digit(*at) >= 0; at++)
        *address = *address << 4 | (uintptr_t)hex_digit(*at);
    return at;
}

/* The file that is mapped there, by /proc/self/maps, whose lines read
 * "7f00-7fff rw-s 00000000 fe:00 4711   /folder/file". */
static const char *file_at(const void *place) {
    static char text[1 << 18];
    char *const end = text + read_maps(text, sizeof text - 1);
    *end = '\0';
    for (char *line = text, *next; line < end; line = next) {
        uintptr_t from, to;
        char *const stop = strchr(line, '\n');
        if (stop) *stop = '\0';
        next = stop ? stop + 1 : end;
        const char *const dash = take_address(line, &from);
        if (*dash != '-') continue;
        take_address(dash + 1, &to);
        if ((uintptr_t)place < from || (uintptr_t)place >= to) continue;
        const char *const path = strchr(line, '/');
        if (path) return path;
    }
    return "a mapped file"; /* as there is no /proc here */
}

/* One write, so that the lines of two processes do not mix. */
static void say(const char *const *words) {
    static char text[8192];
    size_t size = 0;
    for (; *words; words++) {
        const size_t length = strlen(*words), room = sizeof text - size;
        memcpy(text + size, *words, length < room ? length : room);
        size += length < room ? length : room;
    }
    if (write(STDERR_FILENO, text, size) < 0) return; /* no way to report it */
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
    (void)context;
    static atomic_flag ending = ATOMIC_FLAG_INIT;
    if (info->si_code != BUS_ADRERR && info->si_code != BUS_OBJERR) {
        signal(number, SIG_DFL); /* not about a file */
        raise(number);
        return;
    }
    while (atomic_flag_test_and_set(&ending)) pause(); /* another thread's */
    say((const char *const[]){
        "calyx ", verb_name, ": ", file_at(info->si_addr),
        ": its bytes are gone: while it was used another program cut it or "
        "wrote over it, or the disk is full or failed\n",
        NULL});
    remove_files(); /* not at_early_end, which would use the file again */
    _exit(EXIT_TROUBLE);
}

void guard_mappings(void) {
    struct sigaction action = {.sa_sigaction = on_bus_error,
                               .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

/* ---- Holes --------------------------------------------------------------- */

void reserve_blocks(const char *path) {
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return; /* opening it will report that */
    struct stat is;
    const bool has_holes = fstat(fd, &is) == 0 && S_ISREG(is.st_mode) &&
                           lseek(fd, 0, SEEK_HOLE) < is.st_size;
    int failed = 0;
    if (has_holes) do {
            failed = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, is.st_size);
        } while (failed && errno == EINTR);
    const int error = failed ? errno : 0;
    close(fd);
    if (!error || error == EOPNOTSUPP) return;
    errno = error;
    fail_os(path, "reserve the blocks that it lacks, as a sparse file; nothing "
                  "was added");
}
