/* What the files that open files share. */
#ifndef CALYX_FILE_H
#define CALYX_FILE_H

#include <calyx/calyx.h>

/* Put the name of a file before an error that is about its contents. */
calyx_status fail_in(calyx_error *why, const char *path, calyx_status status);

/* Open a regular file that is not empty; `*size` becomes its size. */
calyx_status open_regular(const char *path, int flags, int *fd, uint64_t *size,
                          calyx_error *why);

/* Write a file as calyx_save does: beside the old one, synced, then renamed. */
typedef calyx_status write_bytes(void *what, calyx_put_function *put,
                                 void *context, calyx_error *why);
calyx_status save_by(write_bytes *write, void *what, const char *path,
                     calyx_error *why);

/* Should a call that just failed be tried again, because a signal came between?
 * But what always fails is an error. */
bool was_interrupted(int tries);

/* Bring an open file to the disk. */
bool sync_file(int fd);

#endif
