/* The process that opened a file for writing. */
#ifndef CALYX_OWNER_H
#define CALYX_OWNER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A child of fork has the mapping and the file of its parent. If both marked
 * and sealed ranges, each would seal what the other still changes, and the file
 * would look damaged. So only the process that opened the file changes it.
 *
 * Every add has to check that, and getpid(2) takes longer than the rest of it.
 * So the flag is in a page that the system clears in a child; where it cannot,
 * getpid decides.
 */
struct owner {
    int64_t process;
    const uint64_t *flag; /* a page; 0 in a child. NULL: there is none */
};

void owner_open(struct owner *owner);
void owner_close(struct owner *owner);

/* Is this the process that opened it? The second is certain on any system, and
 * calls it. */
bool is_owner(const struct owner *owner);
bool is_owner_for_certain(const struct owner *owner);

#endif
