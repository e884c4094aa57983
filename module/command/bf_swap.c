/*
 * BF.SWAP: a staged filter replaces the live one atomically. Unlike RENAME, the
 * key keeps its time to live and the counters of its guard, its generation
 * number goes up, and another thread frees the old filter whatever the server's
 * configuration.
 *
 * The API detaches a value from a key only in exchange for another of its type.
 * So the staged key gets a placeholder, and is deleted with it.
 */
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "command/open_key.h"
#include "command/options.h"
#include "command/replicate.h"
#include "server/reply.h"

struct swap_key {
    RedisModuleKey *key;
    enum key_type type;
    struct filter *f; /* NULL if there is none */
};

static struct swap_key open_place(RedisModuleCtx *ctx,
                                  RedisModuleString *name) {
    struct swap_key place = {RM_OpenKey(ctx, name, RM_READ | RM_WRITE),
                             KEY_MISSING, NULL};
    place.type = type_of(place.key, &place.f);
    return place;
}

/* Put the staged filter in the place of the live one. */
static void exchange(struct swap_key *live, struct swap_key *staged) {
    const long long expires =
        RM_GetAbsExpire(live->f ? live->key : staged->key);
    if (live->f) {
        memcpy(rare_for(staged->f)->guarded, rare_of(live->f)->guarded,
               sizeof live->f->rare->guarded);
        RM_UnlinkKey(live->key);
    }
    type_detach(staged->key, staged->f);
    type_attach(live->key, staged->f);
    RM_SetAbsExpire(live->key, expires);
    RM_UnlinkKey(staged->key);
}

/* A filter of another module's layout is moved by words that any server knows;
 * the number of the generation is lost on that way. */
static void replicate_swap(RedisModuleCtx *ctx, RedisModuleString **argv,
                           const struct swap_key *live, const struct filter *f,
                           uint64_t generation) {
    char text[24];
    if (f->layout->is_foreign) {
        replicate_swap_plainly(ctx, argv[1], argv[2],
                               RM_GetAbsExpire(live->key));
        return;
    }
    snprintf(text, sizeof text, "%llu", (unsigned long long)generation);
    RM_Replicate(ctx, "BF.SWAP", "sscc", argv[1], argv[2], "GENERATION", text);
}

/* Stays at the largest number that replies and replicas accept. */
static uint64_t generation_after(const struct filter *f) {
    const uint64_t last = f ? rare_of(f)->generation : 0;
    return last < INT64_MAX ? last + 1 : INT64_MAX;
}

/* `generation` 0 stands for the next. */
static int swap_places(RedisModuleCtx *ctx, RedisModuleString **argv,
                       struct swap_key *live, struct swap_key *staged,
                       uint64_t generation) {
    if (live->type == KEY_OTHER || staged->type == KEY_OTHER)
        return reply_wrong_type(ctx);
    if (staged->type == KEY_MISSING)
        return RM_ReplyWithError(
            ctx, "ERR not found: there is no filter under the staged key");
    if (filter_is_partial(staged->f)) return reply_partial(ctx, staged->f);

    if (generation == 0) generation = generation_after(live->f);
    exchange(live, staged);
    rare_for(staged->f)->generation = generation;
    replicate_swap(ctx, argv, live, staged->f, generation);
    note_change(ctx, argv[1], "bloom.swap");
    RM_SignalModifiedKey(ctx, argv[2]);
    RM_NotifyKeyspaceEvent(ctx, RM_NOTIFY_GENERIC, "del", argv[2]);
    return RM_ReplyWithLongLong(ctx, (long long)generation);
}

static int run_swap(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    long long generation = 0;
    if (argc != 3 && argc != 5) return RM_WrongArity(ctx);
    if (argc == 5 && !is_word(argv[3], "GENERATION"))
        return RM_ReplyWithError(ctx, "ERR unknown argument; there is "
                                      "GENERATION");
    if (argc == 5 && parse_whole(argv[4], 1, INT64_MAX, &generation) != NUMBER)
        return RM_ReplyWithError(
            ctx, "ERR bad generation: it is a whole number from 1");
    if (RM_StringCompare(argv[1], argv[2]) == 0)
        return RM_ReplyWithError(
            ctx, "ERR the live and the staged key are the same");

    struct swap_key live = open_place(ctx, argv[1]);
    struct swap_key staged = open_place(ctx, argv[2]);
    swap_places(ctx, argv, &live, &staged, (uint64_t)generation);
    RM_CloseKey(live.key);
    RM_CloseKey(staged.key);
    return RM_OK;
}

static RedisModuleCommandArg swap_args[] = {
    NAMED_KEY("live", 0), NAMED_KEY("staged", 1),
    OPTION(INTEGER, "GENERATION", "generation"), END};

static RedisModuleCommandKeySpec swap_keys[] = {
    KEYS_AT(1, 0, 1, RM_KEY_OVERWRITE | RM_KEY_UPDATE),
    KEYS_AT(2, 0, 1, RM_KEY_READ_WRITE | RM_KEY_ACCESS | RM_KEY_DELETE), END};

const struct command bf_swap = {
    .name = "bf.swap",
    .run = run_swap,
    .flags = "write",
    .categories = "write bloom",
    .summary = "Puts a staged Bloom filter in the place of the live one.",
    .complexity = "O(1); the old one is freed in the background",
    .arity = -3,
    .key_specs = swap_keys,
    .args = swap_args,
};
