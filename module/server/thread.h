/* Threads of the module's own, beside the server's. */
#ifndef CALYX_MODULE_THREAD_H
#define CALYX_MODULE_THREAD_H

#include <stdbool.h>

/* Start one that nobody waits for. Signals are for the server's own threads. */
bool thread_start(void *(*run)(void *), void *context);

#endif
