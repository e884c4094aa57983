/* Saying what went wrong. */
#ifndef CALYX_ERROR_H
#define CALYX_ERROR_H

#include <calyx/calyx.h>

/* Describe a failure to whoever asked (`why` may be NULL), and return it:
 * `return fail(why, CALYX_MISMATCH, "seed %d is not %d", a, b);` */
__attribute__((format(printf, 3, 4))) calyx_status fail(calyx_error *why,
                                                        calyx_status status,
                                                        const char *format,
                                                        ...);

/* "no kind is named 'x'; there are: line, split, ...", from a list of names. */
calyx_status fail_unknown(calyx_error *why, const char *what, const char *name,
                          const char *const *names);

#endif
