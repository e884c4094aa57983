/* How far this processor goes beyond what every build may assume. */
#ifndef CALYX_CPU_H
#define CALYX_CPU_H

#include <stdbool.h>

/* CALYX_NO_VECTORS leaves all levels out but the scalar one. gcc for Windows
 * does not align the stack for registers of 32 bytes (its bug 54412). */
#if defined(_WIN32) && !defined(CALYX_NO_VECTORS)
#define CALYX_NO_VECTORS 1
#endif

/* A level can run whatever a lower level can. */
#if CALYX_NO_VECTORS
enum cpu_level { CPU_SCALAR };
#elif defined(__x86_64__)
#define ON_X86 1
enum cpu_level { CPU_SCALAR, CPU_AVX2, CPU_AVX512 };
#elif defined(__wasm_simd128__)
#define ON_SIMD128 1
enum cpu_level { CPU_SCALAR, CPU_SIMD128 };
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
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
