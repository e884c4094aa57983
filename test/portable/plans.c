/*
 * Prints what options come to: some plans in words, and digests of many. The
 * text is the same on every compiler and processor, or filters that were made
 * from the same options could not be merged: test/portable/compare looks.
 */
#include <stdio.h>
#include <stdlib.h>

#include "calyx.h"

static const double rates[] = {0.3,  0.1,  0.01, 0.003, 1e-3, 1e-4,
                               1e-5, 1e-6, 2e-7, 5e-8,  1e-8};
enum { RATES = sizeof rates / sizeof rates[0] };

static uint64_t mixed(uint64_t digest, uint64_t word) {
    digest = (digest ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return digest ^ digest >> 29;
}

/* All that decides whether two filters can be merged, and what files say. */
static uint64_t digest_of(const calyx_info *info, uint64_t digest) {
    union {
        double number;
        uint64_t word;
    } fpr = {info->fpr};
    digest = mixed(digest, info->bits);
    digest = mixed(digest, info->probes);
    digest = mixed(digest, info->capacity);
    return mixed(digest, fpr.word);
}

static void print_some(const char *kind) {
    for (uint64_t n = 1; n <= UINT64_C(100000000); n *= 100)
        for (int i = 0; i < RATES; i++) {
            const calyx_options want = {
                .kind = kind, .capacity = n, .fpr = rates[i]};
            calyx_info is;
            if (calyx_plan(&want, &is, NULL) != CALYX_OK) continue;
            printf("%s %llu %g: %llu bits, %u probes\n", kind,
                   (unsigned long long)n, rates[i], (unsigned long long)is.bits,
                   (unsigned)is.probes);
        }
}

static void print_digest(const char *kind, int times) {
    uint64_t by_rate = 0, by_bits = 0;
    double n = 3;
    for (int i = 0; i<times; i++, n = n * 1.37> 1e9 ? 3 + i % 7 : n * 1.37) {
        calyx_info info;
        calyx_options want = {.kind = kind,
                              .capacity = (uint64_t)n,
                              .fpr = rates[i % RATES] * (1 + i % 5 / 8.)};
        if (calyx_plan(&want, &info, NULL) == CALYX_OK)
            by_rate = digest_of(&info, by_rate);
        want.bits = 512 + (uint64_t)n * 11;
        want.capacity = 0;
        if (calyx_plan(&want, &info, NULL) == CALYX_OK)
            by_bits = digest_of(&info, by_bits);
    }
    printf("%s: %d plans from rates %016llx, from bits %016llx\n", kind, times,
           (unsigned long long)by_rate, (unsigned long long)by_bits);
}

/* The parts of a filter that grew. */
static void print_growth(const char *kind, double growth) {
    uint64_t digest = 0;
    calyx_filter *f;
    const calyx_options want = {.kind = kind,
                                .capacity = 100,
                                .fpr = 0.01,
                                .growth = growth,
                                .seeded = true};
    if (calyx_new(&want, &f, NULL) != CALYX_OK) return;
    for (uint64_t i = 0; i < 100000; i++) calyx_add_u64(f, i, NULL);
    calyx_part part;
    uint32_t parts = 0;
    for (; calyx_part_of(f, parts, &part); parts++) {
        const calyx_info like = {.bits = part.bits,
                                 .probes = part.probes,
                                 .capacity = part.capacity,
                                 .fpr = part.fpr};
        digest = digest_of(&like, digest);
    }
    printf("%s: grown by %g to %u parts %016llx\n", kind, growth,
           (unsigned)parts, (unsigned long long)digest);
    calyx_free(f);
}

int main(int n, char **words) {
    const int times = n > 1 ? atoi(words[1]) : 60;
    for (const char *const *kind = calyx_kinds(); *kind; kind++) {
        if (!(calyx_kind_can(*kind) & CALYX_CAN_MERGE)) continue;
        print_some(*kind);
        print_digest(*kind, times);
        print_growth(*kind, 1.3);
        print_growth(*kind, 2);
    }
    return 0;
}
