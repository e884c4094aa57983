/*
 * calyx compare: how two sets overlap, judged by the bits of their filters.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "files/filter_file.h"
#include "frame/json.h"
#include "tool.h"

static bool as_json;
static const char instead[] =
    "look up the keys of one in the other: calyx check -c -f A KEYS";

/* Keys of each and of both; what is only in one follows. */
struct comparison {
    double a, b, either, both, jaccard;
};

static double distinct(const calyx_filter *f) {
    calyx_info is;
    calyx_describe(f, &is);
    return is.distinct;
}

/* Estimates can stray below none. */
static double only(double all, double both) {
    return fmax(0, all - both);
}

static void print_row(const char *what, int width, double keys) {
    char text[TEXT_SIZE];
    printf("%-*s  %15s\n", width, what,
           count_text((uint64_t)round(fmax(0, keys)), text));
}

static void print(const struct comparison *o, char **names) {
    const size_t longest = strlen(names[0]) > strlen(names[1])
                               ? strlen(names[0])
                               : strlen(names[1]);
    const int width = longest < 7 ? 12 : longest > 200 ? 205 : (int)longest + 5;
    char first[256], second[256];
    snprintf(first, sizeof first, "only %.200s", names[0]);
    snprintf(second, sizeof second, "only %.200s", names[1]);

    printf("%-*s  %15s\n", width, "", "keys, about");
    print_row(names[0], width, o->a);
    print_row(names[1], width, o->b);
    print_row("either", width, o->either);
    print_row("both", width, o->both);
    print_row(first, width, only(o->a, o->both));
    print_row(second, width, only(o->b, o->both));
    printf("%-*s  %15.4f  both / either\n", width, "Jaccard", o->jaccard);
}

static void write_json(const struct comparison *o, char **names) {
    json_open(NULL, '{');
    json_text("a", names[0]);
    json_text("b", names[1]);
    json_number("keys_a", o->a);
    json_number("keys_b", o->b);
    json_number("either", o->either);
    json_number("both", o->both);
    json_number("only_a", only(o->a, o->both));
    json_number("only_b", only(o->b, o->both));
    json_number("jaccard", o->jaccard);
    json_close();
}

static int run(int count, char **operands) {
    (void)count;
    calyx_filter *const a = filter_open_whole(operands[0]);
    calyx_filter *const b = filter_open_whole(operands[1]);
    calyx_overlap found;
    calyx_error why;
    filter_expect_changeable(a, operands[0], "compared by its bits", instead);
    filter_expect_changeable(b, operands[1], "compared by its bits", instead);
    if (calyx_compare(a, b, &found, &why) != CALYX_OK)
        fail("%s and %s: %s", operands[0], operands[1], why.text);
    const struct comparison o = {distinct(a), distinct(b), found.either,
                                 found.both, found.jaccard};
    (as_json ? write_json : print)(&o, operands);
    calyx_free(a);
    calyx_free(b);
    return EXIT_YES;
}

static const struct group options = {
    "Options",
    {
        {0, "json", NULL, "Print one object, for programs.", parse_flag,
         &as_json},
    },
};

const struct verb verb_compare = {
    .name = "compare",
    .summary = "estimate how the keys of two filters overlap",
    .synopsis = "[--json] A B",
    .prose = {"Estimates how many keys are in each filter, in either, in both, "
              "and in one only; and the Jaccard index, both / either: 1 for "
              "equal sets, 0 for sets with no key in common.",
              "The numbers are estimated from the bits. Their error is about "
              "one percent of the larger set if that has a thousand keys, and "
              "0.03 percent if it has a million; so a small overlap of large "
              "sets is lost in it. The filters must agree as for 'calyx "
              "merge', and not have grown."},
    .groups = {&options, &secret_group},
    .examples = {{"calyx compare mon.calyx tue.calyx",
                  "how alike were two days?"},
                 {"calyx compare --json a.calyx b.calyx | jq .jaccard",
                  "one number, for a script"}},
    .least = 2,
    .most = 2,
    .run = run,
};
