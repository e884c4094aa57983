#include "command/early_prefetch.h"

#include <string.h>

#include "layout/layout.h"
#include "settings.h"

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
    if (RM_CommandFilterArgsCount(command) != WORDS) return;
    const char *const name =
        RM_StringPtrLen(RM_CommandFilterArgGet(command, COMMAND), &size);
    if (!looks_like_exists(name, size)) return;
    const char *const item =
        RM_StringPtrLen(RM_CommandFilterArgGet(command, ITEM), &size);
    filter_prefetch(item, size);
}

void early_prefetch_apply(RedisModuleCtx *ctx) {
    static RedisModuleCommandFilter *registered;
    if (settings.early_prefetch && !registered) {
        registered =
            RM_RegisterCommandFilter(ctx, prefetch_item, RM_FILTER_NOT_OWN);
    } else if (!settings.early_prefetch && registered) {
        RM_UnregisterCommandFilter(ctx, registered);
        registered = NULL;
    }
}
