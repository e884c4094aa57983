/* BF.DUMP, BF.RESTORE: move a native filter in chunks with checksums; see
 * layout/transfer.h. */
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "command/open_key.h"
#include "command/options.h"
#include "layout/transfer.h"
#include "server/allocator.h"
#include "server/reply.h"

/* ---- Sums in words ------------------------------------------------------- */

static bool read_sum(RedisModuleString *word, uint64_t *sum) {
    size_t size;
    const char *text = RM_StringPtrLen(word, &size);
    return dump_read_sum(text, size, sum);
}

static int reply_bad_sum(RedisModuleCtx *ctx) {
    return RM_ReplyWithError(
        ctx, "ERR expected a checksum of 16 hexadecimal digits");
}

static int refuse(RedisModuleCtx *ctx, const char *what, uint64_t promised,
                  uint64_t found) {
    loads_refused++;
    return reply_text(
        ctx, "ERR %s is damaged: its checksum should be %s, and is %s", what,
        dump_sum_text(promised).text, dump_sum_text(found).text);
}

/* ---- BF.DUMP ------------------------------------------------------------- */

/*
 * A cursor is LIFE.NUMBER.SUM: which filter in which state, the number of the
 * next chunk, and the sum of those before. So the server stores nothing about a
 * dump, and detects that the filter was replaced or emptied in between.
 */
struct cursor {
    uint64_t identity, number, sum;
};

/* Changes whenever an older dump becomes invalid (see native.c), and with
 * growth, since the head has the number of chunks. */
static uint64_t identity_of(const struct filter *f) {
    calyx_room room;
    calyx_info info;
    const calyx_filter *const native = native_of(f, &room);
    calyx_info_of(native, &info);
    uint64_t identity =
        dump_sum_with(filter_identity(f), extra_of(f)->rewrites);
    identity = dump_sum_with(identity, info.moves);
    return dump_sum_with(identity, info.parts);
}

static void write_cursor(const struct cursor *at, char *text, size_t room) {
    snprintf(text, room, "%s.%llu.%s", dump_sum_text(at->identity).text,
             (unsigned long long)at->number, dump_sum_text(at->sum).text);
}

static bool read_cursor(RedisModuleString *word, struct cursor *at) {
    enum { MOST = 2 * DUMP_DIGITS + 2 + 20 };
    size_t size;
    const char *given = RM_StringPtrLen(word, &size);
    char text[MOST + 1], again[MOST + 1];
    if (size > MOST || size < 2 * DUMP_DIGITS + 3) return false;
    memcpy(text, given, size);
    text[size] = '\0';
    unsigned long long number;
    if (!dump_read_sum(text, DUMP_DIGITS, &at->identity) ||
        sscanf(text + DUMP_DIGITS, ".%llu", &number) != 1 ||
        !dump_read_sum(text + size - DUMP_DIGITS, DUMP_DIGITS, &at->sum))
        return false;
    at->number = number;
    write_cursor(at, again, sizeof again);
    return strcmp(text, again) == 0;
}

static int reply_chunk(RedisModuleCtx *ctx, const char *cursor, uint64_t sum,
                       const void *bytes, size_t size) {
    RM_ReplyWithArray(ctx, 3);
    RM_ReplyWithStringBuffer(ctx, cursor, strlen(cursor));
    RM_ReplyWithStringBuffer(ctx, dump_sum_text(sum).text, DUMP_DIGITS);
    return RM_ReplyWithStringBuffer(ctx, bytes, size);
}

static void dump_head(RedisModuleCtx *ctx, const struct filter *f) {
    char cursor[64];
    const struct piece head = f->layout->dump_head(f);
    write_cursor(&(struct cursor){.identity = identity_of(f)}, cursor,
                 sizeof cursor);
    reply_chunk(ctx, cursor, dump_sum(head.bytes, head.size), head.bytes,
                head.size);
    RM_Free(head.owned);
}

static void dump_chunk(RedisModuleCtx *ctx, const struct filter *f,
                       struct cursor at) {
    char cursor[64];
    const struct chunk chunk = read_chunk(f, at.number);
    at.number++;
    at.sum = dump_sum_with(at.sum, chunk.sum);
    write_cursor(&at, cursor, sizeof cursor);
    reply_chunk(ctx, cursor, chunk.sum, chunk.bytes, chunk.size);
    RM_Free(chunk.bytes);
}

static void dump(RedisModuleCtx *ctx, const struct filter *f,
                 RedisModuleString *word) {
    struct cursor at;
    if (f->layout != &native_layout)
        RM_ReplyWithError(ctx, "ERR only native filters are dumped so; "
                               "BF.SCANDUMP dumps this one");
    else if (filter_is_partial(f))
        reply_partial(ctx, f);
    else if (is_word(word, "0"))
        dump_head(ctx, f);
    else if (!read_cursor(word, &at))
        RM_ReplyWithError(ctx,
                          "ERR the cursor must be 0, or the cursor of the last "
                          "reply");
    else if (at.identity != identity_of(f))
        RM_ReplyWithError(ctx, "ERR the filter is not the one that was being "
                               "dumped, or not as it was; begin again with "
                               "cursor 0");
    else if (at.number < dump_chunks(filter_bytes(f)))
        dump_chunk(ctx, f, at);
    else
        reply_chunk(ctx, "0", at.sum, "", 0);
}

static int run_dump(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 3) return RM_WrongArity(ctx);
    struct filter *f;
    if (find_filter(ctx, argv[1], MUST_EXIST, &f)) dump(ctx, f, argv[2]);
    return RM_OK;
}

/* ---- BF.RESTORE ---------------------------------------------------------- */

static int reply_status(RedisModuleCtx *ctx, const struct filter *f) {
    RM_ReplyWithArray(ctx, 3);
    RM_ReplyWithLongLong(ctx, (long long)chunks_here(f));
    RM_ReplyWithLongLong(ctx, (long long)dump_chunks(f->bytes));
    return RM_ReplyWithStringBuffer(
        ctx, dump_sum_text(extra_of(f)->loaded_sum).text, DUMP_DIGITS);
}

static bool has_head(const struct filter *f, const char *bytes, size_t size) {
    const struct piece head = f->layout->dump_head(f);
    const bool same = head.size == size && memcmp(head.bytes, bytes, size) == 0;
    RM_Free(head.owned);
    return same;
}

static int begin(RedisModuleCtx *ctx, RedisModuleString **argv,
                 RedisModuleKey *key, struct filter *f) {
    uint64_t promised;
    size_t size;
    const char *bytes = RM_StringPtrLen(argv[4], &size);
    if (!read_sum(argv[3], &promised)) return reply_bad_sum(ctx);
    if (dump_sum(bytes, size) != promised)
        return refuse(ctx, "the head", promised, dump_sum(bytes, size));
    if (f && !f->uncommitted) return RM_ReplyWithError(ctx, "ERR item exists");
    if (f && !has_head(f, bytes, size))
        return RM_ReplyWithError(ctx, "ERR another filter is being loaded "
                                      "under this key; delete it, or wait");
    if (f) return reply_status(ctx, f);
    if (!native_layout.is_head(bytes, size)) {
        loads_refused++;
        return RM_ReplyWithError(
            ctx, "ERR received bad data: the bytes are not the head of a "
                 "native filter");
    }
    f = create_from_head(ctx, key, BLOOM, bytes, size, MEMORY_IN_STEPS);
    if (!f) return RM_OK;
    f->uncommitted = true;
    RM_ReplicateVerbatim(ctx);
    RM_SignalModifiedKey(ctx, argv[1]);
    return reply_status(ctx, f);
}

/* A chunk that came before, as after a broken connection. */
static int repeat_chunk(RedisModuleCtx *ctx, const struct filter *f,
                        uint64_t number, uint64_t sum) {
    const struct chunk here = read_chunk(f, number);
    RM_Free(here.bytes);
    if (here.sum == sum)
        return RM_ReplyWithLongLong(ctx, (long long)chunks_here(f));
    loads_refused++;
    return reply_text(ctx,
                      "ERR chunk %llu is here already, and differs: its "
                      "checksum is %s, not %s",
                      (unsigned long long)number, dump_sum_text(here.sum).text,
                      dump_sum_text(sum).text);
}

static int load_next(RedisModuleCtx *ctx, RedisModuleString *name,
                     struct filter *f, const char *bytes, size_t size,
                     uint64_t sum) {
    if (calyx_put_bits(f->native, f->arrived, bytes, size) != CALYX_OK) {
        loads_refused++;
        return RM_ReplyWithError(ctx, "ERR received bad data: bits after the "
                                      "last");
    }
    f->arrived += size;
    extra_for(f)->loaded_sum = dump_sum_with(extra_of(f)->loaded_sum, sum);
    RM_ReplicateVerbatim(ctx);
    RM_SignalModifiedKey(ctx, name);
    return RM_ReplyWithLongLong(ctx, (long long)chunks_here(f));
}

static int load_chunk(RedisModuleCtx *ctx, RedisModuleString **argv,
                      struct filter *f) {
    long long given;
    uint64_t promised;
    size_t size;
    const char *bytes = RM_StringPtrLen(argv[5], &size);
    if (parse_whole(argv[3], 0, INT64_MAX, &given) != NUMBER)
        return RM_ReplyWithError(ctx, "ERR the number of the chunk must be 0 "
                                      "or more");
    if (!read_sum(argv[4], &promised)) return reply_bad_sum(ctx);

    const uint64_t number = (uint64_t)given, all = dump_chunks(f->bytes);
    if (number >= all)
        return reply_text(ctx,
                          "ERR there is no chunk %lld: the filter has "
                          "%llu, from 0 on",
                          given, (unsigned long long)all);
    if (size != dump_chunk_size(filter_bytes(f), number))
        return reply_text(ctx, "ERR chunk %lld has %zu bytes; it must have %zu",
                          given, size,
                          dump_chunk_size(filter_bytes(f), number));
    const uint64_t sum = dump_sum(bytes, size);
    if (sum != promised) return refuse(ctx, "the chunk", promised, sum);
    if (number < chunks_here(f)) return repeat_chunk(ctx, f, number, sum);
    if (number > chunks_here(f))
        return reply_text(ctx, "ERR the next chunk must be %llu, not %lld",
                          (unsigned long long)chunks_here(f), given);
    return load_next(ctx, argv[1], f, bytes, size, sum);
}

static int commit(RedisModuleCtx *ctx, RedisModuleString **argv,
                  struct filter *f) {
    uint64_t promised;
    if (!read_sum(argv[3], &promised)) return reply_bad_sum(ctx);
    if (filter_is_partial(f) && f->arrived < f->bytes)
        return reply_text(ctx,
                          "ERR %llu of %llu chunks are here; all are "
                          "wanted before the commit",
                          (unsigned long long)chunks_here(f),
                          (unsigned long long)dump_chunks(f->bytes));
    if (promised != extra_of(f)->loaded_sum)
        return refuse(ctx, "the filter", promised, extra_of(f)->loaded_sum);
    if (f->uncommitted) { /* else it is a repetition */
        f->uncommitted = false;
        filter_compact(f);
        RM_ReplicateVerbatim(ctx);
        note_change(ctx, argv[1], "bloom.load");
    }
    return RM_ReplyWithSimpleString(ctx, "OK");
}

enum step { BEGIN, TAKE, COMMIT, STATUS, STEPS };
static const struct {
    const char *word;
    int argc;
} steps[STEPS] = {{"BEGIN", 5}, {"CHUNK", 6}, {"COMMIT", 4}, {"STATUS", 3}};

static int load(RedisModuleCtx *ctx, enum step step, RedisModuleString **argv,
                RedisModuleKey *key) {
    struct filter *f = NULL;
    const enum key_type type = type_of(key, &f);
    if (type == KEY_OTHER) return reply_wrong_type(ctx);
    if (f && filter_is_partial(f) && !f->uncommitted)
        return reply_partial(ctx, f); /* BF.LOADCHUNK's */
    if (step == BEGIN) return begin(ctx, argv, key, f);
    if (type == KEY_MISSING) return reply_not_found(ctx);
    if (step == COMMIT && (f->uncommitted || extra_of(f)->loaded_sum))
        return commit(ctx, argv, f);
    if (!f->uncommitted)
        return RM_ReplyWithError(ctx, "ERR the filter is complete, and not "
                                      "being loaded");
    return step == TAKE ? load_chunk(ctx, argv, f) : reply_status(ctx, f);
}

static int run_restore(RedisModuleCtx *ctx, RedisModuleString **argv,
                       int argc) {
    int step = 0;
    if (argc < 3) return RM_WrongArity(ctx);
    while (step < STEPS && !is_word(argv[2], steps[step].word)) step++;
    if (step == STEPS)
        return RM_ReplyWithError(ctx, "ERR unknown step; there are BEGIN, "
                                      "CHUNK, COMMIT and STATUS");
    if (argc != steps[step].argc) return RM_WrongArity(ctx);
    RedisModuleKey *key = RM_OpenKey(ctx, argv[1], RM_READ | RM_WRITE);
    load(ctx, (enum step)step, argv, key);
    RM_CloseKey(key);
    return RM_OK;
}

/* ---- The commands -------------------------------------------------------- */

static RedisModuleCommandArg dump_args[] = {KEY, VALUE(STRING, "cursor"), END};

static RedisModuleCommandArg begin_args[] = {VALUE(STRING, "checksum"),
                                             VALUE(STRING, "head"), END};

static RedisModuleCommandArg chunk_args[] = {VALUE(INTEGER, "number"),
                                             VALUE(STRING, "checksum"),
                                             VALUE(STRING, "bits"), END};

#define STEP(word, text, arguments)                                 \
    {                                                               \
        .name = (text), .type = RM_ARG_BLOCK, .key_spec_index = -1, \
        .token = (word), .subargs = (arguments)                     \
    }

static RedisModuleCommandArg load_steps[] = {STEP("BEGIN", "begin", begin_args),
                                             STEP("CHUNK", "chunk", chunk_args),
                                             {.name = "checksum",
                                              .type = RM_ARG_STRING,
                                              .key_spec_index = -1,
                                              .token = "COMMIT"},
                                             {.name = "status",
                                              .type = RM_ARG_PURE_TOKEN,
                                              .key_spec_index = -1,
                                              .token = "STATUS"},
                                             END};

static RedisModuleCommandArg load_args[] = {KEY,
                                            {.name = "step",
                                             .type = RM_ARG_ONEOF,
                                             .key_spec_index = -1,
                                             .subargs = load_steps},
                                            END};

const struct command bf_dump = {
    .name = "bf.dump",
    .run = run_dump,
    .flags = "readonly",
    .categories = "read bloom",
    .summary = "Returns the next chunk of a native filter, with a checksum.",
    .complexity = "O(1): at most 1 MiB",
    .tips = "dont_cache",
    .arity = 3,
    .key_specs = key_read,
    .args = dump_args,
};

const struct command bf_restore = {
    .name = "bf.restore",
    .run = run_restore,
    .flags = "write deny-oom",
    .categories = "write bloom",
    .summary = "Loads a native filter chunk by chunk, and then commits it.",
    .complexity = "O(1): at most 1 MiB",
    .arity = -3,
    .key_specs = key_read_and_updated,
    .args = load_args,
};
