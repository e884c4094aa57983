/*
 * BF.ROTATE, and the timer that rotates windows. Only the primary decides when,
 * by its clock: before it adds to a window, and every 100 ms for all windows.
 * It replicates BF.ROTATE, so replicas and the AOF hold the same, whatever
 * their clocks say. Lookups change nothing: they skip what is overdue.
 */
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "command/open_key.h"
#include "command/options.h"
#include "layout/window.h"
#include "server/reply.h"

enum { PERIOD = 100 }; /* milliseconds */

/* Rotate and replicate. */
static void rotate(RedisModuleCtx *ctx, RedisModuleString *name,
                   struct filter *f, uint64_t rotations, uint64_t began) {
    char count_text[24], began_text[24];
    window_rotate(f, rotations, began);
    stats.rotations++;
    snprintf(count_text, sizeof count_text, "%llu",
             (unsigned long long)rotations);
    snprintf(began_text, sizeof began_text, "%llu", (unsigned long long)began);
    RM_Replicate(ctx, "BF.ROTATE", "scc", name, count_text, began_text);
    note_change(ctx, name, "bloom.rotate");
}

void rotation_run(RedisModuleCtx *ctx, RedisModuleString *name,
                  struct filter *f) {
    if (!is_window(f) || filter_is_partial(f)) return;
    if (is_replayed(ctx)) return;
    const uint64_t due = rotation_due(f->window);
    if (due == 0) return;
    const uint64_t began = f->window->began + due * window_span(f->window);
    rotate(ctx, name, f, due < f->window->panes ? due : f->window->panes,
           began);
}

/* ---- The timer ----------------------------------------------------------- */

static void rotate_at(RedisModuleCtx *ctx, RedisModuleString *name) {
    for (int db = 0; RM_SelectDb(ctx, db) == RM_OK; db++) {
        struct filter *f = NULL;
        RedisModuleKey *key = RM_OpenKey(ctx, name, RM_READ | RM_WRITE);
        if (type_of(key, &f) == KEY_FILTER) rotation_run(ctx, name, f);
        RM_CloseKey(key);
    }
}

/* From where it ended last time to the end of the list, but not for longer than
 * clients may wait. What is overdue is not known anyhow, so to rotate all of
 * many windows may take some ticks. */
static void rotate_some(RedisModuleCtx *ctx) {
    enum { MOST_STEPS = 10000, MOST_MILLISECONDS = 2 };
    const long long began = RM_Milliseconds();
    size_t steps = MOST_STEPS;
    RedisModuleString *name;
    rotation_rewind();
    while (RM_Milliseconds() - began < MOST_MILLISECONDS &&
           (name = rotation_next(ctx, &steps))) {
        rotate_at(ctx, name);
        RM_FreeString(ctx, name);
    }
}

static void look(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    /* While clients are paused for a failover nothing may be replicated. */
    if (rotation_has_windows()) rotation_listen(ctx);
    if (rotation_has_windows() && !RM_AvoidReplicaTraffic()) rotate_some(ctx);
    RM_CreateTimer(ctx, PERIOD, look, NULL);
}

void rotation_start(RedisModuleCtx *ctx) {
    RM_CreateTimer(ctx, PERIOD, look, NULL);
}

/* ---- Names --------------------------------------------------------------- */

/* A key that was renamed has another name. */
static int see_event(RedisModuleCtx *ctx, int type, const char *event,
                     RedisModuleString *name) {
    (void)type;
    if (strcmp(event, "rename_to") != 0) return RM_OK;
    struct filter *f = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, name, RM_READ);
    if (type_of(key, &f) == KEY_FILTER && is_window(f)) {
        size_t size;
        const char *text = RM_StringPtrLen(name, &size);
        rotation_name(f->window, text, size);
    }
    if (key) RM_CloseKey(key);
    return RM_OK;
}

void rotation_listen(RedisModuleCtx *ctx) {
    static bool listens;
    if (!listens)
        listens = RM_SubscribeToKeyspaceEvents(ctx, RM_NOTIFY_GENERIC,
                                               see_event) == RM_OK;
}

/* ---- Times from clients -------------------------------------------------- */

/* One generation ahead is what clocks may differ by: items are known for that
 * much longer. */
bool rotation_may_begin(RedisModuleCtx *ctx, uint64_t began, uint64_t span) {
    const uint64_t now = (uint64_t)RM_Milliseconds();
    if (began <= now + span || is_replayed(ctx)) return true;
    reply_text(ctx,
               "ERR bad time: %llu is %llu milliseconds after this server's "
               "clock; a generation of this window may begin at most %llu "
               "after it",
               (unsigned long long)began, (unsigned long long)(began - now),
               (unsigned long long)span);
    return false;
}

/* While a slot moves, its windows are here and on the node that it comes from,
 * and both have a timer. What that node says comes a second time then: to
 * rotate again would lose a generation too early. */
static bool has_rotated(RedisModuleCtx *ctx, const struct filter *f,
                        uint64_t began) {
    return is_slot_import(ctx) && began <= f->window->began;
}

static int run_rotate(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    long long rotations = 1, began = RM_Milliseconds();
    struct filter *f;
    if (argc < 2 || argc > 4) return RM_WrongArity(ctx);
    if (argc > 2 &&
        parse_whole(argv[2], 1, MOST_GENERATIONS + 1, &rotations) != NUMBER)
        return RM_ReplyWithError(
            ctx,
            "ERR bad number of rotations: it is a whole number from 1 to 65");
    if (argc > 3 && parse_whole(argv[3], 0, INT64_MAX, &began) != NUMBER)
        return RM_ReplyWithError(
            ctx, "ERR bad time: it is a number of milliseconds from 0");
    if (!find_filter(ctx, argv[1], FOR_WRITING | MUST_EXIST, &f)) return RM_OK;
    if (!is_window(f))
        return RM_ReplyWithError(ctx, "ERR the filter is no window: make one "
                                      "with BF.RESERVE … WINDOW");
    if (filter_is_partial(f)) return reply_partial(ctx, f);
    if (!rotation_may_begin(ctx, (uint64_t)began, window_span(f->window)))
        return RM_OK;
    if (!has_rotated(ctx, f, (uint64_t)began))
        rotate(ctx, argv[1], f, (uint64_t)rotations, (uint64_t)began);
    return RM_ReplyWithSimpleString(ctx, "OK");
}

static RedisModuleCommandArg rotate_args[] = {KEY,
                                              {.name = "rotations",
                                               .type = RM_ARG_INTEGER,
                                               .key_spec_index = -1,
                                               .flags = RM_ARG_OPTIONAL},
                                              {.name = "began",
                                               .type = RM_ARG_UNIX_TIME,
                                               .key_spec_index = -1,
                                               .flags = RM_ARG_OPTIONAL},
                                              END};

const struct command bf_rotate = {
    .name = "bf.rotate",
    .run = run_rotate,
    .flags = "write",
    .categories = "write bloom",
    .summary = "Makes a window forget its oldest generation.",
    .complexity = "O(1); what is large is freed in the background",
    .arity = -2,
    .key_specs = key_updated,
    .args = rotate_args,
};
