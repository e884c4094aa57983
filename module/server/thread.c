/* Starting threads. */
#include "server/thread.h"

#include <pthread.h>
#include <signal.h>

bool thread_start(void *(*run)(void *), void *context) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool runs = pthread_create(&thread, NULL, run, context) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (runs) pthread_detach(thread);
    return runs;
}
