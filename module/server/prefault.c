/*
 * The thread that prefaults pages. Populating memory does not change what is in
 * it, and fails on memory that is gone. So a block may be freed meanwhile; the
 * mutex only guards the lists of tasks and waiters, and is never held for long.
 * A child that saves has no such thread, and its copy of the mutex may stay
 * locked for ever: nothing is done there.
 *
 * Needs Linux 5.14 (MADV_POPULATE_WRITE); elsewhere nothing here has an effect.
 */
#include "server/prefault.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "server/pages.h"
#include "server/thread.h"

#if defined(__linux__) && !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif

#if defined(__linux__)

enum { MOST_TASKS = 32 };
/* Bytes of a step; at least a page, and a huge page where those are used. It
 * takes 10 us, or 100 where the host of a virtual machine has to find the pages
 * as well. */
static const size_t STEP = 16 << 10;

/* The thread works for 50 us, or a step, then sleeps. */
static const double WORK_SECONDS = 50e-6;
enum { PAUSE_NS = 20000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct prefault_task {
    struct page_span left; /* nothing: there is no such task */
    uint64_t number;
} tasks[MOST_TASKS];
static bool paused;
static bool runs;      /* the thread, in this process */
static uint64_t begun; /* the number of the last task */

enum { MOST_WAITERS = 64 };
static const double MOST_SECONDS = 1; /* clients time out after 2 or 3 */
static struct waiter {
    void (*notify)(void *context);
    void *context;
    uint64_t after, last; /* the tasks waited for have numbers after the one,
                             up to the other */
    double until;
} waiters[MOST_WAITERS];
static int waiting; /* number of waiters */

static size_t bytes_of(struct page_span s) {
    return s.at < s.end ? (size_t)(s.end - s.at) : 0;
}

/* The smallest, so that it need not wait for the others. */
static struct prefault_task *find_task(void) {
    struct prefault_task *found = NULL;
    for (int i = 0; i < MOST_TASKS; i++) {
        const size_t bytes = bytes_of(tasks[i].left);
        if (bytes > 0 && (!found || bytes < bytes_of(found->left)))
            found = &tasks[i];
    }
    return found;
}

static bool is_left(uint64_t after, uint64_t last) {
    for (int i = 0; i < MOST_TASKS; i++)
        if (bytes_of(tasks[i].left) > 0 && tasks[i].number > after &&
            tasks[i].number <= last)
            return true;
    return false;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Remove the waiters that are done or out of time. */
static int remove_served(struct waiter *served) {
    if (!waiting) return 0;
    const double now = seconds_now();
    int left = 0, n = 0;
    for (int i = 0; i < waiting; i++) {
        const struct waiter *w = &waiters[i];
        if (now >= w->until || !is_left(w->after, w->last))
            served[n++] = *w;
        else
            waiters[left++] = *w;
    }
    waiting = left;
    return n;
}

/* The next step of a task; empty if there is none. */
static struct page_span next_step(void) {
    struct prefault_task *const task = paused ? NULL : find_task();
    if (!task) return (struct page_span){NULL, NULL};
    const size_t bytes = bytes_of(task->left);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t most = page > STEP ? page : STEP;
    const struct page_span step = {
        task->left.at, task->left.at + (bytes < most ? bytes : most)};
    task->left.at = step.end;
    return step;
}

/* Where both have one processor, the server shall wait for a step, not for its
 * turn, which the scheduler gives it after up to 5 ms. Of those that sleep the
 * scheduler knows that they do not want more; those that yield may be the next
 * again. */
static void touch(struct page_span step) {
    static double began; /* to work, since the last pause */
    madvise(step.at, bytes_of(step), MADV_POPULATE_WRITE);
    if (seconds_now() - began < WORK_SECONDS) return;
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    began = seconds_now();
}

static void *prefault(void *unused) {
    (void)unused;
    for (;;) {
        struct waiter served[MOST_WAITERS];
        pthread_mutex_lock(&mutex);
        const int n = remove_served(served);
        const struct page_span step = next_step();
        if (n == 0 && bytes_of(step) == 0) pthread_cond_wait(&more, &mutex);
        pthread_mutex_unlock(&mutex);
        for (int i = 0; i < n; i++) served[i].notify(served[i].context);
        if (bytes_of(step) > 0) touch(step);
    }
    return NULL;
}

static bool is_running(void) {
    return __atomic_load_n(&runs,
                           __ATOMIC_RELAXED); /* any thread may call this */
}

static void forget_in_child(void) {
    runs = false;
}

/* Once. */
static bool start(void) {
    static bool tried;
    if (tried) return is_running();
    tried = true;
    if (getenv("CALYX_NO_PREFAULT") || /* of tests that count pages */
        pthread_atfork(NULL, NULL, forget_in_child) != 0)
        return false;
    const bool started = thread_start(prefault, NULL);
    __atomic_store_n(&runs, started, __ATOMIC_RELAXED);
    return started;
}

/* Do not force the system to reclaim memory. */
static bool fits(size_t size) {
    const long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 && size / (size_t)page < (size_t)pages / 2;
}

/* Other tasks' bytes are still counted as free. */
static size_t bytes_queued(void) {
    size_t bytes = 0;
    for (int i = 0; i < MOST_TASKS; i++) bytes += bytes_of(tasks[i].left);
    return bytes;
}

void prefault_stop(const void *block, size_t size) {
    const char *const from = block;
    if (!is_running()) return;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < MOST_TASKS; i++)
        if (tasks[i].left.at >= from && tasks[i].left.at < from + size)
            tasks[i].left.at = tasks[i].left.end;
    pthread_mutex_unlock(&mutex);
}

void prefault_start(void *block, size_t size) {
    prefault_stop(block, size);
    if (!fits(size) || !start()) return;
    pthread_mutex_lock(&mutex);
    const bool room = fits(bytes_queued() + size);
    for (int i = 0; room && i < MOST_TASKS; i++)
        if (bytes_of(tasks[i].left) == 0) {
            tasks[i] =
                (struct prefault_task){whole_pages(block, size), ++begun};
            pthread_cond_signal(&more);
            break;
        }
    pthread_mutex_unlock(&mutex);
}

uint64_t prefault_last(void) {
    return begun;
}

bool prefault_notify(uint64_t after, void (*notify)(void *context),
                     void *context) {
    if (!is_running()) return false;
    pthread_mutex_lock(&mutex);
    const bool waits = waiting < MOST_WAITERS && is_left(after, begun);
    if (waits)
        waiters[waiting++] = (struct waiter){notify, context, after, begun,
                                             seconds_now() + MOST_SECONDS};
    pthread_mutex_unlock(&mutex);
    return waits;
}

void prefault_pause(bool pause) {
    if (!is_running()) return;
    pthread_mutex_lock(&mutex);
    paused = pause;
    if (!pause) pthread_cond_signal(&more);
    pthread_mutex_unlock(&mutex);
}

#else

void prefault_start(void *block, size_t size) {
    (void)block, (void)size;
}

uint64_t prefault_last(void) {
    return 0;
}

bool prefault_notify(uint64_t after, void (*notify)(void *context),
                     void *context) {
    (void)after, (void)notify, (void)context;
    return false;
}

void prefault_pause(bool pause) {
    (void)pause;
}

void prefault_stop(const void *block, size_t size) {
    (void)block, (void)size;
}

#endif
