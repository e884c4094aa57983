/* Compiler extensions beyond C11, and what the system lacks. */
#ifndef CALYX_COMPILER_H
#define CALYX_COMPILER_H

#ifdef __cplusplus
#error \
    "The sources of Calyx are C, not C++: compile them as C11, link the objects"
#elif __STDC_VERSION__ < 201112L
#error "The sources of Calyx are C11: compile them with -std=c11 or later"
#endif

/* Where there is no POSIX, as in WebAssembly, on Windows and without a system:
 * calls for files return CALYX_CANNOT, and the library starts no threads. */
#if !defined(CALYX_NO_FILES) && (defined(__wasm__) || defined(_WIN32))
#define CALYX_NO_FILES 1
#endif
#ifndef CALYX_NO_FILES
#define CALYX_NO_FILES 0
#endif

/*
 * A function that takes other functions as arguments, and is inlined into each
 * caller with these as constants: a template that is a function.
 *
 * gcc -Og cannot do that ("inlining failed") and needs
 * -DCALYX_NO_FORCED_INLINE=1, which CMakeLists.txt sets: the kernels are slow
 * then, and easy to step through. It sets it for sanitizers, too: with checks
 * in every copy, bucket_avx2.c takes gcc 16 seconds instead of 3.
 */
#if CALYX_NO_FORCED_INLINE
#define ALWAYS_INLINE static inline
#ifndef XXH_NO_INLINE_HINTS
#define XXH_NO_INLINE_HINTS 1 /* xxhash.h has the same trouble */
#endif
#else
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#endif

/* A function of its own: for what is rare, or has registers and a stack of its
 * own. */
#define NOINLINE __attribute__((noinline))

/*
 * For functions that are called once for each key: no stack canary, which would
 * be up to 20 % of their instructions. All arrays on their stack have a fixed
 * size; indices come from a few bits of a hash, never from a file or a caller.
 */
#ifdef __has_attribute
#if __has_attribute(no_stack_protector)
#define NO_CANARY __attribute__((no_stack_protector))
#endif
#endif
#ifndef NO_CANARY
#define NO_CANARY
#endif

#endif
