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

    /* If set, hashes find the candidates first. Then these readings are all
     * files, those that may print last; and the rule marks lines. */
    const struct hash_condition *condition;
    const struct reading *readings;
    size_t reading_count;

    /* Otherwise, and if there are more lines than estimated: run the engine
     * from its start to its end. */
    struct figures (*run)(struct exact_run *run);
    void *context;

    /* Figures of this verb alone; their number is returned. */
    size_t (*own_figures)(const struct figures *f, struct figure *own);
};

/* --dry-run, or all of it. EXIT_NO if no line was printed. */
int exact_run(struct exact_run *run);

#endif
