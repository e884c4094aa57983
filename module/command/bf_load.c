/* BF.LOAD: a filter as valkey-bloom writes it into its AOF, in one payload. A
 * large one is copied in steps (server/steps.h). */
#include "command/command.h"
#include "command/open_key.h"
#include "server/allocator.h"
#include "server/reply.h"
#include "server/steps.h"

static int reply_not_loaded(RedisModuleCtx *ctx, calyx_status status,
                            const calyx_error *why) {
    stats.refused += status == CALYX_NO_MEMORY;
    loads_refused += status != CALYX_NO_MEMORY;
    if (status == CALYX_NO_MEMORY) return reply_not_made(ctx, status, why);
    if (status == CALYX_TOO_NEW)
        return RM_ReplyWithError(
            ctx, "ERR bloom object decoding failed. Unsupported version");
    return reply_text(ctx, "ERR bloom object decoding failed: %s", why->text);
}

/* ---- In steps ------------------------------------------------------------ */

/* The filter is under its key when it is complete. */
struct load_job {
    struct job job;
    struct filter *f; /* until it is under its key */
    uint64_t most;    /* bytes of a step           */
    bool is_busy;     /* the key is no longer free */
};

static bool load_step(RedisModuleCtx *ctx, struct job *job) {
    struct load_job *const j = (struct load_job *)job;
    struct filter *there;
    const uint64_t before = j->f->arrived;
    filter_copy_payload(j->f, RM_StringPtrLen(job->argv[2], NULL), j->most);
    if (before || filter_is_partial(j->f))
        steps_count(2 * (j->f->arrived - before) / LINE_BYTES);
    if (filter_is_partial(j->f)) return false;
    RedisModuleKey *key = RM_OpenKey(ctx, job->argv[1], RM_READ | RM_WRITE);
    j->is_busy = type_of(key, &there) != KEY_MISSING;
    if (!j->is_busy) {
        type_attach(key, j->f);
        j->f = NULL;
        RM_Replicate(ctx, "BF.LOAD", "ss", job->argv[1], job->argv[2]);
    }
    RM_CloseKey(key); /* a listener of the event may delete it */
    if (!j->is_busy) note_change(ctx, job->argv[1], "bloom.load");
    return true;
}

static int reply_busy(RedisModuleCtx *ctx) {
    return RM_ReplyWithError(ctx, "BUSYKEY Target key name already exists.");
}

static int reply_loaded(RedisModuleCtx *ctx, struct job *job) {
    if (((struct load_job *)job)->is_busy) return reply_busy(ctx);
    return RM_ReplyWithSimpleString(ctx, "OK");
}

static void end_load(struct job *job) {
    struct load_job *const j = (struct load_job *)job;
    if (j->f) filter_free(j->f);
}

static int load(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    enum { STEP_BYTES = STEP_LINES / 2 * LINE_BYTES };
    struct filter *f = NULL;
    calyx_error why = {.text = ""};
    size_t size;
    const char *const payload = RM_StringPtrLen(argv[2], &size);
    struct memory_request request;
    memory_begin(&request, ctx, 0);
    request.use = MEMORY_IN_STEPS;
    const calyx_status status = filter_begin_payload(payload, size, &f, &why);
    memory_end(&why);
    if (status != CALYX_OK) return reply_not_loaded(ctx, status, &why);
    struct load_job *const j = RM_Calloc(1, sizeof *j);
    j->job = (struct job){.step = load_step,
                          .reply = reply_loaded,
                          .end = end_load,
                          .writes = true};
    steps_keep_arguments(ctx, &j->job, argv, argc);
    j->f = f;
    j->most = steps_can_wait(ctx) ? STEP_BYTES : UINT64_MAX;
    return steps_start(ctx, &j->job);
}

static int run_load(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    struct filter *f;
    if (!find_filter(ctx, argv[1], FOR_WRITING, &f)) return RM_OK;
    return f ? reply_busy(ctx) : load(ctx, argv, argc);
}

static RedisModuleCommandArg load_args[] = {KEY, VALUE(STRING, "payload"), END};

const struct command bf_load = {
    .name = "bf.load",
    .run = run_load,
    .flags = "write deny-oom",
    .categories = "write bloom",
    .summary = "Loads a filter of valkey-bloom from its payload.",
    .complexity = "O(m), with m the bytes of the payload; in steps",
    .arity = 3,
    .key_specs = key_updated,
    .args = load_args,
};
