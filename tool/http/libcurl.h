/*
 * libcurl, loaded when the first URL is opened. With the 30 libraries that it
 * needs it takes 5 ms to load, and the command without it 2 ms to start.
 */
#ifndef CALYX_TOOL_LIBCURL_H
#define CALYX_TOOL_LIBCURL_H

#include <curl/curl.h>

/* Its functions, by their names without curl_. */
struct libcurl {
    __typeof__(curl_easy_cleanup) *easy_cleanup;
    __typeof__(curl_easy_getinfo) *easy_getinfo;
    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_setopt) *easy_setopt;
    __typeof__(curl_easy_strerror) *easy_strerror;
    __typeof__(curl_getdate) *getdate;
    __typeof__(curl_global_init) *global_init;
    __typeof__(curl_multi_add_handle) *multi_add_handle;
    __typeof__(curl_multi_cleanup) *multi_cleanup;
    __typeof__(curl_multi_info_read) *multi_info_read;
    __typeof__(curl_multi_init) *multi_init;
    __typeof__(curl_multi_perform) *multi_perform;
    __typeof__(curl_multi_poll) *multi_poll;
    __typeof__(curl_multi_remove_handle) *multi_remove_handle;
    __typeof__(curl_multi_setopt) *multi_setopt;
    __typeof__(curl_slist_append) *slist_append;
    __typeof__(curl_slist_free_all) *slist_free_all;
};

/* Fails, as of this URL, if there is no libcurl, or one without these. */
struct libcurl load_libcurl(const char *url);

#endif
