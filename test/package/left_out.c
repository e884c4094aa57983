/*
 * Prints what the library has, and what it says of a kind that it may lack:
 * left_out KIND FILE, with a file of that kind.
 */
#include <stdio.h>
#include <stdlib.h>

#include "calyx.h"

static void print_names(const char *what, const char *const *names) {
    printf("%s:", what);
    while (*names) printf(" %s", *names++);
    putchar('\n');
}

static void print_outcome(const char *what, calyx_status status,
                          const calyx_error *why) {
    printf("%s: %s\n", what,
           status == CALYX_OK ? calyx_status_text(status) : why->text);
}

static void decode_file(const char *path) {
    static char bytes[1 << 20];
    FILE *const file = fopen(path, "rb");
    if (!file) exit(2);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    calyx_filter *f = NULL;
    calyx_error why;
    print_outcome("file", calyx_decode(bytes, size, NULL, &f, &why), &why);
    calyx_free(f);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    print_names("kinds", calyx_kinds());
    print_names("kernels", calyx_kernels());
    const calyx_options want = {.kind = argv[1], .capacity = 1000};
    calyx_info info;
    calyx_error why;
    const calyx_status planned = calyx_plan(&want, &info, &why);
    print_outcome("plan", planned, &why);
    decode_file(argv[2]);
}
