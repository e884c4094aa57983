/*
 * calyx dedup: the first line of each key, in the order of the input, exactly
 * and in the memory that it is given. settle.h tells how.
 */
#include <stdio.h>
#include <string.h>

#include "exact/approx.h"
#include "exact/budget.h"
#include "exact/engine.h"
#include "exact/prefilter.h"
#include "exact/spill.h"
#include "files/result.h"

static const char *dups;
static bool count, only_dups, only_unique;

/* ---- The rule ------------------------------------------------------------ */

static bool always(uint64_t file) {
    (void)file;
    return true;
}

static enum destination meet_once(struct tally *tally, bool fresh,
                                  uint64_t file) {
    (void)tally, (void)file;
    return fresh ? TO_OUTPUT : TO_SECOND;
}

static enum destination meet_and_count(struct tally *tally, bool fresh,
                                       uint64_t file) {
    (void)file;
    tally->count++;
    return fresh ? NOT_PRINTED : TO_SECOND;
}

static bool keeps(const struct tally *tally) {
    return tally->count > 1 ? !only_unique : !only_dups;
}

static bool tallies(void) {
    return count || only_dups || only_unique;
}

/* ---- With a filter alone --------------------------------------------------
 */

static int run_approx(int files_count, char **files) {
    if (tallies() || dups)
        fail("--approx does not go with --count, --only-dups, --only-unique "
             "and --dups: a filter counts nothing, and cannot tell first from "
             "wrong");
    char text[TEXT_SIZE];
    warn("approximate: up to %s of the different lines are taken for "
         "duplicates, and lost",
         rate_text(approx_rate(), text));
    calyx_filter *const f = approx_filter();
    struct input_totals totals;
    struct output *const output =
        output_open(result_path_of_lines(), result_replaces());
    const uint64_t printed = approx_print(f, files_count, files, false, true,
                                          budget(), output, &totals);
    output_close(output);
    calyx_info info;
    calyx_describe(f, &info);
    /* the rate never was higher than it is in the end */
    const double lost = (double)printed * info.fpr_now;
    warn("about %s different lines were lost, or less",
         count_text((uint64_t)(lost + 0.5), text));
    if (wants_report()) {
        const struct figure figures[] = {
            {"printed", (double)printed, true},
            {"lost_at_most", lost, false},
            {"filter_bytes", (double)info.bytes, true},
        };
        report(&totals, figures, sizeof figures / sizeof *figures);
    }
    calyx_free(f);
    return EXIT_YES;
}

/* ---- The verb ------------------------------------------------------------ */

/* A quarter of the memory goes to a filter of all lines, while it is made, and
 * an eighth to the one that remains. */
static uint64_t memory_of_prefilter(void) {
    return budget() / 8;
}

static struct figures run_in_one_pass(int files_count, char **files,
                                      const struct rule *rule,
                                      const struct sample *sum) {
    engine_start(rule, budget(), sum);
    engine_read(files_count, files, NULL, NULL);
    expect_same_files(false);
    struct figures f = engine_end();
    f.passes = 1;
    return f;
}

/* A filter tells which keys come again. All other lines are printed as they
 * are, and of the rest it is marked which were there before. */
static struct figures run_with_marks(int files_count, char **files,
                                     struct rule *rule,
                                     const struct sample *sum) {
    const struct repeats repeats = prefilter_of_repeats(
        files_count, files, sum->lines, memory_of_prefilter());
    const uint64_t lines = repeats.totals.lines;
    /* lines may be shorter than they seemed */
    if (marks_bytes(lines) > budget() / 4) {
        calyx_free(repeats.prefilter);
        return run_in_one_pass(files_count, files, rule, &(struct sample){0});
    }
    const uint64_t keys = prefilter_keys(repeats.prefilter);
    const struct sample expected = {
        .bytes = (uint64_t)((double)repeats.totals.bytes / (double)(lines + 1) *
                            (double)keys),
        .lines = keys};
    rule->marks = marks_new(lines);
    engine_start(
        rule,
        budget_without(prefilter_bytes(repeats.prefilter) + marks_bytes(lines)),
        &(struct sample){.bytes = 2 * expected.bytes});
    const unsigned parts =
        engine_read_in_passes(files_count, files, repeats.prefilter, &expected);
    calyx_free(repeats.prefilter);
    struct figures f = engine_end();
    f.passes = 1 + parts;
    f.passes += marks_print(rule->marks, files_count, files, rule->output);
    if (rule->second)
        f.passes +=
            marks_print_marked(rule->marks, files_count, files, rule->second);
    expect_same_files(true);
    f.lines = lines;
    f.bytes = repeats.totals.bytes;
    f.keys = f.printed = lines - marks_count(rule->marks);
    marks_free(rule->marks);
    return f;
}

static int run(int files_count, char **files) {
    if (only_dups && only_unique)
        fail("--only-dups and --only-unique together leave nothing");
    expect_one_standard_input(files_count, files);
    if (approx_rate() > 0) return run_approx(files_count, files);

    const double started = seconds_now();
    struct rule rule = {
        .tallies = tallies(),
        .takes = always,
        .prints = always,
        .meet = tallies() ? meet_and_count : meet_once,
        .keeps = tallies() ? keeps : NULL,
        .counts = count,
    };
    const struct sample sum = sample_files(files_count, files);
    const bool known = sum.rereadable && files_count > 0;
    /* marks take an eighth of the memory at most */
    const bool by_marks = known && sum.plain && !tallies() &&
                          prefilter_pays(sum.bytes, budget()) &&
                          sum.lines <= budget();
    if (only_plans()) {
        const uint64_t repeats = sum.lines / 2;
        print_plan(&(struct engine_plan){
            .rule = &rule,
            .sum = sum,
            .prefiltered = sum,
            .prefilter =
                by_marks ? prefilter_bytes_for(repeats, memory_of_prefilter())
                         : 0,
            .what_remains = "come again",
            .passes = 1 + by_marks,
            .parts = by_marks,
            .known = known});
        return EXIT_YES;
    }
    expect_output(dups, result_replaces());
    rule.output = output_open(result_path_of_lines(), result_replaces());
    if (dups) rule.second = output_open(dups, result_replaces());
    note_files(files_count, files);
    const struct figures f =
        by_marks ? run_with_marks(files_count, files, &rule, &sum)
                 : run_in_one_pass(files_count, files, &rule,
                                   known ? &sum : &(struct sample){0});
    output_close(rule.output);
    output_close(rule.second);
    if (wants_report()) {
        const struct input_totals totals = {.lines = f.lines,
                                            .bytes = f.bytes,
                                            .seconds = seconds_now() - started};
        const struct figure figures[] = {
            {"distinct", (double)f.keys, true},
            {"printed", (double)f.printed, true},
            {"duplicates", (double)(f.lines - f.keys), true},
            {"candidates", (double)f.candidates, true},
            {"spilled_bytes", (double)f.spilled, true},
            {"passes", (double)f.passes, true},
            {"rounds", (double)f.partitions, true},
        };
        report(&totals, figures, sizeof figures / sizeof *figures);
    }
    return EXIT_YES;
}

static const struct group options = {
    "Options",
    (const struct verb_option[]){
        {'c', "count", NULL,
         "Print before each line how often its key is there, and a tab.",
         parse_flag, &count},
        {'d', "only-dups", NULL,
         "Print the lines only whose key is there more than once; each once.",
         parse_flag, &only_dups},
        {'u', "only-unique", NULL,
         "Print the lines only whose key is there once.", parse_flag,
         &only_unique},
        {0, "dups", "FILE",
         "Write all lines but the first of each key to FILE, in their order.",
         parse_text, &dups},
        APPROX_OPTION(
            "Read and print with a filter alone, in one pass and a few bits a "
            "line: up to RATE of the different lines, 1% if it is not given, "
            "are taken for duplicates and lost."),
        {0},
    },
};

const struct verb verb_dedup = {
    .name = "dedup",
    .summary = "print each different line once, in order, exactly",
    .synopsis = "[-S SIZE] [-o OUT] [OPTION]... [FILE]...",
    .prose =
        (const char *const[]){
            "Reads lines from the files, or from standard input, and prints "
            "the first of those that are equal, or have the same key, in the "
            "order of the input. Unlike 'sort -u' it keeps the order; unlike "
            "'awk !seen[$0]++' it does so in the memory that it is given. "
            "Equality is decided by all bytes of the key.",
            "Files that are not packed are read twice, or up to seven times: "
            "first for a filter that tells which keys come again, then to "
            "settle those, in as many parts as memory asks for. Of pipes and "
            "packed files, and with --count, --only-dups and --only-unique, "
            "keys are kept in memory. When that is full, lines with other "
            "keys go to temporary files by their hash, are settled there part "
            "by part, and printed in their order in the end.",
            NULL},
    .groups = (const struct group *const[]){&options, &result_group,
                                            &budget_group, &key_group,
                                            &work_group, &progress_group, NULL},
    .examples =
        (const struct example[]){
            {"calyx dedup urls.txt more.txt.gz -o all.txt",
             "one list of two, in their order"},
            {"calyx dedup -S 1G --dups again.txt huge.txt >once.txt",
             "in a gigabyte of memory, with duplicates apart"},
            {"calyx dedup -c --csv -k 2 people.csv",
             "how often each value of a column is there"},
            {"tail -f log | calyx dedup --approx=1/10000",
             "a stream without end"},
            {0},
        },
    .most = -1,
    .run = run,
};
