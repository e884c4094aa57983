/* The keys: the same for every contestant, made so that no hash is flattered.
 */
#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "bench.h"

/* The finisher of SplitMix64, by Sebastiano Vigna. One to one, so that
 * different numbers stay different. */
uint64_t mixed(uint64_t i) {
    i = (i ^ i >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    i = (i ^ i >> 27) * UINT64_C(0x94D049BB133111EB);
    return i ^ i >> 31;
}

uint64_t member(uint64_t i) {
    return mixed(i + 1);
}

uint64_t absent_number(uint64_t i) {
    return mixed(i + (UINT64_C(1) << 62));
}

/* ---- URLs ---------------------------------------------------------------- */

enum { SHORTEST = 20, LONGEST = 64 };

/* Host, path and number, cut or stretched to a length of 20 to 64. The number
 * comes before anything that is cut, and makes every URL different. */
static size_t write_url(char *to, uint64_t i) {
    static const char *const hosts[] = {"www.example.com", "shop.example.net",
                                        "en.example.org", "cdn7.example.io"};
    static const char tail[] =
        "/articles/history-of-the-garden-rose.html?from=";
    const uint64_t dice = mixed(i);
    const size_t size = SHORTEST + dice % (LONGEST - SHORTEST + 1);
    char whole[160];
    snprintf(whole, sizeof whole, "http://%llx.%s%s", (unsigned long long)i,
             hosts[dice >> 32 & 3], tail);
    memcpy(to, whole, size);
    return size;
}

static char *text;
static calyx_key *members, *pools[3];

static void fill_pool(void) {
    const size_t most = (size_t)2 * POOL;
    text = malloc(most * LONGEST);
    members = malloc(POOL * sizeof *members);
    for (int i = 0; i < 3; i++) pools[i] = malloc(POOL * sizeof *members);
    if (!text || !members || !pools[0] || !pools[1] || !pools[2]) {
        fputs("calyx-bench: no memory for URLs\n", stderr);
        exit(1);
    }
    char *at = text;
    size_t mix = 0;
    for (size_t i = 0; i < most; i++) {
        const calyx_key url = {at, write_url(at, i + 0x10000000)};
        at += url.size;
        const bool absent = (mixed(i / 2) + i) & 1; /* one of each two */
        if (absent)
            pools[0][i / 2] = url;
        else
            members[i / 2] = pools[2][i / 2] = url;
        if ((mixed(i / 2 + most) + i) & 1) pools[1][mix++] = url;
    }
}

const calyx_key *url_pool(int present) {
    if (!text) fill_pool();
    return pools[present / 50];
}

const calyx_key *id_pool(void) {
    enum { SIZE = 32 };
    static calyx_key *ids;
    if (ids) return ids;
    char *at = malloc((size_t)POOL * SIZE + 1);
    ids = malloc(POOL * sizeof *ids);
    if (!at || !ids) {
        fputs("calyx-bench: no memory for ids\n", stderr);
        exit(1);
    }
    for (uint64_t i = 0; i < POOL; i++, at += SIZE) {
        snprintf(at, SIZE + 1, "%016llx%016llx", (unsigned long long)mixed(i),
                 (unsigned long long)mixed(i + POOL));
        ids[i] = (calyx_key){at, SIZE};
    }
    return ids;
}

const calyx_key *url_members(void) {
    if (!text) fill_pool();
    return members;
}
