/* Error messages. */
#ifndef CALYX_ERROR_H
#define CALYX_ERROR_H

#include <calyx/calyx.h>

/* Fill `why`, unless it is NULL, and return the status:
 * `return fail(why, CALYX_MISMATCH, "seed %d is not %d", a, b);` */
__attribute__((format(printf, 3, 4))) calyx_status fail(calyx_error *why,
                                                        calyx_status status,
                                                        const char *format,
                                                        ...);

/* "words.calyx: cannot open it: No such file or directory", from errno. */
calyx_status fail_os(calyx_error *why, const char *path, const char *what);

/* Refuse reserved words of an options struct that are not 0: a newer header has
 * options there that this library does not know. */
calyx_status check_reserved(const uint64_t *words, size_t n, const char *what,
                            calyx_error *why);

/* "no kind is named 'x'; there are: line, split, ...", from a list of names. */
calyx_status fail_unknown(calyx_error *why, const char *what, const char *name,
                          const char *const *names);

#endif
