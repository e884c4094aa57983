/*
 * Commands on filters as a whole: BF.MERGE, BF.SIMILARITY and BF.CLEAR.
 *
 * The first two work on bits that stand at the same place for the same item. So
 * the filters must be made alike, with the same seed; else the library says in
 * what they differ. They read all of their bits, so large filters are merged
 * and compared in steps (steps.h). BF.CLEAR is quick: an empty filter takes the
 * place of the full one, which is freed by another thread.
 *
 * A merge in steps only ever sets bits of the target, or adds to its counters.
 * Each step is replicated by itself, as BF.MERGEPART with the numbers that it
 * began with. So replicas and the AOF do the same step between the same other
 * commands, and hold the same bits at any time, whatever happens to the filters
 * meanwhile; and no step keeps a replica for long either.
 *
 * A target that has to be made stands under its key from the first step on, as
 * a filter that is still being loaded, which nobody can ask; it is deleted if
 * the merge fails.
 */
#include <math.h>
#include <stdio.h>

#include "command/commands.h"
#include "command/handlers.h"
#include "command/options.h"
#include "command/replicate.h"
#include "layout/window.h"
#include "server/allocator.h"
#include "server/pages.h"
#include "server/reply.h"
#include "server/steps.h"
#include "type.h"

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
    const enum key_type type = type_of(*key, &f);
    if (type == KEY_OTHER)
        reply_wrong_type(ctx);
    else if (type == KEY_MISSING)
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
        calyx_room room, other;
        if (calyx_fits(native_of(to, &room), native_of(sources[i], &other),
                       &why) == CALYX_OK)
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
        if (f->rare) f->rare->generation = 0;
        type_attach(key, f);
        return f;
    }
    stats.refused += status == CALYX_NO_MEMORY;
    reply_not_made(ctx, status, &why);
    return NULL;
}

static void merge_now(RedisModuleCtx *ctx, RedisModuleString *name,
                      RedisModuleKey *key, struct filter *target,
                      struct filter **sources, int n) {
    const bool missing = !target;
    if (missing) target = make_copy(ctx, key, sources, n);
    if (!target) return;
    calyx_filter *const native = native_for(target);
    if (!native) {
        const calyx_error why = {.text = "no memory"};
        reply_not_made(ctx, CALYX_NO_MEMORY, &why);
        return;
    }
    for (int i = missing; i < n; i++) {
        calyx_room room;
        calyx_merge(native, native_of(sources[i], &room), NULL);
    }
    if (target->can_remove && missing < n) rare_for(target)->rewrites++;
    filter_count(target);
    filter_compact(target);
    RM_ReplicateVerbatim(ctx);
    note_change(ctx, name, "bloom.merge");
    RM_ReplyWithSimpleString(ctx, "OK");
}

/* ---- Merging in steps ---------------------------------------------------- */

/* The bytes of bits in a step, of each of two filters; a filter that counts has
 * four times as many counters. */
static uint64_t step_bytes(const struct filter *f) {
    const uint64_t both = (uint64_t)STEP_LINES * LINE_BYTES / 2;
    return f->can_remove ? both / 8 : both;
}

static uint64_t row_bytes(const struct filter *f) {
    calyx_room room;
    return calyx_row_bytes(native_of(f, &room));
}

static void count_step(const struct filter *f, uint64_t bytes) {
    const uint64_t bodies = f->can_remove ? 10 : 2;
    steps_count(bodies * bytes / LINE_BYTES);
}

/* An empty filter in the shape of a source, which cannot be asked yet. */
static calyx_status make_target(RedisModuleCtx *ctx, RedisModuleKey *key,
                                const struct filter *like, struct filter **out,
                                calyx_error *why) {
    memory_judge(ctx, 0);
    const calyx_status status = filter_alike(like, out, why);
    memory_trust();
    if (status != CALYX_OK) return status;
    (*out)->uncommitted = true;
    type_attach(key, *out);
    return CALYX_OK;
}

/* One step: on the primary, and the same on replicas and from the AOF. */
static calyx_status merge_part(struct filter *target,
                               const struct filter *source, uint64_t bytes,
                               calyx_progress *at, calyx_error *why) {
    const uint64_t before = at->at;
    calyx_room room;
    calyx_filter *const native = native_for(target);
    if (!native) return CALYX_NO_MEMORY;
    const calyx_status status =
        calyx_merge_some(native, native_of(source, &room), bytes, at, why);
    if (status != CALYX_OK) return status;
    count_step(target, at->at - before);
    steps_see_change(target);
    if (target->can_remove) rare_for(target)->rewrites++;
    filter_count(target);
    return CALYX_OK;
}

struct merge_job {
    struct job job;
    uint64_t *lives; /* of the target, then of the sources             */
    uint64_t *ends;  /* bytes of each source when the merge began      */
    int source;      /* at which it is, from 2 on: its place in `argv` */
    bool made;       /* the target is of this command                  */
    calyx_progress at;
    calyx_error why; /* empty if all is well */
};

static void end_merge(struct job *job) {
    struct merge_job *const j = (struct merge_job *)job;
    RM_Free(j->lives);
    RM_Free(j->ends);
}

static int reply_merged(RedisModuleCtx *ctx, struct job *job) {
    const struct merge_job *const j = (struct merge_job *)job;
    if (!*j->why.text) return RM_ReplyWithSimpleString(ctx, "OK");
    return reply_text(ctx, "ERR not merged: %s%s", j->why.text,
                      j->made ? "" : "; what was merged before that stays");
}

/* A target that was made is no use as a part of what was wanted. */
static bool give_up(RedisModuleCtx *ctx, struct merge_job *j,
                    const struct filter *target) {
    RedisModuleString *const name = j->job.argv[1];
    if (!j->made || !target) return true;
    RedisModuleKey *key = RM_OpenKey(ctx, name, RM_READ | RM_WRITE);
    RM_UnlinkKey(key);
    RM_CloseKey(key);
    RM_Replicate(ctx, "UNLINK", "s", name);
    RM_SignalModifiedKey(ctx, name);
    RM_NotifyKeyspaceEvent(ctx, RM_NOTIFY_GENERIC, "del", name);
    return true;
}

static bool complain_gone(struct merge_job *j, const struct filter *target) {
    char which[32] = "the target";
    if (target) snprintf(which, sizeof which, "source %d", j->source - 1);
    snprintf(j->why.text, sizeof j->why.text,
             "%s was deleted, emptied or replaced meanwhile", which);
    return true;
}

static void replicate_part(RedisModuleCtx *ctx, const struct merge_job *j,
                           const calyx_progress *at, uint64_t bytes,
                           bool last) {
    RM_Replicate(ctx, "BF.MERGEPART", "sslllc", j->job.argv[1],
                 j->job.argv[j->source], (long long)at->at,
                 (long long)at->bits[0], (long long)bytes,
                 last ? "LAST" : "MORE");
}

static bool merge_step(RedisModuleCtx *ctx, struct job *job) {
    struct merge_job *const j = (struct merge_job *)job;
    struct filter *const target = steps_open(ctx, job->argv[1], j->lives[0]);
    const struct filter *source =
        target ? steps_open(ctx, job->argv[j->source], j->lives[j->source - 1])
               : NULL;
    if (!source) return complain_gone(j, target) && give_up(ctx, j, target);

    const calyx_progress before = j->at;
    const uint64_t left = j->ends[j->source - 2] - before.at;
    const uint64_t most = step_bytes(target), bytes = most < left ? most : left;
    if (merge_part(target, source, bytes, &j->at, &j->why) != CALYX_OK)
        return give_up(ctx, j, target);
    const bool ends = j->at.at == j->ends[j->source - 2];
    const bool last = ends && j->source == job->argc - 1;
    if (last) target->uncommitted = false;
    if (last) filter_compact(target);
    replicate_part(ctx, j, &before, bytes, last);
    if (last)
        note_change(ctx, job->argv[1], "bloom.merge");
    else
        RM_SignalModifiedKey(ctx, job->argv[1]);
    if (ends) {
        j->source++;
        j->at = (calyx_progress){0};
    }
    return last;
}

static int merge_in_steps(RedisModuleCtx *ctx, RedisModuleString **argv,
                          int argc, RedisModuleKey *key, struct filter *target,
                          struct filter **sources) {
    const int n = argc - 2;
    const bool missing = !target;
    calyx_error why = {.text = ""};
    if (missing) {
        const calyx_status status =
            make_target(ctx, key, sources[0], &target, &why);
        stats.refused += status == CALYX_NO_MEMORY;
        if (status != CALYX_OK) return reply_not_made(ctx, status, &why);
        if (!all_fit(ctx, target, sources, 0, n)) return RM_UnlinkKey(key);
    }
    struct merge_job *const j = RM_Calloc(1, sizeof *j);
    j->job = (struct job){.step = merge_step,
                          .reply = reply_merged,
                          .end = end_merge,
                          .writes = true};
    steps_keep_arguments(ctx, &j->job, argv, argc);
    j->made = missing;
    j->source = 2;
    j->lives = RM_Alloc((size_t)(n + 1) * sizeof *j->lives);
    j->ends = RM_Alloc((size_t)n * sizeof *j->ends);
    j->lives[0] = filter_life(target);
    for (int i = 0; i < n; i++) {
        j->lives[i + 1] = filter_life(sources[i]);
        j->ends[i] = row_bytes(sources[i]);
    }
    return steps_start(ctx, &j->job);
}

/* Counters that have grown can be copied, but not merged. */
static bool is_grown_copy(const struct filter *target,
                          const struct filter *source) {
    calyx_room room;
    calyx_info info;
    calyx_outline(native_of(source, &room), &info);
    return !target && source->can_remove && info.parts > 1;
}

static void merge_into(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                       RedisModuleKey *key, struct filter *target,
                       struct filter **sources) {
    const int n = argc - 2;
    uint64_t bytes = 0;
    if (!all_fit(ctx, target, sources, 0, n)) return;
    for (int i = 0; i < n; i++) bytes += row_bytes(sources[i]);
    if (bytes > step_bytes(sources[0]) && steps_can_wait(ctx) &&
        !is_grown_copy(target, sources[0]))
        merge_in_steps(ctx, argv, argc, key, target, sources);
    else
        merge_now(ctx, argv[1], key, target, sources, n);
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
        if (type_of(key, &target) == KEY_OTHER)
            reply_wrong_type(ctx);
        else if (!target || is_mergeable(ctx, target, "target"))
            merge_into(ctx, argv, argc, key, target, sources);
        RM_CloseKey(key);
    }
    RM_Free(sources);
    return RM_OK;
}

/* ---- BF.MERGEPART -------------------------------------------------------- */

/* What a replica and the AOF are told of one step:
 *
 *     BF.MERGEPART target source at bits bytes LAST|MORE
 */
static int replay_part(RedisModuleCtx *ctx, RedisModuleString **argv,
                       int argc) {
    if (argc != 7) return RM_WrongArity(ctx);
    if (!(RM_GetContextFlags(ctx) & (RM_CTX_REPLICATED | RM_CTX_LOADING)))
        return RM_ReplyWithError(ctx, "ERR BF.MERGEPART is how replicas hear "
                                      "of a merge; use BF.MERGE");
    long long at, bits, bytes;
    if (parse_whole(argv[3], 0, INT64_MAX, &at) != NUMBER ||
        parse_whole(argv[4], 0, INT64_MAX, &bits) != NUMBER ||
        parse_whole(argv[5], 0, INT64_MAX, &bytes) != NUMBER)
        return RM_ReplyWithError(ctx, "ERR whole numbers are wanted");
    RedisModuleKey *source_key;
    const struct filter *source =
        open_mergeable(ctx, argv[2], "source", &source_key);
    if (!source) return RM_OK;
    RM_CloseKey(source_key);

    calyx_error why = {.text = ""};
    calyx_progress from = {.at = (uint64_t)at, .bits = {(uint64_t)bits}};
    struct filter *target = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    const enum key_type type = type_of(key, &target);
    calyx_status status = CALYX_OK;
    if (type == KEY_MISSING)
        status = make_target(ctx, key, source, &target, &why);
    RM_CloseKey(key);
    if (type == KEY_OTHER || (target && target->layout != &native_layout))
        return reply_wrong_type(ctx);
    if (status == CALYX_OK)
        status = merge_part(target, source, (uint64_t)bytes, &from, &why);
    if (status != CALYX_OK) return reply_text(ctx, "ERR %s", why.text);
    const bool last = is_word(argv[6], "LAST");
    if (last) target->uncommitted = false;
    if (last) filter_compact(target);
    RM_ReplicateVerbatim(ctx);
    if (last)
        note_change(ctx, argv[1], "bloom.merge");
    else
        RM_SignalModifiedKey(ctx, argv[1]);
    return RM_ReplyWithSimpleString(ctx, "OK");
}

/* ---- Comparing ----------------------------------------------------------- */

static void reply_overlap(RedisModuleCtx *ctx, const calyx_overlap *overlap) {
    RM_ReplyWithMap(ctx, 3);
    RM_ReplyWithSimpleString(ctx, "union");
    RM_ReplyWithLongLong(ctx, llround(overlap->either));
    RM_ReplyWithSimpleString(ctx, "intersection");
    RM_ReplyWithLongLong(ctx, llround(overlap->both));
    RM_ReplyWithSimpleString(ctx, "jaccard");
    RM_ReplyWithDouble(ctx, overlap->jaccard);
}

static int reply_incomparable(RedisModuleCtx *ctx, const calyx_error *why) {
    return reply_text(ctx, "ERR they cannot be compared: %s", why->text);
}

static void compare_now(RedisModuleCtx *ctx, const struct filter *a,
                        const struct filter *b) {
    calyx_overlap overlap;
    calyx_error why = {.text = ""};
    calyx_room room, other;
    if (calyx_compare(native_of(a, &room), native_of(b, &other), &overlap,
                      &why) != CALYX_OK)
        reply_incomparable(ctx, &why);
    else
        reply_overlap(ctx, &overlap);
}

/* ---- Comparing in steps -------------------------------------------------- */

/* What is different once a filter has changed: each item that sets bits is
 * counted; where bits come in bulk, steps_see_change is called. */
struct version {
    uint64_t life, items, rewrites, bulk;
};

static struct version version_of(const struct filter *f, const struct job *j) {
    return (struct version){filter_life(f), filter_items(f),
                            rare_of(f)->rewrites, j->changes_seen};
}

static bool is_same(const struct version *a, const struct version *b) {
    return a->life == b->life && a->items == b->items &&
           a->rewrites == b->rewrites && a->bulk == b->bulk;
}

enum { MOST_TRIES = 8 };

struct compare_job {
    struct job job;
    struct version versions[2];
    calyx_progress at;
    calyx_overlap overlap;
    int tries;
    bool gone, changed;
    calyx_error why;
};

static int reply_compared(RedisModuleCtx *ctx, struct job *job) {
    const struct compare_job *const j = (struct compare_job *)job;
    if (j->gone)
        return RM_ReplyWithError(ctx, "ERR a filter was deleted, emptied or "
                                      "replaced while they were compared");
    if (j->changed)
        return reply_text(ctx,
                          "ERR the filters changed while they were compared, "
                          "%d times; compare copies of them, or in MULTI",
                          MOST_TRIES);
    if (*j->why.text) return reply_incomparable(ctx, &j->why);
    reply_overlap(ctx, &j->overlap);
    return RM_OK;
}

/* The answer is of one state: with a change it begins anew. */
static bool begin_again(struct compare_job *j, const struct version *now) {
    for (int i = 0; i < 2; i++) j->versions[i] = now[i];
    j->at = (calyx_progress){0};
    j->changed = ++j->tries == MOST_TRIES;
    return j->changed;
}

static bool compare_step(RedisModuleCtx *ctx, struct job *job) {
    struct compare_job *const j = (struct compare_job *)job;
    const struct filter *f[2];
    struct version now[2];
    for (int i = 0; i < 2; i++) {
        f[i] = steps_open(ctx, job->argv[1 + i], j->versions[i].life);
        if (!f[i]) return j->gone = true;
        now[i] = version_of(f[i], job);
    }
    if ((!is_same(&now[0], &j->versions[0]) ||
         !is_same(&now[1], &j->versions[1])) &&
        begin_again(j, now))
        return true;
    const uint64_t before = j->at.at;
    calyx_room room, other;
    const calyx_filter *const a = native_of(f[0], &room);
    const calyx_status status =
        calyx_compare_some(a, native_of(f[1], &other), step_bytes(f[0]), &j->at,
                           &j->overlap, &j->why);
    if (status != CALYX_OK) return true;
    count_step(f[0], j->at.at - before);
    return j->at.at == calyx_row_bytes(a);
}

static int compare_in_steps(RedisModuleCtx *ctx, RedisModuleString **argv,
                            int argc, const struct filter *a,
                            const struct filter *b) {
    struct compare_job *const j = RM_Calloc(1, sizeof *j);
    j->job = (struct job){.step = compare_step, .reply = reply_compared};
    steps_keep_arguments(ctx, &j->job, argv, argc);
    j->versions[0] = version_of(a, &j->job);
    j->versions[1] = version_of(b, &j->job);
    j->job.sees[0] = filter_life(a);
    j->job.sees[1] = filter_life(b);
    return steps_start(ctx, &j->job);
}

static int compare(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    RedisModuleKey *key_a, *key_b;
    const struct filter *a = open_mergeable(ctx, argv[1], "first", &key_a);
    if (!a) return RM_OK;
    const struct filter *b = open_mergeable(ctx, argv[2], "second", &key_b);
    if (b) {
        if (row_bytes(a) > step_bytes(a) && steps_can_wait(ctx))
            compare_in_steps(ctx, argv, argc, a, b);
        else
            compare_now(ctx, a, b);
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
    const uint64_t begun = prefault_last();
    memory_judge(ctx, 0);
    const calyx_status status = filter_clear(f, &why);
    memory_trust();
    if (status != CALYX_OK) {
        stats.refused += status == CALYX_NO_MEMORY;
        return reply_not_made(ctx, status, &why);
    }
    if (f->layout == &redisbloom_layout)
        replicate_chain_clear(ctx, name, f->chain, expires);
    else
        RM_ReplicateVerbatim(ctx);
    note_change(ctx, name, "bloom.clear");
    return reply_ok_when_prefaulted(ctx, begun);
}

static int clear(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RM_WrongArity(ctx);
    struct filter *f = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    const enum key_type type = type_of(key, &f);
    const long long expires = RM_GetAbsExpire(key);
    RM_CloseKey(key); /* who is told of the event may delete it */
    switch (type) {
        case KEY_OTHER: return reply_wrong_type(ctx);
        case KEY_MISSING: return reply_not_found(ctx);
        case KEY_FILTER: return clear_filter(ctx, argv[1], f, expires);
    }
    return RM_OK;
}

const struct command whole_commands[] = {
    {"bf.merge", merge, "write deny-oom", "write slow bloom"},
    {"bf.mergepart", replay_part, "write", "write slow bloom"},
    {"bf.similarity", compare, "readonly", "read slow bloom"},
    {"bf.clear", clear, "write", "write bloom"},
    {0}};
