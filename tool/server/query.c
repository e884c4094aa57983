#include "server/query.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "input/key_options.h"
#include "server/chunks.h"
#include "server/plain.h"
#include "server/shards.h"

static struct url address;
static uint64_t shards; /* 0: one filter, under the key itself */
static bool is_plain;   /* as strings, without a module */
static const uint8_t *secret;

const char *query_name(void) {
    return address.shown;
}

/* ---- Connections --------------------------------------------------------- */

/* Each thread uses one. All are opened at the start: later the node in the URL
 * may be gone, while an open client knows others. */
struct session {
    struct cluster *server;
    struct plain_filter *plain; /* NULL: the module answers */
};
enum { MOST_IDLE = 256 };
static struct session idle[MOST_IDLE];
static size_t idle_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct session take_session(void) {
    pthread_mutex_lock(&lock);
    const struct session session = idle[--idle_count];
    pthread_mutex_unlock(&lock);
    return session;
}

static void give_session(struct session session) {
    pthread_mutex_lock(&lock);
    idle[idle_count++] = session;
    pthread_mutex_unlock(&lock);
}

static struct session open_session(struct cluster *server) {
    struct session session = {.server = server};
    if (is_plain) {
        session.plain = plain_open(server, &address, secret);
        plain_expect_lookups(session.plain);
    }
    return session;
}

void query_close(void) {
    while (idle_count) {
        const struct session session = idle[--idle_count];
        if (session.plain) plain_close(session.plain);
        cluster_close(session.server);
    }
}

/* ---- The keys of the server ---------------------------------------------- */

static struct name name_of(uint64_t shard) {
    return shard_name(&address, shard, shards);
}

static void demand_existence(const struct reply *reply, const struct call *call,
                             const struct name *name) {
    const char *const error = reply_error(reply);
    long long number;
    if (error) fail_reply(&address, call, error);
    if (!reply_number(reply, &number) || number != 1)
        fail("%s: there is no filter under the key %.*s", address.shown,
             (int)name->size, name->text);
}

static void look_for_all(struct cluster *server) {
    struct call call = {0};
    for (uint64_t i = 0; i < (shards ? shards : 1); i++) {
        const struct name name = name_of(i);
        call_for(&call, "EXISTS", &name);
        struct reply *const reply = cluster_query(server, &call, false);
        demand_existence(reply, &call, &name);
        reply_free(reply);
        free(name.text);
    }
    call_free(&call);
}

static bool holds_plain(struct cluster *server) {
    struct call call = {0};
    const struct name name = {address.key, address.key_size};
    const bool is = plain_kind_of(server, &call, &name) == PLAIN_FILTER;
    call_free(&call);
    return is;
}

static void open_others(struct cluster *server) {
    give_session(open_session(server));
    for (size_t i = 1; i < thread_count(); i++)
        give_session(open_session(cluster_open(&address)));
}

void query_open(const char *url, uint64_t count, const uint8_t *key) {
    address = parse_url(url);
    secret = key;
    struct cluster *const server = cluster_open(&address);
    is_plain = !count && holds_plain(server);
    if (is_plain) {
        open_others(server);
        return;
    }
    shards = shards_there(server, &address);
    if (count && shards && count != shards) /* keys would seem to be absent */
        fail("%s: it has %" PRIu64 " shards, not %" PRIu64, address.shown,
             shards, count);
    if (count) shards = count;
    look_for_all(server);
    open_others(server);
}

/* Without its options for keys a filter may seem to lack its members. */
static void warn_unknown_options(const char *why) {
    if (key_options_given()) return;
    warn("%s: with which options for keys it was built is not known (%s), and "
         "whole lines are looked up; give these options, or --whole-line",
         address.shown, why);
}

/* They are in the head, the first reply of BF.DUMP. Not every filter has one,
 * and not every user may call it. */
static char *options_in_head(struct cluster *server) {
    struct call call = {0};
    const struct name name = name_of(0);
    call_for(&call, "BF.DUMP", &name);
    call_text(&call, "0");
    struct reply *const reply = cluster_query(server, &call, false);
    size_t size;
    const char *const head = !reply_error(reply) && reply_parts(reply) == 3
                                 ? reply_text(reply_part(reply, 2), &size)
                                 : NULL;
    const char *const error = reply_error(reply);
    calyx_filter *f = NULL;
    calyx_error why;
    char *options = NULL;
    if (error && strncmp(error, "NOPERM", 6) == 0) warn_unknown_options(error);
    if (head &&
        filter_of_head((const uint8_t *)head, size, &f, &why) == CALYX_OK) {
        const char *const text = key_options_of(f);
        options = text ? copy_text(text) : NULL;
        calyx_free(f);
    } else if (head) {
        warn_unknown_options(why.text);
    }
    reply_free(reply);
    call_free(&call);
    free(name.text);
    return options;
}

char *query_key_options(void) {
    const struct session session = take_session();
    char *options;
    if (session.plain) {
        const char *const text =
            key_options_of_layout(plain_layout(session.plain));
        options = text ? copy_text(text) : NULL;
    } else {
        options = options_in_head(session.server);
    }
    give_session(session);
    return options;
}

/* ---- Queries ------------------------------------------------------------- */

void remote_keys_add(struct remote_keys *q, const calyx_key *keys, size_t n) {
    size_t size = q->size;
    for (size_t i = 0; i < n; i++) size += keys[i].size;
    q->bytes = with_room(q->bytes, &q->byte_room, size, 1);
    q->ends = with_room(q->ends, &q->room, q->count + n, sizeof *q->ends);
    for (size_t i = 0; i < n; i++) {
        if (keys[i].size)
            memcpy(q->bytes + q->size, keys[i].data, keys[i].size);
        q->size += keys[i].size;
        q->ends[q->count++] = q->size;
    }
}

static calyx_key key_of(const struct remote_keys *q, size_t i) {
    const size_t from = i ? q->ends[i - 1] : 0;
    return (calyx_key){q->bytes ? q->bytes + from : "", q->ends[i] - from};
}

/* One command: some keys of one shard. */
enum { MOST_KEYS = 1000 };
struct ask {
    uint64_t shard;
    const size_t *keys; /* their indexes in the list */
    size_t count;
    int node, exists_node;
};

static void call_ask(struct call *call, const struct ask *ask,
                     const struct remote_keys *q, const struct name *name) {
    call_for(call, q->adds ? "BF.INSERT" : "BF.MEXISTS", name);
    if (q->adds) call_text(call, "NOCREATE"); /* else it might begin anew */
    if (q->adds) call_text(call, "ITEMS");
    for (size_t i = 0; i < ask->count; i++) {
        const calyx_key key = key_of(q, ask->keys[i]);
        call_add(call, key.data, key.size);
    }
}

static void read_answers(const struct reply *reply, const struct call *call,
                         const struct ask *ask, bool *found) {
    const size_t parts = reply_parts(reply);
    const char *error = reply_error(reply);
    if (!error && parts) error = reply_error(reply_part(reply, parts - 1));
    if (error) fail_reply(&address, call, error);
    bool good = parts == ask->count;
    for (size_t i = 0; good && i < ask->count; i++) {
        long long number;
        good = reply_number(reply_part(reply, i), &number);
        found[ask->keys[i]] = number != 0;
    }
    if (!good) fail_answer(&address, call, "");
}

/* The numbers of the keys, sorted by shard and cut into commands. */
static struct ask *plan(const struct remote_keys *q, size_t *order,
                        size_t *count) {
    const uint64_t n = shards ? shards : 1;
    size_t next[MOST_SHARDS + 1] = {0};
    uint16_t *const shard = alloc_memory(q->count * sizeof *shard + 1);
    for (size_t i = 0; i < q->count; i++) {
        const calyx_key key = key_of(q, i);
        shard[i] = shards ? (uint16_t)shard_of(&key, shards) : 0;
        next[shard[i] + 1]++;
    }
    for (uint64_t s = 1; s <= n; s++) next[s] += next[s - 1];
    for (size_t i = 0; i < q->count; i++) order[next[shard[i]]++] = i;
    free(shard);

    struct ask *const asks =
        alloc_memory((q->count / MOST_KEYS + n + 1) * sizeof *asks);
    *count = 0;
    for (uint64_t s = 0; s < n; s++)
        for (size_t at = s ? next[s - 1] : 0; at < next[s];) {
            const size_t left = next[s] - at;
            const size_t some = left < MOST_KEYS ? left : MOST_KEYS;
            asks[(*count)++] = (struct ask){s, order + at, some, 0, 0};
            at += some;
        }
    return asks;
}

/* The query, and whether the filter exists. */
static void post(struct cluster *server, struct ask *ask,
                 const struct remote_keys *q, struct call *call) {
    const struct name name = name_of(ask->shard);
    call_ask(call, ask, q, &name);
    ask->node = cluster_post(server, call);
    call_for(call, "EXISTS", &name);
    ask->exists_node = cluster_post(server, call);
    free(name.text);
}

/* If either reply is missing, query again, one command at a time. */
static void resolve(struct cluster *server, struct ask *ask,
                    const struct remote_keys *q, struct call *call,
                    struct reply *answers, struct reply *existence,
                    bool *found) {
    const struct name name = name_of(ask->shard);
    const bool again = !answers || !existence;
    call_ask(call, ask, q, &name);
    if (again) {
        reply_free(answers);
        answers = cluster_query(server, call, false);
    }
    read_answers(answers, call, ask, found);
    reply_free(answers);
    call_for(call, "EXISTS", &name);
    if (again) {
        reply_free(existence);
        existence = cluster_query(server, call, false);
    }
    demand_existence(existence, call, &name);
    reply_free(existence);
    free(name.text);
}

static void ask_module(struct cluster *server, const struct remote_keys *q,
                       bool *found) {
    size_t *const order = alloc_memory(q->count * sizeof *order + 1);
    size_t count;
    struct ask *const asks = plan(q, order, &count);
    struct reply **const replies =
        alloc_memory(2 * count * sizeof(struct reply *) + 1);
    struct call call = {0};
    for (size_t i = 0; i < count; i++) post(server, &asks[i], q, &call);
    cluster_send(server);
    for (size_t i = 0; i < count; i++) {
        replies[2 * i] = cluster_receive(server, asks[i].node);
        replies[2 * i + 1] = cluster_receive(server, asks[i].exists_node);
    }
    for (size_t i = 0; i < count; i++)
        resolve(server, &asks[i], q, &call, replies[2 * i], replies[2 * i + 1],
                found);
    call_free(&call);
    free(replies);
    free(asks);
    free(order);
}

static void ask_plain(struct plain_filter *f, const struct remote_keys *q,
                      bool *found) {
    calyx_key *const keys = alloc_memory(q->count * sizeof *keys + 1);
    for (size_t i = 0; i < q->count; i++) keys[i] = key_of(q, i);
    (q->adds ? plain_add : plain_has)(f, keys, q->count, found);
    free(keys);
}

bool *query_keys(struct remote_keys *q) {
    bool *const found = alloc_memory(q->count + 1);
    const struct session session = take_session();
    if (session.plain)
        ask_plain(session.plain, q, found);
    else
        ask_module(session.server, q, found);
    give_session(session);
    free(q->ends);
    free(q->bytes);
    *q = (struct remote_keys){0};
    return found;
}
