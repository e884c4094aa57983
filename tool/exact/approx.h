/*
 * --approx: one pass with filters alone, for streams that do not fit anywhere.
 * All within the budget of --memory.
 */
#ifndef CALYX_TOOL_APPROX_H
#define CALYX_TOOL_APPROX_H

#include "input/pipeline.h"

/* --approx[=RATE] */
void parse_approx(const struct verb_option *option, const char *value);
double approx_rate(void); /* 0: without --approx */
#define APPROX_OPTION(text) \
    { 0, "approx", "[=RATE]", text, parse_approx, NULL }

/* --dry-run: print what files take. */
void approx_plan(int count, char **files);

/* An empty filter at that rate, which grows. */
calyx_filter *approx_filter(void);

/* Add the keys of files to a filter; only those that `before` has, if given. */
void approx_add(calyx_filter *f, int count, char **files,
                const calyx_filter *before);

/* Print lines by what the filter says of their keys, and close the output. */
enum approx_print { PRINT_PRESENT, PRINT_ABSENT, PRINT_AND_ADD_ABSENT };
struct approx_result {
    uint64_t printed;
    struct input_totals totals;
    calyx_info filter; /* in the end */
};
struct approx_result approx_print(calyx_filter *f, int count, char **files,
                                  enum approx_print what,
                                  struct output *output);

/* --stats: with a figure of the verb. */
void approx_report(const struct approx_result *result, const char *name,
                   double figure);

#endif
