#include "http/range_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "frame/passwords.h"
#include "http/byteranges.h"
#include "http/patience.h"

#ifdef CALYX_HAVE_CURL
#include "http/libcurl.h"

enum {
    MOST_IN_FLIGHT = 256,  /* requests                                     */
    MOST_CONNECTIONS = 64, /* to a server that has only HTTP/1.1           */
    HTTP2_CONNECTIONS = 2, /* nginx takes 128 requests at a time on each   */
    MOST_TOGETHER = 32,    /* ranges in a request, if the server takes it  */
    SMALL_RANGE = 4096,    /* bytes; larger ones are requested alone       */
    MOST_TRIES = 4,        /* of a request that fails                      */
    SILENT_TRIES = 2,      /* of requests to a server that sends nothing   */
    MOST_REDIRECTS = 5,
    MOST_BESIDE = 1 << 20, /* bytes of the texts that redirects have */
    TAG_BYTES = 512 /* of an ETag, with its end; servers send under 100 */
};

/* What the header of an answer says. */
struct range_answer {
    bool has_range, is_encoded, has_long_tag;
    struct content_range range;
    char boundary[100]; /* of several ranges; "" for one */
    char tag[TAG_BYTES], modified[TAG_BYTES], date[64];
};

struct range_client {
    const char *name; /* the URL as messages show it */
    char *url;
    struct libcurl curl;
    CURLM *multi;
    long connections;           /* at most */
    struct transfer *transfers; /* MOST_IN_FLIGHT */
    struct curl_slist *headers; /* of requests */
    bool takes_several;         /* ranges in a request, as far as is known */
    bool is_open;               /* the first answer is there: */
    uint64_t file_bytes;
    bool is_young;
    char tag[TAG_BYTES], modified[TAG_BYTES];
    struct patience patience; /* with the timeout */
    uint64_t heard;           /* bytes, since patience_after */
    bool is_busy; /* the server answered 429 or 5xx: send nothing new now */
    double pause; /* seconds that it wants until the next request */
    struct http_traffic traffic;
};

/* One request at work. */
struct transfer {
    struct range_client *client;
    CURL *easy;
    bool is_running;
    const struct http_range *ranges[MOST_TOGETHER];
    size_t count;
    size_t got;      /* bytes of the one range, or of `body`: */
    char *body;      /* an answer with several ranges          */
    size_t room;     /* of it                                  */
    curl_off_t seen; /* bytes of all bodies, redirects included */
    bool is_refused; /* several ranges are; then request one at a time */
    struct range_answer answer;
    char why[CURL_ERROR_SIZE];
    /* What is wrong with the answer; the transfer was stopped then. */
    char wrong[400];
};

static _Noreturn void fail_client(const struct range_client *c,
                                  const char *text) {
    fail_at(c->name, 0, "%s", text);
}

/* ---- The header of an answer -------------------------------------------- */

static void copy_tag(struct range_answer *answer, char to[TAG_BYTES],
                     const char *value) {
    if (strlen(value) >= TAG_BYTES)
        answer->has_long_tag = true;
    else
        strcpy(to, value);
}

/* multipart/byteranges; boundary=00000000000000000001 */
static void parse_boundary(struct range_answer *answer, const char *value) {
    const char *const type = "multipart/byteranges", *const name = "boundary=";
    const char *at = strcasestr(value, name);
    if (strncasecmp(value, type, strlen(type)) != 0 || !at) return;
    at += strlen(name);
    at += *at == '"';
    const size_t size = strcspn(at, "\"; \t");
    if (size < sizeof answer->boundary)
        snprintf(answer->boundary, sizeof answer->boundary, "%.*s", (int)size,
                 at);
}

static void parse_header(struct range_answer *answer, const char *line) {
    const char *value;
    if (strncmp(line, "HTTP/", 5) == 0) /* after a redirect, another answer */
        *answer = (struct range_answer){0};
    else if ((value = header_value(line, "Content-Range")))
        answer->has_range = content_range_from(value, &answer->range);
    else if ((value = header_value(line, "ETag")))
        copy_tag(answer, answer->tag, value);
    else if ((value = header_value(line, "Last-Modified")))
        copy_tag(answer, answer->modified, value);
    else if ((value = header_value(line, "Content-Type")))
        parse_boundary(answer, value);
    else if ((value = header_value(line, "Date")))
        snprintf(answer->date, sizeof answer->date, "%s", value);
    else if ((value = header_value(line, "Content-Encoding")))
        answer->is_encoded = strcasecmp(value, "identity") != 0;
}

static size_t take_header(char *bytes, size_t one, size_t n, void *context) {
    struct transfer *const t = context;
    char line[2048];
    size_t size = one * n;
    t->client->heard += size;
    while (size && strchr("\r\n \t", bytes[size - 1])) size--;
    if (size >= sizeof line) return one * n; /* none that matters is so long */
    memcpy(line, bytes, size);
    line[size] = '\0';
    parse_header(&t->answer, line);
    return one * n;
}

/* ---- Is it the answer? -------------------------------------------------- */

#define WRONG(t, ...) snprintf((t)->wrong, sizeof(t)->wrong, __VA_ARGS__)

static const char CHANGED[] =
    "the file has changed on the server while it was queried; run the command "
    "again";

/* Is this the range that was wanted? The first request may want more than the
 * file has. */
static bool is_wanted_range(const struct transfer *t) {
    const struct range_answer *const a = &t->answer;
    const struct http_range *const want = t->ranges[0];
    uint64_t last = want->at + want->size - 1;
    if (!t->client->is_open && a->range.total && last >= a->range.total)
        last = a->range.total - 1;
    return a->range.first == want->at && a->range.last == last;
}

static void judge_validators(struct transfer *t) {
    const struct range_client *const c = t->client;
    const struct range_answer *const a = &t->answer;
    if (a->has_long_tag)
        WRONG(t, "its ETag or Last-Modified has over %d bytes", TAG_BYTES - 1);
    else if (!c->is_open && !*a->tag && !*a->modified)
        WRONG(t, "the server sends neither ETag nor Last-Modified, so that a "
                 "change of the file could not be noticed; download the file "
                 "and query that");
    else if (c->is_open &&
             (strcmp(a->tag, c->tag) != 0 ||
              (!*c->tag && strcmp(a->modified, c->modified) != 0)))
        WRONG(t, "%s", CHANGED);
}

/* Sets t->wrong unless the header is the header of the answer wanted. */
static void judge_partial_content(struct transfer *t) {
    const struct range_answer *const a = &t->answer;
    if (a->is_encoded)
        WRONG(t, "the server sends it compressed (Content-Encoding), and "
                 "ranges of that are not ranges of the file; have the server "
                 "send it as it is");
    else if (!a->has_range || !is_wanted_range(t))
        WRONG(t,
              "the server sent another range than bytes %" PRIu64 "-%" PRIu64
              ", which were requested",
              t->ranges[0]->at, t->ranges[0]->at + t->ranges[0]->size - 1);
    else if (!a->range.total)
        WRONG(t, "the server does not say how many bytes the file has "
                 "(Content-Range with a *); download the file and query that");
    else if (t->client->is_open && a->range.total != t->client->file_bytes)
        WRONG(t, "%s", CHANGED);
    else
        judge_validators(t);
}

/* Many servers send one range, or the whole file, for a request of several. */
static void judge_several(struct transfer *t, long status) {
    if (status == 206 && *t->answer.boundary && !t->answer.is_encoded)
        judge_validators(t);
    else
        t->is_refused = status < 500 && status != 412 && status != 429;
}

static void judge_status(struct transfer *t, long status) {
    if (t->count > 1) judge_several(t, status);
    if (t->is_refused || (t->count > 1 && status == 206)) return;
    switch (status) {
        case 206: judge_partial_content(t); return;
        case 200:
            WRONG(
                t,
                "the server does not send ranges of it: to a request for some "
                "bytes it answers with all (200 instead of 206); "
                "download the file and query that");
            return;
        case 401:
        case 403:
            WRONG(t,
                  "the server refuses to send it (%ld); a user and password "
                  "go into the URL: https://USER:PASSWORD@HOST/...",
                  status);
            return;
        case 404:
        case 410:
            WRONG(t, "there is no such file on the server (%ld)", status);
            return;
        case 412: WRONG(t, "%s", CHANGED); return;
        case 416:
            if (t->client->is_open)
                WRONG(t, "%s", CHANGED);
            else
                WRONG(t, "the file is empty, or the server does not send "
                         "ranges of it (416)");
            return;
        default: WRONG(t, "the server answers with status %ld", status);
    }
}

static long status_of(const struct transfer *t) {
    long status = 0;
    t->client->curl.easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* Each range has a header of its own, of 100 to 200 bytes. */
static size_t take_several(struct transfer *t, const char *bytes, size_t size) {
    const size_t most = MOST_TOGETHER * (SMALL_RANGE + 512);
    if (size > most - t->got) {
        t->is_refused = true; /* it sends more than was wanted */
        return 0;
    }
    t->body = with_room(t->body, &t->room, t->got + size, 1);
    memcpy(t->body + t->got, bytes, size);
    t->got += size;
    return size;
}

/* Stops the transfer, by returning 0, if its bytes are not those wanted. */
static size_t take_bytes(char *bytes, size_t one, size_t n, void *context) {
    struct transfer *const t = context;
    const size_t size = one * n;
    if (t->got == 0 && !*t->wrong) judge_status(t, status_of(t));
    if (*t->wrong || t->is_refused) return 0;
    if (t->count > 1) return take_several(t, bytes, size);
    size_t wanted = t->ranges[0]->size;
    if (!t->client->is_open && wanted > t->answer.range.total)
        wanted = (size_t)t->answer.range.total;
    if (size > wanted - t->got) {
        WRONG(t, "the server sent more than the %zu bytes that were requested",
              wanted);
        return 0;
    }
    memcpy(t->ranges[0]->bytes + t->got, bytes, size);
    t->got += size;
    return size;
}

/* libcurl skips the text of a redirect, which take_bytes never sees: without
 * this one that has no end would be read for ever. */
static int refuse_endless(void *context, curl_off_t all, curl_off_t now,
                          curl_off_t up_all, curl_off_t up_now) {
    struct transfer *const t = context;
    (void)all, (void)up_all, (void)up_now;
    if (now > t->seen) t->client->heard += (uint64_t)(now - t->seen);
    t->seen = now;
    curl_off_t most = MOST_BESIDE;
    for (size_t i = 0; i < t->count; i++)
        most += (curl_off_t)t->ranges[i]->size;
    if (now <= most) return 0;
    WRONG(t, "the server sent more than %d bytes beside those requested",
          MOST_BESIDE);
    return 1;
}

/* ---- Requests ----------------------------------------------------------- */

static void set_authorities(const struct libcurl *curl, CURL *easy) {
    const char *const ca = getenv("CALYX_TLS_CA");
    const char *const certificate = getenv("CALYX_TLS_CERT");
    const char *const key = getenv("CALYX_TLS_KEY");
    struct stat about;
    if (ca) {
        if (stat(ca, &about) != 0) fail_os(ca, "read this CALYX_TLS_CA");
        curl->easy_setopt(
            easy, S_ISDIR(about.st_mode) ? CURLOPT_CAPATH : CURLOPT_CAINFO, ca);
    }
    if (certificate) curl->easy_setopt(easy, CURLOPT_SSLCERT, certificate);
    if (certificate)
        curl->easy_setopt(easy, CURLOPT_SSLKEY, key ? key : certificate);
}

static void set_up(struct transfer *t) {
    struct range_client *const c = t->client;
    const struct libcurl *const curl = &c->curl;
    CURL *const easy = t->easy = curl->easy_init();
    if (!easy) fail_client(c, "no memory for a request");
    /* whoever wants TLS does not get a redirect without */
    const bool is_tls = strncasecmp(c->url, "https:", 6) == 0;
    curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR,
                      is_tls ? "https" : "http,https");
    curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl->easy_setopt(easy, CURLOPT_MAXREDIRS, (long)MOST_REDIRECTS);
    curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl->easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    curl->easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    curl->easy_setopt(easy, CURLOPT_USERAGENT, "calyx");
    curl->easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    /* libcurl divides it among several addresses of the server */
    curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                      (long)(1000 * c->patience.most));
    curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, t->why);
    curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl->easy_setopt(easy, CURLOPT_HEADERDATA, t);
    curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
    curl->easy_setopt(easy, CURLOPT_WRITEDATA, t);
    curl->easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, refuse_endless);
    curl->easy_setopt(easy, CURLOPT_XFERINFODATA, t);
    curl->easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl->easy_setopt(easy, CURLOPT_PRIVATE, t);
    set_authorities(curl, easy);
}

/* Take the next ranges of a list: small ones together, others alone. */
static size_t take_ranges(struct transfer *t, const struct http_range **list,
                          size_t n) {
    for (t->count = 0; t->count < n;) {
        t->ranges[t->count] = list[t->count];
        if (list[t->count++]->size > SMALL_RANGE) break;
        if (!t->client->takes_several || t->count == MOST_TOGETHER) break;
        if (t->count < n && list[t->count]->size > SMALL_RANGE) break;
    }
    return t->count;
}

static void start(struct transfer *t) {
    struct range_client *const c = t->client;
    char text[MOST_TOGETHER * 42];
    size_t size = 0;
    if (!t->easy) set_up(t);
    t->is_running = true;
    t->got = 0;
    t->seen = 0;
    t->is_refused = false;
    t->answer = (struct range_answer){0};
    t->why[0] = t->wrong[0] = '\0';
    for (size_t i = 0; i < t->count; i++)
        size += (size_t)snprintf(text + size, sizeof text - size,
                                 "%s%" PRIu64 "-%" PRIu64, i ? "," : "",
                                 t->ranges[i]->at,
                                 t->ranges[i]->at + t->ranges[i]->size - 1);
    c->curl.easy_setopt(t->easy, CURLOPT_URL, c->url);
    c->curl.easy_setopt(t->easy, CURLOPT_HTTPHEADER, c->headers);
    c->curl.easy_setopt(t->easy, CURLOPT_RANGE, text);
    if (c->curl.multi_add_handle(c->multi, t->easy) != CURLM_OK)
        fail_client(c, "no memory for a request");
    c->traffic.requests++;
}

/* May the same request succeed a moment later? */
static bool is_passing(CURLcode code, long status) {
    switch (code) {
        case CURLE_OK:
        case CURLE_WRITE_ERROR: /* stopped by take_bytes */
            return status == 429 || (status >= 500 && status != 501);
        case CURLE_COULDNT_CONNECT:
        case CURLE_SEND_ERROR:
        case CURLE_RECV_ERROR:
        case CURLE_GOT_NOTHING:
        case CURLE_PARTIAL_FILE:
        case CURLE_HTTP2:
        case CURLE_HTTP2_STREAM: return true;
        default: return false;
    }
}

static void read_several(struct transfer *t) {
    const enum byteranges outcome =
        byteranges_copy(t->answer.boundary, t->body, t->got,
                        t->client->file_bytes, t->ranges, t->count);
    t->is_refused = outcome == BYTERANGES_INCOMPLETE;
    if (outcome == BYTERANGES_OTHER_FILE) WRONG(t, "%s", CHANGED);
}

/* What to say of a request that failed. */
static void explain(struct transfer *t, CURLcode code) {
    const char *const text =
        *t->why ? t->why : t->client->curl.easy_strerror(code);
    if (*t->wrong || t->is_refused) return;
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        WRONG(t,
              "%s; CALYX_TLS_CA names a file or folder of the authorities "
              "to trust",
              text);
    else if (code == CURLE_OUT_OF_MEMORY)
        WRONG(t, "a line of the answer's header is too long for libcurl, or "
                 "there is no memory for it");
    else if (code != CURLE_OK)
        WRONG(t, "%s", text);
    else if (t->got == 0)
        judge_status(t, status_of(t)); /* an answer without a body */
    if (*t->wrong || t->is_refused) return;
    if (t->count > 1)
        read_several(t);
    else if (t->got != t->answer.range.last - t->answer.range.first + 1)
        WRONG(t,
              "the server sent %zu of the %" PRIu64 " bytes that it announced",
              t->got, t->answer.range.last - t->answer.range.first + 1);
}

/* `t` is a transfer that is connected; NULL: none is. */
static _Noreturn void fail_waited(const struct range_client *c,
                                  const struct transfer *t, int tries) {
    const struct patience *const p = &c->patience;
    char what[200] = "a connection";
    if (t)
        snprintf(what, sizeof what,
                 "bytes %" PRIu64 "-%" PRIu64 ", and the server sent %" PRIu64
                 " bytes",
                 t->ranges[0]->at, t->ranges[0]->at + t->ranges[0]->size - 1,
                 p->bytes);
    fail_at(c->name, 0,
            "waited %.0f s for %s; tried %d times; CALYX_HTTP_TIMEOUT, which "
            "is %g s, sets how long to wait for a server that is silent or "
            "sends less than 1 kB a second",
            p->now - p->since, what, tries, p->most);
}

/* A server in trouble gets nothing new until it has had a pause. */
static void note_trouble(struct transfer *t) {
    struct range_client *const c = t->client;
    curl_off_t seconds = 0;
    c->is_busy = true;
    c->curl.easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &seconds);
    if ((double)seconds > c->patience.most)
        fail_at(c->name, 0,
                "%s, and asks to be queried again in %lld seconds; "
                "CALYX_HTTP_TIMEOUT, the longest time to wait, is %g s",
                t->wrong, (long long)seconds, c->patience.most);
    if ((double)seconds > c->pause) c->pause = (double)seconds;
}

/* True if the ranges are there; false if they are to be requested again. */
static bool finish_transfer(struct transfer *t, CURLcode code, int tries) {
    struct range_client *const c = t->client;
    explain(t, code);
    if (t->is_refused) {
        c->takes_several = false;
        return false;
    }
    if (!*t->wrong) {
        for (size_t i = 0; i < t->count; i++)
            c->traffic.bytes += t->count > 1 ? t->ranges[i]->size : t->got;
        return true;
    }
    if (code == CURLE_OPERATION_TIMEDOUT) { /* while it connected */
        if (tries >= SILENT_TRIES) fail_waited(c, NULL, tries);
        c->patience.left = 0;
        return false;
    }
    if (!is_passing(code, status_of(t))) fail_client(c, t->wrong);
    if (tries == MOST_TRIES)
        fail_at(c->name, 0, "%s; tried %d times", t->wrong, tries);
    if (code == CURLE_OK || code == CURLE_WRITE_ERROR) note_trouble(t);
    return false;
}

static void set_connections(struct range_client *c, long number) {
    c->connections = number;
    c->curl.multi_setopt(c->multi, CURLMOPT_MAX_HOST_CONNECTIONS, number);
    c->curl.multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, number);
}

/* Drop all connections: HTTP/2 would use a silent one again. */
static void connect_anew(struct range_client *c) {
    if (c->multi) c->curl.multi_cleanup(c->multi);
    c->multi = c->curl.multi_init();
    if (!c->multi) fail_client(c, "no memory for requests");
    set_connections(c, c->connections);
    c->curl.multi_setopt(c->multi, CURLMOPT_MAX_CONCURRENT_STREAMS,
                         (long)MOST_IN_FLIGHT);
}

static bool is_connected(const struct transfer *t) {
    curl_off_t after = 0;
    t->client->curl.easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &after);
    return after > 0;
}

/* Requests for the ranges of a list. */
struct round {
    struct range_client *client;
    const struct http_range **list;
    size_t count, next, done; /* of the list: all; to be requested; ended */
    size_t again; /* of the list, from its start: to be requested again */
    int tries;
    struct transfer *idle[MOST_IN_FLIGHT];
    size_t idle_count;
};

static void start_some(struct round *r) {
    while (r->next < r->count && r->idle_count > 0 && !r->client->is_busy) {
        struct transfer *const t = r->idle[--r->idle_count];
        r->next += take_ranges(t, r->list + r->next, r->count - r->next);
        start(t);
    }
}

static void end_transfer(struct round *r, struct transfer *t, bool is_answer) {
    for (size_t i = 0; i < t->count && !is_answer; i++)
        r->list[r->again++] = t->ranges[i];
    r->client->curl.multi_remove_handle(r->client->multi, t->easy);
    t->is_running = false;
    r->done += t->count;
    r->idle[r->idle_count++] = t;
}

/* Returns how many ended; of these, *answers with their ranges. */
static size_t finish_some(struct round *r, size_t *answers) {
    const struct libcurl *const curl = &r->client->curl;
    size_t ended = 0;
    int left;
    *answers = 0;
    for (CURLMsg *m; (m = curl->multi_info_read(r->client->multi, &left));) {
        if (m->msg != CURLMSG_DONE) continue;
        const CURLcode code = m->data.result;
        struct transfer *t = NULL;
        curl->easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        const bool is_answer = finish_transfer(t, code, r->tries);
        end_transfer(r, t, is_answer);
        *answers += is_answer;
        ended++;
    }
    return ended;
}

/* The server is silent: stop everything that waits for it. */
static void stop_all(struct round *r) {
    struct transfer *const all = r->client->transfers;
    const struct transfer *waits = NULL;
    for (size_t i = 0; i < MOST_IN_FLIGHT && !waits; i++)
        if (all[i].is_running && is_connected(&all[i])) waits = &all[i];
    if (r->tries >= SILENT_TRIES) fail_waited(r->client, waits, r->tries);
    for (size_t i = 0; i < MOST_IN_FLIGHT; i++)
        if (all[i].is_running) end_transfer(r, &all[i], false);
    connect_anew(r->client);
}

/* Request all of the list, until the server is silent or in trouble. Returns
 * how many must be requested again; these come first then. */
static size_t read_once(struct range_client *c, const struct http_range **list,
                        size_t n, int tries) {
    struct round r = {.client = c, .list = list, .count = n, .tries = tries};
    for (size_t i = 0; i < MOST_IN_FLIGHT; i++)
        r.idle[r.idle_count++] = &c->transfers[i];
    c->is_busy = false;
    c->pause = 0;
    c->heard = 0;
    patience_fill(&c->patience, seconds_now());
    while (r.done < r.next || (r.next < n && !c->is_busy)) {
        int running;
        size_t answers;
        start_some(&r);
        if (c->curl.multi_perform(c->multi, &running) != CURLM_OK)
            fail_client(c, "libcurl cannot go on");
        const size_t ended = finish_some(&r, &answers);
        const double left =
            patience_after(&c->patience, seconds_now(), c->heard, answers > 0);
        c->heard = 0;
        if (left <= 0) {
            stop_all(&r);
            break;
        }
        if (ended == 0)
            c->curl.multi_poll(c->multi, NULL, 0,
                               left < 1 ? (int)(1000 * left) + 1 : 1000, NULL);
    }
    memmove(list + r.again, list + r.next, (n - r.next) * sizeof *list);
    return r.again + n - r.next;
}

/* 0.1, 0.4 and 1.6 seconds: a server that restarts needs a moment. More if the
 * server asked for it. */
static void pause_between(const struct range_client *c, int tries) {
    const long ms = 100L << 2 * (tries - 1), wanted = (long)(1000 * c->pause);
    const long most = ms > wanted ? ms : wanted;
    const struct timespec time = {most / 1000, most % 1000 * 1000000};
    nanosleep(&time, NULL);
}

void range_client_read(struct range_client *c, const struct http_range *ranges,
                       size_t n) {
    const struct http_range **const list =
        alloc_memory((n + 1) * sizeof(struct http_range *));
    for (size_t i = 0; i < n; i++) list[i] = &ranges[i];
    for (int tries = 1; n > 0;) {
        const bool together = c->takes_several;
        const size_t left = read_once(c, list, n, tries);
        const bool any = left < n;
        n = left;
        if (together && !c->takes_several) continue; /* at once, one by one */
        if (n > 0) pause_between(c, tries);
        tries = any ? 2 : tries + 1;
    }
    free(list);
}

/* ---- Opening ------------------------------------------------------------ */

static double timeout_seconds(void) {
    const char *const text = getenv("CALYX_HTTP_TIMEOUT");
    double seconds = 30;
    if (text && (!time_from(text, &seconds) || seconds < 1 || seconds > 1e6))
        fail("CALYX_HTTP_TIMEOUT: expected a time from 1s on, such as 10s or "
             "5min, found '%s'",
             text);
    return seconds;
}

static void add_header(struct range_client *c, const char *line) {
    struct curl_slist *const longer = c->curl.slist_append(c->headers, line);
    if (!longer) fail_client(c, "no memory for a request");
    c->headers = longer;
}

/* A file with a strong ETag, or with a date alone, answers 412 once it is
 * another. */
static void set_conditions(struct range_client *c) {
    char line[TAG_BYTES + 32];
    if (*c->tag == '"') {
        snprintf(line, sizeof line, "If-Match: %s", c->tag);
        add_header(c, line);
    } else if (!*c->tag) {
        snprintf(line, sizeof line, "If-Unmodified-Since: %s", c->modified);
        add_header(c, line);
    }
}

/* Many servers make the ETag of the size and of the time in seconds. */
static bool is_young(const struct libcurl *curl, const struct range_answer *a) {
    const time_t now = curl->getdate(a->date, NULL);
    const time_t modified = curl->getdate(a->modified, NULL);
    return now != -1 && modified != -1 && now - modified < 2;
}

/* What the first answer says holds for all others. */
static void keep_answer(struct range_client *c, const struct transfer *t) {
    long redirects = 0, version = 0;
    const char *url = NULL;
    c->file_bytes = t->answer.range.total;
    strcpy(c->tag, t->answer.tag);
    strcpy(c->modified, t->answer.modified);
    c->is_young = is_young(&c->curl, &t->answer);
    set_conditions(c);
    c->is_open = true;
    c->curl.easy_getinfo(t->easy, CURLINFO_HTTP_VERSION, &version);
    if (version >= CURL_HTTP_VERSION_2_0) set_connections(c, HTTP2_CONNECTIONS);
    /* A password goes only to the server that it was given for: then every
     * request is redirected anew. */
    c->curl.easy_getinfo(t->easy, CURLINFO_REDIRECT_COUNT, &redirects);
    c->curl.easy_getinfo(t->easy, CURLINFO_EFFECTIVE_URL, &url);
    if (redirects && url && as_given(c->name) == c->name) {
        free(c->url);
        c->url = copy_text(url);
    }
}

struct range_client *range_client_open(const char *url, void *first,
                                       size_t *size) {
    const struct libcurl curl = load_libcurl(url);
    curl.global_init(CURL_GLOBAL_DEFAULT);
    struct range_client *const c = alloc_memory(sizeof *c);
    *c = (struct range_client){.name = url,
                               .url = copy_text(as_given(url)),
                               .curl = curl,
                               .connections = MOST_CONNECTIONS,
                               .takes_several = true,
                               .patience = {.most = timeout_seconds()}};
    connect_anew(c);
    add_header(c, "Accept-Encoding: identity");
    c->transfers = alloc_memory(MOST_IN_FLIGHT * sizeof *c->transfers);
    for (size_t i = 0; i < MOST_IN_FLIGHT; i++)
        c->transfers[i] = (struct transfer){.client = c};
    const struct http_range range = {0, *size, first};
    range_client_read(c, &range, 1);
    const struct transfer *const t = &c->transfers[MOST_IN_FLIGHT - 1];
    *size = t->got;
    keep_answer(c, t);
    return c;
}

void range_client_close(struct range_client *c) {
    for (size_t i = 0; i < MOST_IN_FLIGHT; i++) {
        if (c->transfers[i].easy) c->curl.easy_cleanup(c->transfers[i].easy);
        free(c->transfers[i].body);
    }
    c->curl.multi_cleanup(c->multi);
    c->curl.slist_free_all(c->headers);
    free(c->transfers);
    free(c->url);
    free(c);
}

const char *range_client_name(const struct range_client *c) {
    return c->name;
}

uint64_t range_client_file_bytes(const struct range_client *c) {
    return c->file_bytes;
}

bool range_client_is_young(const struct range_client *c) {
    return c->is_young;
}

void range_client_fail_changed(const struct range_client *c) {
    fail_client(c, CHANGED);
}

struct http_traffic range_client_traffic(const struct range_client *c) {
    return c->traffic;
}

#else

struct range_client *range_client_open(const char *url, void *first,
                                       size_t *size) {
    (void)first, (void)size;
    fail_at(url, 0,
            "this calyx was built without libcurl, and cannot query files on "
            "web servers; install it (Debian: libcurl4-openssl-dev) and build "
            "again");
}

#endif
