#include "command/early_prefetch.h"

#include <string.h>

#include "settings.h"

static RedisModuleCommandFilter *registered; /* NULL: it is off */

/* Since the last check: commands that were read while it was on, and lookups in
 * large filters. */
static struct { uint64_t commands, lookups; } seen;

/* Is this BF.EXISTS, in any case? All commands come here, so 8 bytes are
 * compared at once. Others that pass do no harm. */
static bool looks_like_exists(const char *name, size_t size) {
    static const char wanted[] = "bf.exists";
    uint64_t bytes, same;
    if (size != sizeof wanted - 1) return false;
    memcpy(&bytes, name, sizeof bytes);
    memcpy(&same, wanted, sizeof same);
    return (bytes | UINT64_C(0x2020202020202020)) == same;
}

/* Of BF.EXISTS alone: BF.ADD waits less for memory, and got 8 % slower. */
static void prefetch_item(RedisModuleCommandFilterCtx *command) {
    enum { COMMAND, KEY, ITEM, WORDS };
    size_t size;
    seen.commands++;
    if (RM_CommandFilterArgsCount(command) != WORDS) return;
    const char *const name =
        RM_StringPtrLen(RM_CommandFilterArgGet(command, COMMAND), &size);
    if (!looks_like_exists(name, size)) return;
    const char *const item =
        RM_StringPtrLen(RM_CommandFilterArgGet(command, ITEM), &size);
    filter_prefetch(item, size);
}

static void begin(RedisModuleCtx *ctx) {
    if (!registered)
        registered =
            RM_RegisterCommandFilter(ctx, prefetch_item, RM_FILTER_NOT_OWN);
}

static void end(RedisModuleCtx *ctx) {
    if (registered) RM_UnregisterCommandFilter(ctx, registered);
    registered = NULL;
}

bool early_prefetch_is_on(void) {
    return registered != NULL;
}

/* ---- By what the server does --------------------------------------------- */

static bool is_checked; /* a timer is set */

static void check(RedisModuleCtx *ctx, void *unused);

static void check_in_a_second(RedisModuleCtx *ctx) {
    seen.commands = seen.lookups = 0;
    if (!is_checked) RM_CreateTimer(ctx, 1000, check, NULL);
    is_checked = true;
}

/* While it is on: are most commands lookups? */
static void check(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    is_checked = false;
    if (settings.early_prefetch != EARLY_AUTO || !registered) return;
    if (2 * seen.lookups > seen.commands)
        check_in_a_second(ctx);
    else
        end(ctx);
}

static uint64_t commands_of_server(RedisModuleCtx *ctx) {
    int failed = 0;
    RedisModuleServerInfoData *const info = RM_GetServerInfo(ctx, "stats");
    if (!info) return 0;
    const uint64_t n = RM_ServerInfoGetFieldUnsigned(
        info, "total_commands_processed", &failed);
    RM_FreeServerInfo(ctx, info);
    return failed ? 0 : n;
}

/* Only filters that are hardly in a cache near the processor count. To get the
 * server's figures takes 20 us, so not often. */
void early_prefetch_count(RedisModuleCtx *ctx, const struct filter *f) {
    enum { FAR = 4 << 20, LOOKUPS = 1 << 14 };
    static uint64_t lookups, commands_before;
    if (settings.early_prefetch != EARLY_AUTO || filter_bytes(f) < FAR) return;
    seen.lookups++;
    if (registered || ++lookups < LOOKUPS) return;
    const uint64_t commands = commands_of_server(ctx);
    const bool are_most = commands - commands_before < 2 * lookups;
    lookups = 0;
    commands_before = commands;
    if (!are_most) return;
    begin(ctx);
    check_in_a_second(ctx);
}

/* ---- By the setting ------------------------------------------------------ */

void early_prefetch_apply(RedisModuleCtx *ctx) {
    if (settings.early_prefetch == EARLY_YES)
        begin(ctx);
    else if (settings.early_prefetch == EARLY_NO || !is_checked)
        end(ctx);
}
