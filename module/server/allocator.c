/*
 * Memory from the server.
 *
 * An allocator promises to align to 16 bytes; the library wants 64 for bits.
 * Servers mostly have jemalloc, whose blocks lie at multiples of their size,
 * and which has a size at each multiple of 64 that it has at all: there, a
 * block of 64 bytes, or 128, and so on, is aligned by itself. Elsewhere an
 * aligned block lies within a larger one, and the address of that one is
 * stored in the word before it:
 *
 *     raw ... | raw | block, at a multiple of 64 ...
 *
 * Zeros: asking the system for fresh pages is free at any size, while clearing
 * 1 GB would stop the server for a third of a second. So that is done here; the
 * allocators of some servers clear what was in use before. Beyond Linux
 * RM_Calloc at least knows pages that are fresh. It kills the server when there
 * is no memory, so RM_TryAlloc checks first.
 */
#include "server/allocator.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/pages.h"
#include "server/prefault.h"
#include "settings.h"

enum { ALIGNMENT = 64 };

/* From here on, clearing is left to the system. A fault takes 2 to 8 us, so to
 * clear 1 MiB of fresh memory took a command over 1 ms. */
static const size_t LARGE = (size_t)64 << 10;
static const size_t HUGE = (size_t)4 << 20;

/* ---- Limits -------------------------------------------------------------- */

static struct memory_request *current; /* NULL: of no request */

/* Not an initialiser: that would clear `refusal` for every BF.ADD. */
void memory_begin(struct memory_request *request, RedisModuleCtx *ctx,
                  uint64_t held) {
    request->ctx = ctx;
    request->held = held;
    request->use = MEMORY_NEW;
    request->refused = 0;
    request->pauses = false;
    request->refusal[0] = '\0';
    current = request;
}

void memory_is_touched(void) {
    current->pauses = true;
    prefault_pause(true);
}

void memory_end(calyx_error *why) {
    if (current->pauses) prefault_pause(false);
    if (why && *current->refusal)
        snprintf(why->text, sizeof why->text, "%s", current->refusal);
    current = NULL;
}

static bool refuse(uint64_t need, uint64_t limit, const char *whose) {
    if (!current) return false;
    current->refused = need;
    snprintf(current->refusal, sizeof current->refusal,
             "it needs %llu bytes, and %s leaves %llu",
             (unsigned long long)need, whose, (unsigned long long)limit);
    return false;
}

/* Bytes until maxmemory is reached; UINT64_MAX if there is none. */
static uint64_t headroom(RedisModuleCtx *ctx) {
    RedisModuleServerInfoData *info = RM_GetServerInfo(ctx, "memory");
    if (!info) return UINT64_MAX;
    const uint64_t most =
        RM_ServerInfoGetFieldUnsigned(info, "maxmemory", NULL);
    const uint64_t used =
        RM_ServerInfoGetFieldUnsigned(info, "used_memory", NULL);
    RM_FreeServerInfo(ctx, info);
    if (most == 0) return UINT64_MAX;
    return used < most ? most - used : 0;
}

/* Is the command one to obey? Without a context: is this
 * server a replica? Then only the primary writes here. */
static bool must_obey(RedisModuleCtx *ctx) {
    return is_replayed(ctx) ||
           (!ctx && RM_GetContextFlags(ctx) & RM_CTX_REPLICA);
}

/* Small amounts are left to the server, which checks before each command. */
static bool is_allowed(const struct memory_request *r, uint64_t size) {
    static const size_t SMALL = 64 << 10;
    if (must_obey(r->ctx)) return true;
    if (r->refused && size >= r->refused) return false;
    const uint64_t most = (uint64_t)settings.max_filter_bytes;
    if (most && (r->held > most || size > most - r->held))
        return refuse(size, r->held < most ? most - r->held : 0,
                      "calyx-max-filter-bytes");
    if (size < SMALL) return true;
    const uint64_t room = headroom(r->ctx);
    return size <= room || refuse(size, room, "maxmemory");
}

static uint64_t machine_bytes(void) {
    static uint64_t bytes;
    if (!bytes) {
        const long pages = sysconf(_SC_PHYS_PAGES),
                   size = sysconf(_SC_PAGESIZE);
        bytes = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size
                                      : UINT64_MAX;
    }
    return bytes;
}

/* The machine's memory is the limit, also for a window, generation by
 * generation. */
static bool is_possible(uint64_t size) {
    const uint64_t has = current ? current->held : 0, most = machine_bytes();
    const uint64_t left = has < most ? most - has : 0;
    return size <= left || refuse(size, left, "this machine");
}

bool memory_fits(uint64_t size) {
    return (!current || is_allowed(current, size)) && is_possible(size);
}

/* ---- Allocation ---------------------------------------------------------- */

static uint64_t allocations;

uint64_t memory_allocations(void) {
    return allocations;
}

static void *allocate_zeros(size_t size) {
    allocations++;
    if (!memory_fits(size)) return NULL;
    /* A command may make a filter grow more than once. */
    if (current) current->held += size;
    void *block = RM_TryAlloc(size);
    if (!block) return NULL;
    if (size < LARGE) return memset(block, 0, size);
    if (pages_clear(block, size)) return block;
    RM_Free(block);
    return RM_Calloc(1, size);
}

/* Huge pages speed up lookups, but slow down the first touch of a page and the
 * first write after a fork. Loading touches everything anyway. */
static void prepare_pages(void *raw, size_t size) {
    if (size < HUGE) return;
    const enum memory_use use = current ? current->use : MEMORY_NEW;
    if (use == MEMORY_LOADED) pages_advise_huge(raw, size);
    if (use == MEMORY_NEW) prefault_start(raw, size);
}

static void release_raw(void *raw, size_t size) {
    if (size >= HUGE) {
        prefault_stop(raw, size);
        pages_release(raw, size);
    }
    RM_Free(raw);
}

/* ---- Alignment ----------------------------------------------------------- */

static bool aligned_by_itself;

static bool is_aligned(const void *block) {
    return (uintptr_t)block % ALIGNMENT == 0;
}

static size_t whole_lines(size_t size) {
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Another allocator may have replaced the one that the server names: the
 * allocator of a sanitizer uses 16 bytes before small blocks, and aligns large
 * ones. So try many blocks of each small size. */
static bool try_alignment(void) {
    enum { SIZES = 8, TRIED = 32 * SIZES };
    void *block[TRIED];
    bool aligned = true;
    for (size_t i = 0; i < TRIED; i++) {
        block[i] = RM_Alloc((i % SIZES + 1) * ALIGNMENT);
        aligned &= is_aligned(block[i]);
    }
    for (size_t i = 0; i < TRIED; i++) RM_Free(block[i]);
    return aligned;
}

void memory_start(RedisModuleCtx *ctx) {
    RedisModuleServerInfoData *info = RM_GetServerInfo(ctx, "memory");
    if (!info) return;
    const char *allocator = RM_ServerInfoGetFieldC(info, "mem_allocator");
    aligned_by_itself =
        allocator && strncmp(allocator, "jemalloc", 8) == 0 && try_alignment();
    RM_FreeServerInfo(ctx, info);
}

static void *raw_of(const void *block) {
    void *raw;
    memcpy(&raw, (const char *)block - sizeof raw, sizeof raw);
    return raw;
}

static void *place_in(void *raw) {
    const uintptr_t least = (uintptr_t)raw + sizeof raw;
    const uintptr_t at = (least + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return (char *)raw + (at - (uintptr_t)raw);
}

static void *store_raw(void *block, void *raw) {
    memcpy((char *)block - sizeof raw, &raw, sizeof raw);
    return block;
}

/* For the place of a block in a raw one. */
enum { MORE = ALIGNMENT + sizeof(void *) };

static void *allocate_aligned(void *context, size_t size, size_t alignment) {
    (void)context;
    if (size > SIZE_MAX - MORE) return NULL;
    const bool lines = alignment > 16;
    const size_t whole = !aligned_by_itself ? size + MORE
                         : lines            ? whole_lines(size)
                                            : size;
    void *raw = allocate_zeros(whole);
    if (!raw) return NULL;
    if (aligned_by_itself && lines && !is_aligned(raw)) {
        RM_Free(raw);
        return NULL;
    }
    prepare_pages(raw, whole);
    return aligned_by_itself ? raw : store_raw(place_in(raw), raw);
}

static void release_aligned(void *context, void *block, size_t size) {
    (void)context;
    if (aligned_by_itself)
        release_raw(block, size);
    else
        release_raw(raw_of(block), size + MORE);
}

size_t memory_of(const void *block) {
    return RM_MallocSize(aligned_by_itself ? (void *)(uintptr_t)block
                                           : raw_of(block));
}

void memory_renew(void *context, void *block, size_t size) {
    static const size_t FEW_PAGES = 256 << 10;
    (void)context;
    if (size < FEW_PAGES)
        memset(block, 0, size);
    else
        pages_renew(block, size);
    prepare_pages(block, size);
}

static void *allocate_plain(void *context, size_t size, size_t alignment) {
    (void)context, (void)alignment;
    void *block = allocate_zeros(size);
    if (block) prepare_pages(block, size);
    return block;
}

static void release_plain(void *context, void *block, size_t size) {
    (void)context;
    release_raw(block, size);
}

const calyx_memory aligned_memory = {allocate_aligned, release_aligned, NULL};
const calyx_memory plain_memory = {allocate_plain, release_plain, NULL};

/* The new place may be aligned otherwise than the old one was. */
void *memory_move(void *context, void *block, size_t size) {
    if (aligned_by_itself) {
        void *const moved = RM_DefragAlloc(context, block);
        return moved ? moved : block;
    }
    char *const old = raw_of(block);
    const size_t was_at = (size_t)((char *)block - old);
    char *const raw = RM_DefragAlloc(context, old);
    if (!raw) return block;
    char *const place = place_in(raw);
    if (place != raw + was_at) memmove(place, raw + was_at, size);
    return store_raw(place, raw);
}

void memory_move_plain(RedisModuleDefragCtx *ctx, void *pointer) {
    void *block;
    memcpy(&block, pointer, sizeof block);
    void *moved = block ? RM_DefragAlloc(ctx, block) : NULL;
    if (moved) memcpy(pointer, &moved, sizeof moved);
}
