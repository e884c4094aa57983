/*
 * calyx add: add lines to a filter file; with --new, a stream that remembers.
 */
#include <string.h>

#include "change.h"
#include "stream.h"

static bool new_only;
static calyx_filter *filter;
static uint64_t fresh_lines;

static void work(struct block *block, struct batch *batch) {
    hash_block(block, batch, filter, new_only);
}

/* Where line i of a block starts. */
static size_t start_of(const struct block *block, size_t i) {
    return i ? block->ends[i - 1] + 1 : 0;
}

/* Put the fresh lines out, neighbours together. */
static void put_fresh(struct block *block, const bool *fresh) {
    const char end = record_end();
    for (size_t i = 0; i < block->lines; i++) {
        if (!fresh[i]) continue;
        const size_t from = start_of(block, i);
        while (i + 1 < block->lines && fresh[i + 1]) i++;
        block_output(block, block->text + from, block->ends[i] - from);
        block_output(block, &end, 1);
    }
}

static bool turn(struct block *block, struct batch *batch) {
    (void)batch;
    static bool *fresh; /* turns come one at a time */
    static size_t room;
    if (block->lines > room) {
        room = 2 * block->lines;
        fresh = more_memory(fresh, room * sizeof *fresh);
    }
    const calyx_status status =
        calyx_add_hashes(filter, block->hashes, block->lines, fresh, NULL);
    if (status == CALYX_FULL)
        fail("the filter is full, and was made to let no more in");
    if (status != CALYX_OK) fail("%s", calyx_status_text(status));
    for (size_t i = 0; i < block->lines; i++) fresh_lines += fresh[i];
    if (new_only) put_fresh(block, fresh);
    return true;
}

static int run(int count, char **operands) {
    filter = change_open(operands[0]);
    const struct work todo = {
        .work = work,
        .turn = turn,
        .so_far = "the lines before that were added",
        .output = new_only ? output_open(NULL, false) : NULL,
    };
    const struct totals totals = stream(&todo, count - 1, operands + 1);
    output_close(todo.output);
    calyx_info info;
    calyx_describe(filter, &info);
    change_close();
    warn_if_overfull(operands[0], &info);
    const struct figure figures[] = {
        {"keys", (double)totals.lines, true},
        {"fresh", (double)fresh_lines, true},
        {"expected_rate", info.fpr_now, false},
    };
    report(&totals, figures, sizeof figures / sizeof *figures);
    return new_only && !fresh_lines ? EXIT_NO : EXIT_YES;
}

static const struct group options = {
    "Options",
    (const struct option[]){
        {0, "new", NULL,
         "Print the lines that the filter did not seem to have, each the first "
         "time it comes, as soon as they come.",
         take_flag, &new_only},
        {0},
    },
};

const struct verb verb_add = {
    .name = "add",
    .summary = "add lines to a filter, and with --new print the new ones",
    .synopsis = "FILTER [--new] [OPTION]... [FILE]...",
    .prose =
        (const char *const[]){
            "Adds the lines of the files, or of standard input, to the filter "
            "in the file FILTER, which must exist; 'calyx build -n KEYS' makes "
            "an empty one of /dev/null.",
            "With --new it is a stream that remembers: a line that was never "
            "seen passes, and is remembered, also in the next run. A line that "
            "was seen never passes again; a new one is held back as often as "
            "the filter's rate says.",
            "The file is changed in place: what was added stays, whatever "
            "happens to the process. Filters that count or grow, and packed "
            "ones, are read into memory instead, and replaced when the input "
            "ends, or when SIGINT, SIGTERM or a closed pipe ends the stream. "
            "One process at a time can change a filter; others may ask it "
            "meanwhile.",
            "A file of lines that becomes shorter or is written over while it "
            "is read is an error, when its end comes: then lines of it have "
            "been added already. One that only grows is read to its end.",
            "Changing a file in place brings its checksums up to date with "
            "whatever is there. If it may have been damaged, 'calyx verify' "
            "it before.",
            NULL},
    .groups = (const struct group *const[]){&options, &key_group, &secret_group,
                                            &work_group, &progress_group, NULL},
    .examples =
        (const struct example[]){
            {"calyx add seen.calyx today.txt", "remember the lines of a file"},
            {"crawl | calyx add seen.calyx --new | fetch",
             "fetch only what was never seen"},
            {0},
        },
    .status = "0 when all is done; with --new, 1 if no line was new; 2 in "
              "trouble, which is told on standard error.",
    .least = 1,
    .most = -1,
    .run = run,
};
