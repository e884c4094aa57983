/* What tests of files share: a folder for each test, opening files, and files
 * that are mostly a hole. */
#ifndef CALYX_TEST_SUPPORT_FILES_H
#define CALYX_TEST_SUPPORT_FILES_H

#include <limits.h>

#include "store/ranges.h"
#include "support.h"

/* The folder of the running test, and two names for files in it. */
extern char folder[FOLDER_BYTES];
extern char path[PATH_MAX], other_path[PATH_MAX];

/* cmocka's set-up and tear-down. The second removes the files of these two
 * names, and fails if the test left others. */
int make_folder(void **state);
int end_folder(void **state);
#define IN_FOLDER(test) \
    cmocka_unit_test_setup_teardown(test, make_folder, end_folder)

/* Open a file, or the test fails with the library's own words. */
calyx_filter *map(const char *name, calyx_access access);
calyx_filter *load(const char *name);

/* The status of calyx_verify on a file. */
calyx_status verify_file(const char *name);

/* Save an empty filter, its body a hole in the file, without checksums of
 * ranges. Returns the open file. */
int save_sparse(const calyx_filter *f, const char *name,
                struct file_layout *layout);

/* Write the checksum of one empty range, or of all that hold bits of a hash. */
void write_sum(int fd, const struct file_layout *layout, uint64_t range);
void write_sums(int fd, const struct file_layout *layout, const calyx_filter *f,
                uint64_t hash);

#endif
