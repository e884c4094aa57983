#if defined(__linux__)
#define _DEFAULT_SOURCE /* madvise, MAP_ANONYMOUS */
#endif
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <sys/mman.h>
#include <sys/resource.h>

static const size_t LARGE = (size_t)1 << 20;
static const size_t HUGE = (size_t)2 << 20; /* below there are none */
static const size_t HUGE_PAGE = (size_t)2 << 20;

/* A page may be as large as this, on some processors. */
static const size_t PAGE = (size_t)64 << 10;

static size_t whole_pages(size_t size) {
    return (size + PAGE - 1) / PAGE * PAGE;
}

bool memory_is_huge(size_t size) {
    return size >= HUGE;
}

/* What is mapped for a large block: whole huge pages, so that no line must be
 * found through small ones (with 15 % of the lines there, lookups took 5.0 ns
 * instead of 4.2); unless that would waste an eighth. */
static size_t mapped_size(size_t size) {
    const size_t huge = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    return huge - size <= size / 8 ? huge : whole_pages(size);
}

/* Map one huge page more, then unmap what lies before and after the aligned
 * block: huge pages must be aligned to their size. */
static void *map_aligned(size_t size_mapped, int access) {
    const size_t reserved = size_mapped + HUGE_PAGE;
    char *const start =
        mmap(NULL, reserved, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return NULL;
    const size_t before =
        (HUGE_PAGE - (uintptr_t)start % HUGE_PAGE) % HUGE_PAGE;
    char *const block = start + before;
    if (before) munmap(start, before);
    munmap(block + size_mapped, reserved - size_mapped - before);
    madvise(block, size_mapped,
            MADV_HUGEPAGE); /* may be refused; then slower */
    return block;
}

static void *map_huge(size_t size) {
    if (size > SIZE_MAX - 2 * HUGE_PAGE) return NULL;
    return map_aligned(mapped_size(size), PROT_READ | PROT_WRITE);
}

static void *map(size_t size) {
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

size_t memory_mapped_bytes(size_t size) {
    if (size < LARGE) return 0;
    return memory_is_huge(size) ? mapped_size(size) : size;
}

static void unmap(void *block, size_t size) {
    munmap(block, memory_mapped_bytes(size));
}

/* Rows of this process: a row takes up to 3 mappings, and a process has 65,530,
 * which others need, too. */
static uint32_t rows;

static bool count_row(void) {
    if (__atomic_add_fetch(&rows, 1, __ATOMIC_RELAXED) <= ROWS_MOST)
        return true;
    __atomic_sub_fetch(&rows, 1, __ATOMIC_RELAXED);
    return false;
}

/* A row takes addresses that others may need where these are few. */
static bool has_addresses_to_spare(void) {
    struct rlimit limit;
    return SIZE_MAX > UINT32_MAX && getrlimit(RLIMIT_AS, &limit) == 0 &&
           limit.rlim_cur == RLIM_INFINITY;
}

bool memory_make_row(struct memory_row *row, size_t size, size_t huge_from) {
    *row = (struct memory_row){.huge_from = huge_from};
    if (!has_addresses_to_spare() || size > SIZE_MAX / 2 || !count_row())
        return false;
    const size_t all = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char *const at = map_aligned(all, PROT_NONE);
    if (!at) {
        __atomic_sub_fetch(&rows, 1, __ATOMIC_RELAXED);
        return false;
    }
    row->at = at;
    row->size = all;
    return true;
}

/* While a row has little, a huge page would be most of it. */
static void begin_small(struct memory_row *row) {
    row->begins_small = madvise(row->at, HUGE_PAGE, MADV_NOHUGEPAGE) == 0;
}

/* Let the first bytes lie on a huge page, too: copy them, release their pages,
 * and copy them back. madvise(MADV_COLLAPSE) takes 5 ms. */
static void take_huge_page(struct memory_row *row) {
    char *const copy = map_huge(HUGE_PAGE);
    if (!copy) return;
    memcpy(copy, row->at, HUGE_PAGE);
    madvise(row->at, HUGE_PAGE, MADV_HUGEPAGE);
    if (madvise(row->at, HUGE_PAGE, MADV_DONTNEED) == 0)
        memcpy(row->at, copy, HUGE_PAGE);
    unmap(copy, HUGE_PAGE);
    row->begins_small = false;
}

/* Up to the end of a huge page. Before, they count for no limit, and mlockall()
 * does not take them. */
bool memory_extend_row(struct memory_row *row, size_t to) {
    if (to > row->size) return false;
    if (row->begins_small && to >= row->huge_from) take_huge_page(row);
    if (to <= row->ready) return true;
    const size_t end = (to + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    if (row->ready == 0 && to < row->huge_from) begin_small(row);
    if (mprotect(row->at + row->ready, end - row->ready,
                 PROT_READ | PROT_WRITE) != 0)
        return false;
    row->ready = end;
    return true;
}

void memory_shrink_row(struct memory_row *row, size_t to) {
    const size_t whole = whole_pages(to);
    if (to >= row->ready) return;
    if (whole >= row->ready) {
        memset(row->at + to, 0, row->ready - to);
        return;
    }
    memset(row->at + to, 0, whole - to);
    if (madvise(row->at + whole, row->ready - whole, MADV_DONTNEED) != 0)
        memset(row->at + whole, 0, row->ready - whole);
}

void memory_end_row(struct memory_row *row) {
    if (row->at) {
        munmap(row->at, row->size);
        __atomic_sub_fetch(&rows, 1, __ATOMIC_RELAXED);
    }
    *row = (struct memory_row){NULL, 0, 0, 0, false};
}
#else
static const size_t LARGE = SIZE_MAX;
bool memory_is_huge(size_t size) {
    (void)size;
    return false;
}
size_t memory_mapped_bytes(size_t size) {
    (void)size;
    return 0;
}
static void *map_huge(size_t size) {
    (void)size;
    return NULL;
}
static void *map(size_t size) {
    return map_huge(size);
}
static void unmap(void *block, size_t size) {
    (void)block, (void)size;
}
bool memory_make_row(struct memory_row *row, size_t size, size_t huge_from) {
    (void)row, (void)size, (void)huge_from;
    return false;
}
bool memory_extend_row(struct memory_row *row, size_t to) {
    (void)row, (void)to;
    return false;
}
void memory_shrink_row(struct memory_row *row, size_t to) {
    (void)row, (void)to;
}
void memory_end_row(struct memory_row *row) {
    (void)row;
}
#endif

#if defined(_WIN32) /* has no aligned_alloc */
#include <malloc.h>
static void *allocate_aligned(size_t alignment, size_t size) {
    return _aligned_malloc(size, alignment);
}
static void free_aligned(void *block) {
    _aligned_free(block);
}
#else
static void *allocate_aligned(size_t alignment, size_t size) {
    return aligned_alloc(alignment, size);
}
static void free_aligned(void *block) {
    free(block);
}
#endif

static void *take(void *context, size_t size, size_t alignment) {
    (void)context;
    if (memory_is_huge(size)) return map_huge(size);
    if (size >= LARGE) return map(size);
    const size_t rounded = (size + alignment - 1) / alignment * alignment;
    void *block = allocate_aligned(alignment, rounded);
    return block ? memset(block, 0, rounded) : NULL;
}

static void give(void *context, void *block, size_t size) {
    (void)context;
    if (size >= LARGE)
        unmap(block, size);
    else
        free_aligned(block);
}

const calyx_memory memory_default = {take, give, NULL};
