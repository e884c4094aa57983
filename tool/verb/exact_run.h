/* What common, minus and dedup share: sample, plan, open, run, report. */
#ifndef CALYX_TOOL_EXACT_RUN_H
#define CALYX_TOOL_EXACT_RUN_H

#include "exact/method.h"
#include "input/header.h"

enum { MOST_OWN_FIGURES = 3 };

struct exact_run {
    struct exact_job job; /* its outputs are opened here */
    int count;            /* files */
    char **files;
    const char *second; /* file of the second output; NULL: none */
    unsigned header;    /* of enum header_use */
    double started;

    /* Figures of this verb alone; their number is returned. */
    size_t (*own_figures)(const struct figures *f, struct figure *own);
};

/* For the help of the three verbs. */
#define CHANGING_FILES                                                    \
    "If a file grows while it is read, as a log does, the bytes that it " \
    "had at the start are read, even if its last line was not complete "  \
    "then. It is an error if a file shrinks or is overwritten."

/* --dry-run, or all of it. EXIT_NO if no line was printed. */
int exact_run(struct exact_run *run);

#endif
