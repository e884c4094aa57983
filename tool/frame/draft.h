/*
 * A file that is being written, until it takes its name: without one, where the
 * system has such files, so that nothing is left behind however the process
 * ends; else under another name in the same folder, which an early end removes.
 * (The library does the same for what calyx_save writes.)
 */
#ifndef CALYX_TOOL_DRAFT_H
#define CALYX_TOOL_DRAFT_H

#include <sys/stat.h>

#include "tool.h"

struct draft_file {
    char *path;       /* that it gets in the end */
    char *temporary;  /* NULL: it has no name    */
    const char *name; /* for messages            */
    bool replaces;    /* a file that is there    */
    bool may_replace; /* one that comes to be    */
    int fd;           /* to write to             */
};

/* A draft for `path`, links followed; to replace the file `old`, if that is not
 * NULL, with its permissions, group and owner as far as they can be given. All
 * fail(), also if a path is to be written twice. */
struct draft_file *draft_open(const char *path, const struct stat *old,
                              bool may_replace, const char *name);

/* Sync the file and give it its name. If it may not replace a file, one that
 * has appeared meanwhile is an error. */
void draft_publish(struct draft_file *draft);

/* Bring the name of this file to the disk. */
void sync_folder(const char *path);

/* The folder of a path, in memory of its own. */
char *folder_of(const char *path);

/* Give an open file the permissions of another, and its group; and its owner,
 * if `owner`. What can't be given leaves it with less access, never with more.
 */
void copy_access(int fd, const struct stat *of, bool owner, const char *name);

#endif
