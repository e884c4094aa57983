/*
 * Temporary files without a name: they disappear with the process, however it
 * ends, so nothing is left to clean up. They are read and written at offsets,
 * by any number of threads. Calls return false, or -1, with errno; an
 * interrupted one is tried again. At the end of a file, errno is END_OF_FILE.
 */
#ifndef CALYX_TEMP_FILE_H
#define CALYX_TEMP_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef ENODATA
enum { END_OF_FILE = ENODATA };
#elif defined EFTYPE /* BSD */
enum { END_OF_FILE = EFTYPE };
#else                /* WASI */
enum { END_OF_FILE = EIO };
#endif

/* $TMPDIR, or /tmp. */
const char *temp_folder(void);

int temp_file_open(const char *folder);
bool temp_file_write(int fd, const void *bytes, size_t size, uint64_t at);
bool temp_file_read(int fd, void *buffer, size_t size, uint64_t at);
void temp_file_close(int fd);

/* Zeros in a new file of this size, mapped, on a disk that has room for all of
 * them. NULL on failure. munmap frees them. */
void *temp_file_map(const char *folder, size_t size);

#endif
