/*
 * Makes filters of every kind and hash, fixed and grown, and prints digests of
 * their bytes and answers. The text is the same on every machine, and with
 * every kernel of it: that is checked here. Calls nothing but calyx.h, without
 * files, so that it runs wherever the amalgamation compiles.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calyx.h"

enum { KEYS = 3000, QUERIES = 6000 };

static const uint8_t secret[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                   8, 9, 10, 11, 12, 13, 14, 15};

static uint64_t digest_of(const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    uint64_t digest = size;
    for (size_t i = 0; i < size; i++) {
        digest = (digest ^ at[i]) * UINT64_C(0x9E3779B97F4A7C15);
        digest ^= digest >> 29;
    }
    return digest;
}

static void fail(const char *what, const calyx_options *want) {
    printf("%s: %s %s, kernel %s, growth %g\n", what, want->kind, want->hash,
           want->kernel, want->growth);
    exit(1);
}

/* Text of 0 to 99 bytes. */
static size_t write_key(uint64_t number, char *text) {
    const size_t size = (size_t)(number % 100);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)(number * 31 + i * i * 7 + (number >> i % 8));
    return size;
}

/* Single and many, bytes and numbers; removes some, if it can. */
static void fill(calyx_filter *f, const calyx_options *want) {
    static uint64_t numbers[KEYS];
    char text[128];
    calyx_info info;
    calyx_info_of(f, &info);
    for (uint64_t i = 0; i < KEYS; i++) numbers[i] = i * i;
    calyx_status status = calyx_add_many_u64(f, numbers, KEYS / 2, NULL, NULL);
    for (uint64_t i = KEYS / 2; i < KEYS && status == CALYX_OK; i++)
        status = i % 2 ? calyx_add(f, text, write_key(i, text), NULL)
                       : calyx_add_u64(f, numbers[i], NULL);
    if (status == CALYX_OK && info.can & CALYX_CAN_REMOVE)
        status = calyx_remove_many_u64(f, numbers, KEYS / 8, NULL, NULL);
    if (status != CALYX_OK) fail(calyx_status_text(status), want);
}

/* The same keys to a builder, for kinds that are made by one only. */
static calyx_filter *build(const calyx_options *want) {
    const calyx_builder_options how = {.filter = *want};
    static uint64_t numbers[KEYS];
    char text[128];
    calyx_builder *b;
    calyx_filter *f = NULL;
    calyx_error why;
    for (uint64_t i = 0; i < KEYS; i++) numbers[i] = i * i;
    if (calyx_builder_new(&how, &b, &why) != CALYX_OK) fail(why.text, want);
    calyx_status status =
        calyx_builder_add_many_u64(b, numbers, KEYS / 2, &why);
    for (uint64_t i = KEYS / 2; i < KEYS && status == CALYX_OK; i++)
        status = i % 2 ? calyx_builder_add(b, text, write_key(i, text), &why)
                       : calyx_builder_add_many_u64(b, &numbers[i], 1, &why);
    if (status == CALYX_OK) status = calyx_builder_finish(b, &f, &why);
    if (status != CALYX_OK) fail(why.text, want);
    calyx_builder_free(b);
    return f;
}

static calyx_filter *filled(const calyx_options *want) {
    if (calyx_kind_can(want->kind) & CALYX_CAN_STATIC) return build(want);
    calyx_filter *f;
    calyx_error why;
    if (calyx_new(want, &f, &why) != CALYX_OK) fail(why.text, want);
    fill(f, want);
    return f;
}

struct digests {
    uint64_t bytes, answers;
};

static struct digests make(const calyx_options *want) {
    static bool found[QUERIES];
    static uint64_t numbers[QUERIES];
    calyx_filter *const f = filled(want), *back;
    calyx_error why;
    for (uint64_t i = 0; i < QUERIES; i++) numbers[i] = i * i;
    const size_t total = calyx_has_many_u64(f, numbers, QUERIES, found);
    size_t singly = 0;
    for (int i = 0; i < QUERIES; i++) {
        singly += calyx_has_u64(f, numbers[i]);
        if (calyx_has_u64(f, numbers[i]) != found[i]) fail("batch", want);
    }
    if (singly != total) fail("total", want);

    const size_t size = (size_t)calyx_encoded_size(f);
    void *const bytes = malloc(size);
    if (!bytes || calyx_encode(f, bytes, size, &why) != CALYX_OK)
        fail("encode", want);
    const calyx_open_options how = {.key = want->key, .kernel = want->kernel};
    if (calyx_decode(bytes, size, &how, &back, &why) != CALYX_OK)
        fail(why.text, want);
    for (int i = 0; i < QUERIES; i++)
        if (calyx_has_u64(back, numbers[i]) != found[i]) fail("decode", want);
    const struct digests is = {digest_of(bytes, size),
                               digest_of(found, sizeof found)};
    free(bytes);
    calyx_free(back);
    calyx_free(f);
    return is;
}

static void compare_kernels(calyx_options want) {
    want.kernel = "scalar";
    const struct digests scalar = make(&want);
    for (const char *const *kernel = calyx_kernels(); *kernel; kernel++) {
        want.kernel = *kernel;
        const struct digests is = make(&want);
        if (is.bytes != scalar.bytes) fail("bytes", &want);
        if (is.answers != scalar.answers) fail("answers", &want);
        calyx_info alone, info;
        calyx_plan(&want, &alone, NULL);
        want.concurrent = true;
        /* A small table begins larger if threads share it. */
        if (calyx_plan(&want, &info, NULL) == CALYX_OK &&
            info.bytes == alone.bytes) {
            const struct digests shared = make(&want);
            if (shared.bytes != scalar.bytes) fail("concurrent bytes", &want);
        }
        want.concurrent = false;
    }
    printf("%s %s %g, fpr %g: bytes %016llx, answers %016llx\n", want.kind,
           want.hash, want.growth, want.fpr, (unsigned long long)scalar.bytes,
           (unsigned long long)scalar.answers);
}

int main(void) {
    const double rates[] = {0.2, 0.01, 1e-4, 1e-6};
    for (const char *const *kind = calyx_kinds(); *kind; kind++)
        for (const char *const *hash = calyx_hashes(); *hash; hash++)
            for (int i = 0; i < 4; i++) {
                if (hash != calyx_hashes() && i != 1) continue;
                calyx_options want = {.kind = *kind,
                                      .hash = *hash,
                                      .capacity = KEYS,
                                      .fpr = rates[i],
                                      .seeded = true};
                if (strcmp(*hash, "siphash") == 0) want.key = secret;
                compare_kernels(want);
                want.capacity = 100;
                want.growth = 2;
                calyx_info info;
                if (calyx_plan(&want, &info, NULL) == CALYX_OK)
                    compare_kernels(want);
            }
    return 0;
}
