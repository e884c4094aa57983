/*
 * One file, one writer: every verb that changes or replaces a filter file holds
 * the lock of that file until it ends. It is flock(2) on the file itself, which
 * calyx_map takes, too, when it maps for writing.
 */
#ifndef CALYX_TOOL_LOCK_H
#define CALYX_TOOL_LOCK_H

#include <sys/stat.h>

#include "tool.h"

/* --wait[=TIME] */
void parse_wait(const struct verb_option *option, const char *value);
#define WAIT_OPTION                                                          \
    {                                                                        \
        0, "wait", "[=TIME]",                                                \
            "If another process changes FILTER now, wait until it is done, " \
            "at most TIME, such as 10s or 5min, if that is given. Without "  \
            "this option that is an error.",                                 \
            parse_wait, NULL                                                 \
    }

/* Another process has the lock: sleep for a moment, or fail if --wait was not
 * given or its time is over. Then look at the path again: the file may have
 * been replaced. */
void await_other_writer(const char *path);

/* Lock the file of this name until the process ends, or another is locked.
 * False if there is no regular file of this name, or it may not be read: then a
 * process that changes it learns at its end that it was replaced. Fails as
 * above if another process has the lock. */
bool lock_file(const char *path);

/* Lock an open file, of this name; false if another process has the lock. */
bool try_lock(int fd, const char *path);

/* Has this file this name? */
bool is_named(const char *path, const struct stat *file);

/* Is the file that was locked last still the one of this name? */
bool lock_holds(const char *path);

#endif
