/* Replies. Where RESP3 has maps and booleans, the server makes arrays and
 * integers of them for clients that speak RESP2. */
#include "server/reply.h"

#include <stdarg.h>
#include <stdio.h>

#include "command/options.h"
#include "layout/window.h"
#include "server/allocator.h"
#include "server/pages.h"

/* ---- Errors -------------------------------------------------------------- */

int reply_wrong_type(RedisModuleCtx *ctx) {
    return RM_ReplyWithError(
        ctx,
        "WRONGTYPE Operation against a key holding the wrong kind of value");
}

int reply_not_found(RedisModuleCtx *ctx) {
    return RM_ReplyWithError(ctx, "ERR not found");
}

int reply_text(RedisModuleCtx *ctx, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return RM_ReplyWithError(ctx, text);
}

int reply_partial(RedisModuleCtx *ctx, const struct filter *f) {
    return reply_text(ctx,
                      "ERR the filter is still being loaded: %llu of its %llu "
                      "bytes are here; go on with %s, or delete it",
                      (unsigned long long)f->arrived,
                      (unsigned long long)f->bytes,
                      f->uncommitted ? "BF.LOAD" : "BF.LOADCHUNK");
}

/* What is known about memory that was not to be had. */
static const char *reason(const calyx_error *why) {
    return *memory_refusal() ? memory_refusal() : why->text;
}

int reply_not_made(RedisModuleCtx *ctx, calyx_status status,
                   const calyx_error *why) {
    if (status == CALYX_NO_MEMORY)
        return reply_text(ctx, "ERR Insufficient memory to create filter: %s",
                          reason(why));
    return reply_text(ctx, "ERR could not create filter: %s", why->text);
}

int reply_not_added(RedisModuleCtx *ctx, calyx_status status,
                    const calyx_error *why) {
    if (status == CALYX_FULL)
        return RM_ReplyWithError(ctx, "ERR non scaling filter is full");
    return reply_text(ctx, "ERR problem inserting into filter: %s", why->text);
}

/* ---- Answers ------------------------------------------------------------- */

static int reply_ok(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv, (void)argc;
    return RM_ReplyWithSimpleString(ctx, "OK");
}

static void unblock(void *client) {
    RM_UnblockClient(client, NULL);
}

/* Without a time limit of the server's: one that ends while the client is being
 * unblocked would cost it the reply. */
int reply_ok_when_prefaulted(RedisModuleCtx *ctx, uint64_t begun) {
    const int cannot_wait =
        RM_CTX_REPLICATED | RM_CTX_LOADING | RM_CTX_DENY_BLOCKING;
    if (prefault_last() == begun || RM_GetContextFlags(ctx) & cannot_wait)
        return reply_ok(ctx, NULL, 0);
    RedisModuleBlockedClient *client =
        RM_BlockClient(ctx, reply_ok, NULL, NULL, 0);
    if (!prefault_notify(begun, unblock, client)) unblock(client);
    return RM_OK;
}

int reply_bools(RedisModuleCtx *ctx, const bool *answers, size_t n) {
    for (size_t i = 0; i < n; i++) RM_ReplyWithBool(ctx, answers[i]);
    return RM_OK;
}

enum { FIELDS = 5 };

static const struct {
    const char *word, *title;
} fields[FIELDS] = {
    {"CAPACITY", "Capacity"},         {"SIZE", "Size"},
    {"FILTERS", "Number of filters"}, {"ITEMS", "Number of items inserted"},
    {"EXPANSION", "Expansion rate"},
};

static void reply_value(RedisModuleCtx *ctx, const struct filter_facts *facts,
                        int field) {
    const uint64_t values[FIELDS] = {facts->capacity, facts->size, facts->parts,
                                     facts->items, facts->expansion};
    if (field == FIELDS - 1 && facts->expansion == 0)
        RM_ReplyWithNull(ctx);
    else
        RM_ReplyWithLongLong(ctx, (long long)values[field]);
}

int reply_facts(RedisModuleCtx *ctx, const struct filter *f) {
    struct filter_facts facts;
    f->layout->describe(f, &facts);
    RM_ReplyWithMap(ctx, FIELDS);
    for (int i = 0; i < FIELDS; i++) {
        RM_ReplyWithSimpleString(ctx, fields[i].title);
        reply_value(ctx, &facts, i);
    }
    return RM_OK;
}

/* A map of one in RESP3; else only the value. */
static void begin_field(RedisModuleCtx *ctx, const char *title) {
    if (RM_GetContextFlags(ctx) & RM_CTX_RESP3) {
        RM_ReplyWithMap(ctx, 1);
        RM_ReplyWithSimpleString(ctx, title);
    } else {
        RM_ReplyWithArray(ctx, 1);
    }
}

/* What RedisBloom does not have is told only when it is asked for. */
static int reply_our_fact(RedisModuleCtx *ctx, const struct filter *f,
                          RedisModuleString *field) {
    const struct time_window *w = is_window(f) ? f->window : NULL;
    const struct {
        const char *word, *title;
        uint64_t value;
    } ours[] = {
        {"WINDOW", "Window in milliseconds", w ? w->milliseconds : 0},
        {"GENERATIONS", "Generations", w ? w->panes - 1 : 0},
        {"GENERATION", "Generation", rare_of(f)->generation},
        {"ABSENT", "Guarded: absent", rare_of(f)->guarded[ABSENT]},
        {"CACHED", "Guarded: cached", rare_of(f)->guarded[CACHED]},
        {"MAYBE", "Guarded: maybe", rare_of(f)->guarded[MAYBE]},
    };
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (is_word(field, ours[i].word)) {
            begin_field(ctx, ours[i].title);
            return RM_ReplyWithLongLong(ctx, (long long)ours[i].value);
        }
    return RM_ReplyWithError(ctx, "Invalid information value");
}

int reply_fact(RedisModuleCtx *ctx, const struct filter *f,
               RedisModuleString *field) {
    struct filter_facts facts;
    int i = 0;
    while (i < FIELDS && !is_word(field, fields[i].word)) i++;
    if (i == FIELDS) return reply_our_fact(ctx, f, field);
    f->layout->describe(f, &facts);
    begin_field(ctx, fields[i].title);
    reply_value(ctx, &facts, i);
    return RM_OK;
}

int reply_parts(RedisModuleCtx *ctx, const struct filter *f) {
    struct filter_facts facts;
    struct part_facts part;
    char text[200];
    f->layout->describe(f, &facts);
    RM_ReplyWithArray(ctx, (long)facts.parts + 1);
    int size = snprintf(text, sizeof text, "size:%llu",
                        (unsigned long long)facts.items);
    RM_ReplyWithStringBuffer(ctx, text, (size_t)size);
    for (uint32_t i = 0; f->layout->describe_part(f, i, &part); i++) {
        size = snprintf(text, sizeof text,
                        "bytes:%llu bits:%llu hashes:%u hashwidth:%u "
                        "capacity:%llu size:%llu ratio:%g",
                        (unsigned long long)part.bytes,
                        (unsigned long long)part.bits, part.hashes,
                        part.hash_bits, (unsigned long long)part.capacity,
                        (unsigned long long)part.items, part.error);
        RM_ReplyWithStringBuffer(ctx, text, (size_t)size);
    }
    return RM_OK;
}

int reply_piece(RedisModuleCtx *ctx, const struct piece *piece) {
    RM_ReplyWithArray(ctx, 2);
    RM_ReplyWithLongLong(ctx, piece->at);
    return RM_ReplyWithStringBuffer(ctx, piece->bytes ? piece->bytes : "",
                                    piece->size);
}
