/* Prints the levels this processor can run, as a CMake list, best first. */
#include <calyx/calyx.h>
#include <stdio.h>

int main(void) {
    const char *const *level = calyx_kernels();
    printf("%s", *level);
    while (*++level) printf(";%s", *level);
    return 0;
}
