/*
 * BF.MERGE: the union of filters. The same item must have its bits at the same
 * place in all of them: they must be made alike, with the same seed; else the
 * library says in what they differ. Large filters are merged in steps
 * (server/steps.h).
 *
 * A step only sets bits of the target, or adds to its counters. Each step is
 * replicated by itself, as BF.MERGEPART with the numbers that it began with. So
 * replicas and the AOF do the same step between the same other commands, hold
 * the same bits at any time, and are not blocked for longer than the primary.
 *
 * A target that has to be made stands under its key from the first step on, as
 * a filter that is still being loaded, which refuses lookups. It is deleted if
 * the merge fails.
 */
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "command/open_key.h"
#include "command/options.h"
#include "layout/rebuild.h"
#include "server/allocator.h"
#include "server/reply.h"
#include "server/steps.h"
#include "whole/overlay.h"

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
    struct memory_request request;
    memory_begin(&request, ctx, 0);
    const calyx_status status = filter_copy(sources[0], &f, &why);
    memory_end(&why);
    if (status == CALYX_OK && !all_fit(ctx, f, sources, 1, n)) {
        filter_free(f);
        return NULL;
    }
    if (status == CALYX_OK) {
        if (f->extra) f->extra->generation = 0;
        type_attach(key, f);
        return f;
    }
    stats.refused += status == CALYX_NO_MEMORY;
    reply_not_made(ctx, status, &why);
    return NULL;
}

/* The filters fit, but their allow lists together may be too long, or there is
 * no memory for a table that has to grow: nothing else can fail. Replicate what
 * was merged before. A table may have some items of the next source, too:
 * replicas get them all, as items that are known here are not replicated. */
static void give_up_now(RedisModuleCtx *ctx, RedisModuleString **argv,
                        RedisModuleKey *key, bool made, int merged,
                        bool is_merged_in_part, const calyx_error *why) {
    const size_t some = (size_t)merged + is_merged_in_part;
    const bool stays = some && !made;
    if (made) RM_UnlinkKey(key);
    if (stays) {
        RM_Replicate(ctx, "BF.MERGE", "sv", argv[1], argv + 2, some);
        note_change(ctx, argv[1], "bloom.merge");
    }
    reply_text(ctx, "ERR not merged: source %d: %s%s", merged + 1, why->text,
               stays ? "; what was merged before that stays" : "");
}

static void merge_now(RedisModuleCtx *ctx, RedisModuleString **argv,
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
    calyx_error why = {.text = ""};
    int merged = missing;
    struct memory_request request;
    memory_begin(&request, ctx, filter_bytes(target));
    for (; merged < n; merged++) {
        calyx_room room;
        if (calyx_merge(native, native_of(sources[merged], &room), &why) !=
            CALYX_OK)
            break;
    }
    memory_end(&why);
    if (target->can_remove && missing < n) extra_for(target)->rewrites++;
    filter_note_bytes(target);
    filter_count(target);
    filter_compact(target);
    if (merged < n) {
        give_up_now(ctx, argv, key, missing, merged, grows_in_place(target),
                    &why);
        return;
    }
    RM_ReplicateVerbatim(ctx);
    note_change(ctx, argv[1], "bloom.merge");
    RM_ReplyWithSimpleString(ctx, "OK");
}

/* ---- In steps ------------------------------------------------------------ */

/* An empty filter of the shape of a source, which refuses lookups. */
static calyx_status make_target(RedisModuleCtx *ctx, RedisModuleKey *key,
                                const struct filter *like, struct filter **out,
                                calyx_error *why) {
    struct memory_request request;
    memory_begin(&request, ctx, 0);
    const calyx_status status = filter_alike(like, out, why);
    memory_end(why);
    if (status != CALYX_OK) return status;
    (*out)->uncommitted = true;
    type_attach(key, *out);
    return CALYX_OK;
}

/* One step: on the primary, and the same on replicas and from the AOF. */
static calyx_status merge_part(RedisModuleCtx *ctx, struct filter *target,
                               const struct filter *source, uint64_t bytes,
                               calyx_progress *at, calyx_error *why) {
    const uint64_t before = at->at;
    calyx_room room;
    calyx_filter *const native = native_for(target);
    if (!native) return CALYX_NO_MEMORY;
    struct memory_request request;
    memory_begin(&request, ctx, filter_bytes(target));
    const calyx_status status =
        calyx_merge_some(native, native_of(source, &room), bytes, at, why);
    memory_end(why);
    filter_note_bytes(target);
    filter_count(target);
    if (status != CALYX_OK) return status;
    /* The last step over a table goes to the end of the row at once. */
    const uint64_t gone = at->at - before, most = bytes_at_once(target);
    count_step(target, gone < most ? gone : most);
    steps_note_change(extra_of(target)->identity);
    rebuild_lose(rebuild_of(target), REBUILD_IN_BULK);
    if (target->can_remove) extra_for(target)->rewrites++;
    return CALYX_OK;
}

struct merge_job {
    struct job job;
    uint64_t *identities; /* of the target, then of the sources             */
    uint64_t *ends;       /* bytes of each source when the merge began      */
    int source;           /* at which it is, from 2 on: its place in `argv` */
    bool made;            /* the target is of this command                  */
    calyx_progress at;
    calyx_error why; /* empty if all is well */
};

static void end_merge(struct job *job) {
    struct merge_job *const j = (struct merge_job *)job;
    RM_Free(j->identities);
    RM_Free(j->ends);
}

static int reply_merged(RedisModuleCtx *ctx, struct job *job) {
    const struct merge_job *const j = (struct merge_job *)job;
    if (!*j->why.text) return RM_ReplyWithSimpleString(ctx, "OK");
    return reply_text(ctx, "ERR not merged: %s%s", j->why.text,
                      j->made ? "" : "; what was merged before that stays");
}

static bool give_up(RedisModuleCtx *ctx, struct merge_job *j,
                    const struct filter *target) {
    if (j->made && target) delete_target(ctx, j->job.argv[1]);
    return true;
}

static bool complain_gone(struct merge_job *j, const struct filter *target) {
    char which[32] = "the target";
    if (target) snprintf(which, sizeof which, "source %d", j->source - 1);
    snprintf(j->why.text, sizeof j->why.text,
             "%s was deleted, emptied or replaced meanwhile", which);
    return true;
}

/* The numbers of a progress in one word: "1:2:3". */
struct numbers_text {
    char text[64];
};

static struct numbers_text progress_text(const calyx_progress *at) {
    struct numbers_text out;
    snprintf(out.text, sizeof out.text, "%llu:%llu:%llu",
             (unsigned long long)at->bits[0], (unsigned long long)at->bits[1],
             (unsigned long long)at->bits[2]);
    return out;
}

static bool read_progress(RedisModuleString *word, calyx_progress *at) {
    size_t size;
    const char *text = RM_StringPtrLen(word, &size);
    unsigned long long bits[3];
    if (sscanf(text, "%llu:%llu:%llu", &bits[0], &bits[1], &bits[2]) != 3)
        return false;
    for (int i = 0; i < 3; i++) at->bits[i] = bits[i];
    return strcmp(progress_text(at).text, text) == 0;
}

static void replicate_part(RedisModuleCtx *ctx, const struct merge_job *j,
                           const calyx_progress *at, uint64_t bytes,
                           bool last) {
    struct numbers_text bits = progress_text(at);
    RM_Replicate(ctx, "BF.MERGEPART", "sslclc", j->job.argv[1],
                 j->job.argv[j->source], (long long)at->at, bits.text,
                 (long long)bytes, last ? "LAST" : "MORE");
}

static bool merge_step(RedisModuleCtx *ctx, struct job *job) {
    struct merge_job *const j = (struct merge_job *)job;
    struct filter *const target =
        find_again(ctx, job->argv[1], j->identities[0]);
    const struct filter *source = target
                                      ? find_again(ctx, job->argv[j->source],
                                                   j->identities[j->source - 1])
                                      : NULL;
    if (!source) return complain_gone(j, target) && give_up(ctx, j, target);

    const calyx_progress before = j->at;
    const uint64_t left = j->ends[j->source - 2] - before.at;
    const uint64_t most = step_bytes(target);
    const uint64_t bytes = most < left || grows_in_place(target) ? most : left;
    if (merge_part(ctx, target, source, bytes, &j->at, &j->why) != CALYX_OK) {
        if (grows_in_place(target))
            replicate_part(ctx, j, &before, bytes, false);
        return give_up(ctx, j, target);
    }
    /* After the end, if a table has grown since that was noted. */
    const bool ends = j->at.at >= j->ends[j->source - 2];
    const bool last = ends && j->source == job->argc - 1;
    replicate_part(ctx, j, &before, bytes, last);
    end_step(ctx, job->argv[1], target, last);
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
    j->identities = RM_Alloc((size_t)(n + 1) * sizeof *j->identities);
    j->ends = RM_Alloc((size_t)n * sizeof *j->ends);
    j->identities[0] = filter_identity(target);
    for (int i = 0; i < n; i++) {
        j->identities[i + 1] = filter_identity(sources[i]);
        j->ends[i] = row_bytes(sources[i]);
    }
    return steps_start(ctx, &j->job);
}

/* A counting filter that has grown cannot be merged, not even into an empty
 * one: it is copied byte by byte. */
static bool is_grown_copy(const struct filter *target,
                          const struct filter *source) {
    calyx_room room;
    calyx_info info;
    calyx_info_of(native_of(source, &room), &info);
    return !target && source->can_remove && info.parts > 1;
}

static void merge_into(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                       RedisModuleKey *key, struct filter *target,
                       struct filter **sources) {
    const int n = argc - 2;
    uint64_t bytes = 0;
    if (!all_fit(ctx, target, sources, 0, n)) return;
    for (int i = 0; i < n; i++) bytes += row_bytes(sources[i]);
    if (target) rebuild_lose(rebuild_of(target), REBUILD_IN_BULK);
    if (bytes <= bytes_at_once(sources[0]) || !steps_can_wait(ctx))
        merge_now(ctx, argv, key, target, sources, n);
    else if (n == 1 && is_grown_copy(target, sources[0]))
        copy_in_steps(ctx, argv, argc, key, sources[0]);
    else
        merge_in_steps(ctx, argv, argc, key, target, sources);
}

static int run_merge(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc < 3) return RM_WrongArity(ctx);
    const int n = argc - 2;
    struct filter **sources = RM_Alloc((size_t)n * sizeof *sources);
    int there = 0;
    for (; there < n; there++) {
        char which[32];
        snprintf(which, sizeof which, "source %d", there + 1);
        sources[there] = find_mergeable(ctx, argv[2 + there], which);
        if (!sources[there]) break;
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

/* One step, for replicas and the AOF:
 *
 *     BF.MERGEPART target source at bits bytes LAST|MORE
 */
static int run_mergepart(RedisModuleCtx *ctx, RedisModuleString **argv,
                         int argc) {
    if (argc != 7) return RM_WrongArity(ctx);
    if (!is_replayed(ctx))
        return RM_ReplyWithError(ctx, "ERR BF.MERGEPART is how replicas hear "
                                      "of a merge; use BF.MERGE");
    long long at, bytes;
    calyx_progress from = {0};
    if (parse_whole(argv[3], 0, INT64_MAX, &at) != NUMBER ||
        !read_progress(argv[4], &from) ||
        parse_whole(argv[5], 0, INT64_MAX, &bytes) != NUMBER)
        return RM_ReplyWithError(ctx, "ERR expected whole numbers");
    const struct filter *source = find_mergeable(ctx, argv[2], "source");
    if (!source) return RM_OK;

    calyx_error why = {.text = ""};
    from.at = (uint64_t)at;
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
        status = merge_part(ctx, target, source, (uint64_t)bytes, &from, &why);
    if (status != CALYX_OK) return reply_text(ctx, "ERR %s", why.text);
    RM_ReplicateVerbatim(ctx);
    end_step(ctx, argv[1], target, is_word(argv[6], "LAST"));
    return RM_ReplyWithSimpleString(ctx, "OK");
}

/* ---- The commands -------------------------------------------------------- */

static RedisModuleCommandArg merge_args[] = {NAMED_KEY("target", 0),
                                             {.name = "source",
                                              .type = RM_ARG_KEY,
                                              .key_spec_index = 1,
                                              .flags = RM_ARG_MULTIPLE},
                                             END};

static RedisModuleCommandArg merge_part_args[] = {
    NAMED_KEY("target", 0),
    NAMED_KEY("source", 1),
    {.name = "at", .type = RM_ARG_INTEGER},
    {.name = "bits", .type = RM_ARG_STRING},
    {.name = "bytes", .type = RM_ARG_INTEGER},
    {.name = "last", .type = RM_ARG_STRING},
    END};

static RedisModuleCommandKeySpec merge_keys[] = {
    KEYS_AT(1, 0, 1, RM_KEY_READ_WRITE | RM_KEY_UPDATE),
    KEYS_AT(2, -1, 1, RM_KEY_READ_ONLY | RM_KEY_ACCESS), END};

static RedisModuleCommandKeySpec merge_part_keys[] = {
    KEYS_AT(1, 0, 1, RM_KEY_READ_WRITE | RM_KEY_UPDATE),
    KEYS_AT(2, 0, 1, RM_KEY_READ_ONLY | RM_KEY_ACCESS), END};

const struct command bf_merge = {
    .name = "bf.merge",
    .run = run_merge,
    .flags = "write deny-oom",
    .categories = "write slow bloom",
    .summary = "Makes a Bloom filter the union of itself and others.",
    .complexity = "O(n * m), with n sources of m bytes; in steps",
    .arity = -3,
    .key_specs = merge_keys,
    .args = merge_args,
};

const struct command bf_mergepart = {
    .name = "bf.mergepart",
    .run = run_mergepart,
    .flags = "write",
    .categories = "write slow bloom",
    .summary = "One step of a merge, for replicas and the AOF.",
    .complexity = "O(1): at most 512 KiB of each filter",
    .arity = 7,
    .key_specs = merge_part_keys,
    .args = merge_part_args,
};
