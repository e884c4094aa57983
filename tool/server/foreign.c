#include "server/foreign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct foreign_module modules[] = {
    {&foreign_redisbloom, "MBbloom--", true},
    {&foreign_valkey_bloom, "bloomfltr", false},
};
enum { MODULES = sizeof modules / sizeof *modules };

static const struct foreign_module *module_named(const char *name) {
    for (int i = 0; i < MODULES; i++)
        if (strcmp(name, modules[i].layout->name) == 0) return &modules[i];
    return NULL;
}

void parse_foreign(const struct verb_option *option, const char *value) {
    const struct foreign_module *const module = module_named(value);
    if (!module)
        fail("option --%s wants redisbloom or valkey-bloom, not '%s'",
             option->name, value);
    *(const struct foreign_module **)option->into = module;
}

bool foreign_has_type(struct foreign_session *s, char found[FOREIGN_TYPE]) {
    call_for(&s->call, "TYPE", &s->key);
    struct reply *const reply = cluster_demand(s->server, &s->call);
    const char *const text = reply_text(reply, NULL);
    snprintf(found, FOREIGN_TYPE, "%s", text ? text : "");
    reply_free(reply);
    return strcmp(found, s->as->type) == 0;
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

/* If the answer is lost, it was done if the first key is gone. */
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
    if (lost && cluster_has_key(s->server, &s->call, &s->key))
        fail("%s: the answer to %s was lost, and it was not done; push again",
             s->address->shown, command);
    call_free(&s->call);
}
