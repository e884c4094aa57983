/*
 * calyx merge: one filter for the keys of several.
 */
#include "files/filter_file.h"
#include "files/result.h"
#include "input/key_options.h"
#include "tool.h"

static bool intersect;
static const char instead[] = "query both: calyx check -f A -f B";

static int run(int count, char **operands) {
    result_path(); /* fails before the work, if it must */
    calyx_filter *const f = filter_load(operands[0], false);
    filter_expect_changeable(f, operands[0], "merged", instead);
    for (int i = 1; i < count; i++) {
        calyx_filter *const other = filter_open_whole(operands[i]);
        calyx_error why;
        filter_expect_changeable(other, operands[i], "merged", instead);
        key_options_compare(operands[0], f, operands[i], other);
        if ((intersect ? calyx_intersect : calyx_merge)(f, other, &why) !=
            CALYX_OK)
            fail("%s and %s: %s", operands[0], operands[i], why.text);
        calyx_free(other);
    }
    result_save(f);
    calyx_free(f);
    return EXIT_YES;
}

static const struct group options = {
    "Options",
    (const struct verb_option[]){
        {0, "intersect", NULL,
         "Keep the keys that all filters have, instead of those that any has. "
         "The result may also have keys that pass in each filter for another "
         "reason: its rate is at most the lowest of theirs, but higher than "
         "that of a filter built from the common keys.",
         parse_flag, &intersect},
        {0},
    },
};

const struct verb verb_merge = {
    .name = "merge",
    .summary = "merge several filters into one with the keys of all",
    .synopsis = "[-o OUT] [--force] [--intersect] A B...",
    .prose =
        (const char *const[]){
            "The filters must have the same kind, size, probes, hash and seed "
            "or key: make them with the same 'calyx build' options, -n among "
            "them. The result equals the filter that one build of all their "
            "keys would make. It is as large as each of them, so it may hold "
            "more keys than it was made for: 'calyx info' shows that. Filters "
            "of kind ribbon cannot be merged.",
            "The comment and the options for keys are those of the first "
            "filter. A warning says if others were built with other options "
            "for keys.",
            NULL},
    .groups = (const struct group *const[]){&options, &result_group,
                                            &secret_group, NULL},
    .examples =
        (const struct example[]){
            {"calyx merge -o week.calyx mon.calyx tue.calyx wed.calyx",
             "one filter for three days"},
            {0},
        },
    .least = 2,
    .most = -1,
    .run = run,
};
