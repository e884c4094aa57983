#include "command/early_prefetch.h"

#include <strings.h>

#include "layout/layout.h"
#include "settings.h"

/* Of BF.EXISTS alone: BF.ADD waits less for memory, and got 8 % slower. */
static void prefetch_item(RedisModuleCommandFilterCtx *command) {
    enum { COMMAND, KEY, ITEM, WORDS };
    static const char wanted[] = "bf.exists";
    const size_t length = sizeof wanted - 1;
    size_t size;
    if (RM_CommandFilterArgsCount(command) != WORDS) return;
    const char *const name =
        RM_StringPtrLen(RM_CommandFilterArgGet(command, COMMAND), &size);
    if (size != length || strncasecmp(name, wanted, length) != 0) return;
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
