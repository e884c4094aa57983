/* Threads for work that can be divided. Where there are none (WebAssembly), the
 * caller does all of it. */
#ifndef CALYX_PARALLEL_H
#define CALYX_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum { THREADS_MOST = 64 };

/* Call `work` on `threads` threads at once, with their numbers from 0 on; 0 is
 * the calling thread. If the system refuses a thread, there are fewer: any of
 * them must be able to do all the work. */
void run_parallel(uint32_t threads,
                  void (*work)(void *context, uint32_t thread), void *context);

/* While waiting for another thread: let it run. Without POSIX, goes on. */
void yield_to_others(void);

/* A lock, and an event that threads can wait for while they hold it. */
#if CALYX_NO_FILES
struct monitor {
    bool unused;
};
#else
#include <pthread.h>
struct monitor {
    pthread_mutex_t lock;
    pthread_cond_t event;
};
#endif

bool monitor_init(struct monitor *m); /* false: no memory */
void monitor_end(struct monitor *m);
void monitor_enter(struct monitor *m);
void monitor_leave(struct monitor *m);
void monitor_wait(struct monitor *m); /* leaves meanwhile */
void monitor_wake(struct monitor *m); /* all that wait */

#endif
