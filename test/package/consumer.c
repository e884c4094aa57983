#include <calyx/calyx.h>
#include <stdio.h>

int main(void) {
    const calyx_options want = {.capacity = 1000, .fpr = 0.01};
    calyx_filter *flowers;
    if (calyx_new(&want, &flowers, NULL) != CALYX_OK) return 1;
    if (calyx_add(flowers, "rose", 4, NULL) != CALYX_OK) return 1;

    printf("calyx %s %s\n", calyx_version(),
           calyx_has(flowers, "rose", 4) ? "remembers" : "forgets");
    calyx_free(flowers);
    return 0;
}
