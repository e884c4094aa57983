/*
 * calyx allow: the allow list of a filter, which has keys that are known to be
 * false positives.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/change.h"
#include "files/filter_file.h"
#include "frame/lock.h"
#include "input/pipeline.h"

static bool take_off, show_list;
static calyx_filter *filter;
static uint64_t changed;

static void change_key(const calyx_key *key) {
    calyx_error why;
    bool did = false;
    if (take_off)
        calyx_disallow(filter, key->data, key->size, &did);
    else if (calyx_allow(filter, key->data, key->size, &did, &why) != CALYX_OK)
        fail_with(&why);
    changed += did;
}

static bool in_order(struct text_block *block, struct key_batch *batch) {
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        block->lines += batch->count;
        for (size_t i = 0; i < batch->count; i++) change_key(&batch->keys[i]);
    }
    return true;
}

static int change_list(int count, char **operands) {
    filter = change_load(operands[0]);
    key_options_use(1, (const char *const *)operands, &filter);
    const struct stages stages = {.in_order = in_order};
    const struct input_totals totals =
        run_pipeline(&stages, count - 1, operands + 1);
    calyx_info info;
    calyx_info_of(filter, &info);
    change_close();
    const struct figure figures[] = {
        {"keys", (double)totals.lines, true},
        {take_off ? "removed" : "fresh", (double)changed, true},
        {"allowed", (double)info.allowed, true},
    };
    report(&totals, figures, sizeof figures / sizeof *figures);
    return changed ? EXIT_YES : EXIT_NO;
}

/* ---- Listing ------------------------------------------------------------ */

static int compare_keys(const void *a, const void *b) {
    const calyx_key *const x = a, *const y = b;
    const size_t least = x->size < y->size ? x->size : y->size;
    const int order = least ? memcmp(x->data, y->data, least) : 0;
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

static int print_list(int count, char **operands) {
    if (count > 1 || take_off)
        fail("--list takes the filter alone: it reads no lines");
    filter = filter_open(operands[0]);
    key_options_use(1, (const char *const *)operands, &filter);
    calyx_info info;
    calyx_info_of(filter, &info);
    calyx_key *const keys = alloc_memory((info.allowed + 1) * sizeof *keys);
    uint64_t at = 0;
    size_t n = 0;
    while (calyx_next_allowed(filter, &at, &keys[n])) n++;
    qsort(keys, n, sizeof *keys, compare_keys);
    struct output *const output = output_open(NULL, false);
    const char end = record_end();
    for (size_t i = 0; i < n; i++) {
        output_write(output, keys[i].data, keys[i].size);
        output_write(output, &end, 1);
    }
    output_close(output);
    free(keys);
    calyx_free(filter);
    return n ? EXIT_YES : EXIT_NO;
}

static int run(int count, char **operands) {
    return (show_list ? print_list : change_list)(count, operands);
}

static const struct group options = {
    "Options",
    {
        {0, "remove", NULL, "Take the lines off the list.", parse_flag,
         &take_off},
        {0, "list", NULL, "Print the keys on the list, in order.", parse_flag,
         &show_list},
        WAIT_OPTION,
    },
};

const struct verb verb_allow = {
    .name = "allow",
    .summary = "put known false positives on the allow list of a filter",
    .synopsis = "FILTER [--remove | --list] [OPTION]... [FILE]...",
    .prose = {"Puts the lines of the files, or of standard input, on the allow "
              "list of the filter in the file FILTER: an exact list of keys "
              "that are known not to be in it. Everything that queries the "
              "filter answers no for them, also in a program or a server.",
              "Allow only what is not in the filter. The filter cannot know, "
              "and answers no for what is on the list.",
              "A key that is added later leaves the list: calyx add, the "
              "library and BF.ADD take it off. A filter with a list is "
              "therefore not changed in place, but read and saved as a whole. "
              "'calyx merge' keeps the keys that no filter has.",
              "The keys, and 4 bytes for each, take at most 256 KiB. If there "
              "are more, build a filter with a lower rate.",
              "The file is replaced when the input ends. If an error occurs "
              "before, it stays as it was. Only one process at a time can "
              "change or replace a filter."},
    .common = {"remove", "list", "wait"},
    .groups = {&options, &key_group, &secret_group, &work_group,
               &progress_group},
    .examples =
        {{"calyx check -f spam.calyx friends.txt | calyx allow spam.calyx",
          "no friend is blocked any more"},
         {"calyx allow --list spam.calyx", "who is on the list"}},
    .status = "0 if the list was changed, or --list printed a key; 1 if not; 2 "
              "on an error, with a message on standard error.",
    .least = 1,
    .most = -1,
    .run = run,
};
