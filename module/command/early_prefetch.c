#include "command/early_prefetch.h"

#include <strings.h>

#include "layout/layout.h"
#include "settings.h"

/* Commands of one item: BF.ADD key item, BF.EXISTS key item. What other
 * commands of this form have there is prefetched in vain. */
static void prefetch_item(RedisModuleCommandFilterCtx *command) {
    enum { COMMAND, KEY, ITEM, WORDS };
    static const char prefix[] = "bf.";
    const size_t length = sizeof prefix - 1;
    size_t size;
    if (RM_CommandFilterArgsCount(command) != WORDS) return;
    const char *const name =
        RM_StringPtrLen(RM_CommandFilterArgGet(command, COMMAND), &size);
    if (size < length || strncasecmp(name, prefix, length) != 0) return;
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
