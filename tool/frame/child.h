/*
 * A command of the shell whose output is our standard input. The list that it
 * prints is whole only if it ends with 0: so its end has to be checked before
 * the list is relied on.
 */
#ifndef CALYX_TOOL_CHILD_H
#define CALYX_TOOL_CHILD_H

#include <sys/types.h>

/* Fails if it cannot be started. */
pid_t child_start(const char *command);

/* Wait for its end. NULL if it ended with 0, else how it ended. */
const char *child_trouble(pid_t child);

#endif
