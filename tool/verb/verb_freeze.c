/*
 * calyx freeze: a counting filter without its counters.
 */
#include "files/filter_file.h"
#include "files/result.h"
#include "tool.h"

static int run(int count, char **operands) {
    (void)count;
    result_path(); /* fails before the work, if it must */
    calyx_filter *const f = filter_open_whole(operands[0]), *frozen;
    calyx_error why;
    if (calyx_freeze(f, &frozen, &why) != CALYX_OK)
        fail_at(operands[0], 0, "%s", why.text);
    result_save(frozen);
    calyx_free(frozen);
    calyx_free(f);
    return EXIT_YES;
}

const struct verb verb_freeze = {
    .name = "freeze",
    .summary = "make a line filter from a counting one, a fifth of its size",
    .synopsis = "[-o OUT] [--force] FILE",
    .prose =
        {"The result answers every query as the counting filter does now, in a "
         "fifth of the memory. Keys cannot be removed from it. Keep the "
         "counting filter where keys come and go, and distribute frozen ones."},
    .groups = {&result_group, &secret_group},
    .examples = {{"calyx freeze -o today.calyx members.calyx",
                  "a small filter to send out"}},
    .least = 1,
    .most = 1,
    .run = run,
};
