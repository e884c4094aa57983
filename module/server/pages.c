/*
 * The thread that touches pages ahead. Populating memory does not change what
 * is in it, and memory that is gone gives an error. So a block may be freed
 * while it is touched, and all that the mutex guards is the lists of what is to
 * be done, and of those who wait for it; it is never held for long. In a child
 * that saves there is no such thread, and the mutex may stay locked for ever:
 * there nothing is done.
 *
 * Linux 5.14 and later can do this; elsewhere nothing here does anything.
 */
#if defined(__linux__)
#define _GNU_SOURCE /* madvise, mremap */
#endif
#include "server/pages.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "server/thread.h"
#include "settings.h"

#if defined(__linux__) && !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif

static const size_t HUGE_PAGE = (size_t)2 << 20;

/* The whole units of so many bytes in a block. */
struct page_span {
    char *at, *end;
};

static struct page_span whole_units(void *block, size_t size, size_t unit) {
    const size_t before = (unit - (uintptr_t)block % unit) % unit;
    char *const at = (char *)block + before;
    if (before >= size) return (struct page_span){at, at};
    return (struct page_span){at, at + (size - before) / unit * unit};
}

static struct page_span whole_pages(void *block, size_t size) {
    return whole_units(block, size, (size_t)sysconf(_SC_PAGESIZE));
}

#if defined(__linux__)

/* Are pages that are given back zeros when they are touched again? Some
 * emulators of Linux take that for mere advice. */
static bool try_fresh_pages(void) {
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char *const page = mmap(NULL, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    memset(page, 1, size);
    const bool fresh =
        madvise(page, size, MADV_DONTNEED) == 0 && page[size / 2] == 0;
    munmap(page, size);
    return fresh;
}

static bool has_fresh_pages(void) {
    enum { UNKNOWN, YES, NO };
    static int known; /* any thread may ask */
    int is = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (is == UNKNOWN) {
        is = try_fresh_pages() ? YES : NO;
        __atomic_store_n(&known, is, __ATOMIC_RELAXED);
    }
    return is == YES;
}

/* ---- Pages that are moved aside -------------------------------------------
 */

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* Move pages elsewhere; zeros are left in their place. NULL if the system does
 * not. Page tables are moved as a whole, 2 MiB at a time, where both places
 * begin at the same distance from such a boundary: so 512 MiB take 0.1 ms, and
 * else 2 ms. */
static void *move_pages(struct page_span s) {
    const size_t size = (size_t)(s.end - s.at);
    char *const room = mmap(NULL, size + HUGE_PAGE, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return NULL;
    const size_t before = ((uintptr_t)s.at - (uintptr_t)room) & (HUGE_PAGE - 1);
    void *const moved =
        mremap(s.at, size, size,
               MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, room + before);
    if (moved == MAP_FAILED) {
        munmap(room, size + HUGE_PAGE);
        return NULL;
    }
    if (before) munmap(room, before);
    if (before < HUGE_PAGE) munmap(room + before + size, HUGE_PAGE - before);
    return moved;
}

/* Some emulators of Linux unmap the old place all the same, or leave the pages
 * there. */
static bool try_moving_pages(void) {
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char *const page = mmap(NULL, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    memset(page, 1, size);
    char *const moved = move_pages((struct page_span){page, page + size});
    const bool works = moved && msync(page, size, MS_ASYNC) == 0 &&
                       page[size / 2] == 0 && moved[size / 2] == 1;
    if (moved) munmap(moved, size);
    munmap(page, size);
    return works;
}

static bool can_move_pages(void) {
    enum { UNKNOWN, YES, NO };
    static int known;
    int is = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (is == UNKNOWN) {
        is = try_moving_pages() ? YES : NO;
        __atomic_store_n(&known, is, __ATOMIC_RELAXED);
    }
    return is == YES;
}

/* Pages that nobody uses any more, as a stack without locks: a child that saves
 * may be born while another thread is here. Each entry lies on its pages. */
struct aside {
    struct aside *next;
    size_t size;
};
static struct aside *pages_aside;

static void *unmap_all(void *unused) {
    struct aside *at;
    while ((at = __atomic_exchange_n(&pages_aside, NULL, __ATOMIC_ACQUIRE)))
        while (at) {
            struct aside *const next = at->next;
            munmap(at, at->size);
            at = next;
        }
    return unused;
}

/* Whoever puts the first entry starts the thread that unmaps. */
static void unmap_later(void *pages, size_t size) {
    struct aside *const entry = pages;
    entry->size = size;
    struct aside *last = __atomic_load_n(&pages_aside, __ATOMIC_RELAXED);
    do entry->next = last;
    while (!__atomic_compare_exchange_n(&pages_aside, &last, entry, true,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    if (!last && !thread_start(unmap_all, NULL)) unmap_all(NULL);
}

/* Leave zeros in the place of these pages, or return false. */
static bool renew(struct page_span s) {
    if (s.at >= s.end || !can_move_pages()) return false;
    void *const moved = move_pages(s);
    if (moved) unmap_later(moved, (size_t)(s.end - s.at));
    return moved;
}

static bool discard(struct page_span s) {
    return s.at < s.end && has_fresh_pages() &&
           madvise(s.at, (size_t)(s.end - s.at), MADV_DONTNEED) == 0;
}

/* The bytes around the whole pages, or all. */
static void zero_rest(void *block, size_t size, struct page_span done) {
    memset(block, 0, (size_t)(done.at - (char *)block));
    memset(done.end, 0, size - (size_t)(done.end - (char *)block));
}

static struct page_span nothing_of(void *block) {
    return (struct page_span){block, block};
}

#endif

bool pages_clear(void *block, size_t size) {
#if defined(__linux__)
    const struct page_span s = whole_pages(block, size);
    zero_rest(block, size, discard(s) ? s : nothing_of(block));
    return true;
#else
    (void)block, (void)size;
    return false; /* elsewhere the pages may keep what is on them */
#endif
}

void pages_renew(void *block, size_t size) {
#if defined(__linux__)
    const struct page_span s = whole_pages(block, size);
    zero_rest(block, size, renew(s) || discard(s) ? s : nothing_of(block));
#else
    memset(block, 0, size);
#endif
}

void pages_advise_huge(void *block, size_t size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const struct page_span s = whole_units(block, size, HUGE_PAGE);
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
static struct prefault_task {
    struct page_span left; /* nothing: there is no such task */
    uint64_t number;
} tasks[MOST_TASKS];
static bool held;
static bool runs;      /* the thread, in this process */
static uint64_t begun; /* the number of the last task */

enum { MOST_WAITERS = 64 };
static const double MOST_SECONDS = 1; /* clients give up after 2 or 3 */
static struct waiter {
    void (*notify)(void *context);
    void *context;
    uint64_t after, last; /* the tasks waited for have numbers behind the one,
                             up to the other */
    double until;
} waiters[MOST_WAITERS];
static int waiting; /* so many of them */

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

/* Take those off who need wait no longer. */
static int take_served(struct waiter *served) {
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

/* A step off a task, if there is one. */
static struct page_span take_step(void) {
    struct prefault_task *const task = held ? NULL : find_task();
    if (!task) return (struct page_span){NULL, NULL};
    const size_t bytes = bytes_of(task->left);
    const struct page_span step = {
        task->left.at, task->left.at + (bytes < STEP ? bytes : STEP)};
    task->left.at = step.end;
    return step;
}

static void *touch(void *unused) {
    (void)unused;
    for (;;) {
        struct waiter served[MOST_WAITERS];
        pthread_mutex_lock(&mutex);
        const int n = take_served(served);
        const struct page_span step = take_step();
        if (n == 0 && bytes_of(step) == 0) pthread_cond_wait(&more, &mutex);
        pthread_mutex_unlock(&mutex);
        for (int i = 0; i < n; i++) served[i].notify(served[i].context);
        if (bytes_of(step) > 0)
            madvise(step.at, bytes_of(step), MADV_POPULATE_WRITE);
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
    for (int i = 0; i < MOST_TASKS; i++) bytes += bytes_of(tasks[i].left);
    return bytes;
}

static void forget(const char *block, size_t size) {
    if (!is_running()) return;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < MOST_TASKS; i++)
        if (tasks[i].left.at >= block && tasks[i].left.at < block + size)
            tasks[i].left.at = tasks[i].left.end;
    pthread_mutex_unlock(&mutex);
}

void prefault_start(void *block, size_t size) {
    forget(block, size);
    if (!settings.prefault || !fits(size) || !start()) return;
    pthread_mutex_lock(&mutex);
    const bool room = fits(bytes_to_touch() + size);
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

void prefault_pause(bool hold) {
    if (!is_running()) return;
    pthread_mutex_lock(&mutex);
    held = hold;
    if (!hold) pthread_cond_signal(&more);
    pthread_mutex_unlock(&mutex);
}

void pages_release(void *block, size_t size) {
    forget(block, size);
    const struct page_span s = whole_pages(block, size);
    if (!renew(s)) discard(s);
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

void prefault_pause(bool hold) {
    (void)hold;
}

void pages_release(void *block, size_t size) {
    (void)block, (void)size;
}

#endif
