#include "server/chunks.h"

#include <stdio.h>
#include <string.h>

uint8_t *head_of(const calyx_filter *f, size_t *size) {
    calyx_info info;
    calyx_error why;
    const size_t inner = calyx_head_size(f);
    uint8_t *const head = alloc_memory(DUMP_PREFIX_BYTES + inner);
    calyx_info_of(f, &info);
    dump_put_prefix(
        head, &(struct dump_prefix){.expansion = dump_expansion(info.growth)});
    if (calyx_encode_head(f, head + DUMP_PREFIX_BYTES, inner, &why) != CALYX_OK)
        fail_with(&why);
    *size = DUMP_PREFIX_BYTES + inner;
    return head;
}

bool are_heads_of_one(const uint8_t *a, size_t size_a, const uint8_t *b,
                      size_t size_b) {
    return size_a == size_b && size_a >= DUMP_PREFIX_BYTES &&
           memcmp(a + DUMP_PREFIX_BYTES, b + DUMP_PREFIX_BYTES,
                  size_a - DUMP_PREFIX_BYTES) == 0;
}

calyx_status filter_of_head(const uint8_t *head, size_t size,
                            calyx_filter **out, calyx_error *why) {
    struct dump_prefix prefix;
    if (dump_get_prefix(head, size, &prefix))
        return calyx_decode_head(head + DUMP_PREFIX_BYTES,
                                 size - DUMP_PREFIX_BYTES, NULL, out, why);
    why->status = CALYX_DAMAGED;
    snprintf(why->text, sizeof why->text,
             "the bytes are not the head of a filter");
    return CALYX_DAMAGED;
}
