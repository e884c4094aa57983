/* The items of a command, and jobs over many of them. */
#include "command/items.h"

#include "command/command.h"
#include "command/open_key.h"
#include "server/reply.h"

void items_open(struct items *items, RedisModuleString **argv, int n) {
    items->argv = argv;
    items->n = (size_t)n;
    const bool few = items->n <= FEW_ITEMS;
    items->keys =
        few ? items->few_keys : RM_Alloc(items->n * sizeof *items->keys);
    items->answers = few ? items->few_flags : RM_Alloc(3 * items->n);
    items->changed = items->answers + items->n;
    items->refused = items->changed + items->n;
    for (size_t i = 0; i < items->n; i++)
        items->keys[i].data = RM_StringPtrLen(argv[i], &items->keys[i].size);
}

void items_close(struct items *items) {
    if (items->keys == items->few_keys) return;
    RM_Free(items->keys);
    RM_Free(items->answers);
}

struct items items_slice(const struct items *items, size_t from, size_t n) {
    struct items slice;
    slice.argv = items->argv + from;
    slice.n = n;
    slice.keys = items->keys + from;
    slice.answers = items->answers + from;
    slice.changed = items->changed + from;
    slice.refused = items->refused + from;
    return slice;
}

RedisModuleString **items_chosen(const struct items *items, const bool *flags,
                                 size_t n, RedisModuleString **few,
                                 size_t *chosen) {
    RedisModuleString **out =
        n <= FEW_ITEMS ? few : RM_Alloc(n * sizeof(void *));
    *chosen = 0;
    for (size_t i = 0; i < n; i++)
        if (flags[i]) out[(*chosen)++] = items->argv[i];
    return out;
}

int items_reply(RedisModuleCtx *ctx, const struct items *items, size_t n) {
    for (size_t i = 0; i < n; i++) RM_ReplyWithBool(ctx, items->answers[i]);
    return RM_OK;
}

void items_replicate(RedisModuleCtx *ctx, const char *command,
                     RedisModuleString *name, const char *word,
                     const struct items *items, const bool *flags, size_t n) {
    RedisModuleString *few[FEW_ITEMS];
    size_t chosen;
    RedisModuleString **out = items_chosen(items, flags, n, few, &chosen);
    if (chosen > 0 && word)
        RM_Replicate(ctx, command, "scv", name, word, out, chosen);
    else if (chosen > 0)
        RM_Replicate(ctx, command, "sv", name, out, chosen);
    if (out != few) RM_Free(out);
}

void items_before_change(RedisModuleCtx *ctx, const struct filter *f,
                         const struct items *items) {
    const struct items_change change = {f, items->keys, items->n};
    steps_before_change(ctx, extra_of(f)->identity, &change);
}

/* ---- Steps --------------------------------------------------------------- */

/* The lines of an item in a part of a counting filter, here and in a copy of
 * it, if they are copied before they change. */
enum { COPIED_LINES = 12 };

static uint64_t item_lines(const struct filter *f, bool changes) {
    struct filter_facts facts;
    f->layout->describe(f, &facts);
    if (!facts.in_place && steps_await_change(extra_of(f)->identity))
        return facts.parts * (1 + COPIED_LINES);
    return changes ? facts.change_lines : facts.lines;
}

static size_t items_in_step(const calyx_key *keys, size_t n, uint64_t lines) {
    uint64_t work = 0;
    size_t some = 0;
    while (some < n && work < STEP_LINES)
        work += lines + keys[some++].size / BYTES_HASHED_AS_LINE;
    if (some > 1 && work > STEP_LINES) some--;
    return some;
}

bool items_need_steps(const struct items *items, const struct filter *f,
                      bool changes) {
    const uint64_t lines = item_lines(f, changes);
    return items_in_step(items->keys, items->n, lines) < items->n;
}

/* All that are left, to a layout that counts lines. */
static struct items next_items(struct items_job *j, const struct filter *f) {
    const size_t left = j->items.n - j->at;
    if (j->job.writes && f->layout->counts_lines)
        return items_slice(&j->items, j->at, left);
    const uint64_t lines = item_lines(f, j->job.writes);
    const size_t n = items_in_step(j->items.keys + j->at, left, lines);
    steps_count(n * lines);
    return items_slice(&j->items, j->at, n);
}

static bool run_step(RedisModuleCtx *ctx, struct job *job) {
    struct items_job *const j = (struct items_job *)job;
    struct filter *f = find_again(ctx, job->argv[1], j->identity);
    j->gone = !f && j->at < j->items.n;
    if (!f) return true;
    if (job->writes && !filter_compaction_step(f)) return false;
    if (j->at == j->items.n) return true;
    struct items some = next_items(j, f);
    j->at += j->work->run(ctx, j, f, &some);
    if (j->at < j->items.n) return j->ended;
    /* A listener of the event may have deleted the filter. */
    f = job->writes ? find_again(ctx, job->argv[1], j->identity) : NULL;
    return !f || filter_compaction_step(f);
}

static int reply_job(RedisModuleCtx *ctx, struct job *job) {
    struct items_job *const j = (struct items_job *)job;
    return j->work->reply(ctx, j);
}

int items_reply_gone(RedisModuleCtx *ctx, const struct items_job *j,
                     const char *what) {
    return reply_text(ctx, "ERR the filter was %s while %s",
                      words_of[j->family].gone, what);
}

static void end_items(struct job *job) {
    items_close(&((struct items_job *)job)->items);
}

struct items_job *items_job_new(RedisModuleCtx *ctx, const struct filter *f,
                                enum family family,
                                const struct items_work *work,
                                RedisModuleString **argv, int argc,
                                int first_item) {
    struct items_job *const j = RM_Calloc(1, work->size);
    steps_keep_arguments(ctx, &j->job, argv, argc);
    items_open(&j->items, j->job.argv + first_item, argc - first_item);
    j->job.step = run_step;
    j->job.reply = reply_job;
    j->job.end = end_items;
    j->job.writes = work->writes;
    j->work = work;
    j->identity = filter_identity(f);
    j->family = family;
    return j;
}
