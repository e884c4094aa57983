/* What a live filter that follows a file needs to know of a live filter. */
#ifndef CALYX_LIVE_H
#define CALYX_LIVE_H

#include "filter/filter.h"

/* Whoever follows something keeps it here, and has it freed with the rest. */
struct follower {
    void *data;
    void (*drop)(void *data);
};

struct follower *live_follower(calyx_live *live);

#endif
