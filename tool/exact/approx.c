#include "exact/approx.h"

#include <stdio.h>
#include <string.h>

#include "exact/budget.h"

static double rate;

void parse_approx(const struct verb_option *o, const char *value) {
    struct verb_option with_place = *o;
    with_place.into = &rate;
    parse_rate(&with_place, value ? value : "1%");
}

double approx_rate(void) {
    return rate;
}

static const char *approx_kind(void) {
    return rate < 1e-3 ? "line2" : "line";
}

static uint64_t planned_filter_bytes(uint64_t lines) {
    const calyx_options want = {
        .kind = approx_kind(), .capacity = lines + 1, .fpr = rate};
    calyx_info info;
    calyx_error why;
    if (calyx_plan(&want, &info, &why) != CALYX_OK) fail_with(&why);
    return info.bytes;
}

void approx_plan(int count, char **files) {
    char text[TEXT_SIZE], more[TEXT_SIZE];
    const struct sample sum = sample_files(count, files);
    const bool known = sum.rereadable;
    const uint64_t filter = known ? planned_filter_bytes(sum.lines) : 0;
    printf("memory         %s\n", size_text(budget(), text));
    if (known)
        printf("input          about %s lines, %s\n",
               count_text(sum.lines, text), size_text(sum.bytes, more));
    else
        printf("input          a pipe, of unknown size\n");
    printf("passes         1\n"
           "spilled        none\n");
    if (known)
        printf("filter         about %s%s\n", size_text(filter, text),
               filter > budget() ? ": more than --memory allows, unless many "
                                   "lines are equal"
                                 : "");
    const struct figure figures[] = {{"passes", 1, true},
                                     {"read_bytes", (double)sum.bytes, true},
                                     {"spilled_bytes", 0, true},
                                     {"temporary_bytes", 0, true},
                                     {"filter_bytes", (double)filter, true}};
    const struct input_totals totals = {sum.lines, sum.bytes, sum.seconds, 0};
    report(&totals, figures, sizeof figures / sizeof *figures);
}

struct approx_job {
    calyx_filter *filter;
    const calyx_filter *before;
    enum approx_print what;
    uint64_t memory, printed;
};

/* With one seed: the filters of several files share the hashes of lines. */
calyx_filter *approx_filter(void) {
    const calyx_options want = {.kind = approx_kind(),
                                .capacity = 100000,
                                .fpr = rate,
                                .growth = 2,
                                .seeded = true};
    calyx_error why;
    calyx_filter *f;
    if (calyx_new(&want, &f, &why) != CALYX_OK) fail_with(&why);
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

void approx_report(const struct approx_result *result, const char *name,
                   double figure) {
    const struct figure figures[] = {
        {"printed", (double)result->printed, true},
        {name, figure, false},
        {"filter_bytes", (double)result->filter.bytes, true},
    };
    report(&result->totals, figures, sizeof figures / sizeof *figures);
}
