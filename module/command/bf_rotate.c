/*
 * When windows rotate. Only one server decides that: the primary, by its clock.
 * It looks before a window is added to, and every 100 ms at all windows, and
 * tells replicas and the AOF by BF.ROTATE what it did. So they hold the same,
 * whatever their clocks say. Questions change nothing: they leave out what is
 * overdue.
 *
 * A window does not know its key, and a timer needs one, to replicate. So each
 * window has the name that it was last seen under; the timer looks for it
 * there, in every database. Where that name is out of date, the window rotates
 * when it is added to next.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "command/handlers.h"
#include "command/options.h"
#include "layout/window.h"
#include "server/reply.h"
#include "type.h"

enum { PERIOD = 100 }; /* milliseconds */

uint64_t rotations_done;

/* ---- The list ------------------------------------------------------------ */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct time_window *first, *next; /* at which the timer goes on */

void rotation_add(struct time_window *w) {
    pthread_mutex_lock(&mutex);
    w->before = NULL;
    w->after = first;
    if (first) first->before = w;
    first = w;
    pthread_mutex_unlock(&mutex);
}

void rotation_remove(struct time_window *w) {
    pthread_mutex_lock(&mutex);
    if (w->after) w->after->before = w->before;
    if (w->before)
        w->before->after = w->after;
    else
        first = w->after;
    if (next == w) next = w->after;
    pthread_mutex_unlock(&mutex);
}

void rotation_name(struct time_window *w, const char *name, size_t size) {
    char *copy = RM_Alloc(size + 1);
    memcpy(copy, name, size);
    pthread_mutex_lock(&mutex);
    char *const old = w->name;
    w->name = copy;
    w->name_size = size;
    w->looked = 0;
    pthread_mutex_unlock(&mutex);
    if (old) RM_Free(old);
}

/* ---- Deciding ------------------------------------------------------------ */

/* What this server's clock says; 0, before all times, if another decides. */
static uint64_t clock_now(void) {
    if (RM_GetContextFlags(NULL) & (RM_CTX_REPLICA | RM_CTX_LOADING)) return 0;
    return (uint64_t)RM_Milliseconds();
}

static uint64_t due_at(const struct time_window *w, uint64_t now) {
    return now > w->began ? (now - w->began) / window_span(w) : 0;
}

uint64_t rotation_due(const struct time_window *w) {
    return due_at(w, clock_now());
}

/* Rotate, and tell the replicas and whoever listens. */
static void rotate(RedisModuleCtx *ctx, RedisModuleString *name,
                   struct filter *f, uint64_t rotations, uint64_t began) {
    char count_text[24], began_text[24];
    window_rotate(f, rotations, began);
    rotations_done++;
    snprintf(count_text, sizeof count_text, "%llu",
             (unsigned long long)rotations);
    snprintf(began_text, sizeof began_text, "%llu", (unsigned long long)began);
    RM_Replicate(ctx, "BF.ROTATE", "scc", name, count_text, began_text);
    note_change(ctx, name, "bloom.rotate");
}

void rotation_run(RedisModuleCtx *ctx, RedisModuleString *name,
                  struct filter *f) {
    if (!is_window(f) || filter_is_partial(f)) return;
    if (RM_GetContextFlags(ctx) & RM_CTX_REPLICATED) return;
    const uint64_t due = rotation_due(f->window);
    if (due == 0) return;
    const uint64_t began = f->window->began + due * window_span(f->window);
    rotate(ctx, name, f, due < f->window->panes ? due : f->window->panes,
           began);
}

/* ---- The timer ----------------------------------------------------------- */

/* The name of the next window that is due; NULL if none is among so many. One
 * that was not found, or is partly loaded, is not looked for again until it is
 * due once more: it must not keep others waiting. */
static RedisModuleString *find_due(RedisModuleCtx *ctx, size_t *steps) {
    const uint64_t now = clock_now();
    RedisModuleString *name = NULL;
    pthread_mutex_lock(&mutex);
    for (; next && !name && *steps > 0; next = next->after, --*steps) {
        const uint64_t due = due_at(next, now);
        if (!next->name || due <= next->looked) continue;
        next->looked = due;
        name = RM_CreateString(ctx, next->name, next->name_size);
    }
    pthread_mutex_unlock(&mutex);
    return name;
}

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
    pthread_mutex_lock(&mutex);
    if (!next) next = first;
    pthread_mutex_unlock(&mutex);
    while (RM_Milliseconds() - began < MOST_MILLISECONDS &&
           (name = find_due(ctx, &steps))) {
        rotate_at(ctx, name);
        RM_FreeString(ctx, name);
    }
}

static void look(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    /* While clients are paused for a failover nothing may be replicated. */
    if (first) rotation_listen(ctx);
    if (first && !RM_AvoidReplicaTraffic()) rotate_some(ctx);
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
    if (began <= now + span ||
        RM_GetContextFlags(ctx) & (RM_CTX_REPLICATED | RM_CTX_LOADING))
        return true;
    reply_text(ctx,
               "ERR bad time: %llu is %llu milliseconds after this server's "
               "clock; a generation of this window may begin at most %llu "
               "after it",
               (unsigned long long)began, (unsigned long long)(began - now),
               (unsigned long long)span);
    return false;
}

/* ---- BF.ROTATE ----------------------------------------------------------- */

static int run_rotate(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    long long rotations = 1, began = RM_Milliseconds();
    if (argc < 2 || argc > 4) return RM_WrongArity(ctx);
    if (argc > 2 &&
        parse_whole(argv[2], 1, MOST_GENERATIONS + 1, &rotations) != NUMBER)
        return RM_ReplyWithError(
            ctx,
            "ERR bad number of rotations: it is a whole number from 1 to 65");
    if (argc > 3 && parse_whole(argv[3], 0, INT64_MAX, &began) != NUMBER)
        return RM_ReplyWithError(
            ctx, "ERR bad time: it is a number of milliseconds from 0");
    struct filter *f = NULL;
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    const enum key_type type = type_of(key, &f);
    if (type == KEY_OTHER) {
        reply_wrong_type(ctx);
    } else if (type == KEY_MISSING) {
        reply_not_found(ctx);
    } else if (!is_window(f)) {
        RM_ReplyWithError(ctx, "ERR the filter is no window: make one with "
                               "BF.RESERVE … WINDOW");
    } else if (filter_is_partial(f)) {
        reply_partial(ctx, f);
    } else if (rotation_may_begin(ctx, (uint64_t)began,
                                  window_span(f->window))) {
        rotate(ctx, argv[1], f, (uint64_t)rotations, (uint64_t)began);
        RM_ReplyWithSimpleString(ctx, "OK");
    }
    RM_CloseKey(key);
    return RM_OK;
}

const struct command window_commands[] = {
    {"bf.rotate", run_rotate, "write", "write bloom"}, {0}};
