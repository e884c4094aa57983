/*
 * Content-Range, and bodies of the type multipart/byteranges (RFC 9110), which
 * have several ranges of a file, each with a header of its own.
 */
#ifndef CALYX_TOOL_BYTERANGES_H
#define CALYX_TOOL_BYTERANGES_H

#include "http/range_client.h"

struct content_range {
    uint64_t first, last;
    uint64_t total; /* 0: the server does not say, by a * */
};

/* bytes 0-63/4096; false if it is not sound, or has no range. */
bool content_range_from(const char *text, struct content_range *range);

/* The value of this header, if the line is one of that name; else NULL. */
const char *header_value(const char *line, const char *name);

/* Copy up to 32 ranges out of such a body. The server may have joined some. */
enum byteranges {
    BYTERANGES_COMPLETE,
    BYTERANGES_INCOMPLETE, /* one is missing, or the body is not sound */
    BYTERANGES_OTHER_FILE  /* one of another size                      */
};
enum byteranges byteranges_copy(const char *boundary, const char *body,
                                size_t size, uint64_t file_bytes,
                                const struct http_range *const *ranges,
                                size_t n);

#endif
