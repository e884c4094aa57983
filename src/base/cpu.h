/* How far this processor goes beyond what every build may assume. */
#ifndef CALYX_CPU_H
#define CALYX_CPU_H

#include <stdbool.h>

/* CALYX_NO_VECTORS leaves all levels out but the scalar one. gcc for Windows
 * does not align the stack for registers of 32 bytes (its bug 54412). */
#if defined(_WIN32) && !defined(CALYX_NO_VECTORS)
#define CALYX_NO_VECTORS 1
#endif
#if CALYX_NO_VECTORS
#undef CALYX_NO_AVX2
#undef CALYX_NO_SIMD128
#undef CALYX_NO_NEON
#define CALYX_NO_AVX2    1
#define CALYX_NO_SIMD128 1
#define CALYX_NO_NEON    1
#endif

/* A level can run whatever a lower level can, so AVX-512 goes with AVX2. */
#if defined(__x86_64__) && !CALYX_NO_AVX2
#define ON_X86 1
#define AVX2   __attribute__((target("avx2,bmi2"), no_sanitize("thread")))
#if !CALYX_NO_AVX512
#define ON_AVX512 1
#endif
enum cpu_level { CPU_SCALAR, CPU_AVX2, CPU_AVX512 };
#elif defined(__wasm_simd128__) && !CALYX_NO_SIMD128
#define ON_SIMD128 1
enum cpu_level { CPU_SCALAR, CPU_SIMD128 };
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && \
    !CALYX_NO_NEON
#define ON_NEON 1
enum cpu_level { CPU_SCALAR, CPU_NEON };
#else
enum cpu_level { CPU_SCALAR };
#endif

/* The best level that this processor, under this operating system, can run. */
enum cpu_level cpu_best(void);

/* "scalar", "avx2", ... */
const char *cpu_level_name(enum cpu_level level);

/* The level of that name; false if there is none that this processor runs. */
bool cpu_level_named(const char *name, enum cpu_level *level);

/* Does some processor have a level of that name? */
bool cpu_level_is_elsewhere(const char *name);

#endif
