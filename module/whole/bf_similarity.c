/* BF.SIMILARITY: estimate how much two filters overlap. Large ones are compared
 * in steps (server/steps.h). */
#include <math.h>

#include "command/command.h"
#include "command/open_key.h"
#include "server/reply.h"
#include "server/steps.h"
#include "whole/overlay.h"

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

/* ---- In steps ------------------------------------------------------------ */

/* What is different once a filter has changed: each item that sets bits is
 * counted; where bits come in bulk, steps_note_change is called. */
struct version {
    uint64_t identity, items, rewrites, bulk;
};

static struct version version_of(const struct filter *f, const struct job *j) {
    return (struct version){filter_identity(f), filter_items(f),
                            extra_of(f)->rewrites, j->changes_seen};
}

static bool is_same(const struct version *a, const struct version *b) {
    return a->identity == b->identity && a->items == b->items &&
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
        f[i] = find_again(ctx, job->argv[1 + i], j->versions[i].identity);
        if (!f[i]) return j->gone = true;
        now[i] = version_of(f[i], job);
    }
    if ((!is_same(&now[0], &j->versions[0]) ||
         !is_same(&now[1], &j->versions[1])) &&
        begin_again(j, now))
        return true;
    const uint64_t before = j->at.at;
    calyx_room room, other;
    const calyx_status status =
        calyx_compare_some(native_of(f[0], &room), native_of(f[1], &other),
                           step_bytes(f[0]), &j->at, &j->overlap, &j->why);
    if (status != CALYX_OK) return true;
    count_step(f[0], j->at.at - before);
    return j->at.at == row_bytes(f[0]);
}

static int compare_in_steps(RedisModuleCtx *ctx, RedisModuleString **argv,
                            int argc, const struct filter *a,
                            const struct filter *b) {
    struct compare_job *const j = RM_Calloc(1, sizeof *j);
    j->job = (struct job){.step = compare_step, .reply = reply_compared};
    steps_keep_arguments(ctx, &j->job, argv, argc);
    j->versions[0] = version_of(a, &j->job);
    j->versions[1] = version_of(b, &j->job);
    j->job.sees[0] = filter_identity(a);
    j->job.sees[1] = filter_identity(b);
    return steps_start(ctx, &j->job);
}

static int run_similarity(RedisModuleCtx *ctx, RedisModuleString **argv,
                          int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    const struct filter *a = find_mergeable(ctx, argv[1], "first");
    const struct filter *b = a ? find_mergeable(ctx, argv[2], "second") : NULL;
    if (!b) return RM_OK;
    if (row_bytes(a) > step_bytes(a) && steps_can_wait(ctx))
        return compare_in_steps(ctx, argv, argc, a, b);
    compare_now(ctx, a, b);
    return RM_OK;
}

static RedisModuleCommandArg pair_args[] = {NAMED_KEY("first", 0),
                                            NAMED_KEY("second", 0), END};

static RedisModuleCommandKeySpec pair_keys[] = {
    KEYS_AT(1, 1, 1, RM_KEY_READ_ONLY | RM_KEY_ACCESS), END};

const struct command bf_similarity = {
    .name = "bf.similarity",
    .run = run_similarity,
    .flags = "readonly",
    .categories = "read slow bloom",
    .summary = "Estimates how much the items of two Bloom filters overlap.",
    .complexity = "O(m), with m the bytes of a filter; in steps",
    .arity = 3,
    .key_specs = pair_keys,
    .args = pair_args,
};
