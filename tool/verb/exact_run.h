/* What common, minus and dedup share: sample, plan, open, run, report. */
#ifndef CALYX_TOOL_EXACT_RUN_H
#define CALYX_TOOL_EXACT_RUN_H

#include "exact/engine.h"
#include "input/header.h"

enum { MOST_OWN_FIGURES = 3 };

struct exact_run {
    struct rule rule; /* the outputs are opened here */
    struct engine_plan plan;
    int count; /* files */
    char **files;
    const char *second; /* file of the second output; NULL: none */
    unsigned header;    /* of enum header_use */
    double started;

    /* Figures of this verb alone; their number is returned. */
    size_t (*own_figures)(const struct figures *f, struct figure *own);
};

/* --dry-run, or all of it. EXIT_NO if no line was printed. */
int exact_run(struct exact_run *run);

#endif
