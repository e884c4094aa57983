/* Memory of a layout: by the hooks of calyx.h, or malloc's. */
#ifndef CALYX_FOREIGN_LAYOUT_MEMORY_H
#define CALYX_FOREIGN_LAYOUT_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "foreign/layout_error.h"

static inline void *layout_calloc(void *context, size_t size,
                                  size_t alignment) {
    (void)context, (void)alignment;
    return calloc(1, size);
}

static inline void layout_free(void *context, void *block, size_t size) {
    (void)context, (void)size;
    free(block);
}

static const calyx_memory layout_malloc = {layout_calloc, layout_free, NULL};

/* Zeros; NULL if there is no memory. */
static inline void *layout_allocate(const calyx_memory *memory, uint64_t size,
                                    calyx_error *why) {
    enum { ALIGNMENT = 16 }; /* the alignment of malloc; a body needs no more */
    void *const block =
        size <= SIZE_MAX
            ? memory->allocate(memory->context, (size_t)size, ALIGNMENT)
            : NULL;
    if (!block)
        layout_explain(why, CALYX_NO_MEMORY, "there is no memory of %llu bytes",
                       (unsigned long long)size);
    return block;
}

/* An array of `used` elements with room for one more; NULL if there is no
 * memory. */
static inline void *layout_more_room(const calyx_memory *memory, void *array,
                                     uint32_t used, uint32_t *room, size_t size,
                                     calyx_error *why) {
    if (used < *room) return array;
    const uint32_t more = *room ? 2 * *room : 1;
    void *const larger = layout_allocate(memory, more * size, why);
    if (!larger) return NULL;
    if (*room) {
        memcpy(larger, array, used * size);
        memory->release(memory->context, array, *room * size);
    }
    *room = more;
    return larger;
}

#endif
