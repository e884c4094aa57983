#ifdef CALYX_HAVE_CURL
#include "http/libcurl.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "tool.h"

static const struct {
    const char *name;
    size_t at;
} functions[] = {
    {"curl_easy_cleanup", offsetof(struct libcurl, easy_cleanup)},
    {"curl_easy_getinfo", offsetof(struct libcurl, easy_getinfo)},
    {"curl_easy_init", offsetof(struct libcurl, easy_init)},
    {"curl_easy_setopt", offsetof(struct libcurl, easy_setopt)},
    {"curl_easy_strerror", offsetof(struct libcurl, easy_strerror)},
    {"curl_getdate", offsetof(struct libcurl, getdate)},
    {"curl_global_init", offsetof(struct libcurl, global_init)},
    {"curl_multi_add_handle", offsetof(struct libcurl, multi_add_handle)},
    {"curl_multi_cleanup", offsetof(struct libcurl, multi_cleanup)},
    {"curl_multi_info_read", offsetof(struct libcurl, multi_info_read)},
    {"curl_multi_init", offsetof(struct libcurl, multi_init)},
    {"curl_multi_perform", offsetof(struct libcurl, multi_perform)},
    {"curl_multi_poll", offsetof(struct libcurl, multi_poll)},
    {"curl_multi_remove_handle", offsetof(struct libcurl, multi_remove_handle)},
    {"curl_multi_setopt", offsetof(struct libcurl, multi_setopt)},
    {"curl_slist_append", offsetof(struct libcurl, slist_append)},
    {"curl_slist_free_all", offsetof(struct libcurl, slist_free_all)},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

_Static_assert(FUNCTIONS * sizeof(void *) == sizeof(struct libcurl),
               "each function of libcurl is in the table");

/* It stays loaded: there is no way back from curl_global_init. */
struct libcurl load_libcurl(const char *url) {
    struct libcurl curl;
    void *const library = dlopen(CALYX_LIBCURL, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_at(url, 0, "filters by URL need libcurl: %s", dlerror());
    for (size_t i = 0; i < FUNCTIONS; i++) {
        void *const found = dlsym(library, functions[i].name);
        if (!found)
            fail_at(url, 0, "filters by URL need a newer libcurl: %s",
                    dlerror());
        memcpy((char *)&curl + functions[i].at, &found, sizeof found);
    }
    return curl;
}
#endif
