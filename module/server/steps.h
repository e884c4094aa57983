/*
 * Long commands in steps. A command with more work than STEP_LINES blocks its
 * client and continues from a timer, step by step; the server serves others
 * between the steps. Where a client cannot be blocked (in MULTI, in a script,
 * from the primary or the AOF) the handler does all work at once.
 *
 * Any command may change a key between two steps. So a step opens its keys by
 * name and compares the `identity` of the filter: a new or emptied filter has
 * another.
 */
#ifndef CALYX_MODULE_STEPS_H
#define CALYX_MODULE_STEPS_H

#include "server/api.h"

/* The most work of one step, in cache lines of filters, or of items to hash: 1
 * to 2 ms from memory. */
enum { STEP_LINES = 16384, LINE_BYTES = 64 };

/* Bytes of an item that take as long to hash as a line of a filter to read. */
enum { BYTES_HASHED_AS_LINE = 8 * LINE_BYTES };

/* The first member of a command's state, which is RM_Alloc'ed and freed at the
 * end. */
struct job {
    bool (*step)(RedisModuleCtx *ctx, struct job *job); /* true: it was the last
                                                         */
    int (*reply)(RedisModuleCtx *ctx, struct job *job);
    void (*end)(struct job *job); /* frees what it owns; may be NULL */
    RedisModuleString **argv;     /* of the command; held by the job */
    int argc;
    bool writes;
    uint64_t sees[2];      /* identities of filters; how often they got      */
    uint64_t changes_seen; /* more bits without more items                   */
    /* Called before items of the filter with the identity sees[0] are added or
     * removed; NULL if it does not matter. */
    void (*before_change)(RedisModuleCtx *ctx, struct job *job,
                          const void *change);

    int db;
    bool on_replica;
    RedisModuleBlockedClient *client;
    struct job *next;
};

/* May the client of this command be blocked? */
bool steps_can_wait(RedisModuleCtx *ctx);

/* Keep references to the arguments of a command. */
void steps_keep_arguments(RedisModuleCtx *ctx, struct job *job,
                          RedisModuleString **argv, int argc);

/* Run the first step. Unless it is the last, block the client and continue from
 * a timer. Then `reply` is called once. */
int steps_start(RedisModuleCtx *ctx, struct job *job);

/* The bits of the filter of this identity changed, and not because of items. */
void steps_note_change(uint64_t identity);

/* Some items of the filter of this identity are about to be added or removed;
 * `change` says which. */
void steps_before_change(RedisModuleCtx *ctx, uint64_t identity,
                         const void *change);
/* Does a job need to know that? */
bool steps_await_change(uint64_t identity);

/* For INFO: how many steps were done, and the lines of the longest. */
struct step_counts {
    uint64_t steps, most_lines;
};
extern struct step_counts step_counts;
void steps_count(uint64_t lines);

#endif
