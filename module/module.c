/*
 * calyx.so: Bloom and cuckoo filters for Valkey and Redis, by the commands,
 * replies and data of RedisBloom and valkey-bloom. Start reading in command/.
 *
 *     command/   the commands: options, handlers, replies, replication
 *     whole/     commands over whole filters: merging, comparing, copying
 *     layout/    what a key holds: native filters, windows, RedisBloom's and
 *                valkey-bloom's
 *     cuckoo/    RedisBloom's cuckoo filters, as bytes
 *     server/    what is used of the server: API, memory, replies, steps
 *     type.c     the types of values
 *     settings.c the configuration
 *     module.c   loading; the INFO section
 */
#include "command/command.h"
#include "layout/rebuild.h"
#include "layout/window.h"
#include "server/allocator.h"
#include "server/steps.h"
#include "settings.h"
#include "type.h"

static void add_info(RedisModuleInfoCtx *ctx, int for_crash_report) {
    (void)for_crash_report;
    const struct module_totals totals = filter_totals(false);
    const struct module_totals cuckoo = filter_totals(true);
    const struct {
        const char *name;
        uint64_t value;
    } fields[] = {
        {"filters", totals.filters},
        {"filter_bytes", totals.bytes},
        {"items", totals.items},
        {"cuckoo_filters", cuckoo.filters},
        {"cuckoo_filter_bytes", cuckoo.bytes},
        {"cuckoo_items", cuckoo.items},
        {"lookups", stats.lookups},
        {"lookups_positive", stats.positives},
        {"items_added", stats.adds},
        {"items_new", stats.fresh},
        {"items_deleted", stats.deleted},
        {"memory_refusals", stats.refused},
        {"loads_refused", loads_refused},
        {"window_rotations", stats.rotations},
        {"steps", step_counts.steps},
        {"step_lines_most", step_counts.most_lines},
        {"guard_absent", stats.guarded[ABSENT]},
        {"guard_cached", stats.guarded[CACHED]},
        {"guard_maybe", stats.guarded[MAYBE]},
        {"guard_without_filter", stats.guarded_without_filter},
        {"rebuilds_open", rebuilds_open()},
    };
    if (RM_InfoAddSection(ctx, "calyx") != RM_OK) return;
    RM_InfoAddFieldCString(ctx, "version", calyx_version());
    RM_InfoAddFieldCString(ctx, "kernel", calyx_kernels()[0]);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        RM_InfoAddFieldULongLong(ctx, fields[i].name, fields[i].value);
}

static int load(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    const bool moves_slots = server_valkey_major(ctx) >= 9;
    RM_SetModuleOptions(ctx, RM_HANDLES_IO_ERRORS | RM_HANDLES_ASYNC_LOAD |
                                 RM_SIGNALS_MODIFIED_KEYS |
                                 (moves_slots ? RM_HANDLES_SLOT_MIGRATION : 0));
    if (type_register(ctx) != RM_OK || commands_register(ctx) != RM_OK ||
        RM_RegisterInfoFunc(ctx, add_info) != RM_OK)
        return RM_ERR;
    memory_start(ctx);
    rotation_start(ctx);
    return settings_load(ctx, argv, argc);
}

static const char NAME[] = "bf"; /* RedisBloom's */

CALYX_API int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv,
                                 int argc);

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv,
                       int argc) {
    /* Of RedisBloom 8.0.0: programs look here for which commands there are.
     * Our own version is in the INFO section. */
    enum { VERSION = 80000 };
    const char *missing = server_find(ctx);
    if (missing) {
        if (RM_Log)
            RM_Log(ctx, "warning",
                   "calyx needs Redis 7.0, Valkey 7.2, or later: this server "
                   "has no RedisModule_%s",
                   missing);
        return RM_ERR;
    }
    /* Loaded twice it would be one and the same code: what follows would take
     * the types away from the filters that are there. */
    if (RM_IsModuleNameBusy(NAME)) {
        RM_Log(ctx, "warning",
               "there is a module of the name %s already: "
               "calyx, or RedisBloom",
               NAME);
        return RM_ERR;
    }
    RM_SetModuleAttribs(ctx, NAME, VERSION, RM_API_VERSION);
    return load(ctx, argv, argc);
}
