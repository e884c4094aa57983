#include "files/result.h"

#include <string.h>
#include <unistd.h>

#include "files/filter_file.h"
#include "frame/lock.h"

static const char *path;
static bool replace;

const struct group result_group = {
    "The result",
    {
        {'o', "output", "FILE",
         "Write to FILE, which appears only when it is complete, and is "
         "compressed if its name ends in .gz or .zst. Without this option, or "
         "with -, write to standard output.",
         parse_text, &path},
        {0, "force", NULL, "Replace FILE if it exists.", parse_flag, &replace},
    },
};

const char *result_path_of_lines(void) {
    expect_output(path, replace);
    return !path || strcmp(path, "-") == 0 ? NULL : path;
}

const char *result_path(void) {
    const char *const file = result_path_of_lines();
    if (!file && isatty(STDOUT_FILENO))
        fail("standard output is a terminal, and the result is no text: name "
             "a file with -o FILE");
    if (file && replace) lock_file(file);
    return file;
}

bool result_replaces(void) {
    return replace;
}

void result_save(const calyx_filter *f) {
    filter_save(f, result_path(), replace);
}
