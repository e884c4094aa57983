/*
 * BF.REBUILD: announces that a filter is about to be made anew from a list.
 * From BEGIN on, the live filter records what is added to it (layout/rebuild.h
 * says how), and BF.SWAP … REBUILD brings that along.
 *
 * BEGIN returns a token. It ties the list that was read after it to the items
 * that were recorded since: without it, a rebuild could be completed with the
 * items of another rebuild that began later. So the last BEGIN counts, and a
 * rebuild that nobody completes does not hinder the next.
 *
 * Replicas and the AOF get OPEN, with all numbers, and RECORD for the items
 * that they do not get as additions. Only the primary reads a clock.
 */
#include "command/command.h"
#include "command/items.h"
#include "command/open_key.h"
#include "command/options.h"
#include "layout/rebuild.h"
#include "server/reply.h"

enum { DAY = 86400, MOST_SECONDS = 366 * DAY };
#define USUAL_BYTES (INT64_C(64) << 20)

/* ---- Ending -------------------------------------------------------------- */

static void end_rebuild(RedisModuleCtx *ctx, RedisModuleString *name,
                        struct filter *f) {
    RedisModuleKey *const key = RM_OpenKey(ctx, name, RM_READ | RM_WRITE);
    RM_Replicate(ctx, "BF.REBUILD", "scl", name, "ABORT",
                 (long long)rebuild_of(f)->terms.token);
    rebuild_end(f);
    type_follow_rebuild(key, f);
    RM_CloseKey(key);
}

/* If nobody came back to complete it. */
static bool has_timed_out(RedisModuleCtx *ctx, const struct filter *f) {
    return !is_replayed(ctx) &&
           (uint64_t)RM_Milliseconds() > rebuild_of(f)->terms.until;
}

/* ---- Recording ----------------------------------------------------------- */

void rebuild_note_added(RedisModuleCtx *ctx, RedisModuleString *name,
                        struct filter *f, const struct recorded_items *items) {
    RedisModuleString *few[FEW_ITEMS];
    RedisModuleString **const unchanged =
        items->n <= FEW_ITEMS ? few : RM_Alloc(items->n * sizeof(void *));
    size_t n = 0;
    if (has_timed_out(ctx, f)) {
        end_rebuild(ctx, name, f);
    } else {
        for (size_t i = 0; i < items->n; i++) {
            if (items->refused && items->refused[i]) continue;
            rebuild_record(f, &items->keys[i]);
            if (!items->changed[i]) unchanged[n++] = items->argv[i];
        }
    }
    if (n) RM_Replicate(ctx, "BF.REBUILD", "scv", name, "RECORD", unchanged, n);
    if (unchanged != few) RM_Free(unchanged);
}

void rebuild_note_deleted(struct filter *f, const struct items *items) {
    for (size_t i = 0; i < items->n; i++)
        if (items->answers[i]) rebuild_cancel(rebuild_of(f), &items->keys[i]);
}

/* ---- The handlers -------------------------------------------------------- */

static int open_rebuild(RedisModuleCtx *ctx, RedisModuleString *name,
                        RedisModuleKey *key, struct filter *f,
                        const struct rebuild_terms *terms) {
    rebuild_begin(f, terms);
    type_follow_rebuild(key, f);
    RM_Replicate(ctx, "BF.REBUILD", "scllll", name, "OPEN",
                 (long long)terms->token, (long long)terms->until,
                 (long long)terms->most, (long long)terms->lost);
    return RM_ReplyWithLongLong(ctx, (long long)terms->token);
}

static uint64_t new_token(void) {
    uint64_t token = 0;
    RM_GetRandomBytes((unsigned char *)&token, sizeof token);
    return token % REBUILD_MOST_TOKEN + 1;
}

/* The words after BEGIN. */
static bool read_terms(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                       struct rebuild_terms *terms) {
    long long seconds = DAY, most = USUAL_BYTES;
    for (int i = 3; i + 1 < argc; i += 2) {
        const bool timeout = is_word(argv[i], "TIMEOUT");
        if (!timeout && !is_word(argv[i], "MOST"))
            return RM_ReplyWithError(ctx, "ERR unknown argument; there are "
                                          "TIMEOUT and MOST"),
                   false;
        if (timeout ? parse_whole(argv[i + 1], 1, MOST_SECONDS, &seconds)
                    : parse_whole(argv[i + 1], 1, REBUILD_MOST_BYTES, &most))
            return reply_text(ctx,
                              "ERR bad %s: it is a whole number from 1 to "
                              "%lld",
                              timeout ? "timeout" : "most",
                              timeout ? (long long)MOST_SECONDS
                                      : (long long)REBUILD_MOST_BYTES),
                   false;
    }
    *terms = (struct rebuild_terms){
        .token = new_token(),
        .until = (uint64_t)(RM_Milliseconds() + 1000 * seconds),
        .most = (uint64_t)most};
    return true;
}

/* Without a filter there is nothing to record: 0 says so, and the swap accepts
 * it if there is still none. */
static int run_begin(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct rebuild_terms terms;
    struct filter *f;
    if (argc % 2 == 0) return RM_WrongArity(ctx);
    if (!read_terms(ctx, argv, argc, &terms)) return RM_OK;
    RedisModuleKey *key = open_filter(ctx, argv[1], MUST_BE_COMPLETE, &f);
    if (!key) return RM_OK;
    if (f)
        open_rebuild(ctx, argv[1], key, f, &terms);
    else
        RM_ReplyWithLongLong(ctx, 0);
    RM_CloseKey(key);
    return RM_OK;
}

static int run_open(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    enum { TOKEN, UNTIL, MOST, LOST, NUMBERS };
    static const long long least[NUMBERS] = {1, 0, 1, 0},
                           most[NUMBERS] = {REBUILD_MOST_TOKEN, INT64_MAX,
                                            REBUILD_MOST_BYTES,
                                            REBUILD_LOST_WAYS - 1};
    long long number[NUMBERS];
    struct filter *f;
    if (argc != 3 + NUMBERS) return RM_WrongArity(ctx);
    for (int i = 0; i < NUMBERS; i++)
        if (parse_whole(argv[3 + i], least[i], most[i], &number[i]))
            return reply_text(ctx, "ERR bad number %d of OPEN", i + 1);
    RedisModuleKey *key =
        open_filter(ctx, argv[1], MUST_EXIST | MUST_BE_COMPLETE, &f);
    if (!key) return RM_OK;
    open_rebuild(ctx, argv[1], key, f,
                 &(struct rebuild_terms){
                     (uint64_t)number[TOKEN], (uint64_t)number[UNTIL],
                     (uint64_t)number[MOST], (enum rebuild_lost)number[LOST]});
    RM_CloseKey(key);
    return RM_OK;
}

static int run_record(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    struct filter *f;
    if (argc < 4) return RM_WrongArity(ctx);
    if (!find_filter(ctx, argv[1], FOR_WRITING | MUST_EXIST, &f)) return RM_OK;
    for (int i = 3; i < argc && rebuild_of(f); i++) {
        calyx_key item;
        item.data = RM_StringPtrLen(argv[i], &item.size);
        rebuild_record(f, &item);
    }
    if (rebuild_of(f)) RM_ReplicateVerbatim(ctx);
    return RM_ReplyWithSimpleString(ctx, "OK");
}

/* Without a token: whichever is open. */
static int run_abort(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    long long token = 0;
    struct filter *f;
    if (argc > 4) return RM_WrongArity(ctx);
    if (argc == 4 &&
        parse_whole(argv[3], 0, REBUILD_MOST_TOKEN, &token) != NUMBER)
        return RM_ReplyWithError(ctx, "ERR bad token: it is the number that "
                                      "BEGIN returned");
    if (!find_filter(ctx, argv[1], FOR_WRITING, &f)) return RM_OK;
    const struct rebuild *const r = f ? rebuild_of(f) : NULL;
    const bool ends = r && (argc == 3 || r->terms.token == (uint64_t)token);
    if (ends) end_rebuild(ctx, argv[1], f);
    return RM_ReplyWithLongLong(ctx, ends);
}

static int run_rebuild(RedisModuleCtx *ctx, RedisModuleString **argv,
                       int argc) {
    if (argc < 3) return RM_WrongArity(ctx);
    if (is_word(argv[2], "BEGIN")) return run_begin(ctx, argv, argc);
    if (is_word(argv[2], "ABORT")) return run_abort(ctx, argv, argc);
    if (is_word(argv[2], "OPEN")) return run_open(ctx, argv, argc);
    if (is_word(argv[2], "RECORD")) return run_record(ctx, argv, argc);
    return RM_ReplyWithError(ctx, "ERR unknown step; there are BEGIN and "
                                  "ABORT; BF.SWAP … REBUILD completes it");
}

/* ---- The command --------------------------------------------------------- */

#define WORD(text, word)                                                 \
    {                                                                    \
        .name = (text), .type = RM_ARG_PURE_TOKEN, .key_spec_index = -1, \
        .token = (word)                                                  \
    }

static RedisModuleCommandArg begin_args[] = {
    WORD("begin", "BEGIN"), OPTION(INTEGER, "TIMEOUT", "seconds"),
    OPTION(INTEGER, "MOST", "bytes"), END};

static RedisModuleCommandArg abort_args[] = {WORD("abort", "ABORT"),
                                             {.name = "token",
                                              .type = RM_ARG_INTEGER,
                                              .key_spec_index = -1,
                                              .flags = RM_ARG_OPTIONAL},
                                             END};

static RedisModuleCommandArg open_args[] = {
    WORD("open", "OPEN"),   VALUE(INTEGER, "token"), VALUE(UNIX_TIME, "until"),
    VALUE(INTEGER, "most"), VALUE(INTEGER, "lost"),  END};

static RedisModuleCommandArg record_args[] = {WORD("record", "RECORD"),
                                              {.name = "item",
                                               .type = RM_ARG_STRING,
                                               .key_spec_index = -1,
                                               .flags = RM_ARG_MULTIPLE},
                                              END};

#define STEP(text, words)                                           \
    {                                                               \
        .name = (text), .type = RM_ARG_BLOCK, .key_spec_index = -1, \
        .subargs = (words)                                          \
    }

static RedisModuleCommandArg rebuild_steps[] = {
    STEP("begin", begin_args), STEP("abort", abort_args),
    STEP("open", open_args), STEP("record", record_args), END};

static RedisModuleCommandArg rebuild_args[] = {KEY,
                                               {.name = "step",
                                                .type = RM_ARG_ONEOF,
                                                .key_spec_index = -1,
                                                .subargs = rebuild_steps},
                                               END};

const struct command bf_rebuild = {
    .name = "bf.rebuild",
    .run = run_rebuild,
    .flags = "write",
    .categories = "write bloom",
    .summary = "Records what is added to a Bloom filter while another is built "
               "to take its place.",
    .complexity = "O(1); O(n) for RECORD, with n items",
    .arity = -3,
    .key_specs = key_updated,
    .args = rebuild_args,
};
