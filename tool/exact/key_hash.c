#include "exact/key_hash.h"

#include <stdlib.h>
#include <sys/random.h>

static uint64_t seed;
static uint64_t
    hash_count; /* for tests: the number of different hashes; 0: any */

calyx_options key_hash_options(unsigned level) {
    if (!seed) {
        if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
            fail_os("the system", "give random bytes");
        seed |= 1;
        const char *const poor = getenv("CALYX_TEST_POOR_HASH");
        hash_count = poor ? strtoull(poor, NULL, 10) : 0;
    }
    return (calyx_options){.hash = "xxh3", .seed = seed + 2 * level};
}

calyx_filter *key_hasher(unsigned level) {
    calyx_options want = key_hash_options(level);
    want.capacity = 1; /* it only hashes */
    calyx_error why;
    calyx_filter *f;
    if (calyx_new(&want, &f, &why) != CALYX_OK) fail_with(&why);
    return f;
}

void hash_keys(const calyx_filter *hasher, const calyx_key *keys, size_t n,
               uint64_t *hashes) {
    calyx_hash_many(hasher, keys, n, hashes);
    if (!hash_count) return;
    for (size_t i = 0; i < n; i++)
        hashes[i] = hashes[i] % hash_count * UINT64_C(0x5555555555555555);
}
