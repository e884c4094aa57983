/* Random bytes from the operating system. */
#define _DEFAULT_SOURCE /* getentropy */
#if defined(__APPLE__)
#include <sys/random.h>
#endif
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* At most 256 bytes, as getentropy(3) has it. */
#if defined(_WIN32)
extern int rand_s(unsigned *word); /* in stdlib.h only with _CRT_RAND_S */

static int fill(uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        unsigned word;
        if ((errno = rand_s(&word)) != 0) return -1;
        bytes[i] = (uint8_t)word;
    }
    return 0;
}
#else
static int fill(uint8_t *bytes, size_t size) {
    return getentropy(bytes, size);
}
#endif

calyx_status calyx_random(void *buffer, size_t size, calyx_error *why) {
    enum { MOST = 256 };
    uint8_t *const bytes = buffer;
    for (size_t done = 0; done < size; done += MOST) {
        const size_t some = size - done < MOST ? size - done : MOST;
        if (fill(bytes + done, some) == 0) continue;
        const int code = errno;
        fail(why, CALYX_IO, "the system gives no random bytes: %.60s",
             strerror(code));
        if (why) why->os_code = code;
        return CALYX_IO;
    }
    return CALYX_OK;
}
