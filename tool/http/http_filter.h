/*
 * A filter in a file on a web server, queried without downloading it. The
 * library says which bytes answer a hash (calyx_layout); this file reads them,
 * many at a time, and keeps up to 32 MiB of them.
 *
 * Header and slots are checked when it is opened. Bits are compared with their
 * checksums where a whole range of 64 KiB was read, or with `verify`, which
 * reads such ranges whole. All failures end the process, so no answer comes
 * from bytes that are known to be wrong.
 */
#ifndef CALYX_TOOL_HTTP_FILTER_H
#define CALYX_TOOL_HTTP_FILTER_H

#include "http/range_client.h"

struct http_filter;

/* Header and slots are read. `key`: the secret key, or NULL. */
struct http_filter *http_filter_open(const char *url, const uint8_t *key,
                                     bool verify);
void http_filter_close(struct http_filter *filter);

/* An empty filter with the hash and key options of the file; it belongs to the
 * caller. */
calyx_filter *http_filter_stand_in(const struct http_filter *filter,
                                   const uint8_t *key);

/* What header and slots say: all but fpr_now, fill and distinct. Texts are
 * valid until it is closed; key_options is NULL if unknown. */
struct http_facts {
    calyx_info info;
    const char *comment, *key_options;
};
struct http_facts http_filter_facts(const struct http_filter *filter);

/* Read all of it, and compare it with its checksums. */
void http_filter_verify(struct http_filter *filter);

/* Fail if its kind does not say which bytes a lookup reads. */
void http_filter_expect_lookups(const struct http_filter *filter);

/* Which of these hashes may it have? Any thread. */
void http_filter_has(struct http_filter *filter, const uint64_t *hashes,
                     size_t n, bool *found);

/* Has it an allow list? Then take back what was found of the keys on it. */
bool http_filter_has_list(const struct http_filter *filter);
void http_filter_take_back(const struct http_filter *filter,
                           const calyx_key *keys, size_t n, bool *found);

struct http_traffic http_filter_traffic(const struct http_filter *filter);

#endif
