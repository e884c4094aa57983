/*
 * --approx: one pass with filters alone, for streams that do not fit anywhere.
 * All within the budget of --memory.
 */
#ifndef CALYX_TOOL_APPROX_H
#define CALYX_TOOL_APPROX_H

#include "exact/budget.h"
#include "input/pipeline.h"

/* --approx[=RATE]; without RATE, 1 % or what the memory allows. */
void parse_approx(const struct verb_option *option, const char *value);
double approx_rate(void); /* 0: without --approx */
#define APPROX_OPTION(text) \
    { 0, "approx", "[=RATE]", text, parse_approx, NULL }

/* The filters of a run. If the size of the files is known, they have a fixed
 * size, for the rate or else what the memory allows. */
struct approx {
    calyx_options want;
    uint64_t filter_bytes; /* of all filters at once; 0: they grow */
    double rate;           /* at most, unless they get more keys */
    bool first_too; /* a filter of the first file comes first: it is smaller */
    struct sample keys, first;
};

/* For filters of files with `keys`, two at once if `chain`; and for a `first`
 * file that is looked up in the last one, if that is not NULL. */
struct approx approx_for(const struct sample *keys, const struct sample *first,
                         bool chain);

/* --dry-run: print what a run on files takes that are `sum` together. */
void approx_plan(const struct approx *a, const struct sample *sum);

calyx_filter *approx_filter(const struct approx *a); /* empty */

/* The filter of the first file, if there is to be one; or else NULL. */
calyx_filter *approx_first(const struct approx *a, char **file);

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

/* --stats, with a figure of the verb. Warns if the rate became higher than what
 * was said. */
void approx_report(const struct approx *a, const struct approx_result *result,
                   const char *name, double figure);

#endif
