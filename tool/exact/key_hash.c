#include "exact/key_hash.h"

#include <stdlib.h>
#include <sys/random.h>

static uint64_t seed;
static bool poor_hash; /* for tests: only three different hashes */

calyx_options key_hash_options(unsigned level) {
    if (!seed) {
        if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
            fail_os("the system", "give random bytes");
        seed |= 1;
        poor_hash = getenv("CALYX_TEST_POOR_HASH") != NULL;
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
    if (!poor_hash) return;
    for (size_t i = 0; i < n; i++)
        hashes[i] = hashes[i] % 3 * UINT64_C(0x5555555555555555);
}
