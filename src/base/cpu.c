#include "base/cpu.h"

#include <calyx/calyx.h>
#include <string.h>

/* Best first, so that a processor's list is the tail that it can run. */
static const char *const names[] = {
#if ON_X86
    "avx512",
    "avx2",
#elif ON_SIMD128
    "simd128",
#elif ON_NEON
    "neon",
#endif
    "scalar",
    NULL,
};
enum { BEST_KNOWN = sizeof names / sizeof names[0] - 2 };

/* The compiler's runtime asks the operating system too: a processor with AVX2
 * under a kernel that does not save the wide registers counts as without. */
enum cpu_level cpu_best(void) {
#if ON_X86
    __builtin_cpu_init();
    /* Every processor with the first two has the others. */
    if (__builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512cd"))
        return CPU_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
        return CPU_AVX2;
#elif ON_SIMD128
    return CPU_SIMD128; /* or this would not have been let in */
#elif ON_NEON
    return CPU_NEON; /* every processor of 64 bits has it */
#endif
    return CPU_SCALAR;
}

const char *cpu_level_name(enum cpu_level level) {
    return names[BEST_KNOWN - (int)level];
}

bool cpu_level_named(const char *name, enum cpu_level *level) {
    for (int i = (int)cpu_best(); i >= 0; i--) {
        *level = (enum cpu_level)i;
        if (strcmp(cpu_level_name(*level), name) == 0) return true;
    }
    return false;
}

bool cpu_level_is_elsewhere(const char *name) {
    static const char *const all[] = {"avx512", "avx2", "simd128", "neon"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i], name) == 0) return true;
    return false;
}

const char *const *calyx_kernels(void) {
    return &names[BEST_KNOWN - (int)cpu_best()];
}
