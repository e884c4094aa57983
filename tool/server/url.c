#include "server/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame/passwords.h"

static const struct scheme {
    const char *start;
    bool tls, socket;
} schemes[] = {{"redis://", false, false},
               {"rediss://", true, false},
               {"redis+unix://", false, true}};

static const struct scheme *scheme_of(const char *url) {
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncmp(url, schemes[i].start, strlen(schemes[i].start)) == 0)
            return &schemes[i];
    return NULL;
}

static bool is_address(const char *word) {
    return scheme_of(word) != NULL;
}

static char *copy_part(const char *from, size_t size) {
    char *const text = alloc_memory(size + 1);
    memcpy(text, from, size);
    text[size] = '\0';
    return text;
}

/* ---- Parts of a URL ------------------------------------------------------ */

/* The part USER:PASSWORD of a URL: up to the last @ before its path, since a
 * password may have one that somebody forgot to write as %40. */
static size_t credentials_size(const char *rest) {
    const size_t authority = strcspn(rest, "/?");
    const char *const at = memrchr(rest, '@', authority);
    return at ? (size_t)(at - rest) : 0;
}

static _Noreturn void fail_address(const char *shown, const char *what) {
    fail("%s: %s; the form is redis://[USER:PASSWORD@]HOST[:PORT][/DB]/KEY, "
         "rediss:// for TLS, or redis+unix:///PATH?key=KEY",
         shown, what);
}

/* Decode %2F and the like. */
static char *decode(const char *text, size_t size, size_t *decoded) {
    char *const out = alloc_memory(size + 1);
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        const bool coded = text[i] == '%' && i + 2 < size &&
                           hex_digit(text[i + 1]) >= 0 &&
                           hex_digit(text[i + 2]) >= 0;
        out[n++] =
            coded ? (char)(16 * hex_digit(text[i + 1]) + hex_digit(text[i + 2]))
                  : text[i];
        if (coded) i += 2;
    }
    out[n] = '\0';
    *decoded = n;
    return out;
}

/* The same where %00 would end it. */
static char *decode_text(const char *shown, const char *text, size_t size) {
    size_t decoded;
    char *const out = decode(text, size, &decoded);
    if (memchr(out, '\0', decoded))
        fail_address(shown, "a user, password or path cannot have a %00");
    return out;
}

static bool small_number(const char *text, size_t size, int most, int *number) {
    if (size == 0 || size > 9 || strspn(text, "0123456789") < size)
        return false;
    *number = atoi(text);
    return *number <= most;
}

static void parse_credentials(struct url *a, const char *text, size_t size) {
    const char *const colon = memchr(text, ':', size);
    const size_t user = colon ? (size_t)(colon - text) : size;
    if (user) a->user = decode_text(a->shown, text, user);
    if (colon) a->password = decode_text(a->shown, colon + 1, size - user - 1);
}

static void parse_host(struct url *a, const char *shown, const char *text,
                       size_t size) {
    const char *port = NULL;
    size_t host = size;
    if (size && *text == '[') { /* [::1]:6379 */
        const char *const end = memchr(text, ']', size);
        if (!end) fail_address(shown, "a ] is missing");
        host = (size_t)(end - text) + 1;
        if (host < size && end[1] != ':')
            fail_address(shown, "missing : after ]");
        if (host < size) port = end + 2;
        a->host = copy_part(text + 1, host - 2);
    } else {
        const char *const colon = memchr(text, ':', size);
        if (colon) host = (size_t)(colon - text);
        if (colon) port = colon + 1;
        a->host = copy_part(text, host);
    }
    if (!*a->host) fail_address(shown, "it names no host");
    a->port = 6379;
    if (port &&
        (!small_number(port, (size_t)(text + size - port), 65535, &a->port) ||
         a->port == 0))
        fail_address(shown, "the port is no number from 1 to 65535");
}

/* /KEY or /DB/KEY: what begins with a number and a slash has both. Where only
 * the server is wanted, /DB. */
static void parse_path(struct url *a, const char *path, bool keyless) {
    if (*path == '/') path++;
    const size_t first = strspn(path, "0123456789");
    if ((path[first] == '/' || (keyless && !path[first])) &&
        small_number(path, first, INT32_MAX, &a->db))
        path += first + (path[first] == '/');
    a->key = decode(path, strlen(path), &a->key_size);
}

/* ?key=KEY&db=DB */
static void parse_query(struct url *a, const char *shown, const char *query) {
    while (*query) {
        const size_t size = strcspn(query, "&");
        const char *const value = memchr(query, '=', size);
        const size_t name = value ? (size_t)(value - query) : size;
        const size_t rest = value ? size - name - 1 : 0;
        if (name == 3 && memcmp(query, "key", 3) == 0 && value)
            a->key = decode(value + 1, rest, &a->key_size);
        else if (name != 2 || memcmp(query, "db", 2) != 0 || !value ||
                 !small_number(value + 1, rest, INT32_MAX, &a->db))
            fail_address(shown, "after ? stand key=KEY and db=NUMBER");
        query += size + (query[size] == '&');
    }
}

/* ---- The whole ----------------------------------------------------------- */

static char *without_credentials(const char *url, const char *rest) {
    const size_t size = secret_size(rest);
    const char *const after = rest + size + (size > 0);
    char *const shown = alloc_memory(strlen(url) + 1);
    sprintf(shown, "%.*s%s", (int)(rest - url), url, after);
    return shown;
}

static struct url parse(const char *url, bool keyless) {
    const struct scheme *const scheme = scheme_of(url);
    if (!scheme) fail_address("this", "it does not begin with redis://");
    const char *rest = url + strlen(scheme->start);
    struct url a = {.tls = scheme->tls,
                    .shown = without_credentials(url, rest)};
    const size_t credentials = credentials_size(rest);
    if (credentials != secret_size(rest))
        fail_address(a.shown,
                     "it has an @ after a / or ?, so that it is not "
                     "clear where the password ends: write the characters of "
                     "user, password and key as %40, %2F and %3F");
    if (credentials) {
        parse_credentials(&a, rest, credentials);
        rest += credentials + 1;
    }
    if (scheme->socket) {
        const size_t path = strcspn(rest, "?");
        a.socket = decode_text(a.shown, rest, path);
        if (!*a.socket) fail_address(a.shown, "it names no socket");
        if (rest[path]) parse_query(&a, a.shown, rest + path + 1);
    } else {
        const size_t authority = strcspn(rest, "/");
        parse_host(&a, a.shown, rest, authority);
        parse_path(&a, rest + authority, keyless);
    }
    return a;
}

struct url parse_url(const char *word) {
    const char *const full = as_given(word);
    struct url a;
    if (is_address(full)) {
        a = parse(full, false);
        if (!a.key || !a.key_size) fail_address(a.shown, "it names no key");
    } else {
        const char *const base = getenv("CALYX_REDIS_URL");
        if (!base || strstr(word, "://"))
            fail_address(word, base ? "not a URL of a filter in a server"
                                    : "not a server URL, and CALYX_REDIS_URL "
                                      "is not set");
        a = parse(base, true);
        free(a.key); /* what the URL may have after its DB */
        a.key = copy_text(word);
        a.key_size = strlen(word);
        char *const shown = alloc_memory(strlen(a.shown) + a.key_size + 3);
        sprintf(shown, "%s, %s", a.shown, word);
        free(a.shown);
        a.shown = shown;
        if (!a.key_size) fail_address(a.shown, "it names no key");
    }
    const char *const user = getenv("CALYX_REDIS_USER");
    const char *const password = getenv("CALYX_REDIS_PASSWORD");
    if (!a.user && user) a.user = copy_text(user);
    if (!a.password && password) a.password = copy_text(password);
    return a;
}
