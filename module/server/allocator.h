/*
 * Memory from the server's allocator, so that the server counts it, and the
 * limits for it.
 */
#ifndef CALYX_MODULE_ALLOCATOR_H
#define CALYX_MODULE_ALLOCATOR_H

#include <calyx/calyx.h>

#include "server/api.h"

/* Once, before any allocation. */
void memory_start(RedisModuleCtx *ctx);

/* For native filters: aligned as the library wants it. */
extern const calyx_memory aligned_memory;

/* What a block of aligned memory takes of the server's. */
size_t memory_of(const void *block);

/* For chains: blocks may also come from RM_LoadStringBuffer. */
extern const calyx_memory plain_memory;

/*
 * Whom memory is allocated for: a request is on the stack of a command, from
 * memory_begin to memory_end. While there is none, only what the machine has is
 * the limit.
 *
 * The library stores the hooks of a filter for as long as the filter lives, and
 * a small filter has no room for a context. So the hooks find the request in
 * one pointer, rather than in their context; only the server's main thread
 * allocates.
 */
enum memory_use {
    MEMORY_NEW,     /* will be written at random places: prefault it         */
    MEMORY_LOADED,  /* is written at once, from end to end                   */
    MEMORY_IN_STEPS /* is written from end to end by many commands: prefault */
};                  /*   would race with them, huge pages stall every other  */

struct memory_request {
    RedisModuleCtx *ctx; /* NULL for a command of the server: RESTORE, COPY  */
    uint64_t held;       /* bytes that the filter has                        */
    enum memory_use use;
    uint64_t refused;  /* bytes; 0 if nothing was. What is not less is refused
                          without a look at the server's memory */
    bool pauses;       /* the thread that touches pages ahead               */
    char refusal[160]; /* "it needs 9 bytes, and ..."; empty if not refused */
};

/* Check what is allocated for a filter that has `held` bytes against
 * calyx-max-filter-bytes and the room that maxmemory leaves. What the primary
 * or the AOF says is obeyed instead. */
void memory_begin(struct memory_request *request, RedisModuleCtx *ctx,
                  uint64_t held);

/* Until memory_end the command writes to memory all the time: no pages are
 * touched ahead meanwhile; see prefault_pause. */
void memory_is_touched(void);

/* If memory was refused, the reason becomes the text of `why`, unless that is
 * NULL. */
void memory_end(calyx_error *why);

/* Make a block of aligned memory zeros where it lies: a calyx_zero_function. At
 * any size it takes neither memory nor time. */
void memory_renew(void *context, void *block, size_t size);

/* Can blocks of this size together be allocated? If not, the refusal is noted,
 * as if one of them had been refused. */
bool memory_fits(uint64_t size);

/* Number of allocations so far: unchanged means that no filter grew. */
uint64_t memory_allocations(void);

/* Move a block of aligned memory, for defragmentation: a calyx_move_function,
 * whose context is the RedisModuleDefragCtx. */
void *memory_move(void *context, void *block, size_t size);

/* The same for a block of plain memory, or of RM_Alloc. `pointer` is the
 * address of the pointer to it, of any type; the pointer may be NULL. */
void memory_move_plain(RedisModuleDefragCtx *ctx, void *pointer);

#endif
