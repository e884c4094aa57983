#define _XOPEN_SOURCE 700 /* nftw */
#include "plan/phase_speed.h"

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exact/spill.h"
#include "tool.h"

/* ---- Stated -------------------------------------------------------------- */

/*
 * One core of a server of 2023, files in the page cache. Adding to a part
 * larger than the caches waits for memory. A static part sorts its hashes and
 * solves for them.
 */
struct phase_speed stated_speed(const struct phase_load *load) {
    const bool is_static = calyx_kind_can(load->kind) & CALYX_CAN_STATIC;
    const bool fits_cache = load->part_bytes <= UINT64_C(8) << 20;
    return (struct phase_speed){.line =
                                    9e-9 + 0.35e-9 * (double)load->line_bytes,
                                .hash = is_static    ? 70e-9
                                        : fits_cache ? 6e-9
                                                     : 12e-9,
                                .build_start = 1e-9 * (double)load->part_bytes,
                                .byte = 0.9e-9};
}

/* ---- Running verbs ------------------------------------------------------- */

static char *folder; /* of all files here */

static int remove_one(const char *path, const struct stat *is, int type,
                      struct FTW *place) {
    (void)is, (void)type, (void)place;
    return remove(path);
}

static void remove_folder(void) {
    enum { OPEN_FOLDERS = 4 };
    nftw(folder, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

static void make_folder(void) {
    static const char name[] = "/calyx-plan-XXXXXX";
    folder = alloc_memory(strlen(spill_folder()) + sizeof name);
    strcpy(folder, spill_folder());
    strcat(folder, name);
    if (!mkdtemp(folder)) fail_os(spill_folder(), "make a folder in it");
    at_early_end = remove_folder;
}

/* As main() does, in a child that works in the folder. */
static _Noreturn void run_verb(char *words) {
    enum { MOST_WORDS = 32 };
    char *word[MOST_WORDS];
    int count = 0;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    at_early_end = NULL;
    if (chdir(folder) != 0) fail_os(folder, "go there");
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
        word[count++] = w;
    const struct verb *const verb = verb_named(word[0]);
    verb_name = verb->name;
    const int operands = read_options(verb, count - 1, word + 1);
    exit(finish(verb->run(operands, word + 1)));
}

/* The seconds that a verb takes with these words. */
static double time_words(const char *words) {
    char *const copy = copy_text(words);
    const double started = seconds_now();
    int status;
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) fail_os("a process", "start");
    if (child == 0) run_verb(copy);
    if (waitpid(child, &status, 0) != child || status != 0)
        fail("--calibrate: 'calyx %s' failed", words);
    free(copy);
    return seconds_now() - started;
}

/* The least of some, as other work only ever adds time. */
PRINTS(1, 2) static double least_time(const char *format, ...) {
    enum { TRIES = 3, MOST_TEXT = 256 };
    char words[MOST_TEXT];
    va_list rest;
    va_start(rest, format);
    vsnprintf(words, sizeof words, format, rest);
    va_end(rest);
    double least = time_words(words);
    for (int i = 1; i < TRIES; i++) least = fmin(least, time_words(words));
    return least;
}

/* ---- Measured ------------------------------------------------------------ */

/* Lines of this length that are all different. */
static void write_lines(const char *name, uint64_t lines, uint64_t line_bytes) {
    char *const path = alloc_memory(strlen(folder) + strlen(name) + 2);
    char *const line = alloc_memory((size_t)line_bytes + 32);
    sprintf(path, "%s/%s", folder, name);
    struct output *const to = output_open(path, false);
    const int digits = line_bytes > 21 ? 20 : (int)line_bytes - 1;
    memset(line, 'x', (size_t)line_bytes);
    for (uint64_t i = 0; i < lines; i++) {
        /* the end of a number below 2^64 that jumps about */
        char number[32];
        snprintf(number, sizeof number, "%020" PRIu64,
                 i * UINT64_C(11400714819323198485));
        memcpy(line + line_bytes - 1 - digits, number + 20 - digits,
               (size_t)digits);
        line[line_bytes - 1] = '\n';
        output_write(to, line, (size_t)line_bytes);
    }
    output_close(to);
    free(line);
    free(path);
}

/* A verb with few keys, and with many. */
struct timing {
    uint64_t keys[2];
    double seconds[2];
};

/* A straight line through the two. */
static void fit(const struct timing *s, double *start, double *each) {
    const double few = (double)s->keys[0], many = (double)s->keys[1];
    *each = fmax(0, (s->seconds[1] - s->seconds[0]) / (many - few));
    *start = fmax(0, s->seconds[0] - few * *each);
}

static void measure_hash(const struct phase_load *load, struct timing *s) {
    for (int i = 0; i < 2; i++) {
        char name[24];
        sprintf(name, "lines%d", i);
        write_lines(name, s->keys[i], load->line_bytes);
        s->seconds[i] =
            least_time("hash -j 1 --no-progress --force --parts %u --kind %s "
                       "-o cut lines%d",
                       load->parts, load->kind, i);
    }
}

static void measure_build(const struct phase_load *load, uint64_t keys,
                          struct timing *s) {
    for (int i = 0; i < 2; i++) {
        least_time("hash --no-progress --force --parts 1 --kind %s -o all%d "
                   "lines%d",
                   load->kind, i, i);
        s->seconds[i] =
            least_time("build -j 1 --no-progress --force --part 1/1 --kind %s "
                       "-n %" PRIu64 " -p %.9g -o part all%d/1-of-1.hashes",
                       load->kind, keys, load->rate, i);
    }
}

static uint64_t least_of(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/*
 * Hash few and many lines into as many parts as planned; build a part of the
 * planned size, from few and many hashes; join one part. Parts of more than
 * MOST_BODY bytes are measured at that size.
 */
struct phase_speed measured_speed(const struct phase_load *load) {
    enum {
        LEAST_LINES = 1000,
        MOST_LINES = 4000000,
        MOST_INPUT = 1 << 27,
        MOST_BODY = 1 << 28
    };
    const double bytes = (double)load->part_bytes;
    const double larger = fmax(1, bytes / MOST_BODY);
    const uint64_t keys = (uint64_t)ceil((double)load->part_keys / larger);
    const uint64_t many =
        LEAST_LINES +
        least_of(keys, least_of(MOST_LINES, MOST_INPUT / load->line_bytes));
    struct timing s = {.keys = {many / 8, many}};
    struct phase_speed speed;

    make_folder();
    measure_hash(load, &s);
    fit(&s, &speed.hash_start, &speed.line);
    measure_build(load, LEAST_LINES + keys, &s);
    fit(&s, &speed.build_start, &speed.hash);
    speed.build_start *= larger;
    speed.byte =
        least_time("join -j 1 --force -o filter part") * larger / bytes;
    at_early_end = NULL;
    remove_folder();
    free(folder);
    return speed;
}
