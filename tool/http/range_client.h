/*
 * Byte ranges of one file on a web server, by libcurl: up to 256 requests in
 * flight, over HTTP/2 where the server has it; and up to 32 small ranges in a
 * request, where the server takes that. Built without libcurl, opening
 * fails and says how to get it, and all else here is then never called.
 *
 * No byte is returned that may not be the file's. An answer must be 206 with
 * the range that was requested, of the same size and with the same ETag (or, if
 * there is none, Last-Modified) as the first answer, and not be compressed.
 * Otherwise the process fails with a message; so it does if the server stays
 * silent for the timeout, twice (patience.h), or if requests fail four times.
 */
#ifndef CALYX_TOOL_RANGE_CLIENT_H
#define CALYX_TOOL_RANGE_CLIENT_H

#include "tool.h"

#ifdef CALYX_HAVE_CURL
#define BY_LIBCURL
#else
#define BY_LIBCURL __attribute__((weak)) /* not there, and never called */
#endif

struct range_client;

/* Read the first bytes of the file, up to *size, and set *size to the number of
 * those that it has. */
struct range_client *range_client_open(const char *url, void *first,
                                       size_t *size);
BY_LIBCURL void range_client_close(struct range_client *client);

/* The URL without a password, for messages; the size of the file, in bytes. */
BY_LIBCURL const char *range_client_name(const struct range_client *client);
BY_LIBCURL uint64_t range_client_file_bytes(const struct range_client *client);

/* Was the file less than 2 seconds old when it was opened? Then it may be
 * replaced once more without another ETag, if that is made of its time in
 * seconds and of its size, as the ETag of nginx is. */
BY_LIBCURL bool range_client_is_young(const struct range_client *client);

/* Say that the file has changed meanwhile. */
BY_LIBCURL _Noreturn void range_client_fail_changed(
    const struct range_client *client);

/* Read all of these. They must lie within the file. One thread at a time. */
struct http_range {
    uint64_t at;
    size_t size;
    uint8_t *bytes;
};
BY_LIBCURL void range_client_read(struct range_client *client,
                                  const struct http_range *ranges, size_t n);

/* Requests sent, and bytes of the file received. */
struct http_traffic {
    uint64_t requests, bytes;
};
BY_LIBCURL struct http_traffic range_client_traffic(
    const struct range_client *client);

#endif
