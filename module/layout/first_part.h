/* Kind and rate of the first part of a native filter. */
#ifndef CALYX_MODULE_FIRST_PART_H
#define CALYX_MODULE_FIRST_PART_H

#include "layout/layout.h"

/* The kind for filters with these abilities and this rate, those preferred
 * first; the last that has them if none keeps the rate, NULL if none has them.
 */
const char *kind_for(uint32_t abilities, const struct filter_params *params);

/* Of COUNTING: items can be deleted, and filters merged. */
enum { COUNTING_ABILITIES = CALYX_CAN_REMOVE | CALYX_CAN_MERGE };

/* Choose the kind, unless `params` name one, and the rate of the first part; 0
 * leaves the rate to the library. */
double first_part_rate(struct filter_params *params);

#endif
