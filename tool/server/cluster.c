#include "server/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double patience = 30;

const struct group server_group = {
    "The server",
    {
        {0, "wait", "TIME",
         "Try for TIME to reach a server that went away, such as 2s or 600s; "
         "the default is 30s. A connection without traffic for 30s counts as "
         "broken.",
         parse_time, &patience},
    },
};

/* ---- Slots --------------------------------------------------------------- */

enum { SLOTS = 16384 };

/* CRC-16/XMODEM, by which clusters choose the slot of a key. */
static uint16_t crc16(const char *bytes, size_t size) {
    uint16_t crc = 0;
    for (size_t i = 0; i < size; i++) {
        crc = (uint16_t)(crc ^ (unsigned char)bytes[i] << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc;
}

/* By the part in the first {}, if it has something in it, else by all. */
static int slot_of(const char *key, size_t size) {
    const char *const open = memchr(key, '{', size);
    if (open) {
        const char *const tag = open + 1;
        const char *const close = memchr(tag, '}', (size_t)(key + size - tag));
        if (close && close > tag)
            return crc16(tag, (size_t)(close - tag)) % SLOTS;
    }
    return crc16(key, size) % SLOTS;
}

/* ---- Nodes --------------------------------------------------------------- */

struct node {
    char *host;
    int port;
    struct connection *link; /* NULL: not connected */
};

enum { NOWHERE = -1 };

struct cluster {
    const struct url *address;
    struct node *nodes; /* the first is the node of the address */
    int node_count;
    int entry; /* the node to use when the right one is unknown */
    int16_t where[SLOTS];
    bool was_heard;     /* one of them has answered a command */
    char trouble[1024]; /* why a node could not be reached */
};

static int node_at(struct cluster *s, const char *host, size_t host_size,
                   int port) {
    for (int i = 0; i < s->node_count; i++)
        if (s->nodes[i].port == port && strlen(s->nodes[i].host) == host_size &&
            memcmp(s->nodes[i].host, host, host_size) == 0)
            return i;
    if (s->node_count == INT16_MAX) fail("the cluster has too many nodes");
    s->nodes =
        resize_memory(s->nodes, ((size_t)s->node_count + 1) * sizeof *s->nodes);
    char *const name = alloc_memory(host_size + 1);
    memcpy(name, host, host_size);
    name[host_size] = '\0';
    s->nodes[s->node_count] = (struct node){.host = name, .port = port};
    return s->node_count++;
}

/* Fails if to try again is of no use, or if there never was a connection. */
static void note_trouble(struct cluster *s, int node, const char *what,
                         const struct trouble *trouble) {
    const struct node *const n = &s->nodes[node];
    char name[300] = ""; /* of a node that the address does not name */
    if (node) snprintf(name, sizeof name, "%.256s:%d: ", n->host, n->port);
    if (trouble->is_final || !s->was_heard)
        fail("%s: %s%s", s->address->shown, name, trouble->text);
    snprintf(s->trouble, sizeof s->trouble, "%s%s%s", what, name,
             trouble->text);
}

/* A node that broke may not be the right one any more, and another may know. */
static void drop(struct cluster *s, int node) {
    struct connection *const link = s->nodes[node].link;
    if (link && connection_trouble(link))
        note_trouble(s, node, "the connection is closed again and again: ",
                     connection_trouble(link));
    if (link) connection_close(link);
    s->nodes[node].link = NULL;
    for (int i = 0; i < SLOTS; i++)
        if (s->where[i] == node) s->where[i] = NOWHERE;
    if (s->entry == node) s->entry = (node + 1) % s->node_count;
}

static void read_map(struct cluster *s, const struct reply *map, int from) {
    for (size_t i = 0; i < reply_parts(map); i++) {
        const struct reply *const range = reply_part(map, i);
        long long first, last, port;
        size_t size;
        if (reply_parts(range) < 3 ||
            !reply_number(reply_part(range, 0), &first) ||
            !reply_number(reply_part(range, 1), &last) || first < 0 ||
            last >= SLOTS)
            continue;
        for (size_t n = 2; n < reply_parts(range); n++) {
            const struct reply *const one = reply_part(range, n);
            if (reply_parts(one) < 2 ||
                !reply_number(reply_part(one, 1), &port) || port < 1 ||
                port > 65535)
                continue;
            const char *host = reply_text(reply_part(one, 0), &size);
            if (!host || !size) { /* it does not know its own name */
                host = s->nodes[from].host;
                size = strlen(host);
            }
            if (memchr(host, '\0', size)) continue;
            const int node = node_at(s, host, size, (int)port);
            for (long long slot = first; n == 2 && slot <= last; slot++)
                s->where[slot] = (int16_t)node;
        }
    }
}

/* Learn all nodes of a cluster, and which has what; of another server, nothing.
 */
static void learn(struct cluster *s, int node) {
    struct call call = {0};
    call_start(&call, "CLUSTER");
    call_text(&call, "SLOTS");
    connection_post(s->nodes[node].link, &call);
    call_free(&call);
    struct reply *const map = connection_receive(s->nodes[node].link);
    if (map) {
        s->was_heard = true;
        read_map(s, map, node);
    } else {
        drop(s, node);
    }
    reply_free(map);
}

static bool reach(struct cluster *s, int node) {
    struct node *const n = &s->nodes[node];
    struct trouble trouble;
    if (n->link) return true;
    n->link = connection_open(s->address, n->host, n->port, &trouble);
    if (n->link) return true;
    note_trouble(s, node, "", &trouble);
    drop(s, node);
    return false;
}

struct cluster *cluster_open(const struct url *address) {
    struct cluster *const s = alloc_memory(sizeof *s);
    *s = (struct cluster){.address = address};
    for (int i = 0; i < SLOTS; i++) s->where[i] = NOWHERE;
    const char *const host = address->host ? address->host : "";
    node_at(s, host, strlen(host), address->port);
    reach(s, 0);
    learn(s, 0); /* now, since this node may be the first to go */
    return s;
}

const struct url *cluster_address(const struct cluster *s) {
    return s->address;
}

void cluster_close(struct cluster *s) {
    for (int i = 0; i < s->node_count; i++) {
        if (s->nodes[i].link) connection_close(s->nodes[i].link);
        free(s->nodes[i].host);
    }
    free(s->nodes);
    free(s);
}

/* ---- What an error means ------------------------------------------------- */

static bool starts(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* "MOVED 3999 127.0.0.1:6381": the node, or NOWHERE. No host means the one that
 * answered. */
static int redirected_node(struct cluster *s, const char *error, int from,
                           int *slot) {
    const char *const number = strchr(error, ' ');
    const char *const place = strrchr(error, ' ');
    const char *const colon = strrchr(error, ':');
    if (!place || place == number || !colon || colon < place) return NOWHERE;
    char *slot_end, *port_end;
    const long moved = strtol(number, &slot_end, 10);
    const long port_given = strtol(colon + 1, &port_end, 10);
    if (slot_end != place || *port_end || moved < 0 || moved >= SLOTS ||
        port_given < 1 || port_given > 65535)
        return NOWHERE;
    *slot = (int)moved;
    const int port = (int)port_given;
    const char *const host = place + 1;
    if (host < colon) return node_at(s, host, (size_t)(colon - host), port);
    char *const same = copy_text(s->nodes[from].host);
    const int node = node_at(s, same, strlen(same), port);
    free(same);
    return node;
}

static bool is_redirection(const char *error) {
    return starts(error, "MOVED ") || starts(error, "ASK ");
}

/* It will be better soon: a failover, a start, a move of slots. */
static bool will_pass(const char *error) {
    static const char *const starts_with[] = {
        "TRYAGAIN", "CLUSTERDOWN", "LOADING",   "MASTERDOWN",
        "READONLY", "BUSY ",       "NOREPLICAS"};
    for (size_t i = 0; i < sizeof starts_with / sizeof *starts_with; i++)
        if (starts(error, starts_with[i])) return true;
    return false;
}

static const char *command_of(const struct call *call) {
    return call->words[0].data;
}

_Noreturn void fail_reply(const struct url *address, const struct call *call,
                          const char *error) {
    if (starts(error, "ERR unknown command"))
        fail("%s: the server does not know %s: load the calyx module there, "
             "by redis-server --loadmodule /path/to/calyx.so",
             address->shown, command_of(call));
    if (starts(error, "NOAUTH"))
        fail("%s: the server requires a password; give it in the URL or in "
             "CALYX_REDIS_PASSWORD",
             address->shown);
    if (starts(error, "WRONGTYPE"))
        fail("%s: the key %.*s holds something else than a filter",
             address->shown, (int)call->words[1].size,
             (const char *)call->words[1].data);
    fail("%s: %s", address->shown, error);
}

_Noreturn void fail_answer(const struct url *address, const struct call *call,
                           const char *how) {
    fail("%s: the server answers %s in a way that is not understood%s%s",
         address->shown, command_of(call), *how ? ": " : "", how);
}

/* ---- Asking -------------------------------------------------------------- */

static void pause_for(double seconds) {
    const struct timespec time = {
        (time_t)seconds, (long)(1e9 * (seconds - (double)(long)seconds))};
    nanosleep(&time, NULL);
}

/* Nothing for a while, and then the end. */
struct waiting {
    double until, pause;
};

static void await(struct cluster *s, struct waiting *w, const char *trouble) {
    const double now = seconds_now();
    if (w->until == 0) *w = (struct waiting){now + patience, 0.02};
    if (now >= w->until)
        fail("%s: %s, for %g seconds now", s->address->shown, trouble,
             patience);
    pause_for(w->pause);
    if (w->pause < 1) w->pause *= 1.5;
}

static int node_for(const struct cluster *s, const struct call *call) {
    const int node =
        s->where[slot_of(call->words[1].data, call->words[1].size)];
    return node == NOWHERE ? s->entry : node;
}

static void post_asking(struct connection *link) {
    struct call call = {0};
    call_start(&call, "ASKING");
    connection_post(link, &call);
    call_free(&call);
}

/* One try. NULL: the connection broke. */
static struct reply *try(struct cluster *s, int node, const struct call *call,
                         bool asking) {
    struct connection *const link = s->nodes[node].link;
    if (asking) post_asking(link);
    connection_post(link, call);
    if (asking) {
        struct reply *const leave = connection_receive(link);
        if (!leave) return NULL;
        reply_free(leave);
    }
    return connection_receive(link);
}

struct reply *cluster_query(struct cluster *s, const struct call *call,
                            bool once) {
    enum { MOST_HOPS = 4 }; /* at once; more are a map that is changing */
    struct waiting waiting = {0};
    int redirect = NOWHERE, hops = 0; /* by ASK */
    for (;;) {
        const int node = redirect != NOWHERE ? redirect : node_for(s, call);
        const bool asking = redirect != NOWHERE;
        redirect = NOWHERE;
        if (!reach(s, node)) {
            await(s, &waiting, s->trouble);
            continue;
        }
        struct reply *const reply = try(s, node, call, asking);
        if (!reply) {
            drop(s, node);
            if (once) return NULL;
            await(s, &waiting, s->trouble);
            continue;
        }
        const char *const error = reply_error(reply);
        int slot;
        if (!error || !(is_redirection(error) || will_pass(error)))
            return reply;
        if (starts(error, "ASK ")) {
            redirect = redirected_node(s, error, node, &slot);
        } else if (starts(error, "MOVED ")) {
            const int right = redirected_node(s, error, node, &slot);
            learn(s, node);
            if (right != NOWHERE) s->where[slot] = (int16_t)right;
        } else if (starts(error, "READONLY")) {
            drop(s, node); /* the name may belong to another one soon */
        }
        if (!is_redirection(error) || ++hops > MOST_HOPS)
            await(s, &waiting, error);
        reply_free(reply);
    }
}

struct reply *cluster_demand(struct cluster *s, const struct call *call) {
    struct reply *const reply = cluster_query(s, call, false);
    const char *const error = reply_error(reply);
    if (error) fail_reply(s->address, call, error);
    return reply;
}

bool cluster_has_key(struct cluster *s, struct call *call,
                     const struct name *key) {
    long long number = 0;
    call_for(call, "EXISTS", key);
    struct reply *const reply = cluster_demand(s, call);
    reply_number(reply, &number);
    reply_free(reply);
    return number > 0;
}

void cluster_unlink(struct cluster *s, struct call *call,
                    const struct name *key) {
    call_for(call, "UNLINK", key);
    reply_free(cluster_demand(s, call));
}

int cluster_post(struct cluster *s, const struct call *call) {
    const int node = node_for(s, call);
    if (reach(s, node)) connection_post(s->nodes[node].link, call);
    return node;
}

void cluster_send(struct cluster *s) {
    for (int i = 0; i < s->node_count; i++)
        if (s->nodes[i].link) connection_send(s->nodes[i].link);
}

struct reply *cluster_receive(struct cluster *s, int node) {
    if (!s->nodes[node].link) return NULL;
    struct reply *const reply = connection_receive(s->nodes[node].link);
    if (!reply) {
        drop(s, node);
        return NULL;
    }
    const char *const error = reply_error(reply);
    if (!error || !(is_redirection(error) || will_pass(error))) return reply;
    reply_free(reply);
    return NULL;
}
