/*
 * Prefaulting of large blocks. A page costs nothing until it is touched first;
 * that takes a microsecond or more. Keys go to random places, so nearly each of
 * the first keys of a large filter would pay for it. Leaving pages untouched
 * saves nothing either: none is left once the filter holds a thousandth of its
 * capacity. So a thread touches them ahead.
 */
#ifndef CALYX_MODULE_PREFAULT_H
#define CALYX_MODULE_PREFAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A hint: start to touch a block, without changing it. */
void prefault_start(void *block, size_t size);

/* Stop it, before the block is freed. */
void prefault_stop(const void *block, size_t size);

/* The number of the last task. A command that leaves it unchanged allocated no
 * large block. */
uint64_t prefault_last(void);

/* Call `notify` once all tasks after number `after` are done, or after 1 s. It
 * runs on the thread that prefaults, and must return at once. False if there is
 * nothing to wait for, or too many wait already. */
bool prefault_notify(uint64_t after, void (*notify)(void *context),
                     void *context);

/* Pause while many keys are added. With a second thread at work, each page
 * fault flushes the TLB of both processors, and takes three times as long. */
void prefault_pause(bool pause);

#endif
