#include "server/rebuild_tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void parse_tokens(const struct verb_option *o, const char *value) {
    struct rebuild_tokens *const tokens = o->into;
    char *const list = copy_text(value);
    char *rest = list;
    tokens->count = 0;
    for (const char *one; (one = strsep(&rest, ","));) {
        if (tokens->count == MOST_SHARDS ||
            !count_from(one, &tokens->token[tokens->count++]))
            fail("--%s: expected what --rebuild-begin printed, found '%s'",
                 o->name, value);
    }
    free(list);
}

void print_tokens(const struct rebuild_tokens *tokens) {
    for (uint64_t i = 0; i < tokens->count; i++)
        printf("%s%" PRIu64, i ? "," : "", tokens->token[i]);
    printf("\n");
}

/* BF.REBUILD of each filter; the reply goes into the token if `begins`. */
static void for_each(const struct url *address, uint64_t shards, bool begins,
                     struct rebuild_tokens *tokens) {
    struct cluster *const server = cluster_open(address);
    struct call call = {0};
    tokens->count = shards ? shards : 1;
    for (uint64_t i = 0; i < tokens->count; i++) {
        const struct name name = shard_name(address, i, shards);
        char text[24];
        long long number;
        snprintf(text, sizeof text, "%" PRIu64, tokens->token[i]);
        call_for(&call, "BF.REBUILD", &name);
        call_text(&call, begins ? "BEGIN" : "ABORT");
        if (!begins) call_text(&call, text);
        struct reply *const reply = cluster_demand(server, &call);
        if (!reply_number(reply, &number) || number < 0)
            fail_answer(address, &call, "");
        if (begins) tokens->token[i] = (uint64_t)number;
        reply_free(reply);
        free(name.text);
    }
    call_free(&call);
    cluster_close(server);
}

void rebuild_begin(const struct url *address, uint64_t shards,
                   struct rebuild_tokens *tokens) {
    for_each(address, shards, true, tokens);
}

void rebuild_abort(const struct url *address, uint64_t shards,
                   const struct rebuild_tokens *tokens) {
    struct rebuild_tokens same = *tokens;
    for_each(address, shards, false, &same);
}
