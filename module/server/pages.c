/* Pages that are zeroed, moved aside and released. */
#if defined(__linux__)
#define _GNU_SOURCE /* madvise, mremap */
#endif
#include "server/pages.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/thread.h"

static const size_t HUGE_PAGE = (size_t)2 << 20;

/* The whole units of that many bytes in a block. */
static struct page_span whole_units(void *block, size_t size, size_t unit) {
    const size_t before = (unit - (uintptr_t)block % unit) % unit;
    char *const at = (char *)block + before;
    if (before >= size) return (struct page_span){at, at};
    return (struct page_span){at, at + (size - before) / unit * unit};
}

struct page_span whole_pages(void *block, size_t size) {
    return whole_units(block, size, (size_t)sysconf(_SC_PAGESIZE));
}

#if defined(__linux__)

/* Are released pages zero when they are touched again? Some emulators of Linux
 * ignore MADV_DONTNEED. */
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
    static int known; /* read by any thread */
    int is = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (is == UNKNOWN) {
        is = try_fresh_pages() ? YES : NO;
        __atomic_store_n(&known, is, __ATOMIC_RELAXED);
    }
    return is == YES;
}

/* ---- Pages that are moved aside ------------------------------------------ */

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
    return false; /* elsewhere the pages may have old contents */
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

void pages_release(void *block, size_t size) {
#if defined(__linux__)
    const struct page_span s = whole_pages(block, size);
    if (!renew(s)) discard(s);
#else
    (void)block, (void)size;
#endif
}
