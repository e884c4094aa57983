#include "link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef CALYX_HAVE_HIREDIS
#include <hiredis/hiredis.h>
#endif
#ifdef CALYX_HAVE_HIREDIS_SSL
#include <hiredis/hiredis_ssl.h>
#include <pthread.h>
#endif

/* ---- Commands ------------------------------------------------------------ */

void call_add(struct call *call, const void *word, size_t size) {
    if (call->count == call->room) {
        call->room = call->room ? 2 * call->room : 16;
        call->words =
            more_memory(call->words, (size_t)call->room * sizeof *call->words);
        call->sizes =
            more_memory(call->sizes, (size_t)call->room * sizeof *call->sizes);
    }
    call->words[call->count] = word;
    call->sizes[call->count++] = size;
}

void call_text(struct call *call, const char *word) {
    call_add(call, word, strlen(word));
}

void call_start(struct call *call, const char *command) {
    call->count = 0;
    call_text(call, command);
}

void call_free(struct call *call) {
    free(call->words);
    free(call->sizes);
}

#ifdef CALYX_HAVE_HIREDIS

/* ---- Replies ------------------------------------------------------------- */

static const redisReply *inner(const struct reply *reply) {
    return (const redisReply *)reply;
}

const char *reply_error(const struct reply *reply) {
    return inner(reply)->type == REDIS_REPLY_ERROR ? inner(reply)->str : NULL;
}

const char *reply_text(const struct reply *reply, size_t *size) {
    const redisReply *const r = inner(reply);
    if (r->type != REDIS_REPLY_STRING && r->type != REDIS_REPLY_STATUS)
        return NULL;
    if (size) *size = (size_t)r->len;
    return r->str;
}

bool reply_number(const struct reply *reply, long long *number) {
    *number = inner(reply)->integer;
    return inner(reply)->type == REDIS_REPLY_INTEGER;
}

size_t reply_parts(const struct reply *reply) {
    const redisReply *const r = inner(reply);
    return r->type == REDIS_REPLY_ARRAY ? r->elements : 0;
}

const struct reply *reply_part(const struct reply *reply, size_t number) {
    return number < reply_parts(reply)
               ? (const struct reply *)inner(reply)->element[number]
               : NULL;
}

void reply_free(struct reply *reply) {
    if (reply) freeReplyObject(reply);
}

/* ---- Connections --------------------------------------------------------- */

struct link {
    redisContext *context;
};

#ifdef CALYX_HAVE_HIREDIS_SSL
/* What the system trusts, unless CALYX_TLS_CA says otherwise. */
static redisSSLContext *new_trust(const char *host, redisSSLContextError *why) {
    const char *const ca = getenv("CALYX_TLS_CA");
    redisInitOpenSSL();
    return redisCreateSSLContext(ca, ca ? NULL : "/etc/ssl/certs",
                                 getenv("CALYX_TLS_CERT"),
                                 getenv("CALYX_TLS_KEY"), host, why);
}

static bool secure(redisContext *c, const char *host, char *trouble) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static redisSSLContext *ssl; /* one for all connections */
    redisSSLContextError why = REDIS_SSL_CTX_NONE;
    pthread_mutex_lock(&lock);
    if (!ssl) ssl = new_trust(host, &why);
    pthread_mutex_unlock(&lock);
    if (ssl && redisInitiateSSLWithContext(c, ssl) == REDIS_OK) return true;
    snprintf(trouble, LINK_TROUBLE, "TLS: %.200s",
             ssl ? c->errstr : redisSSLContextGetError(why));
    return false;
}
#else
static bool secure(redisContext *c, const char *host, char *trouble) {
    (void)c, (void)host, (void)trouble;
    fail("rediss:// is TLS, and this calyx was built with a hiredis that has "
         "none: it wants hiredis 1.0 or later with libhiredis_ssl");
}
#endif

static bool is_good(const redisContext *c, char *trouble) {
    if (c && !c->err) return true;
    snprintf(trouble, LINK_TROUBLE, "%.200s",
             c ? c->errstr : "no memory for a connection");
    return false;
}

/* One command while connecting; the server must say OK. */
static bool settle(redisContext *c, const char *const *words, int count,
                   char *trouble, bool *refused) {
    redisReply *const r =
        redisCommandArgv(c, count, (const char **)(uintptr_t)words, NULL);
    const bool good = r && r->type != REDIS_REPLY_ERROR;
    if (!good) {
        snprintf(trouble, LINK_TROUBLE, "%.200s", r ? r->str : c->errstr);
        *refused = r && strncmp(r->str, "LOADING", 7) != 0;
    }
    if (r) freeReplyObject(r);
    return good;
}

static bool introduce(redisContext *c, const struct address *a, char *trouble,
                      bool *refused) {
    char db[16];
    snprintf(db, sizeof db, "%d", a->db);
    const char *const full[] = {"AUTH", a->user, a->password};
    const char *const plain[] = {"AUTH", a->password};
    const char *const choose[] = {"SELECT", db};
    if (a->password && !(a->user ? settle(c, full, 3, trouble, refused)
                                 : settle(c, plain, 2, trouble, refused)))
        return false;
    return !a->db || settle(c, choose, 2, trouble, refused);
}

struct link *link_open(const struct address *a, const char *host, int port,
                       char *trouble, bool *refused) {
    static const struct timeval to_connect = {.tv_sec = 5},
                                to_answer = {.tv_sec = 30};
    redisContext *const c =
        a->socket ? redisConnectUnixWithTimeout(a->socket, to_connect)
                  : redisConnectWithTimeout(host, port, to_connect);
    *refused = false;
    if (is_good(c, trouble) && (!a->tls || secure(c, host, trouble)) &&
        redisSetTimeout(c, to_answer) == REDIS_OK &&
        introduce(c, a, trouble, refused)) {
        if (!a->socket) redisEnableKeepAlive(c);
        struct link *const link = take_memory(sizeof *link);
        link->context = c;
        return link;
    }
    if (c) redisFree(c);
    return NULL;
}

void link_close(struct link *link) {
    redisFree(link->context);
    free(link);
}

void link_post(struct link *link, const struct call *call) {
    redisAppendCommandArgv(link->context, call->count, call->words,
                           call->sizes);
}

/* What goes wrong here does so again when a reply is taken. */
void link_send(struct link *link) {
    int done = 0;
    while (!done && redisBufferWrite(link->context, &done) == REDIS_OK) {}
}

struct reply *link_take(struct link *link) {
    void *reply = NULL;
    return redisGetReply(link->context, &reply) == REDIS_OK ? reply : NULL;
}

#else

struct link *link_open(const struct address *a, const char *host, int port,
                       char *trouble, bool *refused) {
    (void)a, (void)host, (void)port, (void)trouble, (void)refused;
    fail("this calyx was built without hiredis, and cannot talk to servers; "
         "install it (Debian: libhiredis-dev) and build again");
}

const char *reply_error(const struct reply *reply) {
    (void)reply;
    return NULL;
}

const char *reply_text(const struct reply *reply, size_t *size) {
    (void)reply, (void)size;
    return NULL;
}

bool reply_number(const struct reply *reply, long long *number) {
    (void)reply, (void)number;
    return false;
}

const struct reply *reply_part(const struct reply *reply, size_t number) {
    (void)reply, (void)number;
    return NULL;
}

size_t reply_parts(const struct reply *reply) {
    (void)reply;
    return 0;
}

void reply_free(struct reply *reply) {
    (void)reply;
}

void link_close(struct link *link) {
    (void)link;
}

void link_post(struct link *link, const struct call *call) {
    (void)link, (void)call;
}

void link_send(struct link *link) {
    (void)link;
}

struct reply *link_take(struct link *link) {
    (void)link;
    return NULL;
}

#endif
