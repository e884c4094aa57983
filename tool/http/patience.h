/*
 * How long to go on waiting for a server. A leaky bucket of seconds: it is full
 * when requests are sent and whenever an answer is complete; time drains it,
 * and each byte that arrives adds a millisecond. So a server that is silent is
 * given up after the timeout, one that drips below 1 kB/s some time later, and
 * one that goes on answering never, however many requests there are.
 */
#ifndef CALYX_TOOL_PATIENCE_H
#define CALYX_TOOL_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

struct patience {
    double most;    /* seconds: the timeout              */
    double left;    /* at the time of the last call, now */
    double now;     /* seconds_now() of the last call    */
    double since;   /* when it was filled                */
    uint64_t bytes; /* that arrived since then           */
};

void patience_fill(struct patience *patience, double now);

/* Since the last call these bytes arrived, and maybe the end of an answer.
 * Returns the seconds that are left; 0: give up. */
double patience_after(struct patience *patience, double now, uint64_t bytes,
                      bool is_answer);

#endif
