/*
 * What crash.py kills: a program that saves filters, adds to them in place, and
 * judges what is left.
 *
 *     saver make PATH old|new CAPACITY   save a filter
 *     saver loop PATH CAPACITY           save the old and the new in turn
 *     saver add PATH COUNT               add in place; print each key once it
 *                                        is synced, "!" if it could not be
 *     saver judge                        for each path on standard input, say
 *                                        what is there
 *
 * Whatever is being tried stands between two calls of getppid, so that a trace
 * shows where it starts and ends.
 */
#define _DEFAULT_SOURCE /* getppid, signal */
#include <calyx/calyx.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Numbers as keys: the keys of the old filter, of the new one, and those that
 * are added in place. */
enum { OLD = 0, OLDS = 500, NEW = 1000000, NEWS = 700, ADDED = 2000000 };
enum { MOST_ADDED = 10000 };

enum { EXIT_REFUSED = 3 }; /* the call failed, and said so */

static void mark(void) {
    (void)getppid();
}

static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0) exit(2);
}

static int refused(const calyx_error *why) {
    fprintf(stderr, "%s\n", why->text);
    return EXIT_REFUSED;
}

static calyx_filter *make(const char *which, const char *capacity) {
    const bool new = strcmp(which, "new") == 0;
    const calyx_options want = {.capacity = strtoull(capacity, NULL, 10)};
    calyx_filter *f;
    calyx_error why;
    if (calyx_new(&want, &f, &why) != CALYX_OK) exit(refused(&why));
    for (uint64_t i = 0; i < (new ? NEWS : OLDS); i++)
        if (calyx_add_u64(f, (new ? NEW : OLD) + i, NULL) != CALYX_OK) exit(2);
    return f;
}

static int save(const char *path, const char *which, const char *capacity) {
    calyx_filter *f = make(which, capacity);
    calyx_error why;
    mark();
    const calyx_status status = calyx_save(f, path, &why);
    mark();
    calyx_free(f);
    return status == CALYX_OK ? 0 : refused(&why);
}

static int save_in_turn(const char *path, const char *capacity) {
    const calyx_filter *f[2] = {make("old", capacity), make("new", capacity)};
    say("ready\n");
    calyx_error why;
    for (size_t i = 1;; i++) {
        if (calyx_save(f[i % 2], path, &why) != CALYX_OK) return refused(&why);
        say("saved\n");
    }
}

static int add_in_place(const char *path, uint64_t count) {
    calyx_filter *f;
    calyx_error why;
    say("ready\n");
    mark();
    if (calyx_map(path, CALYX_WRITE, NULL, &f, &why) != CALYX_OK)
        return refused(&why);
    for (uint64_t i = 0; i < count; i++) {
        char line[32];
        const bool done = calyx_add_u64(f, ADDED + i, NULL) == CALYX_OK &&
                          calyx_sync(f, &why) == CALYX_OK;
        snprintf(line, sizeof line, done ? "%llu\n" : "!\n",
                 (unsigned long long)i);
        say(line);
    }
    const calyx_status status = calyx_close(f, &why);
    mark();
    if (status != CALYX_OK) return refused(&why);
    say("closed\n");
    return 0;
}

/* ---- Judging --------------------------------------------------------------
 */

static size_t found(const calyx_filter *f, uint64_t from, size_t n) {
    size_t total = 0;
    for (size_t i = 0; i < n; i++) total += calyx_has_u64(f, from + i);
    return total;
}

/* How many of the keys that were added are there, up to the first that is not.
 */
static size_t added(const calyx_filter *f) {
    size_t n = 0;
    while (n < MOST_ADDED && calyx_has_u64(f, ADDED + n)) n++;
    return n;
}

/* "how:status olds news added", and the status of verify. */
static void print_opened(const char *how, calyx_status status,
                         calyx_filter *f) {
    if (status != CALYX_OK) {
        printf("%s %d - - - - ", how, status);
        return;
    }
    printf("%s %d %zu %zu %zu %d ", how, status, found(f, OLD, OLDS),
           found(f, NEW, NEWS), added(f), calyx_verify(f, NULL));
    calyx_free(f);
}

/* Loaded with all checks; mapped; and mapped for writing, which seals what a
 * crash left open, and loaded once more. */
static void judge_one(const char *path) {
    calyx_filter *f = NULL;
    calyx_status status = calyx_load(path, NULL, &f, NULL);
    print_opened("load", status, f);
    status = calyx_map(path, CALYX_READ, NULL, &f, NULL);
    print_opened("map", status, f);
    status = calyx_map(path, CALYX_WRITE, NULL, &f, NULL);
    print_opened("write", status, f);
    status = calyx_load(path, NULL, &f, NULL);
    print_opened("sealed", status, f);
    printf("\n");
    fflush(stdout);
}

static int judge(void) {
    char path[4096];
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = 0;
        judge_one(path);
    }
    return 0;
}

int main(int count, char **words) {
    signal(SIGXFSZ, SIG_IGN); /* so that a full file is an error to write */
    const char *what = count > 1 ? words[1] : "";
    if (strcmp(what, "make") == 0 && count == 5)
        return save(words[2], words[3], words[4]);
    if (strcmp(what, "loop") == 0 && count == 4)
        return save_in_turn(words[2], words[3]);
    if (strcmp(what, "add") == 0 && count == 4)
        return add_in_place(words[2], strtoull(words[3], NULL, 10));
    if (strcmp(what, "judge") == 0) return judge();
    fprintf(stderr, "saver: see the head of test/crash/saver.c\n");
    return 2;
}
