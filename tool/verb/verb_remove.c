/*
 * calyx remove: make a filter forget lines.
 */
#include <string.h>

#include "files/change.h"
#include "files/filter_file.h"
#include "frame/file_list.h"
#include "frame/lock.h"
#include "input/header.h"
#include "input/pipeline.h"

static bool absent_only;
static calyx_filter *filter;
static uint64_t removed;

static bool in_order(struct text_block *block, struct key_batch *batch) {
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        block->lines += batch->count;
        for (size_t i = 0; i < batch->count; i++) {
            bool found = false;
            const calyx_status status = calyx_remove(
                filter, batch->keys[i].data, batch->keys[i].size, &found);
            if (status != CALYX_OK) fail("%s", calyx_status_text(status));
            removed += found;
            if (!found && absent_only)
                block_output_line(block, batch->lines[i].data,
                                  batch->lines[i].size);
        }
    }
    return true;
}

static int run(int count, char **operands) {
    filter = change_load(operands[0]);
    key_options_use(1, (const char *const *)operands, &filter);
    calyx_info info;
    filter_expect_changeable(filter, operands[0], "removed from",
                             "put these keys into a filter of exceptions: "
                             "calyx check -f OLD --except REMOVED");
    calyx_describe(filter, &info);
    if (!(info.can & CALYX_CAN_REMOVE))
        fail_at(operands[0], 0,
                "keys cannot be removed from kind %s; expected kind bucket or "
                "counting",
                info.kind);
    const struct stages stages = {
        .in_order = in_order,
        .output = absent_only ? output_open(NULL, false) : NULL,
    };
    lines_go_to(stages.output, count - 1, operands + 1, LINES_OF_ALL_FILES);
    const struct input_totals totals =
        run_pipeline(&stages, count - 1, operands + 1);
    output_close(stages.output);
    calyx_describe(filter, &info);
    change_close();
    const struct figure figures[] = {
        {"keys", (double)totals.lines, true},
        {"removed", (double)removed, true},
        {"expected_rate", info.fpr_now, false},
    };
    report(&totals, figures, sizeof figures / sizeof *figures);
    return removed ? EXIT_YES : EXIT_NO;
}

static const struct group options = {
    "Options",
    {
        {0, "absent", NULL, "Print the lines that certainly were not there.",
         parse_flag, &absent_only},
        WAIT_OPTION,
        FILE_LIST_OPTION,
    },
};

const struct verb verb_remove = {
    .name = "remove",
    .summary = "remove lines from a filter",
    .synopsis = "FILTER [--absent] [OPTION]... [FILE]...",
    .prose = {"Removes the lines of the files, or of standard input, from the "
              "filter in the file FILTER, which must be of kind bucket or "
              "counting. A line that was added twice must be removed twice; of "
              "more than 14 additions to a filter of kind bucket some stay.",
              "Remove only what was added. A line that was never added is "
              "reported as absent, and changes nothing, unless it passes as a "
              "false positive: at the rate of the filter. Then another key is "
              "lost in its place.",
              "The file is replaced when the input ends. If an error occurs "
              "before, it stays as it was. Only one process at a time can "
              "change or replace a filter."},
    .common = {"absent", "wait"},
    .groups = {&options, &key_group, &secret_group, &work_group,
               &progress_group},
    .examples = {{"calyx build --kind bucket -o members.calyx all.txt",
                  "a filter that keys can be removed from"},
                 {"calyx remove members.calyx left.txt",
                  "remove some of them"}},
    .status = "0 if a line was removed, 1 if none was, 2 on an error, with a "
              "message on standard error.",
    .least = 1,
    .most = -1,
    .run = run,
};
