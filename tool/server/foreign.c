#include "server/foreign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "input/pipeline.h"

/* ---- The modules --------------------------------------------------------- */

struct foreign_module {
    const char *name, *type; /* in --as, and by TYPE */
};

static const struct foreign_module modules[] = {
    {"redisbloom", "MBbloom--"},
    {"valkey-bloom", "bloomfltr"},
};
enum { MODULES = sizeof modules / sizeof *modules };

const struct foreign_module *foreign_named(const char *name) {
    for (int i = 0; i < MODULES; i++)
        if (strcmp(name, modules[i].name) == 0) return &modules[i];
    return NULL;
}

const char *foreign_names(void) {
    return "redisbloom or valkey-bloom";
}

void parse_foreign(const struct verb_option *option, const char *value) {
    const struct foreign_module *const module = foreign_named(value);
    if (!module)
        fail("option --%s wants %s, not '%s'", option->name, foreign_names(),
             value);
    *(const struct foreign_module **)option->into = module;
}

/* ---- Commands ------------------------------------------------------------ */

/* What the stages of the pipeline share. */
static struct {
    struct cluster *server;
    const struct url *address;
    const struct foreign_push *push;
    struct call call; /* its memory serves all commands */
    uint64_t fresh;   /* items that were new, by the answers that came */
} state;

static void start_call(const char *command, const struct name *key) {
    call_start(&state.call, command);
    call_add(&state.call, key->text, key->size);
}

/* An answer that must not be an error. */
static struct reply *demand(void) {
    struct reply *const reply = cluster_query(state.server, &state.call, false);
    const char *const error = reply_error(reply);
    if (error) fail_reply(state.address, &state.call, error);
    return reply;
}

static bool exists(const struct name *key) {
    long long number = 0;
    start_call("EXISTS", key);
    struct reply *const reply = demand();
    reply_number(reply, &number);
    reply_free(reply);
    return number > 0;
}

static void unlink_key(const struct name *key) {
    start_call("UNLINK", key);
    reply_free(demand());
}

/* Is the new filter of that module? */
static bool has_type(const char *type, char *found, size_t room) {
    start_call("TYPE", &state.push->key);
    struct reply *const reply = demand();
    const char *const text = reply_text(reply, NULL);
    snprintf(found, room, "%s", text ? text : "");
    reply_free(reply);
    return strcmp(found, type) == 0;
}

/* ---- Making -------------------------------------------------------------- */

static void reserve(uint64_t items, const char *layout) {
    char rate[32], capacity[24];
    snprintf(rate, sizeof rate, "%.17g", state.push->rate);
    snprintf(capacity, sizeof capacity, "%" PRIu64, items ? items : 1);
    start_call("BF.RESERVE", &state.push->key);
    call_text(&state.call, rate);
    call_text(&state.call, capacity);
    if (layout) call_text(&state.call, "LAYOUT");
    if (layout) call_text(&state.call, layout);
    reply_free(demand());
}

/* A server that has Calyx makes native filters, unless LAYOUT says otherwise;
 * the other modules do not know LAYOUT. */
static void make(uint64_t items) {
    const struct foreign_module *const as = state.push->as;
    char found[64];
    reserve(items, NULL);
    if (has_type(as->type, found, sizeof found)) return;
    unlink_key(&state.push->key);
    if (strncmp(found, "calyx", 5) != 0)
        fail("%s: the server makes filters of the type %s; --as %s wants %s",
             state.address->shown, found, as->name, as->type);
    reserve(items, as->name);
}

/* ---- Adding -------------------------------------------------------------- */

static void call_add_keys(const struct key_batch *batch) {
    start_call("BF.INSERT", &state.push->key);
    call_text(&state.call, "NOCREATE"); /* else the server might begin anew */
    call_text(&state.call, "ITEMS");
    for (size_t i = 0; i < batch->count; i++)
        call_add(&state.call, batch->keys[i].data, batch->keys[i].size);
}

static void check_added(const struct reply *reply, size_t count) {
    const char *error = reply_error(reply);
    const size_t parts = reply_parts(reply);
    if (!error && parts) error = reply_error(reply_part(reply, parts - 1));
    if (error) fail_reply(state.address, &state.call, error);
    if (parts != count)
        fail("%s: the server answers BF.INSERT of %zu items with %zu answers",
             state.address->shown, count, parts);
    for (size_t i = 0; i < parts; i++) {
        long long number = 0;
        reply_number(reply_part(reply, i), &number);
        state.fresh += number == 1;
    }
}

/* Adding twice does no harm, so what got no answer is sent again. */
static void add_again(struct text_block *block, struct key_batch *batch) {
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        call_add_keys(batch);
        struct reply *const reply =
            cluster_query(state.server, &state.call, false);
        check_added(reply, batch->count);
        reply_free(reply);
    }
}

/* All commands of a block at once, then their replies. */
static bool add_block(struct text_block *block, struct key_batch *batch) {
    size_t sent = 0, room = 0;
    struct {
        int node;
        size_t count;
    } *posted = NULL;
    bool complete = true;
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        if (sent == room) {
            room = 2 * room + 16;
            posted = resize_memory(posted, room * sizeof *posted);
        }
        call_add_keys(batch);
        posted[sent].node = cluster_post(state.server, &state.call);
        posted[sent++].count = batch->count;
        block->lines += batch->count;
    }
    cluster_send(state.server);
    for (size_t i = 0; i < sent; i++) {
        struct reply *const reply =
            cluster_receive(state.server, posted[i].node);
        if (reply) check_added(reply, posted[i].count);
        complete &= reply != NULL;
        reply_free(reply);
    }
    free(posted);
    if (!complete) add_again(block, batch);
    return true;
}

static void count_block(struct text_block *block, struct key_batch *batch) {
    batch_start(batch, block);
    while (batch_next(batch, block)) block->lines += batch->count;
}

static uint64_t count_lines(char *list) {
    const struct stages stages = {.in_parallel = count_block};
    struct stat about;
    if (strcmp(list, "-") == 0 || stat(list, &about) != 0 ||
        !S_ISREG(about.st_mode))
        fail("%s: it can be read only once; give the number of its keys with "
             "-n",
             list);
    return run_pipeline(&stages, 1, &list).lines;
}

/* ---- The whole ----------------------------------------------------------- */

/* A server that restarted from an old file, or a replica that took over, may
 * lack items that were acknowledged. */
static void check_number(void) {
    long long there = 0;
    start_call("BF.CARD", &state.push->key);
    struct reply *const reply = demand();
    reply_number(reply, &there);
    reply_free(reply);
    if ((uint64_t)there < state.fresh)
        fail("%s: the server has lost items: it has %lld, and acknowledged "
             "%" PRIu64 "; push again",
             state.address->shown, there, state.fresh);
}

static _Noreturn void fail_exists(void) {
    fail("%s: there is a key of this name already; --swap puts the filter in "
         "its place",
         state.address->shown);
}

/* If the answer is lost, it was done if the first key is gone. */
static void take_the_place(void) {
    start_call(state.push->swap ? "RENAME" : "RENAMENX", &state.push->key);
    call_add(&state.call, state.push->target.text, state.push->target.size);
    struct reply *const reply = cluster_query(state.server, &state.call, true);
    const char *const error = reply ? reply_error(reply) : NULL;
    long long renamed = 1;
    if (error) fail_reply(state.address, &state.call, error);
    const bool taken = reply && reply_number(reply, &renamed) && !renamed;
    const bool lost = !reply;
    reply_free(reply);
    if (taken) unlink_key(&state.push->key);
    if (taken) fail_exists();
    if (lost && exists(&state.push->key))
        fail("%s: the answer to %s was lost, and it was not done; push again",
             state.address->shown, state.call.words[0]);
}

void foreign_push_list(struct cluster *server, const struct url *address,
                       const struct foreign_push *push, char *list) {
    const struct stages stages = {.in_order = add_block, .unguarded = true};
    state.server = server;
    state.address = address;
    state.push = push;
    if (!push->swap && exists(&push->target)) fail_exists();
    const uint64_t items = push->items ? push->items : count_lines(list);
    unlink_key(&push->key); /* what an earlier push left */
    make(items);
    run_pipeline(&stages, 1, &list);
    check_number();
    take_the_place();
    call_free(&state.call);
}
