/* The items of a command, as the library takes them. */
#ifndef CALYX_MODULE_ITEMS_H
#define CALYX_MODULE_ITEMS_H

#include <calyx/calyx.h>

#include "layout/layout.h"
#include "server/api.h"
#include "server/steps.h"
#include "type.h"

enum { FEW_ITEMS = 64 }; /* most commands have no more: those need no memory */

struct items {
    RedisModuleString **argv;
    size_t n;
    calyx_key *keys;
    bool *answers; /* of each: what the reply says             */
    bool *changed; /*          it changed the filter           */
    bool *refused; /*          it could not be added           */
    calyx_key few_keys[FEW_ITEMS];
    bool few_flags[3 * FEW_ITEMS];
};

void items_open(struct items *items, RedisModuleString **argv, int n);
void items_close(struct items *items);

/* Some of them, as a view: nothing to close. */
struct items items_slice(const struct items *items, size_t from, size_t n);

/* The members of the first n items that have their flag set, in their order.
 * `few` is where they go if there are no more than FEW_ITEMS; free others by
 * RM_Free. */
RedisModuleString **items_chosen(const struct items *items, const bool *flags,
                                 size_t n, RedisModuleString **few,
                                 size_t *chosen);

/* Reply the answers of the first n: booleans, without an array around them. */
int items_reply(RedisModuleCtx *ctx, const struct items *items, size_t n);

/* Replicate a command of a key, a word unless that is NULL, and such items. */
void items_replicate(RedisModuleCtx *ctx, const char *command,
                     RedisModuleString *name, const char *word,
                     const struct items *items, const bool *flags, size_t n);

/* Items that are about to be added to a filter or removed, for the jobs that
 * copy it (server/steps.h). */
struct items_change {
    const struct filter *f;
    const calyx_key *keys;
    size_t n;
};
void items_before_change(RedisModuleCtx *ctx, const struct filter *f,
                         const struct items *items);

/* ---- Many items, in steps ------------------------------------------------ */

/* Are they more than one step may process: to look them up, or to change the
 * filter? */
bool items_need_steps(const struct items *items, const struct filter *f,
                      bool changes);

/* A job over the items of a command. Its struct may begin with this one. */
struct items_job {
    struct job job;
    struct items items;
    const struct items_work *work;
    uint64_t identity; /* of the filter                          */
    enum family family;
    size_t at;  /* items that are done                       */
    bool ended; /* those after them shall not be             */
    bool gone;  /* the filter disappeared before the last    */
};

/* What the job of a command does. */
struct items_work {
    /* Some items, as many as fit into a step; returns how many are done. */
    size_t (*run)(RedisModuleCtx *ctx, struct items_job *j, struct filter *f,
                  struct items *some);
    int (*reply)(RedisModuleCtx *ctx, struct items_job *j);
    bool writes;
    size_t size; /* of its struct */
};

/* A job for the items of a command from `first_item` on: start it by
 * steps_start. It waits for a compaction that is under way, and goes on until
 * the one that it began is complete. */
struct items_job *items_job_new(RedisModuleCtx *ctx, const struct filter *f,
                                enum family family,
                                const struct items_work *work,
                                RedisModuleString **argv, int argc,
                                int first_item);

/* The error if the filter is gone: "while" what was done. */
int items_reply_gone(RedisModuleCtx *ctx, const struct items_job *j,
                     const char *what);

#endif
