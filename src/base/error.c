#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

calyx_status fail(calyx_error *why, calyx_status status, const char *format,
                  ...) {
    if (!why) return status;
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    /* One line, whatever was put into it. */
    for (char *c = why->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F) *c = '?';
    why->status = status;
    why->os_code = 0;
    return status;
}

calyx_status fail_os(calyx_error *why, const char *path, const char *what) {
    const int code = errno;
    fail(why, CALYX_IO, "%.120s: cannot %s: %.60s", path, what, strerror(code));
    if (why) why->os_code = code;
    return CALYX_IO;
}

calyx_status fail_unknown(calyx_error *why, const char *what, const char *name,
                          const char *const *names) {
    char list[120] = "";
    for (size_t used = 0; *names && used < sizeof list - 1; names++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 used ? ", " : "", *names);
    return fail(why, CALYX_BAD_ARGUMENT,
                "no %s is named '%.60s'; there are: %s", what, name, list);
}

const char *calyx_status_text(calyx_status status) {
    switch (status) {
        case CALYX_OK: return "done";
        case CALYX_BAD_ARGUMENT: return "bad argument";
        case CALYX_NO_MEMORY: return "out of memory";
        case CALYX_FULL: return "the filter is full";
        case CALYX_CANNOT: return "this kind of filter cannot do that";
        case CALYX_MISMATCH: return "the filters do not fit together";
        case CALYX_READ_ONLY: return "the filter is read-only";
        case CALYX_DAMAGED: return "not a filter, or damaged";
        case CALYX_TOO_NEW: return "made with features that this version lacks";
        case CALYX_UNSEALED: return "the checksums are out of date";
        case CALYX_WRONG_KEY: return "another key or another hash";
        case CALYX_IO: return "input or output failed";
    }
    return "unknown status";
}

#define TEXT(x)   #x
#define DIGITS(x) TEXT(x)

const char *calyx_version(void) {
    return DIGITS(CALYX_VERSION_MAJOR) "." DIGITS(
        CALYX_VERSION_MINOR) "." DIGITS(CALYX_VERSION_PATCH);
}

calyx_status check_reserved(const uint64_t *words, size_t n, const char *what,
                            calyx_error *why) {
    for (size_t i = 0; i < n; i++)
        if (words[i] != 0)
            return fail(why, CALYX_BAD_ARGUMENT,
                        "reserved word %llu of %s is not 0: set all of the "
                        "struct to 0 first, or use a newer library",
                        (unsigned long long)i, what);
    return CALYX_OK;
}
