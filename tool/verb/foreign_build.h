/* 'calyx build --layout': a filter as another program would make it. */
#ifndef CALYX_TOOL_FOREIGN_BUILD_H
#define CALYX_TOOL_FOREIGN_BUILD_H

#include "tool.h"

/* --layout, --items */
extern const struct group layout_group;

/* Was --layout given? Fails if --items was alone. */
bool wants_foreign(void);

/* Build it of the lines of these files, and save it. Of the other options of
 * build, only -n and -p have a meaning; fails if one of them has another. */
void foreign_build(int count, char **files, const char *out, bool force);

#endif
