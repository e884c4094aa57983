/* BF.CLEAR: an empty filter takes the place of the full one, which another
 * thread frees. */
#include "command/command.h"
#include "command/open_key.h"
#include "command/replicate.h"
#include "server/allocator.h"
#include "server/prefault.h"
#include "server/reply.h"

static int clear_filter(RedisModuleCtx *ctx, RedisModuleString *name,
                        struct filter *f, long long expires) {
    calyx_error why = {.text = ""};
    const uint64_t begun = prefault_last();
    struct memory_request request;
    memory_begin(&request, ctx, 0);
    const calyx_status status = filter_clear(f, &why);
    memory_end(&why);
    if (status != CALYX_OK) {
        stats.refused += status == CALYX_NO_MEMORY;
        return reply_not_made(ctx, status, &why);
    }
    if (f->layout->is_foreign)
        replicate_clear_plainly(ctx, name, f, expires);
    else
        RM_ReplicateVerbatim(ctx);
    note_change(ctx, name, "bloom.clear");
    return reply_ok_when_prefaulted(ctx, begun);
}

static int run_clear(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (argc != 2) return RM_WrongArity(ctx);
    struct filter *f;
    RedisModuleKey *key =
        open_filter(ctx, argv[1], MUST_EXIST | MUST_BE_COMPLETE, &f);
    if (!key) return RM_OK;
    const long long expires = RM_GetAbsExpire(key);
    RM_CloseKey(key); /* a listener of the event may delete it */
    return clear_filter(ctx, argv[1], f, expires);
}

const struct command bf_clear = {
    .name = "bf.clear",
    .run = run_clear,
    .flags = "write",
    .categories = "write bloom",
    .summary = "Empties a Bloom filter, which keeps its parameters.",
    .complexity = "O(1); the old contents are freed in the background",
    .arity = 2,
    .key_specs = key_updated,
    .args = key_args,
};
