#include "server/foreign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct foreign_module modules[] = {
    {.choice.layout = &foreign_redisbloom,
     .type = "MBbloom--",
     .in_chunks = true},
    {.choice.layout = &foreign_valkey_bloom, .type = "bloomfltr"},
    {.choice.layout = &foreign_redisson,
     .type = "string",
     .is_string = true,
     .has_config = true},
    {.choice.layout = &foreign_bits, .type = "string", .is_string = true},
};
enum { MODULES = sizeof modules / sizeof *modules };

/* NULL: no server holds filters of this layout. */
static const struct foreign_module *module_of(
    const struct foreign_choice *choice) {
    static struct foreign_module chosen; /* a process has one */
    for (int i = 0; i < MODULES; i++) {
        if (modules[i].choice.layout != choice->layout) continue;
        chosen = modules[i];
        chosen.choice = *choice;
        return &chosen;
    }
    return NULL;
}

void parse_foreign(const struct verb_option *option, const char *value) {
    struct foreign_choice choice;
    calyx_error why;
    const bool known = foreign_choose(value, &choice, &why) == CALYX_OK;
    const struct foreign_module *const module =
        known ? module_of(&choice) : NULL;
    if (!known && strpbrk(value, " \t"))
        fail("option --%s: %s", option->name, why.text);
    if (!module)
        fail("--%s: expected redisbloom, valkey-bloom, redisson, or a layout "
             "in one line, found '%s'",
             option->name, value);
    *(const struct foreign_module **)option->into = module;
}

const char *foreign_fetch(const char *url, const struct foreign_choice *choice,
                          struct foreign_filter *f) {
    static struct url address;
    address = parse_url(url);
    struct foreign_session session = {
        .address = &address,
        .as = module_of(choice),
        .key = shard_name(&address, 0, 0),
    };
    if (!session.as || !session.as->is_string)
        fail("--server and --layout are for bits in a string: redisson, or a "
             "layout in one line, not %s",
             foreign_name(choice));
    session.server = cluster_open(&address);
    foreign_fetch_string(&session, f);
    cluster_close(session.server);
    call_free(&session.call);
    free(session.key.text);
    return address.shown;
}

bool foreign_has_type(struct foreign_session *s, char found[FOREIGN_TYPE]) {
    call_for(&s->call, "TYPE", &s->key);
    struct reply *const reply = cluster_demand(s->server, &s->call);
    const char *const text = reply_text(reply, NULL);
    snprintf(found, FOREIGN_TYPE, "%s", text ? text : "");
    reply_free(reply);
    return strcmp(found, s->as->type) == 0;
}

void foreign_expect_type(struct foreign_session *s) {
    char found[FOREIGN_TYPE];
    if (foreign_has_type(s, found)) return;
    if (strcmp(found, "none") == 0)
        fail("%s: there is no such key", s->address->shown);
    fail("%s: the key is of the type %s; --as %s: expected %s",
         s->address->shown, found, foreign_name(&s->as->choice), s->as->type);
}

/* ---- Beginning and end --------------------------------------------------- */

static _Noreturn void fail_exists(const struct foreign_session *s) {
    fail("%s: there is a key of this name already; --swap puts the filter in "
         "its place",
         s->address->shown);
}

void foreign_begin(struct foreign_session *s) {
    if (!s->swap && cluster_has_key(s->server, &s->call, &s->target))
        fail_exists(s);
    cluster_unlink(s->server, &s->call, &s->key); /* an earlier push left it */
}

/* If the answer is lost, RENAMENX was done if the first key is gone, unless the
 * server has lost all. For RENAME that shows nothing: a server that restarts
 * from an older file has the old filter under the second key. */
void foreign_publish(struct foreign_session *s) {
    const char *const command = s->swap ? "RENAME" : "RENAMENX";
    call_for(&s->call, command, &s->key);
    call_add(&s->call, s->target.text, s->target.size);
    struct reply *const reply = cluster_query(s->server, &s->call, true);
    const char *const error = reply ? reply_error(reply) : NULL;
    long long renamed = 1;
    if (error) fail_reply(s->address, &s->call, error);
    const bool taken = reply && reply_number(reply, &renamed) && !renamed;
    const bool lost = !reply;
    reply_free(reply);
    if (taken) cluster_unlink(s->server, &s->call, &s->key);
    if (taken) fail_exists(s);
    if (lost && s->swap)
        fail("%s: the answer to RENAME was lost, so the filter may be the old "
             "one; push again",
             s->address->shown);
    if (lost && (cluster_has_key(s->server, &s->call, &s->key) ||
                 !cluster_has_key(s->server, &s->call, &s->target)))
        fail("%s: the answer to %s was lost, and it was not done; push again",
             s->address->shown, command);
    call_free(&s->call);
}
