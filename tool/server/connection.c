#include "server/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef CALYX_HAVE_HIREDIS
#include <hiredis/hiredis.h>
#endif

#include "server/tls.h"

/* ---- Commands ------------------------------------------------------------ */

void call_add(struct call *call, const void *word, size_t size) {
    call->words = with_room(call->words, &call->room, call->count + 1,
                            sizeof *call->words);
    call->words[call->count++] = (calyx_key){word, size};
}

void call_text(struct call *call, const char *word) {
    call_add(call, word, strlen(word));
}

void call_start(struct call *call, const char *command) {
    call->count = 0;
    call_text(call, command);
}

void call_for(struct call *call, const char *command, const struct name *key) {
    call_start(call, command);
    call_add(call, key->text, key->size);
}

void call_free(struct call *call) {
    free(call->words);
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

/* ---- Bytes --------------------------------------------------------------- */

struct connection {
    int fd;
    struct tls *tls; /* NULL: plain */
    redisReader *reader;
    char *out; /* commands that were posted, of which some bytes are sent */
    size_t out_size, out_room, out_sent;
    const char *hint; /* what may be wrong if it breaks now */
    bool is_broken;
    struct trouble trouble;
};

/* Nothing may be read from or written to it any more. */
static void break_link(struct connection *l, const char *why) {
    l->is_broken = true;
    if (l->trouble.text[0]) return; /* TLS knows better */
    snprintf(l->trouble.text, sizeof l->trouble.text, "%s%s", why, l->hint);
}

/* One try to move bytes, as in tls.h. */
typedef ssize_t attempt(struct connection *l, char *bytes, size_t size,
                        short *events);

static ssize_t plain(ssize_t moved, short way, short *events) {
    const bool later = moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK ||
                                     errno == EINTR);
    *events = later ? way : 0;
    return moved;
}

static ssize_t try_receive(struct connection *l, char *bytes, size_t size,
                           short *events) {
    return l->tls ? tls_receive(l->tls, bytes, size, events)
                  : plain(recv(l->fd, bytes, size, 0), POLLIN, events);
}

static ssize_t try_send(struct connection *l, char *bytes, size_t size,
                        short *events) {
    return l->tls
               ? tls_send(l->tls, bytes, size, events)
               : plain(send(l->fd, bytes, size, MSG_NOSIGNAL), POLLOUT, events);
}

static ssize_t try_shake(struct connection *l, char *bytes, size_t size,
                         short *events) {
    (void)bytes, (void)size;
    return tls_shake(l->tls, events);
}

static bool await_any(struct pollfd *sockets, nfds_t n, int milliseconds) {
    int ready;
    do {
        ready = poll(sockets, n, milliseconds);
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

static bool await(const struct connection *l, short events, int milliseconds) {
    struct pollfd socket = {.fd = l->fd, .events = events};
    return await_any(&socket, 1, milliseconds);
}

/* The number of bytes moved, from 1 on; -1 if the link is broken now. */
static ssize_t move(struct connection *l, attempt *once, char *bytes,
                    size_t size, int seconds) {
    char why[128];
    short events;
    for (;;) {
        const ssize_t moved = once(l, bytes, size, &events);
        if (moved > 0) return moved;
        if (moved == 0)
            strcpy(why, "the server closed the connection");
        else if (!events)
            snprintf(why, sizeof why, "%s", strerror(errno));
        else if (await(l, events, 1000 * seconds))
            continue;
        else
            snprintf(why, sizeof why, "the server is silent for %d seconds",
                     seconds);
        break_link(l, why);
        return -1;
    }
}

enum { ANSWER_SECONDS = 30 };

void connection_send(struct connection *l) {
    while (!l->is_broken && l->out_sent < l->out_size) {
        const ssize_t sent = move(l, try_send, l->out + l->out_sent,
                                  l->out_size - l->out_sent, ANSWER_SECONDS);
        if (sent > 0) l->out_sent += (size_t)sent;
    }
    l->out_size = l->out_sent = 0;
}

static void feed(struct connection *l) {
    char bytes[64 << 10];
    const ssize_t size =
        move(l, try_receive, bytes, sizeof bytes, ANSWER_SECONDS);
    if (size < 0) return;
    if (redisReaderFeed(l->reader, bytes, (size_t)size) != REDIS_OK)
        break_link(l, l->reader->errstr);
}

struct reply *connection_receive(struct connection *l) {
    void *reply = NULL;
    connection_send(l);
    while (!l->is_broken && !reply) {
        if (redisReaderGetReply(l->reader, &reply) != REDIS_OK)
            break_link(l, l->reader->errstr);
        else if (!reply)
            feed(l);
    }
    if (reply) l->hint = "";
    return reply;
}

const struct trouble *connection_trouble(const struct connection *l) {
    return l->is_broken ? &l->trouble : NULL;
}

/* ---- Commands that are posted -------------------------------------------- */

static void put(struct connection *l, const void *bytes, size_t size) {
    l->out = with_room(l->out, &l->out_room, l->out_size + size, 1);
    if (size) memcpy(l->out + l->out_size, bytes, size);
    l->out_size += size;
}

/* "*2\r\n$6\r\nEXISTS\r\n$4\r\nseen\r\n" */
void connection_post(struct connection *l, const struct call *call) {
    char head[32];
    put(l, head, (size_t)sprintf(head, "*%zu\r\n", call->count));
    for (size_t i = 0; i < call->count; i++) {
        const calyx_key *const word = &call->words[i];
        put(l, head, (size_t)sprintf(head, "$%zu\r\n", word->size));
        put(l, word->data, word->size);
        put(l, "\r\n", 2);
    }
}

/* ---- Connections --------------------------------------------------------- */

/* A socket, or -1. */
static int connect_to(const struct url *a, const char *host, int port,
                      struct trouble *trouble) {
    static const struct timeval patience = {.tv_sec = 5};
    redisContext *const c =
        a->socket ? redisConnectUnixWithTimeout(a->socket, patience)
                  : redisConnectWithTimeout(host, port, patience);
    if (!c || c->err) {
        snprintf(trouble->text, sizeof trouble->text, "%s",
                 c ? c->errstr : "no memory for a connection");
        if (c) redisFree(c);
        return -1;
    }
    if (!a->socket) redisEnableKeepAlive(c);
    return redisFreeKeepFd(c);
}

enum { SHAKE_SECONDS = 5, SILENT_MILLISECONDS = 300 };

/* Does the server answer a PING without TLS? Redis takes the first bytes of TLS
 * for the beginning of a command, and waits for its end. Returns false as soon
 * as the connection `l` has something to read. */
static bool answers_plainly(const struct connection *l, const struct url *a,
                            const char *host, int port) {
    static const char PING[] = "PING\r\n";
    struct trouble trouble = {0};
    char first = 0;
    const int fd = connect_to(a, host, port, &trouble);
    if (fd < 0) return false;
    struct pollfd both[] = {{.fd = l->fd, .events = POLLIN},
                            {.fd = fd, .events = POLLIN}};
    if (send(fd, PING, sizeof PING - 1, MSG_NOSIGNAL) > 0 &&
        await_any(both, 2, 1000 * SHAKE_SECONDS) && both[1].revents &&
        recv(fd, &first, 1, MSG_DONTWAIT) != 1)
        first = 0;
    close(fd);
    return first == '+' || first == '-';
}

/* A server without TLS may be silent, so silence ends sooner here than
 * elsewhere. */
static bool secure(struct connection *l, const struct url *a, const char *host,
                   int port) {
    short events;
    l->hint = "; if it has no TLS at this port, write redis://";
    l->tls = tls_new(l->fd, host, &l->trouble);
    const ssize_t first = try_shake(l, NULL, 0, &events);
    if (first < 0 && !events)
        break_link(l, strerror(errno));
    else if (first < 0 && !await(l, events, SILENT_MILLISECONDS) &&
             answers_plainly(l, a, host, port)) {
        l->hint = "";
        break_link(l, NO_TLS_HERE);
        l->trouble.is_final = true;
    }
    const bool is_secure =
        first > 0 ||
        (!l->is_broken && move(l, try_shake, NULL, 0, SHAKE_SECONDS) > 0);
    l->hint = "";
    return is_secure;
}

/* One command while connecting, which the server must take. */
static bool send_and_check(struct connection *l, const struct call *call) {
    connection_post(l, call);
    struct reply *const reply = connection_receive(l);
    if (!reply) return false;
    const char *const error = reply_error(reply);
    if (error) {
        snprintf(l->trouble.text, sizeof l->trouble.text, "%s", error);
        l->trouble.is_final = strncmp(error, "LOADING", 7) != 0;
    }
    reply_free(reply);
    return !error;
}

static bool introduce(struct connection *l, const struct url *a) {
    struct call call = {0};
    char db[16];
    bool is_welcome = true;
    if (a->password) {
        call_start(&call, "AUTH");
        if (a->user) call_text(&call, a->user);
        call_text(&call, a->password);
        is_welcome = send_and_check(l, &call);
    }
    if (is_welcome && a->db) {
        snprintf(db, sizeof db, "%d", a->db);
        call_start(&call, "SELECT");
        call_text(&call, db);
        is_welcome = send_and_check(l, &call);
    }
    call_free(&call);
    return is_welcome;
}

struct connection *connection_open(const struct url *a, const char *host,
                                   int port, struct trouble *trouble) {
    *trouble = (struct trouble){0};
    if (a->tls) tls_prepare();
    const int fd = connect_to(a, host, port, trouble);
    if (fd < 0) return NULL;

    struct connection *const l = alloc_memory(sizeof *l);
    *l = (struct connection){
        .fd = fd,
        .reader = redisReaderCreate(),
        .hint = a->socket
                    ? ""
                    : "; if it requires TLS at this port, write rediss://"};
    if (!l->reader) fail("out of memory for a connection");
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        fail_os(a->shown, "prepare the connection");
    if ((!a->tls || secure(l, a, host, port)) && introduce(l, a)) return l;
    *trouble = l->trouble;
    connection_close(l);
    return NULL;
}

void connection_close(struct connection *l) {
    if (l->tls) tls_free(l->tls);
    close(l->fd);
    redisReaderFree(l->reader);
    free(l->out);
    free(l);
}

#else

struct connection *connection_open(const struct url *a, const char *host,
                                   int port, struct trouble *trouble) {
    (void)a, (void)host, (void)port, (void)trouble;
    fail("this calyx was built without hiredis, and cannot talk to servers; "
         "install it (Debian: libhiredis-dev) and build again");
}

#endif
