/*
 * BF.MERGE to a missing key, of a counting filter that has grown. Its parts
 * cannot be merged: a key is removed from the oldest part that has it, and that
 * is right only while older parts gain no bits. So the target becomes an exact
 * copy, of the moment at which the command came, in steps (server/steps.h).
 *
 * The source may change between two steps. So lines that an item is about to
 * change are copied before (calyx_lines_of_key), and the steps leave them out;
 * `copied` has a bit for each line.
 *
 * Each copying of lines is replicated by itself, as BF.COPYPART, before the
 * command that changes them. So replicas and the AOF need not know of the job.
 */
#include <stdio.h>
#include <stdlib.h>

#include "command/command.h"
#include "command/items.h"
#include "command/open_key.h"
#include "command/options.h"
#include "server/allocator.h"
#include "server/reply.h"
#include "server/steps.h"
#include "whole/overlay.h"

/* ---- Lines --------------------------------------------------------------- */

/* Runs of bytes to copy: "from:bytes from:bytes ". */
struct run_list {
    char *text;
    size_t size, room;
};

static void append_run(struct run_list *list, uint64_t from, uint64_t bytes) {
    enum { MOST_RUN = 48 };
    if (list->room - list->size < MOST_RUN) {
        list->room = 2 * list->room + 16 * MOST_RUN;
        list->text = RM_Realloc(list->text, list->room);
    }
    list->size +=
        (size_t)snprintf(list->text + list->size, MOST_RUN, "%llu:%llu ",
                         (unsigned long long)from, (unsigned long long)bytes);
}

static calyx_status copy_run(calyx_filter *to, const calyx_filter *from,
                             uint64_t at, uint64_t bytes) {
    uint8_t some[8192];
    calyx_status status = CALYX_OK;
    while (bytes > 0 && status == CALYX_OK) {
        const size_t n = bytes < sizeof some ? (size_t)bytes : sizeof some;
        status = calyx_get_bits(from, at, some, n);
        if (status == CALYX_OK) status = calyx_put_bits(to, at, some, n);
        at += n;
        bytes -= n;
    }
    return status;
}

/* The number before this character; not sscanf, which would measure all text.
 */
static bool read_number(const char **text, char end, uint64_t *number) {
    char *after;
    *number = strtoull(*text, &after, 10);
    if (after == *text || *after != end) return false;
    *text = after + 1;
    return true;
}

/* `bytes` becomes their number. */
static calyx_status copy_runs(struct filter *target,
                              const struct filter *source, const char *runs,
                              uint64_t *bytes) {
    *bytes = 0;
    while (*runs) {
        uint64_t from, n;
        if (!read_number(&runs, ':', &from) || !read_number(&runs, ' ', &n))
            return CALYX_BAD_ARGUMENT;
        const calyx_status status =
            copy_run(target->native, source->native, from, n);
        if (status != CALYX_OK) return status;
        *bytes += n;
    }
    return CALYX_OK;
}

/* ---- The job ------------------------------------------------------------- */

struct copy_job {
    struct job job;
    uint64_t target;   /* its identity; job.sees[0] has the source's */
    uint64_t at, end;  /* bytes of the row                               */
    uint8_t *copied;   /* a bit for each line                            */
    const char *wrong; /* NULL if all is well                            */
};

/* Append what is not copied of these lines, and mark it as copied. */
static void take_lines(struct copy_job *j, uint64_t from, uint64_t to,
                       struct run_list *list) {
    uint64_t begins = from;
    for (uint64_t at = from; at < to; at += LINE_BYTES) {
        uint8_t *const eight = j->copied + at / LINE_BYTES / 8;
        const uint8_t bit = (uint8_t)(1u << at / LINE_BYTES % 8);
        if (*eight & bit) {
            if (begins < at) append_run(list, begins, at - begins);
            begins = at + LINE_BYTES;
        }
        *eight |= bit;
    }
    if (begins < to) append_run(list, begins, to - begins);
}

static void replicate_runs(RedisModuleCtx *ctx, const struct copy_job *j,
                           const struct run_list *list, bool last) {
    RM_Replicate(ctx, "BF.COPYPART", "sscc", j->job.argv[1], j->job.argv[2],
                 list->size ? list->text : "", last ? "LAST" : "MORE");
}

static void take_lines_of_key(struct copy_job *j, const calyx_filter *source,
                              const calyx_key *key, struct run_list *list) {
    enum { FEW = 64 }; /* a filter of more parts needs memory */
    uint64_t few[FEW], *lines = few;
    const size_t n = calyx_lines_of_key(source, key->data, key->size, few, FEW);
    if (n == 0) take_lines(j, 0, j->end, list);
    if (n > FEW) {
        lines = RM_Alloc(n * sizeof *lines);
        calyx_lines_of_key(source, key->data, key->size, lines, n);
    }
    for (size_t i = 0; i < n; i++)
        if (lines[i] < j->end)
            take_lines(j, lines[i], lines[i] + LINE_BYTES, list);
    if (lines != few) RM_Free(lines);
}

/* Copy the lines of items that are about to change. */
static void copy_before_change(RedisModuleCtx *ctx, struct job *job,
                               const void *items) {
    struct copy_job *const j = (struct copy_job *)job;
    const struct items_change *const change = items;
    struct filter *const target = find_again(ctx, job->argv[1], j->target);
    struct run_list list = {0};
    uint64_t bytes;
    if (!target) return; /* the next step will say so */
    for (size_t i = 0; i < change->n; i++)
        take_lines_of_key(j, change->f->native, &change->keys[i], &list);
    if (list.size) {
        copy_runs(target, change->f, list.text, &bytes);
        replicate_runs(ctx, j, &list, false);
        end_step(ctx, job->argv[1], target, false);
    }
    RM_Free(list.text);
}

static bool copy_step(RedisModuleCtx *ctx, struct job *job) {
    struct copy_job *const j = (struct copy_job *)job;
    struct filter *const target = find_again(ctx, job->argv[1], j->target);
    const struct filter *const source =
        find_again(ctx, job->argv[2], job->sees[0]);
    if (!target)
        j->wrong = "the target was deleted, emptied or replaced meanwhile";
    else if (!source)
        j->wrong = "source 1 was deleted, emptied or replaced meanwhile";
    else if (job->changes_seen)
        j->wrong = "source 1 was loaded into meanwhile";
    if (j->wrong && target) delete_target(ctx, job->argv[1]);
    if (j->wrong) return true;

    enum { STEP_BYTES = STEP_LINES / 2 * LINE_BYTES };
    const uint64_t left = j->end - j->at;
    const uint64_t to = j->at + (left < STEP_BYTES ? left : STEP_BYTES);
    const bool last = to == j->end;
    struct run_list list = {0};
    uint64_t bytes;
    take_lines(j, j->at, to, &list);
    copy_runs(target, source, list.size ? list.text : "", &bytes);
    steps_count(2 * bytes / LINE_BYTES);
    j->at = to;
    if (list.size || last) replicate_runs(ctx, j, &list, last);
    end_step(ctx, job->argv[1], target, last);
    RM_Free(list.text);
    return last;
}

static int reply_copied(RedisModuleCtx *ctx, struct job *job) {
    const struct copy_job *const j = (struct copy_job *)job;
    if (!j->wrong) return RM_ReplyWithSimpleString(ctx, "OK");
    return reply_text(ctx, "ERR not merged: %s", j->wrong);
}

static void end_copy(struct job *job) {
    RM_Free(((struct copy_job *)job)->copied);
}

/* A copy without bits, under the key, which refuses lookups. */
static calyx_status make_copy_target(RedisModuleCtx *ctx, RedisModuleKey *key,
                                     const struct filter *source,
                                     struct filter **out, calyx_error *why) {
    struct memory_request request;
    memory_begin(&request, ctx, 0);
    const calyx_status status = filter_copy_head(source, out, why);
    memory_end(why);
    if (status == CALYX_OK) type_attach(key, *out);
    return status;
}

int copy_in_steps(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                  RedisModuleKey *key, const struct filter *source) {
    struct filter *target = NULL;
    calyx_error why = {.text = ""};
    const calyx_status status =
        make_copy_target(ctx, key, source, &target, &why);
    stats.refused += status == CALYX_NO_MEMORY;
    if (status != CALYX_OK) return reply_not_made(ctx, status, &why);
    struct copy_job *const j = RM_Calloc(1, sizeof *j);
    j->job = (struct job){.step = copy_step,
                          .reply = reply_copied,
                          .end = end_copy,
                          .before_change = copy_before_change,
                          .sees = {filter_identity(source)},
                          .writes = true};
    steps_keep_arguments(ctx, &j->job, argv, argc);
    j->target = filter_identity(target);
    j->end = filter_bytes(source);
    j->copied = RM_Calloc(1, (size_t)(j->end / LINE_BYTES / 8 + 1));
    return steps_start(ctx, &j->job);
}

/* ---- BF.COPYPART --------------------------------------------------------- */

/* One step, for replicas and the AOF:
 *
 *     BF.COPYPART target source runs LAST|MORE
 */
static int run_copypart(RedisModuleCtx *ctx, RedisModuleString **argv,
                        int argc) {
    if (argc != 5) return RM_WrongArity(ctx);
    if (!is_replayed(ctx))
        return RM_ReplyWithError(ctx, "ERR BF.COPYPART is how replicas hear "
                                      "of a merge; use BF.MERGE");
    const struct filter *source = find_mergeable(ctx, argv[2], "source");
    if (!source) return RM_OK;

    calyx_error why = {.text = ""};
    struct filter *target = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    const enum key_type type = type_of(key, &target);
    calyx_status status = CALYX_OK;
    if (type == KEY_MISSING)
        status = make_copy_target(ctx, key, source, &target, &why);
    RM_CloseKey(key);
    if (status != CALYX_OK) return reply_text(ctx, "ERR %s", why.text);
    if (type == KEY_OTHER || !target->can_remove || !source->can_remove)
        return reply_wrong_type(ctx);
    uint64_t bytes;
    if (copy_runs(target, source, RM_StringPtrLen(argv[3], NULL), &bytes) !=
        CALYX_OK)
        return RM_ReplyWithError(ctx, "ERR the runs are not of this filter");
    RM_ReplicateVerbatim(ctx);
    end_step(ctx, argv[1], target, is_word(argv[4], "LAST"));
    return RM_ReplyWithSimpleString(ctx, "OK");
}

static RedisModuleCommandArg copy_part_args[] = {
    NAMED_KEY("target", 0),
    NAMED_KEY("source", 1),
    {.name = "runs", .type = RM_ARG_STRING},
    {.name = "last", .type = RM_ARG_STRING},
    END};

static RedisModuleCommandKeySpec copy_part_keys[] = {
    KEYS_AT(1, 0, 1, RM_KEY_READ_WRITE | RM_KEY_UPDATE),
    KEYS_AT(2, 0, 1, RM_KEY_READ_ONLY | RM_KEY_ACCESS), END};

const struct command bf_copypart = {
    .name = "bf.copypart",
    .run = run_copypart,
    .flags = "write",
    .categories = "write slow bloom",
    .summary = "One step of a copy, for replicas and the AOF.",
    .complexity = "O(1): at most 512 KiB of each filter",
    .arity = 5,
    .key_specs = copy_part_keys,
    .args = copy_part_args,
};
