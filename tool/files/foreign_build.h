/* 'calyx build --layout': a filter as another program would make it. */
#ifndef CALYX_TOOL_FOREIGN_BUILD_H
#define CALYX_TOOL_FOREIGN_BUILD_H

#include "files/foreign_file.h"
#include "input/pipeline.h"

/* --layout, --items */
extern const struct group layout_group;

/* Was --layout given? Fails if --items was alone. */
bool wants_foreign(void);

/* Are the files read twice, first to count their lines? */
bool foreign_counts_first(void);

/* Build it of the lines of these files, which are read twice if neither --keys
 * nor the layout says how large it is. Of the other options of build, only
 * --rate has a meaning; fails if one of them was given. */
struct foreign_file *foreign_build(int count, char **files,
                                   struct input_totals *totals);
void foreign_report(const struct foreign_file *f,
                    const struct input_totals *totals);

#endif
