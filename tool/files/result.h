/* The file that a verb makes: -o and --force, alike for all of them. */
#ifndef CALYX_TOOL_RESULT_H
#define CALYX_TOOL_RESULT_H

#include "tool.h"

extern const struct group result_group;

/* Where to: a file, or NULL for standard output. Fails at once, before any
 * work is done, if that is a terminal, or a file that cannot be made, or a
 * filter that another process changes now; it stays locked. */
const char *result_path(void);
bool result_replaces(void); /* --force */

/* The same for lines, which a terminal may have. */
const char *result_path_of_lines(void);

/* Write the filter there. */
void result_save(const calyx_filter *f);

#endif
