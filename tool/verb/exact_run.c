#include "verb/exact_run.h"

#include "exact/spill.h"
#include "files/result.h"
#include "input/header.h"
#include "input/source.h"
#include "mapped/one_pass.h"

static void report_figures(const struct exact_run *run,
                           const struct figures *f) {
    const struct input_totals totals = {.lines = f->lines,
                                        .bytes = f->bytes,
                                        .seconds =
                                            seconds_now() - run->started};
    struct figure figures[MOST_OWN_FIGURES + 7] = {
        {"distinct", (double)f->keys, true}};
    size_t n = 1 + run->own_figures(f, figures + 1);
    figures[n++] = (struct figure){"candidates", (double)f->candidates, true};
    figures[n++] = (struct figure){"spilled_bytes", (double)f->spilled, true};
    figures[n++] =
        (struct figure){"temporary_bytes", (double)f->temporary, true};
    figures[n++] = (struct figure){"read_bytes", (double)f->read, true};
    figures[n++] = (struct figure){"passes", (double)f->passes, true};
    figures[n++] = (struct figure){"partitions", (double)f->partitions, true};
    report(&totals, figures, n);
}

/* ---- With hashes -------------------------------------------------------- */

static size_t first_printed(const struct exact_run *run) {
    size_t reading = 0;
    while (!run->rule.may_print(reading)) reading++;
    return reading;
}

/* Print what the engine has not printed. */
static void print_rest(const struct exact_run *run, uint64_t first,
                       struct figures *f) {
    const struct rule *const rule = &run->rule;
    const struct reading *const last =
        &run->plan.readings[run->plan.reading_count - 1];
    for (int i = 0; i < 1 + (rule->second != NULL); i++) {
        if (i) marks_start(rule->marks, first, !rule->prints_marked);
        const uint64_t bytes =
            marks_print(rule->marks, last->count, last->files,
                        i ? rule->second : rule->output);
        f->read += bytes;
        f->passes += bytes > 0;
    }
}

/* If the plan has a condition for hashes: the readings that may print come
 * last, and the rule marks lines. False if there are too many lines for it. */
static bool run_on_hashes(struct exact_run *run, struct figures *f) {
    struct rule *const rule = &run->rule;
    struct candidates found;
    expect_spill();
    const bool fits =
        candidates_find(&found, run->plan.readings, run->plan.reading_count,
                        run->plan.condition, run->plan.sum.lines, budget());
    if (fits) {
        const uint64_t first = found.starts[first_printed(run)];
        const uint64_t taken = marks_bytes(found.lines);
        const uint64_t *const last =
            found.first_blocks + run->plan.reading_count - 1;
        rule->marks = found.marks;
        rule->marks->sums = found.block_sums + last[0];
        rule->marks->sum_count = last[1] - last[0];
        marks_start(rule->marks, first, rule->prints_marked);
        struct engine *const engine = engine_start(
            rule, budget_without(taken),
            &(struct sample){.bytes = found.bytes / (found.lines + 1) *
                                      found.marked});
        const unsigned passes = engine_read_candidates(
            engine, run->plan.readings, run->plan.reading_count, &found);
        *f = engine_end(engine);
        f->passes = 1 + passes;
        print_rest(run, first, f);
        expect_same_files();
        const uint64_t marked = marks_count(rule->marks, first);
        f->lines = found.lines;
        f->bytes = found.bytes;
        f->read += found.bytes;
        f->candidates = found.marked;
        /* lines that were never marked have a key of their own */
        if (first == 0) f->keys += found.lines - found.marked;
        f->printed =
            rule->prints_marked ? marked : found.lines - first - marked;
    }
    candidates_free(&found);
    rule->marks = NULL;
    return fits;
}

/* ---- Without hashes ----------------------------------------------------- */

static struct figures run_on_lines(const struct exact_run *run) {
    const struct sample nothing = {0};
    struct engine *const engine = engine_start(
        &run->rule, budget(), run->plan.known ? &run->plan.sum : &nothing);
    for (size_t i = 0; i < run->plan.reading_count; i++)
        engine_read(engine, run->plan.readings[i].count,
                    run->plan.readings[i].files);
    expect_same_files();
    struct figures f = engine_end(engine);
    f.passes = 1;
    return f;
}

/* ---- All of it ---------------------------------------------------------- */

static struct figures run_engine(struct exact_run *run) {
    struct figures f, in_vain = {0};
    struct kept_text kept = {0};
    if (run->plan.one_pass) {
        expect_spill(); /* it may be needed after all */
        if (one_pass(&run->rule, &run->plan, budget(), &kept, &f)) return f;
        in_vain = f;
    }
    if (kept.bytes) run->rule.kept = &kept;
    if (!run->plan.condition || !run_on_hashes(run, &f)) f = run_on_lines(run);
    kept_text_close(&kept);
    f.read += in_vain.read;
    f.passes += in_vain.read > 0;
    return f;
}

static void expect_other_files(const struct exact_run *run) {
    for (int i = 0; i < run->count; i++)
        if (file_is_output(run->files[i]))
            fail_at(run->files[i], 0, "input file is also the output");
}

int exact_run(struct exact_run *run) {
    run->plan.one_pass &= one_pass_fits(&run->rule, &run->plan, budget());
    if (only_plans()) {
        print_plan(&run->rule, &run->plan);
        return EXIT_YES;
    }
    if (!result_replaces()) expect_space(&run->rule, &run->plan);
    expect_output(run->second, result_replaces());
    run->rule.output = output_open(result_path_of_lines(), result_replaces());
    if (run->second)
        run->rule.second = output_open(run->second, result_replaces());
    lines_go_to(run->rule.output, run->count, run->files, run->header);
    lines_go_to(run->rule.second, run->count, run->files, LINES_OF_ALL_FILES);
    expect_other_files(run);
    note_files(run->count, run->files);
    read_noted_bytes_only();
    const bool twice = run->plan.condition && !run->plan.one_pass;
    progress_expect((twice ? 2 : 1) * size_of_files(run->count, run->files));
    const struct figures f = run_engine(run);
    output_close(run->rule.output);
    output_close(run->rule.second);
    report_figures(run, &f);
    return f.printed ? EXIT_YES : EXIT_NO;
}
