/*
 * Memory from the server's allocator, so that the server counts it; and the
 * judgement, before it is taken, whether it may be.
 */
#ifndef CALYX_MODULE_ALLOCATOR_H
#define CALYX_MODULE_ALLOCATOR_H

#include <calyx/calyx.h>

#include "server/api.h"

/* Once, before any memory is taken. */
void memory_start(RedisModuleCtx *ctx);

/* For native filters: aligned as the library wants it. */
extern const calyx_memory aligned_memory;

/* What a block of aligned memory takes of the server's. */
size_t memory_of(const void *block);

/* For chains: blocks may also come from RM_LoadStringBuffer. */
extern const calyx_memory plain_memory;

/* While a command runs that a client sent, for a filter that has `has` bytes:
 * hold what it takes against calyx-max-filter-bytes and against the room that
 * maxmemory leaves. What the primary or the AOF says is obeyed instead. NULL
 * for a command of the server's own, RESTORE or COPY. */
void memory_judge(RedisModuleCtx *ctx, uint64_t has);
void memory_trust(void);

/* Make a block of aligned memory zeros where it lies: a calyx_zero. At any size
 * it takes neither memory nor time. */
void memory_renew(void *context, void *block, size_t size);

/* While a filter comes from an RDB file or a payload. */
void memory_loading(bool is_loading);

/* While one is made that will be written from end to end in small steps. Each
 * touches what it needs. A thread that does so ahead would only be in the way,
 * and a huge page would make one step in two wait for all of it. */
void memory_in_steps(bool is_in_steps);

/* Why memory was refused since the judgement began: "it needs 9 bytes, and ..."
 * Empty if it was not. */
const char *memory_refusal(void);

/* The same into an error that is told later, when other commands have run. */
void memory_explain(calyx_error *why);

/* How often memory was taken: unchanged means that no filter grew. */
uint64_t memory_allocations(void);

/* Move a block of aligned memory, for defragmentation: a calyx_move, whose
 * context is the RedisModuleDefragCtx. */
void *memory_move(void *context, void *block, size_t size);

#endif
