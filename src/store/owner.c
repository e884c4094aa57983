#include "base/compiler.h"
#if !CALYX_NO_FILES
#define _DEFAULT_SOURCE /* madvise */
#include "store/owner.h"

#include <sys/mman.h>
#include <unistd.h>

static uint64_t *make_flag(void) {
#if defined(MADV_WIPEONFORK) && defined(MAP_ANONYMOUS)
    const size_t size = sizeof(uint64_t); /* the system rounds up to a page */
    uint64_t *const flag = mmap(NULL, size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (flag == MAP_FAILED) return NULL;
    if (madvise(flag, size, MADV_WIPEONFORK) != 0) {
        munmap(flag, size);
        return NULL;
    }
    *flag = 1;
    return flag;
#else
    return NULL;
#endif
}

void owner_open(struct owner *owner) {
    *owner = (struct owner){.process = getpid(), .flag = make_flag()};
}

void owner_close(struct owner *owner) {
    if (owner->flag)
        munmap((void *)(uintptr_t)owner->flag, sizeof *owner->flag);
}

bool is_owner(const struct owner *owner) {
    if (owner->flag) return *owner->flag != 0;
    return is_owner_for_certain(owner);
}

bool is_owner_for_certain(const struct owner *owner) {
    return owner->process == getpid();
}

#endif
