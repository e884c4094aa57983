/*
 * BF.SWAP: a staged filter replaces the live one atomically. Unlike RENAME, the
 * key records its time to live and the counters of its guard, its generation
 * number goes up, and another thread frees the old filter whatever the server's
 * configuration. With REBUILD the staged filter first gets what was added to
 * the live one since BF.REBUILD … BEGIN.
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
#include "layout/rebuild.h"
#include "server/reply.h"
#include "server/steps.h"

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
        memcpy(extra_for(staged->f)->guarded, extra_of(live->f)->guarded,
               sizeof live->f->extra->guarded);
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
    const uint64_t last = f ? extra_of(f)->generation : 0;
    return last < INT64_MAX ? last + 1 : INT64_MAX;
}

/* `generation` 0 stands for the next. Returns the number. */
static uint64_t swap_places(RedisModuleCtx *ctx, RedisModuleString **argv,
                            struct swap_key *live, struct swap_key *staged,
                            uint64_t generation) {
    if (generation == 0) generation = generation_after(live->f);
    exchange(live, staged);
    extra_for(staged->f)->generation = generation;
    replicate_swap(ctx, argv, live, staged->f, generation);
    note_change(ctx, argv[1], "bloom.swap");
    RM_SignalModifiedKey(ctx, argv[2]);
    RM_NotifyKeyspaceEvent(ctx, RM_NOTIFY_GENERIC, "del", argv[2]);
    return generation;
}

/* ---- After a rebuild ----------------------------------------------------- */

/*
 * The recorded items are added to the staged filter in steps (server/steps.h).
 * Items that come between two steps are recorded, too. The step after which
 * none is left exchanges the filters. Replicas get each step as BF.MADD of the
 * staged key, and the last with BF.SWAP in one transaction.
 *
 * If the server ends in the midst, the live filter still has the rebuild with
 * all items, so the client swaps again. A counting filter then has some copies
 * too many, which no deletion will remove.
 */
struct swap_job {
    struct job job;
    uint64_t token, generation; /* as wanted; then as it is             */
    uint64_t swap;              /* rebuild_start_swap; 0: not yet       */
    uint64_t staged_identity;
    char why[400]; /* empty if all is well */
};

static bool fail_swap(struct swap_job *j, const char *text) {
    snprintf(j->why, sizeof j->why, "%s", text);
    return false;
}

static bool is_rebuilt(struct swap_job *j, const struct rebuild *r) {
    if (!r || r->terms.token != j->token)
        return fail_swap(j, "this rebuild is not open: since it began the live "
                            "key was swapped or deleted, another rebuild "
                            "began, or the time was up; begin again, and "
                            "read the list again");
    if (r->terms.lost == REBUILD_TOO_MANY)
        return fail_swap(j, "more was added since the rebuild began than it "
                            "may record; begin again, with a larger MOST");
    if (r->terms.lost == REBUILD_IN_BULK)
        return fail_swap(j, "keys came into the live filter by BF.MERGE or "
                            "BF.LOADCHUNK since the rebuild began; they cannot "
                            "be recorded: begin again");
    if (j->swap && r->swap != j->swap)
        return fail_swap(j, "another BF.SWAP of this rebuild began meanwhile");
    return true;
}

static bool is_staged(struct swap_job *j, const struct filter *staged) {
    if (!staged ||
        (j->swap && extra_of(staged)->identity != j->staged_identity))
        return fail_swap(j, "the staged filter was deleted, emptied or "
                            "replaced meanwhile");
    return true;
}

static bool open_job(RedisModuleCtx *ctx, struct swap_job *j,
                     struct swap_key *live, struct swap_key *staged) {
    *live = open_place(ctx, j->job.argv[1]);
    *staged = open_place(ctx, j->job.argv[2]);
    if (!is_rebuilt(j, live->f ? rebuild_of(live->f) : NULL)) return false;
    if (!is_staged(j, staged->f)) return false;
    if (j->swap) return true;
    j->swap = rebuild_start_swap(rebuild_of(live->f));
    j->staged_identity = filter_identity(staged->f);
    return true;
}

static bool add_to_staged(RedisModuleCtx *ctx, struct swap_job *j,
                          struct filter *f, RedisModuleString **items,
                          size_t n) {
    calyx_error why;
    const calyx_status status =
        items_add(ctx, j->job.argv[2], f, items, (int)n, &why);
    if (status == CALYX_OK) return true;
    snprintf(j->why, sizeof j->why,
             "the staged filter does not take what was added since the rebuild "
             "began: %s",
             *why.text ? why.text : calyx_status_text(status));
    return false;
}

/* Each item as often as it was added: in round i, items with more copies than
 * i. */
static bool add_batch(RedisModuleCtx *ctx, struct swap_job *j,
                      const struct rebuild_batch *b) {
    RedisModuleString *some[REBUILD_BATCH];
    for (uint64_t round = 0; b->n > 0 && round < REBUILD_MOST_COPIES; round++) {
        struct filter *const f =
            find_again(ctx, j->job.argv[2], j->staged_identity);
        size_t left = 0;
        for (size_t i = 0; i < b->n; i++)
            if (b->times[i] > round) some[left++] = b->items[i];
        if (!is_staged(j, f)) return false;
        if (left == 0 || (round && !f->can_remove)) return true;
        if (!add_to_staged(ctx, j, f, some, left)) return false;
    }
    return true;
}

static uint64_t item_lines(const struct filter *f) {
    struct filter_facts facts;
    f->layout->describe(f, &facts);
    return facts.change_lines * (f->can_remove ? REBUILD_MOST_COPIES : 1);
}

/* True if these were the last. */
static bool add_some(RedisModuleCtx *ctx, struct swap_job *j, struct rebuild *r,
                     uint64_t lines) {
    struct rebuild_batch b;
    b.item_lines = lines;
    rebuild_next(r, &b);
    steps_count(b.work);
    const bool good = add_batch(ctx, j, &b);
    for (size_t i = 0; i < b.n; i++) RM_FreeString(NULL, b.items[i]);
    return good && b.last;
}

static void close_places(struct swap_key *live, struct swap_key *staged) {
    RM_CloseKey(live->key);
    RM_CloseKey(staged->key);
}

/* The keys are closed while items are added, as a listener of the event may
 * change anything. */
static bool swap_step(RedisModuleCtx *ctx, struct job *job) {
    struct swap_job *const j = (struct swap_job *)job;
    struct swap_key live, staged;
    bool good = open_job(ctx, j, &live, &staged), last = false;
    struct rebuild *const r = good ? rebuild_of(live.f) : NULL;
    const uint64_t lines = good ? item_lines(staged.f) : 0;
    close_places(&live, &staged);
    if (good) last = add_some(ctx, j, r, lines);
    if (*j->why) return true;
    if (!last) return false;
    good = open_job(ctx, j, &live, &staged);
    if (good)
        j->generation =
            swap_places(ctx, job->argv, &live, &staged, j->generation);
    close_places(&live, &staged);
    return true;
}

/* Where the client cannot wait. */
static bool swap_at_once(RedisModuleCtx *ctx, struct job *job) {
    while (!swap_step(ctx, job)) continue;
    return true;
}

static int reply_swapped(RedisModuleCtx *ctx, struct job *job) {
    const struct swap_job *const j = (struct swap_job *)job;
    if (*j->why) return reply_text(ctx, "ERR not swapped: %s", j->why);
    return RM_ReplyWithLongLong(ctx, (long long)j->generation);
}

static int swap_rebuilt(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                        uint64_t token, uint64_t generation) {
    struct swap_job *const j = RM_Calloc(1, sizeof *j);
    j->job =
        (struct job){.step = swap_step, .reply = reply_swapped, .writes = true};
    j->token = token;
    j->generation = generation;
    steps_keep_arguments(ctx, &j->job, argv, argc);
    if (!steps_can_wait(ctx)) j->job.step = swap_at_once;
    return steps_start(ctx, &j->job);
}

/* ---- The command --------------------------------------------------------- */

/* What follows the keys. */
struct swap_words {
    long long generation, token;
    bool rebuilt;
};

static bool read_words(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                       struct swap_words *words) {
    *words = (struct swap_words){0};
    for (int i = 3; i < argc; i += 2) {
        const bool rebuild = is_word(argv[i], "REBUILD");
        if (!rebuild && !is_word(argv[i], "GENERATION"))
            return RM_ReplyWithError(ctx, "ERR unknown argument; there are "
                                          "GENERATION and REBUILD"),
                   false;
        if (rebuild
                ? parse_whole(argv[i + 1], 0, INT64_MAX, &words->token)
                : parse_whole(argv[i + 1], 1, INT64_MAX, &words->generation))
            return RM_ReplyWithError(
                       ctx, rebuild ? "ERR bad token: it is the number that "
                                      "BF.REBUILD … BEGIN returned"
                                    : "ERR bad generation: it is a whole "
                                      "number from 1"),
                   false;
        words->rebuilt |= rebuild;
    }
    return true;
}

/* Without REBUILD a rebuild must not be open: it would end, and with it what it
 * has recorded for somebody. Streams have completed it before. */
static bool may_swap(RedisModuleCtx *ctx, const struct swap_key *live,
                     const struct swap_key *staged,
                     const struct swap_words *words) {
    static const char OPEN[] =
        "ERR a rebuild is open for the %s key: complete it by BF.SWAP … "
        "REBUILD, or end it by BF.REBUILD … ABORT";
    if (live->type == KEY_OTHER || staged->type == KEY_OTHER)
        reply_wrong_type(ctx);
    else if (staged->type == KEY_MISSING)
        RM_ReplyWithError(
            ctx, "ERR not found: there is no filter under the staged key");
    else if (filter_is_partial(staged->f))
        reply_partial(ctx, staged->f);
    else if (rebuild_of(staged->f) && !is_replayed(ctx))
        reply_text(ctx, OPEN, "staged");
    else if (live->f && words->rebuilt && words->token == 0)
        RM_ReplyWithError(ctx, "ERR not swapped: the live filter was made "
                               "after the rebuild began; begin again");
    else if (live->f && rebuild_of(live->f) && !words->rebuilt &&
             !is_replayed(ctx))
        reply_text(ctx, OPEN, "live");
    else
        return true;
    return false;
}

static int run_swap(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct swap_words words;
    if (argc < 3 || argc % 2 == 0) return RM_WrongArity(ctx);
    if (!read_words(ctx, argv, argc, &words)) return RM_OK;
    if (RM_StringCompare(argv[1], argv[2]) == 0)
        return RM_ReplyWithError(
            ctx, "ERR the live and the staged key are the same");

    struct swap_key live = open_place(ctx, argv[1]);
    struct swap_key staged = open_place(ctx, argv[2]);
    const uint64_t wanted = (uint64_t)words.generation;
    const bool may = may_swap(ctx, &live, &staged, &words);
    if (may && words.token == 0)
        RM_ReplyWithLongLong(
            ctx, (long long)swap_places(ctx, argv, &live, &staged, wanted));
    close_places(&live, &staged);
    if (may && words.token)
        swap_rebuilt(ctx, argv, argc, (uint64_t)words.token, wanted);
    return RM_OK;
}

static RedisModuleCommandArg swap_args[] = {
    NAMED_KEY("live", 0), NAMED_KEY("staged", 1),
    OPTION(INTEGER, "GENERATION", "generation"),
    OPTION(INTEGER, "REBUILD", "token"), END};

static RedisModuleCommandKeySpec swap_keys[] = {
    KEYS_AT(1, 0, 1, RM_KEY_OVERWRITE | RM_KEY_UPDATE),
    KEYS_AT(2, 0, 1, RM_KEY_READ_WRITE | RM_KEY_ACCESS | RM_KEY_DELETE), END};

const struct command bf_swap = {
    .name = "bf.swap",
    .run = run_swap,
    .flags = "write",
    .categories = "write bloom",
    .summary = "Puts a staged Bloom filter in the place of the live one.",
    .complexity =
        "O(1); O(n) for n items that a rebuild has recorded, in steps; "
        "the old one is freed in the background",
    .arity = -3,
    .key_specs = swap_keys,
    .args = swap_args,
};
