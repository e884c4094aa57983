/*
 * BF.ALLOW, BF.DISALLOW, BF.ALLOWED: the allow list of a filter, which has
 * items that are known not to be in it; their lookups reply 0. BF.ADD takes an
 * item off the list.
 *
 * Only changes of the list are replicated.
 */
#include <string.h>

#include "command/command.h"
#include "command/items.h"
#include "command/open_key.h"
#include "server/allocator.h"
#include "server/reply.h"
#include "server/steps.h"

/* Else replies. */
static bool has_room_for_list(RedisModuleCtx *ctx, const struct filter *f) {
    if (f->layout->allow) return true;
    reply_text(ctx,
               "ERR the filter cannot have an allow list: the %s layout has no "
               "room for it; make one with BF.RESERVE … LAYOUT native",
               f->layout->name);
    return false;
}

/* ---- Changing the list --------------------------------------------------- */

/* The two ways to change it. */
struct list_change {
    const char *command, *event;
    bool puts;
};
static const struct list_change putting = {"BF.ALLOW", "bloom.allow", true};
static const struct list_change taking = {"BF.DISALLOW", "bloom.disallow",
                                          false};

/* The first `done` items are as wanted; the next is not if `status` is an
 * error.
 */
struct list_result {
    size_t done;
    calyx_status status;
    calyx_error why;
};

static void change_items(RedisModuleCtx *ctx, RedisModuleString *name,
                         struct filter *f, const struct list_change *how,
                         struct items *items, struct list_result *result) {
    const struct filter_layout *const layout = f->layout;
    struct memory_request request;
    size_t changes = 0;
    result->status = CALYX_OK;
    result->why.text[0] = '\0';
    memory_begin(&request, ctx, filter_bytes(f));
    for (result->done = 0; result->done < items->n; result->done++) {
        bool *const changed = &items->answers[result->done];
        result->status = (how->puts ? layout->allow : layout->disallow)(
            f, &items->keys[result->done], changed, &result->why);
        if (result->status != CALYX_OK) break;
        changes += *changed;
    }
    memory_end(&result->why);
    stats.refused += result->status == CALYX_NO_MEMORY;
    if (!changes) return;
    filter_compact(f);
    filter_count(f);
    items_replicate(ctx, how->command, name, NULL, items, items->answers,
                    result->done);
    note_change(ctx, name, how->event);
}

/* An array, which ends with the error if there was one. */
static int reply_changes(RedisModuleCtx *ctx, const struct items *items,
                         const struct list_result *result) {
    const bool failed = result->status != CALYX_OK;
    RM_ReplyWithArray(ctx, (long)result->done + failed);
    items_reply(ctx, items, result->done);
    return failed ? reply_text(ctx, "ERR %s", result->why.text) : RM_OK;
}

struct list_job {
    struct items_job items;
    const struct list_change *how;
    struct list_result result;
};

static size_t change_some(RedisModuleCtx *ctx, struct items_job *job,
                          struct filter *f, struct items *some) {
    struct list_job *const j = (struct list_job *)job;
    change_items(ctx, job->job.argv[1], f, j->how, some, &j->result);
    job->ended = j->result.status != CALYX_OK;
    return j->result.done;
}

static int reply_job(RedisModuleCtx *ctx, struct items_job *job) {
    struct list_job *const j = (struct list_job *)job;
    j->result.done = job->at;
    if (!job->gone) return reply_changes(ctx, &job->items, &j->result);
    RM_ReplyWithArray(ctx, (long)job->at + 1);
    items_reply(ctx, &job->items, job->at);
    return items_reply_gone(
        ctx, job,
        "its list was changed; this item and those after it were not done");
}

static const struct items_work changing = {.run = change_some,
                                           .reply = reply_job,
                                           .writes = true,
                                           .size = sizeof(struct list_job)};

static int change_list(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                       const struct list_change *how) {
    struct filter *f;
    if (argc < 3) return RM_WrongArity(ctx);
    if (!find_filter(ctx, argv[1], FOR_WRITING | MUST_EXIST | MUST_BE_COMPLETE,
                     &f) ||
        !has_room_for_list(ctx, f))
        return RM_OK;
    struct items items;
    struct list_result result;
    items_open(&items, argv + 2, argc - 2);
    if (items_need_steps(&items, f, true) && steps_can_wait(ctx)) {
        struct items_job *const j =
            items_job_new(ctx, f, BLOOM, &changing, argv, argc, 2);
        ((struct list_job *)j)->how = how;
        steps_start(ctx, &j->job);
    } else {
        change_items(ctx, argv[1], f, how, &items, &result);
        reply_changes(ctx, &items, &result);
    }
    items_close(&items);
    return RM_OK;
}

static int run_allow(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    return change_list(ctx, argv, argc, &putting);
}

static int run_disallow(RedisModuleCtx *ctx, RedisModuleString **argv,
                        int argc) {
    return change_list(ctx, argv, argc, &taking);
}

/* ---- Showing it ---------------------------------------------------------- */

static int run_allowed(RedisModuleCtx *ctx, RedisModuleString **argv,
                       int argc) {
    struct filter *f;
    if (argc != 2) return RM_WrongArity(ctx);
    if (!find_filter(ctx, argv[1], MUST_EXIST | MUST_BE_COMPLETE, &f) ||
        !has_room_for_list(ctx, f))
        return RM_OK;
    calyx_room room;
    calyx_info info;
    const calyx_filter *const native = f->layout->with_list(f, &room);
    calyx_info_of(native, &info);
    RM_ReplyWithArray(ctx, (long)info.allowed);
    calyx_key item;
    for (uint64_t at = 0; calyx_next_allowed(native, &at, &item);)
        RM_ReplyWithStringBuffer(ctx, item.data, item.size);
    return RM_OK;
}

/* ---- The commands -------------------------------------------------------- */

const struct command bf_allow = {
    .name = "bf.allow",
    .run = run_allow,
    .flags = "write deny-oom",
    .categories = "write bloom",
    .summary = "Puts items on the allow list of a Bloom filter: known "
               "false positives, which lookups reply 0 for.",
    .complexity = "O(n), with n items",
    .arity = -3,
    .key_specs = key_read_and_updated,
    .args = items_args,
};

const struct command bf_disallow = {
    .name = "bf.disallow",
    .run = run_disallow,
    .flags = "write",
    .categories = "write bloom",
    .summary = "Takes items off the allow list of a Bloom filter.",
    .complexity = "O(n), with n items",
    .arity = -3,
    .key_specs = key_read_and_updated,
    .args = items_args,
};

const struct command bf_allowed = {
    .name = "bf.allowed",
    .run = run_allowed,
    .flags = "readonly",
    .categories = "read bloom",
    .summary = "Lists the items on the allow list of a Bloom filter.",
    .complexity = "O(n), with n items on the list",
    .arity = 2,
    .key_specs = key_read,
    .args = key_args,
};
