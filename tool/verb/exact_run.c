#include "verb/exact_run.h"

#include "files/result.h"
#include "input/header.h"
#include "input/source.h"

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

/* ---- The method --------------------------------------------------------- */

static const struct method *const methods[] = {&one_pass, &by_hashes,
                                               &by_spilling};

/* The first that fits, from this one on. */
static const struct method *const *choose(const struct method *const *method,
                                          const struct exact_job *job) {
    while (!(*method)->fits(job)) method++;
    return method;
}

static struct figures run_methods(struct exact_job *job,
                                  const struct method *const *method) {
    struct figures f;
    uint64_t read = 0, passes = 0; /* in vain */
    while (!(*method)->run(job, &f)) {
        read += f.read;
        passes += f.read > 0;
        method = choose(method + 1, job);
    }
    kept_text_close(&job->kept);
    f.read += read;
    f.passes += passes;
    return f;
}

/* ---- All of it ---------------------------------------------------------- */

static void expect_other_files(const struct exact_run *run) {
    for (int i = 0; i < run->count; i++)
        if (file_is_output(run->files[i]))
            fail_at(run->files[i], 0, "input file is also the output");
}

static void add_samples(struct exact_job *job) {
    const struct sample none = {.rereadable = true, .plain = true};
    job->sum = job->stored = job->hashed = none;
    for (size_t i = 0; i < job->op.readings; i++) {
        const struct sample *const is = &job->readings[i].is;
        sample_add(&job->sum, is);
        if (stores_keys(&job->op, i)) sample_add(&job->stored, is);
        if (is_hashed(&job->op, i)) sample_add(&job->hashed, is);
    }
    job->known = job->sum.rereadable;
}

int exact_run(struct exact_run *run) {
    struct exact_job *const job = &run->job;
    struct set_operation *const op = &job->op;
    job->second = run->second != NULL;
    add_samples(job);
    const struct method *const *const method = choose(methods, job);
    if (only_plans()) {
        print_plan(job, *method);
        return EXIT_YES;
    }
    if (!result_replaces()) expect_space(job, *method);
    expect_output(run->second, result_replaces());
    op->output = output_open(result_path_of_lines(), result_replaces());
    if (run->second) op->second = output_open(run->second, result_replaces());
    lines_go_to(op->output, run->count, run->files, run->header);
    lines_go_to(op->second, run->count, run->files, LINES_OF_ALL_FILES);
    expect_other_files(run);
    note_files(run->count, run->files);
    read_noted_bytes_only();
    progress_expect(((*method)->finds_candidates ? 2 : 1) *
                    size_of_files(run->count, run->files));
    const struct figures f = run_methods(job, method);
    output_close(op->output);
    output_close(op->second);
    report_figures(run, &f);
    return f.printed ? EXIT_YES : EXIT_NO;
}
