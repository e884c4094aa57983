/* Threads that also start where the address space is limited, by `ulimit -v` or
 * a batch system: 8 MiB for a stack and 64 MiB for each thread's part of
 * malloc, the defaults of glibc, are then more than the work takes. */
#include <malloc.h>
#include <string.h>
#include <sys/resource.h>

#include "tool.h"

enum { STACK_BYTES = 1 << 20 };

static void share_malloc(void) {
#ifdef M_ARENA_MAX
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        mallopt(M_ARENA_MAX, 1);
#endif
}

void start_thread(pthread_t *thread, void *(*run)(void *), void *context) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_attr_t small;
    pthread_once(&once, share_malloc);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    const int failed = pthread_create(thread, &small, run, context);
    if (failed)
        fail("cannot start a thread: %s; -j sets their number",
             strerror(failed));
    pthread_attr_destroy(&small);
}
