/* The result of plan, for printing and drawing. */
#ifndef CALYX_TOOL_PLOT_H
#define CALYX_TOOL_PLOT_H

#include "tool.h"

enum { MOST_KINDS = 16 };

struct planned {
    const char *kind;
    bool possible;
    calyx_info is; /* if it is possible */
    double rate;   /* to expect at capacity */
    char why_not[sizeof((calyx_error *)0)->text];
};

struct plan {
    struct planned kind[MOST_KINDS];
    int kinds;
    const struct planned *chosen; /* the one to make */
};

/* Draw rates against bits a key, for each kind and, for the chosen kind, for
 * each number of probes; rates against the keys that are in; and the rate of
 * the chosen filter against its number of probes. SVG. */
void plot_plan(const struct plan *plan, struct output *to);

#endif
