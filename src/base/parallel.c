#include "base/parallel.h"

#if CALYX_NO_FILES
void run_parallel(uint32_t threads,
                  void (*work)(void *context, uint32_t thread), void *context) {
    (void)threads;
    work(context, 0);
}

void yield_to_others(void) {
}

bool monitor_init(struct monitor *m) {
    return !(m->unused = false);
}
void monitor_end(struct monitor *m) {
    (void)m;
}
void monitor_enter(struct monitor *m) {
    (void)m;
}
void monitor_leave(struct monitor *m) {
    (void)m;
}
void monitor_wait(struct monitor *m) {
    (void)m;
}
void monitor_wake(struct monitor *m) {
    (void)m;
}
#else
#include <sched.h>

struct worker_start {
    void (*work)(void *context, uint32_t thread);
    void *context;
    uint32_t thread;
    pthread_t id;
};

static void *run_worker(void *argument) {
    const struct worker_start *const start = argument;
    start->work(start->context, start->thread);
    return NULL;
}

void run_parallel(uint32_t threads,
                  void (*work)(void *context, uint32_t thread), void *context) {
    struct worker_start starts[THREADS_MOST];
    uint32_t started = 1;
    for (; started < threads && started < THREADS_MOST; started++) {
        struct worker_start *const s = &starts[started];
        *s = (struct worker_start){
            .work = work, .context = context, .thread = started};
        if (pthread_create(&s->id, NULL, run_worker, s) != 0) break;
    }
    work(context, 0);
    while (--started > 0) pthread_join(starts[started].id, NULL);
}

void yield_to_others(void) {
    sched_yield();
}

bool monitor_init(struct monitor *m) {
    if (pthread_mutex_init(&m->lock, NULL) != 0) return false;
    if (pthread_cond_init(&m->event, NULL) == 0) return true;
    pthread_mutex_destroy(&m->lock);
    return false;
}

void monitor_end(struct monitor *m) {
    pthread_cond_destroy(&m->event);
    pthread_mutex_destroy(&m->lock);
}

void monitor_enter(struct monitor *m) {
    pthread_mutex_lock(&m->lock);
}

void monitor_leave(struct monitor *m) {
    pthread_mutex_unlock(&m->lock);
}

void monitor_wait(struct monitor *m) {
    pthread_cond_wait(&m->event, &m->lock);
}

void monitor_wake(struct monitor *m) {
    pthread_cond_broadcast(&m->event);
}
#endif
