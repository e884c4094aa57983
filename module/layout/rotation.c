/*
 * Which windows there are, and which are due to rotate. command/bf_rotate.c
 * rotates them.
 *
 * A window does not know its key, and a timer needs one, to replicate. So each
 * window has the name that it was last seen under; the timer looks for it
 * there, in every database. Where that name is out of date, the window rotates
 * when it is added to next.
 */
#include <pthread.h>
#include <string.h>

#include "layout/window.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct time_window *first, *next; /* `next`: where the timer goes on */

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

/* ---- Clocks -------------------------------------------------------------- */

/* This server's clock; 0 if another server decides. */
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

/* A window that was not found, or is partly loaded, is skipped until it is due
 * once more: it must not delay others. */
RedisModuleString *rotation_next(RedisModuleCtx *ctx, size_t *steps) {
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

void rotation_rewind(void) {
    pthread_mutex_lock(&mutex);
    if (!next) next = first;
    pthread_mutex_unlock(&mutex);
}

bool rotation_has_windows(void) {
    return first;
}
