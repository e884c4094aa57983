/*
 * Why a layout of another module refused bytes or options. These layouts know
 * neither the server nor the library's inside, so that they can be tested
 * alone; this is their share of what the library has in base/error.h.
 */
#ifndef CALYX_FOREIGN_LAYOUT_ERROR_H
#define CALYX_FOREIGN_LAYOUT_ERROR_H

#include <calyx/calyx.h>
#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 3, 4))) static inline void layout_explain(
    calyx_error *why, calyx_status status, const char *format, ...) {
    if (!why) return;
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    why->status = status;
    why->os_code = 0;
}

/* Set the error, unless `why` is NULL, and return the status: a macro, so that
 * analyzers see it. */
#define layout_fail(why, status, ...) \
    (layout_explain(why, status, __VA_ARGS__), (status))

#endif
