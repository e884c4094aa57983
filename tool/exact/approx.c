#include "exact/approx.h"

#include <stdio.h>
#include <string.h>

#include "exact/budget.h"

static double rate;
static bool rate_is_given;

void parse_approx(const struct verb_option *o, const char *value) {
    struct verb_option with_place = *o;
    with_place.into = &rate;
    parse_rate(&with_place, value ? value : "1%");
    rate_is_given = value != NULL;
}

double approx_rate(void) {
    return rate;
}

/* ---- The size of the filters --------------------------------------------- */

static calyx_info plan_filter(const calyx_options *want) {
    calyx_info info;
    calyx_error why;
    if (calyx_plan(want, &info, &why) != CALYX_OK) fail_with(&why);
    return info;
}

/* The rate that `memory` allows. */
static calyx_info fill_memory(struct approx *a, uint64_t memory) {
    enum { MOST_PERCENT = 50, BLOCK = 64 };
    char text[TEXT_SIZE], more[TEXT_SIZE], allowed[TEXT_SIZE];
    a->want.fpr = 0;
    a->want.bits = memory / BLOCK * BLOCK * 8;
    const calyx_info info = plan_filter(&a->want);
    if (rate_is_given ? info.fpr > rate : 100 * info.fpr > MOST_PERCENT)
        fail("a filter of about %s keys in %s of memory has a rate of %s; "
             "allow more with --approx=RATE, or more memory with -S",
             count_text(a->want.capacity, text), size_text(memory, more),
             rate_text(info.fpr, allowed));
    a->rate = info.fpr;
    return info;
}

struct approx approx_for(const struct sample *keys, const struct sample *first,
                         bool chain) {
    struct approx a = {.want = {.kind = rate < 1e-3 ? "line2" : "line",
                                .fpr = rate,
                                .seeded = true},
                       .rate = rate,
                       .keys = *keys};
    if (first) a.first = *first;
    if (!keys->rereadable) {
        a.want.capacity = 100000;
        a.want.growth = 2;
        return a;
    }
    a.first_too = a.first.rereadable && a.first.lines < keys->lines / 2;
    const double lines =
        a.first_too ? (double)a.first.lines + rate * (double)keys->lines
                    : (double)keys->lines;
    a.want.capacity = (uint64_t)(1.005 * lines) + 64; /* an estimate */
    const uint64_t at_once = chain || a.first_too ? 2 : 1;
    const uint64_t memory = budget() / at_once;
    calyx_info info = plan_filter(&a.want);
    if (info.bytes > memory) info = fill_memory(&a, memory);
    a.filter_bytes = at_once * info.bytes;
    return a;
}

void approx_plan(const struct approx *a, const struct sample *sum) {
    char text[TEXT_SIZE], more[TEXT_SIZE];
    const unsigned passes = 1 + a->first_too;
    const uint64_t read = sum->bytes + (a->first_too ? a->first.bytes : 0);
    printf("memory         %s\n", size_text(budget(), text));
    if (sum->rereadable)
        printf("input          about %s lines, %s\n",
               count_text(sum->lines, text), size_text(sum->bytes, more));
    else
        printf("input          a pipe, of unknown size\n");
    printf("passes         %u\n"
           "spilled        none\n",
           passes);
    if (a->filter_bytes)
        printf("filter         %s\n", size_text(a->filter_bytes, text));
    printf("rate           %s\n", rate_text(a->rate, text));
    const struct figure figures[] = {
        {"passes", passes, true},
        {"read_bytes", (double)read, true},
        {"spilled_bytes", 0, true},
        {"temporary_bytes", 0, true},
        {"filter_bytes", (double)a->filter_bytes, true},
        {"rate", a->rate, false}};
    const struct input_totals totals = {sum->lines, sum->bytes, sum->seconds,
                                        0};
    report(&totals, figures, sizeof figures / sizeof *figures);
}

struct approx_job {
    calyx_filter *filter;
    const calyx_filter *before;
    enum approx_print what;
    uint64_t memory, printed;
};

/* With one seed: the filters of several files share the hashes of lines. */
calyx_filter *approx_filter(const struct approx *a) {
    calyx_error why;
    calyx_filter *f;
    if (calyx_new(&a->want, &f, &why) != CALYX_OK) fail_with(&why);
    return f;
}

static void add(calyx_filter *f, const uint64_t *hashes, size_t n,
                bool *fresh) {
    const calyx_status status = calyx_add_hashes(f, hashes, n, fresh, NULL);
    if (status != CALYX_OK)
        fail("the filter cannot grow: %s", calyx_status_text(status));
}

static void expect_memory(const struct approx_job *job) {
    calyx_info info;
    calyx_info_of(job->filter, &info);
    if (info.bytes > job->memory)
        fail("the filter would take more than --memory allows, %llu bytes; "
             "allow a higher rate, or more memory",
             (unsigned long long)job->memory);
}

static void hash_lines(struct text_block *block, struct key_batch *batch) {
    const struct approx_job *const job = block->context;
    hash_block(block, batch, job->filter, true);
}

/* ---- Lines into a filter ------------------------------------------------- */

static bool add_lines(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    const struct approx_job *const job = block->context;
    bool found[BATCH];
    for (size_t at = 0; at < block->lines; at += BATCH) {
        uint64_t *const hashes = block->hashes + at;
        const size_t left = block->lines - at;
        size_t n = left < BATCH ? left : BATCH;
        if (job->before) {
            calyx_has_hashes(job->before, hashes, n, found);
            n = select_hashes(hashes, found, n);
        }
        add(job->filter, hashes, n, NULL);
    }
    expect_memory(job);
    return true;
}

void approx_add(calyx_filter *f, int count, char **files,
                const calyx_filter *before) {
    struct approx_job job = {.filter = f, .before = before, .memory = budget()};
    const struct stages stages = {
        .in_parallel = hash_lines, .in_order = add_lines, .context = &job};
    run_pipeline(&stages, count, files);
}

calyx_filter *approx_first(const struct approx *a, char **file) {
    if (!a->first_too) return NULL;
    calyx_filter *const f = approx_filter(a);
    approx_add(f, 1, file, NULL);
    return f;
}

/* ---- Lines out ----------------------------------------------------------- */

static bool print_lines(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    struct approx_job *const job = block->context;
    bool known[BATCH];
    size_t from = 0;
    for (size_t at = 0; at < block->lines; at += BATCH) {
        const uint64_t *const hashes = block->hashes + at;
        const size_t left = block->lines - at;
        const size_t n = left < BATCH ? left : BATCH;
        if (job->what == PRINT_AND_ADD_ABSENT) {
            add(job->filter, hashes, n, known);
            for (size_t i = 0; i < n; i++) known[i] = !known[i];
        } else {
            calyx_has_hashes(job->filter, hashes, n, known);
        }
        for (size_t i = 0; i < n; i++) {
            const size_t to = block->ends[at + i];
            if (known[i] == (job->what == PRINT_PRESENT)) {
                block_output_line(block, block->text + from, to - from);
                job->printed++;
            }
            from = to + 1;
        }
    }
    expect_memory(job);
    return true;
}

struct approx_result approx_print(calyx_filter *f, int count, char **files,
                                  enum approx_print what,
                                  struct output *output) {
    struct approx_job job = {.filter = f, .what = what, .memory = budget()};
    const struct stages stages = {.in_parallel = hash_lines,
                                  .in_order = print_lines,
                                  .output = output,
                                  .context = &job};
    struct approx_result result = {.totals =
                                       run_pipeline(&stages, count, files)};
    result.printed = job.printed;
    output_close(output);
    calyx_describe(f, &result.filter);
    return result;
}

void approx_report(const struct approx *a, const struct approx_result *result,
                   const char *name, double figure) {
    char text[TEXT_SIZE];
    if (result->filter.fpr_now > 1.1 * a->rate)
        warn("the rate became %s: there are more lines than the first megabyte "
             "of each file suggests",
             rate_text(result->filter.fpr_now, text));
    const struct figure figures[] = {
        {"printed", (double)result->printed, true},
        {name, figure, false},
        {"filter_bytes", (double)result->filter.bytes, true},
    };
    report(&result->totals, figures, sizeof figures / sizeof *figures);
}
