/*
 * The pages that large blocks lie on. A page costs nothing until it is touched,
 * then a microsecond or more, which whoever touches it has to wait for. Keys go
 * to random places, so nearly each of the first keys of a large filter would
 * wait; and after a thousandth of what it can hold no page is left untouched,
 * so nothing is saved by leaving them. Hence a thread touches them ahead.
 */
#ifndef CALYX_MODULE_PAGES_H
#define CALYX_MODULE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Make a block zeros, of fresh pages if the system has them. False where
 * nothing is known of pages. */
bool pages_clear(void *block, size_t size);

/* The same of a block that is in use, at any size in less than a millisecond:
 * the pages it lies on are moved aside, and another thread gives them back. No
 * memory is taken for it. Where the system cannot move pages (before Linux 5.7)
 * they are given back here, which takes some 0.1 ms a megabyte. */
void pages_renew(void *block, size_t size);

/* Ask for huge pages for a block that is still untouched. Only a params. */
void pages_advise_huge(void *block, size_t size);

/* Begin to touch a block ahead, without changing it. Only a params. */
void prefault_start(void *block, size_t size);

/* How often that was begun: a command after which it is the same has taken no
 * large block. */
uint64_t prefault_last(void);

/* Tell somebody once all is touched that was begun after so many, or after a
 * second at most. The thread that touches calls `notify`, which must not keep
 * it. False if there is nothing to wait for, or no room for one more who waits.
 */
bool prefault_notify(uint64_t after, void (*notify)(void *context),
                     void *context);

/* Hold it while many keys are added: with another thread of the process at
 * work, each first touch makes its processor drop what it knows of a page, and
 * takes three times as long. */
void prefault_pause(bool hold);

/* Before a block is freed: stop touching it, and give its pages back, as
 * pages_renew does. Else that would fall to the thread that takes it next and
 * wants zeros: the server's. */
void pages_release(void *block, size_t size);

#endif
