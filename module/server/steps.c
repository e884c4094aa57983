/* The list of jobs, and the timer that takes a step off one after the other. */
#include "server/steps.h"

struct step_counts step_counts;

void steps_count(uint64_t lines) {
    step_counts.steps++;
    if (lines > step_counts.most_lines) step_counts.most_lines = lines;
}

/* ---- Jobs ---------------------------------------------------------------- */

static struct job *first, **last = &first;

static void append(struct job *job) {
    job->next = NULL;
    *last = job;
    last = &job->next;
}

static struct job *pop_job(void) {
    struct job *const job = first;
    first = job->next;
    if (!first) last = &first;
    return job;
}

static void free_job(RedisModuleCtx *ctx, void *data) {
    struct job *const job = data;
    (void)ctx;
    if (job->end) job->end(job);
    for (int i = 0; i < job->argc; i++) RM_FreeString(NULL, job->argv[i]);
    RM_Free(job->argv);
    RM_Free(job);
}

static int reply(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    (void)argv, (void)argc;
    struct job *const job = RM_GetBlockedClientPrivateData(ctx);
    return job->reply(ctx, job);
}

/* While the server loads, or while clients are paused for a failover, in which
 * nothing may be replicated, a job waits. */
static bool must_pause(RedisModuleCtx *ctx, const struct job *job) {
    return RM_GetContextFlags(ctx) & RM_CTX_LOADING ||
           (job->writes && RM_AvoidReplicaTraffic());
}

/* A server that became a replica has unblocked and disconnected the client, and
 * must not change anything by itself. */
static bool is_over(RedisModuleCtx *ctx, const struct job *job) {
    return job->writes && !job->on_replica &&
           RM_GetContextFlags(ctx) & RM_CTX_REPLICA;
}

static void run_step(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    struct job *const job = pop_job();
    bool done = is_over(ctx, job);
    if (!done && !must_pause(ctx, job)) {
        RM_SelectDb(ctx, job->db);
        done = job->step(ctx, job);
    }
    if (done)
        RM_UnblockClient(job->client, job);
    else
        append(job);
    if (first) RM_CreateTimer(ctx, 1, run_step, NULL);
}

bool steps_can_wait(RedisModuleCtx *ctx) {
    return !is_replayed(ctx) &&
           !(RM_GetContextFlags(ctx) & RM_CTX_DENY_BLOCKING);
}

void steps_keep_arguments(RedisModuleCtx *ctx, struct job *job,
                          RedisModuleString **argv, int argc) {
    job->argv = RM_Alloc((size_t)argc * sizeof *job->argv);
    job->argc = argc;
    job->db = RM_GetSelectedDb(ctx);
    job->on_replica = RM_GetContextFlags(ctx) & RM_CTX_REPLICA;
    for (int i = 0; i < argc; i++) job->argv[i] = RM_HoldString(NULL, argv[i]);
}

int steps_start(RedisModuleCtx *ctx, struct job *job) {
    if (job->step(ctx, job)) {
        job->reply(ctx, job);
        free_job(ctx, job);
        return RM_OK;
    }
    job->client = RM_BlockClient(ctx, reply, NULL, free_job, 0);
    if (!first) RM_CreateTimer(ctx, 1, run_step, NULL);
    append(job);
    return RM_OK;
}

void steps_note_change(uint64_t identity) {
    for (struct job *job = first; job && identity; job = job->next)
        job->changes_seen +=
            job->sees[0] == identity || job->sees[1] == identity;
}

static bool awaits_change(const struct job *job, uint64_t identity) {
    return job->before_change && job->sees[0] == identity;
}

void steps_before_change(RedisModuleCtx *ctx, uint64_t identity,
                         const void *change) {
    for (struct job *job = first; job && identity; job = job->next)
        if (awaits_change(job, identity) && !is_over(ctx, job))
            job->before_change(ctx, job, change);
}

bool steps_await_change(uint64_t identity) {
    const struct job *job = first;
    while (job && identity && !awaits_change(job, identity)) job = job->next;
    return job && identity;
}
