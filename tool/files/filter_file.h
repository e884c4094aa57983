/* Filter files: open, check, save. */
#ifndef CALYX_TOOL_FILTER_FILE_H
#define CALYX_TOOL_FILTER_FILE_H

#include "tool.h"

/* --key-file FILE: 16 secret bytes, as they are or as 32 hexadecimal digits. */
extern const struct group secret_group;
const uint8_t *secret_key(void); /* NULL if none was given */

/* Open a filter for queries: mapped if it is a plain file, else read, from "-",
 * a pipe, or gzip or zstd. What is read is compared with its checksums at once;
 * what is mapped, range by range before it is first used. A damaged range
 * answers yes: so look at filter_expect_health before an answer is printed. */
calyx_filter *filter_open(const char *path);

/* The same for a file that may hold a filter of another program, as its head or
 * --layout says: then `*foreign` is that filter, and NULL is returned. */
struct foreign_file;
calyx_filter *filter_open_any(const char *path, struct foreign_file **foreign);

/* The same as filter_open for what uses all of a filter: all checksums are
 * compared now. One that was left unsealed by a process that was killed will
 * do. */
calyx_filter *filter_open_whole(const char *path);

/* Fail, naming the file, if a checksum does not match: of what was used so far,
 * which costs nothing; or of all, which is read. */
void filter_expect_health(const calyx_filter *f, const char *path);
void filter_expect_whole(const calyx_filter *f, const char *path);

/* Read a filter into memory of its own, to be changed. */
calyx_filter *filter_load(const char *path, bool concurrent);

/* Fail if this is a filter that is built once from all its keys, and so cannot
 * be `done`: "added to". `instead` says what to do. */
void filter_expect_changeable(const calyx_filter *f, const char *path,
                              const char *done, const char *instead);

/* Write it as output_open and output_write do. */
void filter_save(const calyx_filter *f, const char *path, bool replace);

/* Have the library save to a file with a plain name, as filter_save does. */
typedef calyx_status save_call(void *what, const char *path, calyx_error *why);
void save_file(save_call *save, void *what, const char *path, bool replace);

/* Say so if a filter holds more keys than its rate was promised for. */
void warn_if_overfull(const char *name, const calyx_info *info);

#endif
