/* Kind and rate of the first part of a native filter. */
#ifndef CALYX_MODULE_FIRST_PART_H
#define CALYX_MODULE_FIRST_PART_H

#include "layout/layout.h"

/* Choose the kind, unless `params` name one, and the rate of the first part; 0
 * leaves the rate to the library. */
double first_part_rate(struct filter_params *params);

#endif
