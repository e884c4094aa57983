/*
 * calyx help: what can be done, or how one verb is used.
 */
#include <string.h>

#include "tool.h"

static bool manual;

static int run(int count, char **operands) {
    const bool all = count && strcmp(operands[0], "all") == 0;
    const struct verb *const verb =
        count && !all ? verb_named(operands[0]) : NULL;
    if (manual)
        print_manual(verb);
    else if (verb)
        print_help(verb);
    else if (all)
        print_verbs();
    else
        print_overview();
    return EXIT_YES;
}

static const struct group options = {
    "Options",
    {
        {0, "man", NULL,
         "Print the manual page in roff instead; without VERB, the page of "
         "calyx.",
         parse_flag, &manual},
    },
};

const struct verb verb_help = {
    .name = "help",
    .summary = "show what calyx can do, or how to use a verb",
    .synopsis = "[--man] [all | VERB]",
    .prose =
        {"Without VERB, shows the verbs that most people need; with 'all', all "
         "verbs. With VERB, shows what that verb does and its options. The "
         "manual pages are generated from the same text."},
    .groups = {&options},
    .examples = {{"calyx help check", "how check is used"},
                 {"calyx help --man check | man -l -",
                  "the same as a manual page"}},
    .most = 1,
    .run = run,
};
