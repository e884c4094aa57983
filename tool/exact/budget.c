#include "exact/budget.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exact/spill.h"
#include "frame/file_list.h"
#include "frame/memory_left.h"
#include "input/pipeline.h"
#include "input/records.h"
#include "input/source.h"

enum { LEAST = 16000000 };

static uint64_t given;
static bool dry;
static const char *assumed; /* the last --assume */
static bool assumed_several;
static const char assumed_file[] = "--assume ";

/* [COUNTx]LINES[,BYTES] */
struct assumption {
    uint64_t count, lines, size;
};

static bool assumption_from(const char *text, struct assumption *a) {
    char number[TEXT_SIZE];
    const char *const x = strchr(text, 'x'), *const comma = strchr(text, ',');
    *a = (struct assumption){.count = 1, .size = 64};
    if (x) {
        snprintf(number, sizeof number, "%.*s", (int)(x - text), text);
        if (!count_from(number, &a->count) || !a->count) return false;
        text = x + 1;
    }
    const size_t size = comma ? (size_t)(comma - text) : strlen(text);
    if (size >= sizeof number || (comma && comma < text)) return false;
    snprintf(number, sizeof number, "%.*s", (int)size, text);
    return count_from(number, &a->lines) && a->lines && a->count <= 65536 &&
           (!comma || (size_from(comma + 1, &a->size) && a->size)) &&
           a->lines <= UINT64_MAX / 65536 / a->size;
}

static void parse_assumed(const struct verb_option *o, const char *value) {
    struct assumption a;
    if (!assumption_from(value, &a))
        fail("--%s: expected a number of lines, or LINES,BYTES, or "
             "FILESxLINES,BYTES, such as 3x5G,64; found '%s'",
             o->name, value);
    assumed_several |= assumed || a.count > 1;
    assumed = value;
    const size_t size = strlen(value);
    char *const name = alloc_memory(sizeof assumed_file + size);
    memcpy(name, assumed_file, sizeof assumed_file - 1);
    memcpy(name + sizeof assumed_file - 1, value, size + 1);
    while (a.count--) add_operand(name); /* as long as the process */
}

/* Of a file that --assume stands for, or that is named. */
static struct sample assumed_sample(const char *path) {
    const size_t size = sizeof assumed_file - 1;
    const bool named = strncmp(path, assumed_file, size) != 0;
    struct assumption a;
    if (named && assumed_several)
        fail("option --assume stands for several files: name none, not '%s'",
             path);
    assumption_from(named ? assumed : path + size, &a);
    const uint64_t bytes = a.lines * a.size;
    return (struct sample){true, true, bytes, a.lines, 1e-9 * (double)bytes};
}

const struct group budget_group = {
    "Memory and temporary files",
    {
        {'S', "memory", "SIZE",
         "Use at most SIZE of memory, at least 16M, and up to 32 MiB more for "
         "threads and buffers; a single longer line is still accepted. The "
         "default is half of what the machine, the control groups of the "
         "process and its limits (ulimit -v, ulimit -d) leave.",
         parse_size, &given},
        {'T', "temporary", "FOLDER",
         "Create temporary files in FOLDER for what does not fit; the default "
         "is $TMPDIR, or /tmp. They have no names, and disappear with the "
         "process.",
         parse_spill_folder, NULL},
        {0, "dry-run", NULL,
         "Print a plan and do nothing else: passes, bytes to be read, bytes of "
         "temporary files, and the space that there is; in the case that a "
         "look at the files makes likely, and in the worst. Of files of more "
         "than 4 GB together, pieces are looked at. With --json-stats, the "
         "same as numbers.",
         parse_flag, &dry},
        {0, "assume", "LINES[,BYTES]",
         "With --dry-run, plan for a file that need not exist, of LINES lines "
         "of BYTES bytes, by default 64. One line in ten occurs twice, and 1 "
         "GB a second is read. 3x5G,64 stands for three files of 5 billion "
         "lines; given again, the option adds files of another size.",
         parse_assumed, NULL},
    },
};

void *map_memory(uint64_t size) {
    void *const pages =
        mmap(NULL, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        fail("out of memory: cannot allocate %llu bytes; -S sets how much is "
             "taken",
             (unsigned long long)size);
    return pages;
}

bool only_plans(void) {
    if (assumed && !dry) fail("option --assume goes with --dry-run only");
    return dry;
}

bool assumes_lines(void) {
    return assumed != NULL;
}

/* ---- What there is ------------------------------------------------------ */

/* What the program, its threads and their buffers take beside the budget; from
 * 32 threads on, blocks of lines are small. */
static uint64_t memory_beside(void) {
    const uint64_t threads = thread_count();
    return (16 + 4 * (threads < 32 ? threads : 32)) << 20;
}

uint64_t budget(void) {
    if (given && given < LEAST)
        fail("--memory: expected at least 16M, found %" PRIu64 " bytes", given);
    const char *const test =
        getenv("CALYX_TEST_BUDGET"); /* smaller, in tests */
    if (test) return strtoull(test, NULL, 10);
    if (given) return given;
    static uint64_t left; /* before any was taken */
    if (!left) left = memory_left("");
    const uint64_t beside = memory_beside();
    if (left < LEAST + beside) return LEAST;
    return left - beside < left / 2 ? left - beside : left / 2;
}

uint64_t budget_without(uint64_t taken) {
    const uint64_t all = budget(), least = all / 4;
    return taken < all - least ? all - taken : least;
}

/* ---- A look at the input ------------------------------------------------- */

struct sample sample_file(const char *path) {
    enum { SIZE = 1 << 20 };
    struct sample sample = {0};
    if (assumed) return assumed_sample(path);
    if (!is_regular_file(path)) return sample;
    sample.rereadable = true;
    const double started = seconds_now();
    struct byte_source *const source = source_open(path);
    char *const text = alloc_memory(SIZE);
    uint64_t size = 0, ends = 0;
    for (ssize_t n;
         size < SIZE && (n = source_read(source, text, SIZE - size)) > 0;) {
        size += (uint64_t)n;
        for (ssize_t i = 0; i < n; i++) ends += text[i] == record_end();
    }
    sample.plain = source_is_plain_file(source);
    const uint64_t read = source_done(source);
    const uint64_t total = source_size(source);
    if (read) {
        const double all = (double)total / (double)read;
        sample.bytes = (uint64_t)((double)size * all);
        sample.lines = (uint64_t)((double)(ends ? ends : 1) * all) + 1;
        sample.seconds = (seconds_now() - started) * all;
    }
    free(text);
    source_close(source);
    return sample;
}

void sample_add(struct sample *sum, const struct sample *more) {
    sum->rereadable &= more->rereadable;
    sum->plain &= more->plain;
    sum->bytes += more->bytes;
    sum->lines += more->lines;
    sum->seconds += more->seconds;
}

struct sample sample_files(int count, char **files) {
    struct sample sum = {.rereadable = count > 0, .plain = true};
    for (int i = 0; i < count; i++) {
        const struct sample one = sample_file(files[i]);
        sample_add(&sum, &one);
    }
    return sum;
}
