#include "base/cpu.h"

#include <calyx/calyx.h>
#include <string.h>

/* Best first, so that a processor's list is the tail that it can run. */
static const char *const names[] = {
#if ON_AVX512
    "avx512",
#endif
#if ON_X86
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

#if ON_X86
/* By cpuid, not by __builtin_cpu_supports: that calls functions which some
 * compilers do not bring along (zig cc). */
#include <cpuid.h>

static bool has_all(uint32_t word, uint32_t bits) {
    return (word & bits) == bits;
}

/* Registers that the operating system saves for each thread. A processor with
 * AVX2 under one that does not save the wide ones counts as without. */
static uint32_t saved_registers(void) {
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static enum cpu_level measure(void) {
    enum { WIDE_REGISTERS = 0x06, WIDEST_REGISTERS = 0xE6 };
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has_all(c, bit_OSXSAVE | bit_AVX))
        return CPU_SCALAR;
    const uint32_t saved = saved_registers();
    if (!has_all(saved, WIDE_REGISTERS) ||
        !__get_cpuid_count(7, 0, &a, &b, &c, &d) ||
        !has_all(b, bit_AVX2 | bit_BMI2))
        return CPU_SCALAR;
#if ON_AVX512
    if (has_all(saved, WIDEST_REGISTERS) &&
        has_all(b, bit_AVX512F | bit_AVX512VL | bit_AVX512BW | bit_AVX512DQ |
                       bit_AVX512CD))
        return CPU_AVX512;
#endif
    return CPU_AVX2;
}

/* cpuid takes microseconds in a virtual machine, so its answer is stored. Two
 * threads that come first store the same. */
static enum cpu_level best_on_x86(void) {
    static int known; /* 1 + level */
    int best = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (best == 0) {
        best = 1 + (int)measure();
        __atomic_store_n(&known, best, __ATOMIC_RELAXED);
    }
    return (enum cpu_level)(best - 1);
}
#endif

enum cpu_level cpu_best(void) {
#if ON_X86
    return best_on_x86();
#elif ON_SIMD128
    return CPU_SIMD128; /* or this would not have been let in */
#elif ON_NEON
    return CPU_NEON; /* every processor of 64 bits has it */
#else
    return CPU_SCALAR;
#endif
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
