#include "verb/exact_run.h"

#include "files/result.h"

static void report_figures(const struct exact_run *run,
                           const struct figures *f) {
    const struct input_totals totals = {.lines = f->lines,
                                        .bytes = f->bytes,
                                        .seconds =
                                            seconds_now() - run->started};
    struct figure figures[MOST_OWN_FIGURES + 5] = {
        {"distinct", (double)f->keys, true}};
    size_t n = 1 + run->own_figures(f, figures + 1);
    figures[n++] = (struct figure){"candidates", (double)f->candidates, true};
    figures[n++] = (struct figure){"spilled_bytes", (double)f->spilled, true};
    figures[n++] = (struct figure){"passes", (double)f->passes, true};
    figures[n++] = (struct figure){"partitions", (double)f->partitions, true};
    report(&totals, figures, n);
}

int exact_run(struct exact_run *run) {
    if (only_plans()) {
        print_plan(&run->rule, &run->plan);
        return EXIT_YES;
    }
    expect_output(run->second, result_replaces());
    run->rule.output = output_open(result_path_of_lines(), result_replaces());
    if (run->second)
        run->rule.second = output_open(run->second, result_replaces());
    note_files(run->count, run->files);
    const struct figures f = run->run(run);
    output_close(run->rule.output);
    output_close(run->rule.second);
    if (wants_report()) report_figures(run, &f);
    return f.printed ? EXIT_YES : EXIT_NO;
}
