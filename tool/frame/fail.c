/*
 * How the command ends when something is in its way: one line on standard
 * error, no file left half written, exit status 2. A closed pipe ends it in
 * silence, and signals end it as they would any program.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

const char *verb_name;
void (*at_early_end)(void);

/* ---- Files that must not stay ------------------------------------------- */

/* Read when the process ends, maybe by another thread, so with atomic cells. */
enum { MOST_FILES = 64 };
static _Atomic(const char *) files[MOST_FILES];

void remember_file(const char *path) {
    for (int i = 0; i < MOST_FILES; i++) {
        const char *none = NULL;
        if (atomic_compare_exchange_strong(&files[i], &none, path)) return;
    }
    fail("more than %d files are being written at once", MOST_FILES);
}

void forget_file(const char *path) {
    for (int i = 0; i < MOST_FILES; i++)
        if (atomic_load(&files[i]) == path) atomic_store(&files[i], NULL);
}

void remove_files(void) {
    for (int i = 0; i < MOST_FILES; i++) {
        const char *const path = atomic_load(&files[i]);
        if (path) unlink(path);
    }
    for (int i = 0; i < MOST_FILES; i++) { /* folders that are empty now */
        const char *const path = atomic_load(&files[i]);
        if (path) rmdir(path);
    }
}

bool is_regular_file(const char *path) {
    struct stat is;
    return strcmp(path, "-") != 0 && stat(path, &is) == 0 &&
           S_ISREG(is.st_mode);
}

/* ---- Ends --------------------------------------------------------------- */

static pthread_mutex_t changing = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void begin_change(void) {
    pthread_mutex_lock(&changing);
}

void end_change(void) {
    pthread_mutex_unlock(&changing);
}

/* Never unlocked: other threads that would end the process or change anything
 * wait until it is gone. */
static void clean_up(void) {
    begin_change();
    remove_files();
    void (*const last)(void) = at_early_end;
    at_early_end = NULL; /* so that an error in it does not recurse */
    if (last) last();
}

_Noreturn void end_by(int signal_number) {
    clean_up();
    signal(signal_number, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    raise(signal_number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    _exit(EXIT_TROUBLE); /* not reached */
}

_Noreturn void end_of_pipe(void) {
    end_by(SIGPIPE);
}

/* A control character: of ASCII, or U+0080 to U+009F, which is C2 80 to C2 9F
 * in UTF-8 and of which only the second byte is meant. */
static bool is_control(const char *text, size_t at) {
    const unsigned char c = (unsigned char)text[at];
    return c < 0x20 || c == 0x7f ||
           (c >= 0x80 && c < 0xa0 && at > 0 && text[at - 1] == '\xc2');
}

/* Names of files and words of servers may have characters that a terminal
 * obeys: these are shown as \x1b. Returns the size, at most `room`. */
static size_t show(const char *text, size_t size, char *shown, size_t room) {
    size_t n = 0;
    for (size_t i = 0; i < size && n + sizeof "\\x1b" <= room; i++)
        if (is_control(text, i))
            n += (size_t)sprintf(shown + n, "\\x%02x", text[i] & 0xff);
        else
            shown[n++] = text[i];
    return n;
}

/* One write, so that the lines of two processes do not mix. */
static void say(const char *file, uint64_t line, const char *format,
                va_list values) {
    char text[4096];
    const size_t most = sizeof text - 1;
    size_t n = (size_t)snprintf(text, most, "calyx%s%s: ", verb_name ? " " : "",
                                verb_name ? verb_name : "");
    if (file && n < most)
        n += (size_t)snprintf(text + n, most - n, "%s:", *file ? file : "''");
    if (file && line && n < most)
        n += (size_t)snprintf(text + n, most - n,
                              "%llu:", (unsigned long long)line);
    if (file && n < most) n += (size_t)snprintf(text + n, most - n, " ");
    if (n < most) n += (size_t)vsnprintf(text + n, most - n, format, values);
    if (n >= most) n = most - 1;
    char shown[2 * sizeof text];
    n = show(text, n, shown, sizeof shown - 1);
    shown[n++] = '\n';
    progress_hide();
    if (write(STDERR_FILENO, shown, n) < 0) return; /* no way to report it */
}

void warn(const char *format, ...) {
    va_list values;
    va_start(values, format);
    say(NULL, 0, format, values);
    va_end(values);
}

void warn_at(const char *file, const char *format, ...) {
    va_list values;
    va_start(values, format);
    say(file, 0, format, values);
    va_end(values);
}

/* Other threads may be at work, so no exit handlers are run. */
static _Noreturn void leave(void) {
    clean_up();
    _exit(EXIT_TROUBLE);
}

_Noreturn void fail(const char *format, ...) {
    va_list values;
    begin_change(); /* other threads that fail say nothing more */
    va_start(values, format);
    say(NULL, 0, format, values);
    va_end(values);
    leave();
}

_Noreturn void fail_at(const char *file, uint64_t line, const char *format,
                       ...) {
    va_list values;
    begin_change();
    va_start(values, format);
    say(file, line, format, values);
    va_end(values);
    leave();
}

bool is_http_url(const char *word) {
    return strncasecmp(word, "http://", 7) == 0 ||
           strncasecmp(word, "https://", 8) == 0;
}

_Noreturn void fail_os(const char *file, const char *what) {
    if (errno == ENOENT && is_http_url(file))
        fail_at(file, 0,
                "this verb takes files, not URLs; download it, or query it "
                "with 'calyx check -f URL', 'calyx info' or 'calyx verify'");
    fail_at(file, 0, "cannot %s: %s", what, strerror(errno));
}

_Noreturn void fail_with(const calyx_error *why) {
    fail("%s", why->text);
}

/* ---- Memory ------------------------------------------------------------- */

void *resize_memory(void *old, size_t size) {
    void *const memory = realloc(old, size);
    if (!memory)
        fail("out of memory: cannot allocate %zu bytes; less is taken with -j "
             "1, and with a smaller -S if the verb has it",
             size);
    return memory;
}

void *alloc_memory(size_t size) {
    return resize_memory(NULL, size);
}

char *copy_text(const char *text) {
    const size_t size = strlen(text) + 1;
    return memcpy(alloc_memory(size), text, size);
}
