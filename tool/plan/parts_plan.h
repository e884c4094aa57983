/*
 * The plan of one filter from many machines: how many parts, what each node
 * reads, writes, sends and holds, and how long each phase takes. 'calyx plan
 * --parts' prints it; integrations/slurm reads it.
 */
#ifndef CALYX_TOOL_PARTS_PLAN_H
#define CALYX_TOOL_PARTS_PLAN_H

#include "plan/plot.h"

/* --parts, --nodes and what belongs to them */
extern const struct group nodes_group;

/* Was --parts given? If so: choose, or fail with what is too small. */
bool plans_parts(void);
void plan_parts(const struct planned *filter, uint64_t key_bytes);

void print_parts(void);
void write_parts(void);

#endif
