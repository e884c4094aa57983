/* Filters of other modules, from lists of keys. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/pipeline.h"
#include "server/foreign.h"

/* ---- Making -------------------------------------------------------------- */

static void reserve(struct foreign_session *s, uint64_t items, double rate,
                    const char *layout) {
    char error[32], capacity[24];
    snprintf(error, sizeof error, "%.17g", rate);
    snprintf(capacity, sizeof capacity, "%" PRIu64, items ? items : 1);
    call_for(&s->call, "BF.RESERVE", &s->key);
    call_text(&s->call, error);
    call_text(&s->call, capacity);
    if (layout) call_text(&s->call, "LAYOUT");
    if (layout) call_text(&s->call, layout);
    reply_free(cluster_demand(s->server, &s->call));
}

/* A server that has Calyx makes native filters, unless LAYOUT says otherwise;
 * the other modules do not know LAYOUT. */
static void make(struct foreign_session *s, uint64_t items, double rate) {
    char found[FOREIGN_TYPE];
    reserve(s, items, rate, NULL);
    if (foreign_has_type(s, found)) return;
    cluster_unlink(s->server, &s->call, &s->key);
    if (strncmp(found, "calyx", 5) != 0)
        fail(
            "%s: the server makes filters of the type %s; --as %s: expected %s",
            s->address->shown, found, s->as->choice.layout->name, s->as->type);
    reserve(s, items, rate, s->as->choice.layout->name);
}

/* ---- Adding -------------------------------------------------------------- */

/* What the stages of the pipeline share. */
struct list_push {
    struct foreign_session *session;
    uint64_t fresh; /* items that were new, by the answers that came */
};

static void call_add_keys(struct foreign_session *s,
                          const struct key_batch *batch) {
    call_for(&s->call, "BF.INSERT", &s->key);
    call_text(&s->call, "NOCREATE"); /* else the server might begin anew */
    call_text(&s->call, "ITEMS");
    for (size_t i = 0; i < batch->count; i++)
        call_add(&s->call, batch->keys[i].data, batch->keys[i].size);
}

static void check_added(struct list_push *l, const struct reply *reply,
                        size_t count) {
    const struct foreign_session *const s = l->session;
    const char *error = reply_error(reply);
    const size_t parts = reply_parts(reply);
    if (!error && parts) error = reply_error(reply_part(reply, parts - 1));
    if (error) fail_reply(s->address, &s->call, error);
    if (parts != count)
        fail("%s: the server answers BF.INSERT of %zu items with %zu answers",
             s->address->shown, count, parts);
    for (size_t i = 0; i < parts; i++) {
        long long number = 0;
        reply_number(reply_part(reply, i), &number);
        l->fresh += number == 1;
    }
}

/* Adding twice does no harm, so what got no answer is sent again. */
static void add_again(struct list_push *l, struct text_block *block,
                      struct key_batch *batch) {
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        call_add_keys(l->session, batch);
        struct reply *const reply =
            cluster_query(l->session->server, &l->session->call, false);
        check_added(l, reply, batch->count);
        reply_free(reply);
    }
}

struct posted_batch {
    int node;
    size_t count;
};

static size_t post_block(struct foreign_session *s, struct text_block *block,
                         struct key_batch *batch,
                         struct posted_batch **posted) {
    size_t sent = 0, room = 0;
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        *posted = with_room(*posted, &room, sent + 1, sizeof **posted);
        call_add_keys(s, batch);
        (*posted)[sent++] = (struct posted_batch){
            cluster_post(s->server, &s->call), batch->count};
        block->lines += batch->count;
    }
    cluster_send(s->server);
    return sent;
}

/* All commands of a block at once, then their replies. */
static bool add_block(struct text_block *block, struct key_batch *batch) {
    struct list_push *const l = block->context;
    struct posted_batch *posted = NULL;
    bool complete = true;
    const size_t sent = post_block(l->session, block, batch, &posted);
    for (size_t i = 0; i < sent; i++) {
        struct reply *const reply =
            cluster_receive(l->session->server, posted[i].node);
        if (reply) check_added(l, reply, posted[i].count);
        complete &= reply != NULL;
        reply_free(reply);
    }
    free(posted);
    if (!complete) add_again(l, block, batch);
    return true;
}

/* ---- The whole ----------------------------------------------------------- */

/* A server that restarted from an old file, or a replica that took over, may
 * lack items that were acknowledged. */
static void check_number(const struct list_push *l) {
    struct foreign_session *const s = l->session;
    long long there = 0;
    call_for(&s->call, "BF.CARD", &s->key);
    struct reply *const reply = cluster_demand(s->server, &s->call);
    reply_number(reply, &there);
    reply_free(reply);
    if ((uint64_t)there < l->fresh)
        fail("%s: the server has lost items: it has %lld, and acknowledged "
             "%" PRIu64 "; push again",
             s->address->shown, there, l->fresh);
}

void foreign_push_list(struct foreign_session *s, uint64_t items, double rate,
                       char *list) {
    struct list_push l = {.session = s};
    const struct stages stages = {
        .in_order = add_block, .unguarded = true, .context = &l};
    if (s->as->is_string)
        fail_at(list, 0,
                "--as %s: expected a filter: 'calyx build --layout' makes one "
                "of a list",
                s->as->choice.layout->name);
    if (!items) items = count_lines(1, &list);
    foreign_begin(s);
    make(s, items, rate);
    run_pipeline(&stages, 1, &list);
    check_number(&l);
    foreign_publish(s);
}
