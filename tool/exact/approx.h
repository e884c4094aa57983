/*
 * --approx: one pass with filters alone, for streams that nothing else holds.
 */
#ifndef CALYX_TOOL_APPROX_H
#define CALYX_TOOL_APPROX_H

#include "input/pipeline.h"

/* --approx[=RATE] */
void parse_approx(const struct verb_option *option, const char *value);
double approx_rate(void); /* 0: not asked for */
#define APPROX_OPTION(text) \
    { 0, "approx", "[=RATE]", text, parse_approx, NULL }

/* An empty filter at that rate, which grows, but not beyond `memory`. */
calyx_filter *approx_filter(void);

/* Put the keys of files into a filter, of those only that `before` may have,
 * if it is given. */
void approx_add(calyx_filter *f, int count, char **files,
                const calyx_filter *before, uint64_t memory);

/* Print the lines that `f` seems to have (`wanted`), or certainly lacks; with
 * `adds`, put in each that it lacks. Returns how many were printed. */
uint64_t approx_print(calyx_filter *f, int count, char **files, bool wanted,
                      bool adds, uint64_t memory, struct output *output,
                      struct input_totals *totals);

#endif
