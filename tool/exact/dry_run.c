/* --dry-run, and the look for space before a run. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "exact/method.h"
#include "exact/spill.h"

/* ---- Likely and worst ---------------------------------------------------- */

/* No line is like the lines of the sample: with hashes, all are candidates,
 * each key twice; else no two are equal. */
static struct line_counts worst_of(const struct method *method,
                                   const struct line_counts *likely) {
    struct line_counts worst = *likely;
    worst.hot = 0;
    worst.marked = worst.lines;
    worst.distinct = worst.lines;
    worst.keys = method->finds_candidates ? worst.lines / 2 : 0;
    return worst;
}

/* What --assume says: a tenth of the lines have a key that occurs twice, in
 * files that are hashed. */
static struct line_counts assumed_counts(const struct exact_job *job) {
    const uint64_t lines = job->sum.lines, twice = lines / 10;
    const double size = (double)job->sum.bytes / (double)lines;
    const double bytes = (double)job->sum.bytes;
    double printed = 0;
    for (size_t i = 0; i < job->op.printing; i++)
        printed +=
            (double)job->readings[job->op.readings - 1 - i].is.bytes / bytes;
    return (struct line_counts){.lines = lines,
                                .bytes = job->sum.bytes,
                                .marked = twice,
                                .keys = job->hashed.lines / 20,
                                .distinct = lines - twice / 2,
                                .stored = (double)job->stored.bytes / bytes,
                                .printed = printed,
                                .distinct_size = size,
                                .distinct_key_size = size - 1};
}

static struct line_counts likely_counts(const struct exact_job *job,
                                        const struct method *method) {
    struct line_counts counts;
    if (assumes_lines()) return assumed_counts(job);
    guess_counts(job, method->finds_candidates ? &job->condition : NULL,
                 &counts);
    return counts;
}

/* Bytes that the folder for temporary files has left; UINT64_MAX: unknown. */
static uint64_t free_space(void) {
    struct statvfs is;
    const char *const test = getenv("CALYX_TEST_SPACE"); /* less, in tests */
    if (test) return strtoull(test, NULL, 10);
    if (statvfs(spill_folder(), &is) != 0) return UINT64_MAX;
    return (uint64_t)is.f_bavail * is.f_frsize;
}

void expect_space(const struct exact_job *job, const struct method *method) {
    const uint64_t space = free_space();
    if (!job->known || space / 4 > job->sum.bytes + 10 * job->sum.lines) return;
    const struct line_counts counts = likely_counts(job, method);
    const struct forecast f = method->cost(job, &counts);
    char wanted[TEXT_SIZE], found[TEXT_SIZE];
    if (f.temporary <= space) return;
    fail("about %s of temporary files are likely, and %s has %s left; -T names "
         "another folder, -S gives more memory, --force begins all the same",
         size_text(f.temporary, wanted), spill_folder(),
         size_text(space, found));
}

/* ---- --dry-run ----------------------------------------------------------- */

/* Reading the files, writing and reading temporary files at 1 GB/s, and about
 * 50 ns a line and pass. */
static double seconds_of(const struct exact_job *job,
                         const struct line_counts *counts,
                         const struct forecast *f) {
    const double passes = (double)f->read / (double)(counts->bytes + 1);
    return job->sum.seconds * passes + 2e-9 * (double)f->spilled +
           5e-8 * (double)counts->lines * passes;
}

static const char *time_text(double seconds, char *text) {
    if (seconds < 600)
        snprintf(text, TEXT_SIZE, "%.1f s", seconds);
    else if (seconds < 36000)
        snprintf(text, TEXT_SIZE, "%.0f min", seconds / 60);
    else
        snprintf(text, TEXT_SIZE, "%.1f h", seconds / 3600);
    return text;
}

static void print_row(const char *name, const char *likely, const char *worst) {
    printf("%-14s %-14s %s\n", name, likely, worst);
}

static void print_sizes(const char *name, uint64_t likely, uint64_t worst) {
    char text[TEXT_SIZE], more[TEXT_SIZE];
    print_row(name, likely ? size_text(likely, text) : "none",
              worst ? size_text(worst, more) : "none");
}

static void print_counts(const char *name, uint64_t likely, uint64_t worst) {
    char text[TEXT_SIZE], more[TEXT_SIZE];
    print_row(name, count_text(likely, text), count_text(worst, more));
}

static void print_space(uint64_t likely) {
    char text[TEXT_SIZE];
    const uint64_t space = free_space();
    if (space == UINT64_MAX) return;
    printf("free space     %s in %s%s\n", size_text(space, text),
           spill_folder(),
           space < likely ? ": too little, even for the likely case" : "");
}

void print_plan(const struct exact_job *job, const struct method *method) {
    char text[TEXT_SIZE], more[TEXT_SIZE];
    printf("memory         %s\n", size_text(budget(), text));
    if (!job->known) {
        printf("input          a pipe, of unknown size\n"
               "passes         1\n"
               "spilled        none if the keys fit, else up to twice the "
               "input\n");
        print_space(0);
        return;
    }
    const struct line_counts likely = likely_counts(job, method);
    const struct line_counts worst = worst_of(method, &likely);
    const struct forecast f = method->cost(job, &likely);
    const struct forecast w = method->cost(job, &worst);
    printf("input          about %s lines, %s\n",
           count_text(likely.lines, text), size_text(likely.bytes, more));
    printf("               likely         worst\n");
    if (method->finds_candidates)
        print_counts("candidates", likely.marked, worst.marked);
    print_counts("passes", f.passes, w.passes);
    print_sizes("read", f.read, w.read);
    print_sizes("spilled", f.spilled, w.spilled);
    print_sizes("temporary", f.temporary, w.temporary);
    print_row("time, about", time_text(seconds_of(job, &likely, &f), text),
              time_text(seconds_of(job, &worst, &w), more));
    print_space(f.temporary);
    const struct figure figures[] = {
        {"passes", (double)f.passes, true},
        {"read_bytes", (double)f.read, true},
        {"spilled_bytes", (double)f.spilled, true},
        {"temporary_bytes", (double)f.temporary, true},
        {"worst_passes", (double)w.passes, true},
        {"worst_read_bytes", (double)w.read, true},
        {"worst_spilled_bytes", (double)w.spilled, true},
        {"worst_temporary_bytes", (double)w.temporary, true}};
    const struct input_totals totals = {likely.lines, likely.bytes,
                                        seconds_of(job, &likely, &f), 0};
    report(&totals, figures, sizeof figures / sizeof *figures);
}
