/*
 * The thread that touches pages ahead. It has no locks that matter: populating
 * memory does not change what is in it, and memory that is gone gives an error.
 * So a block may be freed while it is touched, and all that the mutex guards is
 * the lists of what is to be done, and of those who wait for it. In a child
 * that saves there is no such thread, and the mutex may stay locked for ever:
 * there nothing is done.
 *
 * Linux 5.14 and later can do this; elsewhere nothing here does anything.
 */
#if defined(__linux__)
#define _DEFAULT_SOURCE /* madvise */
#endif
#include "pages.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "settings.h"
#include "thread.h"

#if defined(__linux__) && !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif

static const size_t HUGE_PAGE = (size_t)2 << 20;

/* The whole units of so many bytes in a block. */
struct span {
    char *at, *end;
};

static struct span whole_units(void *block, size_t size, size_t unit) {
    const size_t before = (unit - (uintptr_t)block % unit) % unit;
    char *const at = (char *)block + before;
    if (before >= size) return (struct span){at, at};
    return (struct span){at, at + (size - before) / unit * unit};
}

static struct span whole_pages(void *block, size_t size) {
    return whole_units(block, size, (size_t)sysconf(_SC_PAGESIZE));
}

bool pages_clear(void *block, size_t size) {
#if defined(__linux__)
    const struct span s = whole_pages(block, size);
    if (s.at >= s.end ||
        madvise(s.at, (size_t)(s.end - s.at), MADV_DONTNEED) != 0)
        return false;
    memset(block, 0, (size_t)(s.at - (char *)block));
    memset(s.end, 0, size - (size_t)(s.end - (char *)block));
    return true;
#else
    (void)block, (void)size;
    return false; /* elsewhere the pages may keep what is on them */
#endif
}

void pages_ask_for_huge(void *block, size_t size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const struct span s = whole_units(block, size, HUGE_PAGE);
    if (s.at < s.end) madvise(s.at, (size_t)(s.end - s.at), MADV_HUGEPAGE);
#else
    (void)block, (void)size;
#endif
}

#if defined(__linux__)

enum { MOST_TASKS = 32 };
static const size_t STEP = 256 << 10; /* a huge page, if it has such */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct span tasks[MOST_TASKS]; /* those with at < end are to be done */
static bool held;
static bool runs; /* the thread, in this process */
static uint64_t begun;

enum { MOST_WAITERS = 64 };
static const double MOST_SECONDS = 2;
static struct waiter {
    void (*tell)(void *context);
    void *context;
    double until;
} waiters[MOST_WAITERS];
static int waiting; /* so many of them */

static struct span *find_task(void) {
    for (int i = 0; i < MOST_TASKS; i++)
        if (tasks[i].at < tasks[i].end) return &tasks[i];
    return NULL;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void tell_waiters(bool all_is_done) {
    if (!waiting) return;
    const double now = seconds_now();
    int left = 0;
    for (int i = 0; i < waiting; i++)
        if (all_is_done || now >= waiters[i].until)
            waiters[i].tell(waiters[i].context);
        else
            waiters[left++] = waiters[i];
    waiting = left;
}

/* Wait for something to do, and take a step of it off. */
static struct span next_step(void) {
    struct span *task;
    pthread_mutex_lock(&mutex);
    for (;;) {
        task = find_task();
        tell_waiters(!task);
        if (task && !held) break;
        pthread_cond_wait(&more, &mutex);
    }
    const size_t left = (size_t)(task->end - task->at);
    const struct span step = {task->at, task->at + (left < STEP ? left : STEP)};
    task->at = step.end;
    pthread_mutex_unlock(&mutex);
    return step;
}

static void *touch(void *unused) {
    (void)unused;
    for (;;) {
        const struct span step = next_step();
        madvise(step.at, (size_t)(step.end - step.at), MADV_POPULATE_WRITE);
    }
    return NULL;
}

static bool is_running(void) {
    return __atomic_load_n(&runs, __ATOMIC_RELAXED); /* any thread may ask */
}

static void forget_in_child(void) {
    runs = false;
}

/* Once. */
static bool start(void) {
    static bool tried;
    if (tried) return is_running();
    tried = true;
    if (pthread_atfork(NULL, NULL, forget_in_child) != 0) return false;
    const bool started = thread_start(touch, NULL);
    __atomic_store_n(&runs, started, __ATOMIC_RELAXED);
    return started;
}

/* What a machine has not free now, it should not be made to find at once. */
static bool fits(size_t size) {
    const long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 && size / (size_t)page < (size_t)pages / 2;
}

/* What other tasks will take is not missing yet from what is free. */
static size_t bytes_to_touch(void) {
    size_t bytes = 0;
    for (int i = 0; i < MOST_TASKS; i++)
        if (tasks[i].at < tasks[i].end)
            bytes += (size_t)(tasks[i].end - tasks[i].at);
    return bytes;
}

void pages_touch_ahead(void *block, size_t size) {
    if (!settings.touch_ahead || !fits(size) || !start()) return;
    pthread_mutex_lock(&mutex);
    const bool room = fits(bytes_to_touch() + size);
    for (int i = 0; room && i < MOST_TASKS; i++)
        if (tasks[i].at >= tasks[i].end) {
            tasks[i] = whole_pages(block, size);
            begun++;
            pthread_cond_signal(&more);
            break;
        }
    pthread_mutex_unlock(&mutex);
}

uint64_t pages_begun(void) {
    return begun;
}

bool pages_tell_when_touched(void (*tell)(void *context), void *context) {
    if (!is_running()) return false;
    pthread_mutex_lock(&mutex);
    const bool waits = waiting < MOST_WAITERS && find_task();
    if (waits)
        waiters[waiting++] =
            (struct waiter){tell, context, seconds_now() + MOST_SECONDS};
    pthread_mutex_unlock(&mutex);
    return waits;
}

void pages_hold(bool hold) {
    if (!is_running()) return;
    pthread_mutex_lock(&mutex);
    held = hold;
    if (!hold) pthread_cond_signal(&more);
    pthread_mutex_unlock(&mutex);
}

static void forget(const char *block, size_t size) {
    if (!is_running()) return;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < MOST_TASKS; i++)
        if (tasks[i].at >= block && tasks[i].at < block + size)
            tasks[i].at = tasks[i].end;
    pthread_mutex_unlock(&mutex);
}

void pages_give_back(void *block, size_t size) {
    forget(block, size);
    const struct span s = whole_pages(block, size);
    if (s.at < s.end) madvise(s.at, (size_t)(s.end - s.at), MADV_DONTNEED);
}

#else

void pages_touch_ahead(void *block, size_t size) {
    (void)block, (void)size;
}

uint64_t pages_begun(void) {
    return 0;
}

bool pages_tell_when_touched(void (*tell)(void *context), void *context) {
    (void)tell, (void)context;
    return false;
}

void pages_hold(bool hold) {
    (void)hold;
}

void pages_give_back(void *block, size_t size) {
    (void)block, (void)size;
}

#endif
