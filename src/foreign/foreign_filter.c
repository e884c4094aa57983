#include "foreign/foreign_filter.h"

#include <math.h>
#include <string.h>

const struct foreign_layout *const foreign_layouts[] = {
    &foreign_redisbloom,
    &foreign_valkey_bloom,
    &foreign_guava,
    &foreign_spark,
    &foreign_bits_and_blooms,
    &foreign_dcso,
    &foreign_redisson,
    &foreign_bits,
    NULL,
};

const struct foreign_layout *foreign_layout_named(const char *name) {
    for (const struct foreign_layout *const *l = foreign_layouts; *l; l++)
        if (strcmp((*l)->name, name) == 0) return *l;
    return NULL;
}

calyx_status foreign_choose(const char *text, struct foreign_choice *choice,
                            calyx_error *why) {
    *choice = (struct foreign_choice){.layout = foreign_layout_named(text)};
    if (choice->layout) return CALYX_OK;
    choice->layout = &foreign_bits;
    return layout_line_parse(text, &choice->line, why);
}

const char *foreign_name(const struct foreign_choice *choice) {
    return choice->line.hash ? choice->line.text : choice->layout->name;
}

bool foreign_is_of(const struct foreign_filter *f,
                   const struct foreign_choice *choice) {
    return f->layout == choice->layout &&
           (!choice->line.hash ||
            strcmp(f->words.line.text, choice->line.text) == 0);
}

static struct foreign_filter empty_of(const struct foreign_choice *choice) {
    struct foreign_filter f = {.layout = choice->layout};
    if (choice->line.hash) f.words.line = choice->line;
    return f;
}

calyx_status foreign_make(const struct foreign_choice *choice,
                          uint64_t capacity, double rate,
                          struct foreign_filter *f, calyx_error *why) {
    *f = empty_of(choice);
    return f->layout->make(capacity, rate, f, why);
}

calyx_status foreign_read(const struct foreign_choice *choice, uint8_t *bytes,
                          size_t size, struct foreign_filter *f,
                          calyx_error *why) {
    *f = empty_of(choice);
    return f->layout->read(bytes, size, f, why);
}

calyx_status foreign_file_size(const struct foreign_choice *choice,
                               const uint8_t *head, size_t size, uint64_t *all,
                               calyx_error *why) {
    const struct foreign_filter f = empty_of(choice);
    return f.layout->file_size(head, size, &f, all, why);
}

uint64_t foreign_count_bits(const uint8_t *bytes, uint64_t size) {
    uint64_t set = 0, word;
    for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        set += (uint64_t)__builtin_popcountll(word);
    }
    for (; size > 0; size--) set += (uint64_t)__builtin_popcount(*bytes++);
    return set;
}

calyx_status foreign_size(uint64_t capacity, double rate, double most,
                          double *bits, calyx_error *why) {
    if (capacity < 1 || !(rate > 0 && rate < 1))
        return layout_fail(why, CALYX_BAD_ARGUMENT,
                           "a filter is for 1 key or more, at a rate above 0 "
                           "and below 1; not for %llu at %g",
                           (unsigned long long)capacity, rate);
    *bits = (double)capacity * -log(rate) / (M_LN2 * M_LN2);
    if (*bits <= most) return CALYX_OK;
    return layout_fail(why, CALYX_CANNOT,
                       "this layout has room for %g bits, and %llu keys at the "
                       "rate %g take %g",
                       most, (unsigned long long)capacity, rate, *bits);
}
