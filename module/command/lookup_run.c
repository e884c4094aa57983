#include "command/lookup_run.h"

#include <string.h>

#include "command/open_key.h"
#include "server/known_key.h"
#include "settings.h"

static RedisModuleCommandFilter *registered; /* NULL: runs are not watched */

/* The item of the BF.EXISTS that the server has just shown; NULL after another
 * command. Only compared: a BF.EXISTS that is run without being shown has
 * another item. */
static const RedisModuleString *shown;

/* Since the last check: commands that were shown, and lookups that gained. */
static struct { uint64_t commands, lookups; } seen;

/* ---- What the server shows ----------------------------------------------- */

/* Is this BF.EXISTS, in any case? All commands come here, so 8 bytes are
 * compared at once. */
static bool looks_like_exists(const char *name, size_t size) {
    static const char wanted[] = "bf.exists";
    uint64_t bytes, same;
    if (size != sizeof wanted - 1) return false;
    memcpy(&bytes, name, sizeof bytes);
    memcpy(&same, wanted, sizeof same);
    return (bytes | UINT64_C(0x2020202020202020)) == same &&
           (name[8] | 0x20) == wanted[8];
}

/* BF.EXISTS alone is prefetched: BF.ADD waits less, and got 8 % slower. */
static void see_command(RedisModuleCommandFilterCtx *command) {
    enum { COMMAND, KEY, ITEM, WORDS };
    size_t size;
    seen.commands++;
    if (RM_CommandFilterArgsCount(command) == WORDS) {
        const char *const name =
            RM_StringPtrLen(RM_CommandFilterArgGet(command, COMMAND), &size);
        if (looks_like_exists(name, size)) {
            shown = RM_CommandFilterArgGet(command, ITEM);
            const char *const item = RM_StringPtrLen(shown, &size);
            filter_prefetch(item, size);
            return;
        }
    }
    shown = NULL;
    known_key_forget();
}

static void see_event(RedisModuleCtx *ctx, RedisModuleEvent event, uint64_t sub,
                      void *data) {
    (void)ctx, (void)event, (void)sub, (void)data;
    known_key_forget();
}

static const uint64_t events[] = {RM_EVENT_FLUSH, RM_EVENT_SWAP,
                                  RM_EVENT_ASYNC_LOAD, RM_EVENT_LOOP};
enum { EVENTS = sizeof events / sizeof *events };

/* NULL: no longer. Never that first: the server would call it. */
static bool subscribe(RedisModuleCtx *ctx, server_event_function *function) {
    bool done = true;
    for (int i = 0; i < EVENTS; i++)
        done &= RM_SubscribeToServerEvent(ctx, (RedisModuleEvent){events[i], 1},
                                          function) == RM_OK;
    return done;
}

static void begin(RedisModuleCtx *ctx) {
    if (registered) return;
    shown = NULL;
    if (subscribe(ctx, see_event))
        registered =
            RM_RegisterCommandFilter(ctx, see_command, RM_FILTER_NOT_OWN);
    if (!registered) subscribe(ctx, NULL);
}

static void end(RedisModuleCtx *ctx) {
    if (!registered) return;
    RM_UnregisterCommandFilter(ctx, registered);
    subscribe(ctx, NULL);
    registered = NULL;
    shown = NULL;
    known_key_forget();
}

bool runs_are_watched(void) {
    return registered != NULL;
}

/* ---- By what the server does --------------------------------------------- */

static bool is_checked; /* a timer is set */

/* Lookups in runs before watching is tried: twice as many after each try that
 * gained nothing, as with clients that send one command at a time. */
enum { FIRST_TRY = 1 << 14, LATE_TRY = 1 << 22 };
static uint64_t lookups_to_try = FIRST_TRY;

static void check(RedisModuleCtx *ctx, void *unused);

static void check_in_a_second(RedisModuleCtx *ctx) {
    seen.commands = seen.lookups = 0;
    if (!is_checked) RM_CreateTimer(ctx, 1000, check, NULL);
    is_checked = true;
}

/* While they are watched: are most commands lookups that gain? */
static void check(RedisModuleCtx *ctx, void *unused) {
    (void)unused;
    is_checked = false;
    if (settings.lookup_runs != RUNS_AUTO || !registered) return;
    if (2 * seen.lookups > seen.commands) {
        lookups_to_try = FIRST_TRY;
        check_in_a_second(ctx);
        return;
    }
    end(ctx);
    if (lookups_to_try < LATE_TRY) lookups_to_try *= 2;
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

/* A lookup in a run while they are not watched: perhaps begin. To get the
 * server's figures takes 20 us, so not often. */
static void count_lookup(RedisModuleCtx *ctx) {
    static uint64_t lookups, commands_before;
    if (settings.lookup_runs != RUNS_AUTO || ++lookups < lookups_to_try) return;
    const uint64_t commands = commands_of_server(ctx);
    const bool are_most = commands - commands_before < 2 * lookups;
    lookups = 0;
    commands_before = commands;
    if (!are_most) return;
    begin(ctx);
    check_in_a_second(ctx);
}

/* ---- By the setting ------------------------------------------------------ */

void runs_apply(RedisModuleCtx *ctx) {
    if (settings.lookup_runs == RUNS_YES)
        begin(ctx);
    else if (settings.lookup_runs == RUNS_NO || !is_checked)
        end(ctx);
}

/* ---- Lookups ------------------------------------------------------------- */

/* A transaction, a script or another module may change the key afterwards, by
 * what is not shown. */
static bool can_be_known(RedisModuleCtx *ctx) {
    return !(RM_GetContextFlags(ctx) & RM_CTX_DENY_BLOCKING);
}

/* The first of a run, or not in a run that is watched. */
static bool open_and_look_up(RedisModuleCtx *ctx, RedisModuleString *name,
                             const char *item, size_t size, bool was_shown,
                             bool *found) {
    enum { FAR = 4 << 20 }; /* bytes: hardly in a near cache */
    struct filter *f;
    if (!was_shown) filter_prefetch(item, size);
    const unsigned known = was_shown && can_be_known(ctx) ? WILL_BE_KNOWN : 0;
    if (!find_filter(ctx, name, MUST_BE_COMPLETE | known, &f)) return false;
    const bool is_same = f && filter_prefetch_next(f);
    *found = f && f->layout->has(f, item, size);
    if (registered)
        seen.lookups += is_same && filter_bytes(f) >= FAR; /* by prefetching */
    else if (is_same)
        count_lookup(ctx);
    return true;
}

bool run_look_up(RedisModuleCtx *ctx, RedisModuleString *name,
                 RedisModuleString *item, bool *found) {
    size_t size;
    const char *const text = RM_StringPtrLen(item, &size);
    const bool was_shown = item == shown;
    shown = NULL;
    const struct filter *const f =
        was_shown ? known_key_value(ctx, name) : NULL;
    if (!f) return open_and_look_up(ctx, name, text, size, was_shown, found);
    seen.lookups++;
    *found = f->layout->has(f, text, size);
    return true;
}
