/* The engine of tables of fixed size: what it has beside the part, if threads
 * share the table. */
#ifndef CALYX_FIXED_ENGINE_H
#define CALYX_FIXED_ENGINE_H

#include "engine/engine.h"

enum { LINE_STRIPES = 64 };

struct fixed_turns {
    uint32_t locked;  /* by a writer                                   */
    uint32_t times;   /* that the thread `by` has locked it            */
    uint32_t writers; /* that have come and gone: odd while one writes */
    const void *by;
    uint32_t versions[LINE_STRIPES]; /* odd while a line changes       */
};

#endif
