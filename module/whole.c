/*
 * Commands on filters as a whole: BF.MERGE, BF.SIMILARITY and BF.CLEAR.
 *
 * The first two work on bits that stand at the same place for the same item. So
 * the filters must be made alike, with the same seed; else the library says in
 * what they differ. They read all of their bits, and keep the server for that
 * long. BF.CLEAR does not: an empty filter takes the place of the full one,
 * which is freed by another thread.
 */
#include <math.h>
#include <stdio.h>

#include "commands.h"
#include "handlers.h"
#include "memory.h"
#include "pages.h"
#include "reply.h"
#include "stream.h"
#include "type.h"
#include "window.h"

/* Can its bits be laid over those of another? Else replies. `which` names it.
 */
static bool is_mergeable(RedisModuleCtx *ctx, const struct filter *f,
                         const char *which) {
    if (f->layout == &redisbloom_layout)
        reply_text(ctx,
                   "ERR the %s is of the redisbloom layout, which keeps no "
                   "seed and counts items as they come; only native filters "
                   "can be laid over each other",
                   which);
    else if (is_window(f))
        reply_text(ctx,
                   "ERR the %s is a window, which has a filter for each of its "
                   "generations; they cannot be laid over others",
                   which);
    else if (filter_is_partial(f))
        reply_partial(ctx, f);
    else
        return true;
    return false;
}

/* Open a key that must hold such a filter; else replies, with nothing to close.
 */
static struct filter *open_mergeable(RedisModuleCtx *ctx,
                                     RedisModuleString *name, const char *which,
                                     RedisModuleKey **key) {
    struct filter *f = NULL;
    *key = RM_OpenKey(ctx, name, RM_READ);
    const enum standing is = type_of(*key, &f);
    if (is == OTHER)
        reply_wrong_type(ctx);
    else if (is == MISSING)
        reply_text(ctx, "ERR not found: the %s", which);
    else if (is_mergeable(ctx, f, which))
        return f;
    if (*key) RM_CloseKey(*key);
    return NULL;
}

/* ---- Merging ------------------------------------------------------------- */

/* Do all sources from this on fit the target, or if that is NULL, the first of
 * them? Replies unless they do. */
static bool all_fit(RedisModuleCtx *ctx, const struct filter *target,
                    struct filter **sources, int from, int n) {
    calyx_error why = {.text = ""};
    for (int i = from; i < n; i++) {
        const struct filter *to = target ? target : sources[0];
        if (calyx_fits(to->native, sources[i]->native, &why) == CALYX_OK)
            continue;
        reply_text(ctx, "ERR source %d does not fit the %s: %s", i + 1,
                   target ? "target" : "first", why.text);
        return false;
    }
    return true;
}

/* A copy of the first source, put under the key; else replies. The first may be
 * among the others: it fits itself, but not always its copy. */
static struct filter *make_copy(RedisModuleCtx *ctx, RedisModuleKey *key,
                                struct filter **sources, int n) {
    struct filter *f = NULL;
    calyx_error why = {.text = ""};
    memory_judge(ctx, 0);
    const calyx_status status = filter_copy(sources[0], &f, &why);
    memory_trust();
    if (status == CALYX_OK && !all_fit(ctx, f, sources, 1, n)) {
        filter_free(f);
        return NULL;
    }
    if (status == CALYX_OK) {
        f->generation = 0;
        type_put(key, f);
        return f;
    }
    counts.refused += status == CALYX_NO_MEMORY;
    reply_not_made(ctx, status, &why);
    return NULL;
}

static void merge_into(RedisModuleCtx *ctx, RedisModuleString *name,
                       RedisModuleKey *key, struct filter *target,
                       struct filter **sources, int n) {
    if (!all_fit(ctx, target, sources, 0, n)) return;
    const bool missing = !target;
    if (missing) target = make_copy(ctx, key, sources, n);
    if (!target) return;
    for (int i = missing; i < n; i++)
        calyx_merge(target->native, sources[i]->native, NULL);
    if (target->counts && missing < n) target->rewrites++;
    filter_count(target);
    RM_ReplicateVerbatim(ctx);
    note_change(ctx, name, "bloom.merge");
    RM_ReplyWithSimpleString(ctx, "OK");
}

static int merge(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3) return RM_WrongArity(ctx);
    const int n = argc - 2;
    struct filter **sources = RM_Alloc((size_t)n * sizeof *sources);
    int there = 0;
    for (; there < n; there++) {
        char which[32];
        RedisModuleKey *source;
        snprintf(which, sizeof which, "source %d", there + 1);
        sources[there] = open_mergeable(ctx, argv[2 + there], which, &source);
        if (!sources[there]) break;
        RM_CloseKey(source);
    }
    if (there == n) {
        struct filter *target = NULL;
        RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
        if (type_of(key, &target) == OTHER)
            reply_wrong_type(ctx);
        else if (!target || is_mergeable(ctx, target, "target"))
            merge_into(ctx, argv[1], key, target, sources, n);
        RM_CloseKey(key);
    }
    RM_Free(sources);
    return RM_OK;
}

/* ---- Comparing ----------------------------------------------------------- */

static void reply_overlap(RedisModuleCtx *ctx, const struct filter *a,
                          const struct filter *b) {
    calyx_overlap overlap;
    calyx_error why = {.text = ""};
    if (calyx_compare(a->native, b->native, &overlap, &why) != CALYX_OK) {
        reply_text(ctx, "ERR they cannot be compared: %s", why.text);
        return;
    }
    RM_ReplyWithMap(ctx, 3);
    RM_ReplyWithSimpleString(ctx, "union");
    RM_ReplyWithLongLong(ctx, llround(overlap.either));
    RM_ReplyWithSimpleString(ctx, "intersection");
    RM_ReplyWithLongLong(ctx, llround(overlap.both));
    RM_ReplyWithSimpleString(ctx, "jaccard");
    RM_ReplyWithDouble(ctx, overlap.jaccard);
}

static int compare(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    RedisModuleKey *key_a, *key_b;
    const struct filter *a = open_mergeable(ctx, argv[1], "first", &key_a);
    if (!a) return RM_OK;
    const struct filter *b = open_mergeable(ctx, argv[2], "second", &key_b);
    if (b) {
        reply_overlap(ctx, a, b);
        RM_CloseKey(key_b);
    }
    RM_CloseKey(key_a);
    return RM_OK;
}

/* ---- Clearing ------------------------------------------------------------ */

static int clear_filter(RedisModuleCtx *ctx, RedisModuleString *name,
                        struct filter *f, long long expires) {
    calyx_error why = {.text = ""};
    if (filter_is_partial(f)) return reply_partial(ctx, f);
    const uint64_t begun = pages_begun();
    memory_judge(ctx, 0);
    const calyx_status status = filter_clear(f, &why);
    memory_trust();
    if (status != CALYX_OK) {
        counts.refused += status == CALYX_NO_MEMORY;
        return reply_not_made(ctx, status, &why);
    }
    if (f->layout == &redisbloom_layout)
        stream_clear(ctx, name, f->chain, expires);
    else
        RM_ReplicateVerbatim(ctx);
    note_change(ctx, name, "bloom.clear");
    return reply_ok_when_touched(ctx, begun);
}

static int clear(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RM_WrongArity(ctx);
    struct filter *f = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    const enum standing is = type_of(key, &f);
    const long long expires = RM_GetAbsExpire(key);
    RM_CloseKey(key); /* who is told of the event may delete it */
    switch (is) {
        case OTHER: return reply_wrong_type(ctx);
        case MISSING: return reply_not_found(ctx);
        case FILTER: return clear_filter(ctx, argv[1], f, expires);
    }
    return RM_OK;
}

const struct command whole_commands[] = {
    {"bf.merge", merge, "write deny-oom", "write bloom"},
    {"bf.similarity", compare, "readonly", "read bloom"},
    {"bf.clear", clear, "write", "write bloom"},
    {0}};
