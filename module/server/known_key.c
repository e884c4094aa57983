#include "server/known_key.h"

#include <string.h>

enum { NAME_MOST = 128 }; /* longer names are not known */

static struct {
    void *value; /* NULL: none is known */
    int db;
    size_t size;
    char name[NAME_MOST];
} known;

void known_key_set(RedisModuleCtx *ctx, RedisModuleString *name,
                   RedisModuleKey *key, void *value) {
    size_t size;
    const char *const text = RM_StringPtrLen(name, &size);
    known_key_forget();
    if (size > NAME_MOST || RM_GetAbsExpire(key) != RM_NO_EXPIRE) return;
    known.value = value;
    known.db = RM_GetSelectedDb(ctx);
    known.size = size;
    memcpy(known.name, text, size);
}

void *known_key_value(RedisModuleCtx *ctx, const RedisModuleString *name) {
    size_t size;
    if (!known.value) return NULL;
    const char *const text = RM_StringPtrLen(name, &size);
    return size == known.size && memcmp(text, known.name, size) == 0 &&
                   RM_GetSelectedDb(ctx) == known.db
               ? known.value
               : NULL;
}

void known_key_forget(void) {
    known.value = NULL;
}
