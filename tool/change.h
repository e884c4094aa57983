/*
 * A filter file that is to be changed, for add and remove: in place where that
 * is possible, else in memory and then replaced as a whole. Either way one
 * process at a time, and with no key lost if the process ends early.
 */
#ifndef CALYX_TOOL_CHANGE_H
#define CALYX_TOOL_CHANGE_H

#include "tool.h"

/* Open for adding. An early end saves what was added. */
calyx_filter *change_open(const char *path);

/* Open a copy in memory. An early end leaves the file as it was. */
calyx_filter *change_load(const char *path);

/* Save what was changed and close the filter. */
void change_close(void);

#endif
