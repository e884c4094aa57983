/*
 * A filter file that is changed, for add and remove: in place where possible,
 * else in memory and then replaced as a whole. Only one process at a time, and
 * no key is lost if the process ends early.
 */
#ifndef CALYX_TOOL_CHANGE_H
#define CALYX_TOOL_CHANGE_H

#include "tool.h"

/* Open for adding. An early end saves what was added. If the file is missing,
 * make it from what `make` returns; NULL: that is an error. */
calyx_filter *change_open(const char *path, calyx_filter *(*make)(void));

/* Open a copy in memory. An early end leaves the file as it was. */
calyx_filter *change_load(const char *path);

/* What is added is in the file at once. */
bool change_is_in_place(void);

/* What is known of the filter without reading all of it. The rate goes by the
 * number of keys. */
calyx_info change_outline(void);

/* Fail if the file was replaced or removed by another process, or was found to
 * be damaged. Cheap. */
void change_check(void);

/* Save what was changed and close the filter. Fails if it did not reach the
 * disk, or the file is no longer the one of this name. */
void change_close(void);

#endif
