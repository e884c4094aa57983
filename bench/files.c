/*
 * What the format costs: a filter of 1 GiB saved and loaded, beside the same
 * bytes written and read with a checksum for each 1 MiB and nothing else. Both
 * make a new file, bring it to the disk and give it its name; both read into
 * memory of their own. The folder is TMPDIR, or one in memory, where the disk
 * does not hide the difference.
 */
#define XXH_INLINE_ALL
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "bench.h"

enum { CHUNK = 1 << 20, CHUNKS = 1024, ROUNDS = 5 };

static volatile uint64_t sums; /* so that no checksum is left out */

static void need(bool so, const char *what) {
    if (so) return;
    perror(what);
    exit(1);
}

static double plain_save(const uint8_t *bytes, const char *path) {
    char new[300];
    snprintf(new, sizeof new, "%s.new", path);
    const double start = now();
    const int fd = open(new, O_WRONLY | O_CREAT | O_EXCL, 0666);
    need(fd >= 0, new);
    for (int i = 0; i < CHUNKS; i++) {
        const uint8_t *chunk = bytes + (size_t)i * CHUNK;
        sums += XXH3_64bits(chunk, CHUNK);
        need(write(fd, chunk, CHUNK) == CHUNK, new);
    }
    need(fsync(fd) == 0 && close(fd) == 0 && rename(new, path) == 0, new);
    return now() - start;
}

static double plain_load(const char *path) {
    const double start = now();
    const int fd = open(path, O_RDONLY);
    need(fd >= 0, path);
    uint8_t *bytes = take_pages((size_t)CHUNKS * CHUNK);
    need(bytes != NULL, "memory");
    for (int i = 0; i < CHUNKS; i++) {
        uint8_t *chunk = bytes + (size_t)i * CHUNK;
        need(read(fd, chunk, CHUNK) == CHUNK, path);
        sums += XXH3_64bits(chunk, CHUNK);
    }
    close(fd);
    const double time = now() - start;
    give_pages(bytes, (size_t)CHUNKS * CHUNK);
    return time;
}

static void must(calyx_status status, const calyx_error *why) {
    if (status == CALYX_OK) return;
    fprintf(stderr, "calyx-bench: %s\n", why->text);
    exit(1);
}

static double save(const calyx_filter *f, const char *path) {
    calyx_error why;
    const double start = now();
    must(calyx_save(f, path, &why), &why);
    return now() - start;
}

static double load(const char *path) {
    calyx_error why;
    calyx_filter *f;
    const double start = now();
    must(calyx_load(path, NULL, &f, &why), &why);
    const double time = now() - start;
    calyx_free(f);
    return time;
}

static double map(const char *path) {
    calyx_error why;
    calyx_filter *f;
    const double start = now();
    must(calyx_map(path, CALYX_READ, NULL, &f, &why), &why);
    const double time = now() - start;
    calyx_free(f);
    return time;
}

static void print(const char *what, const struct series *ours,
                  const struct series *plain) {
    const struct figure us = figure_of(ours), them = figure_of(plain);
    const struct figure ratio = ratio_of(ours, plain);
    printf("  %-5s %8.0f ms   plain %8.0f ms   ratio %.2f +- %.2f\n", what,
           us.median / 1e6, them.median / 1e6, ratio.median, ratio.spread);
}

void compare_files(void) {
    const char *folder = getenv("TMPDIR");
    if (!folder) folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    char ours[256], plain[256];
    snprintf(ours, sizeof ours, "%s/calyx-bench-%ld.calyx", folder,
             (long)getpid());
    snprintf(plain, sizeof plain, "%s/calyx-bench-%ld.raw", folder,
             (long)getpid());

    calyx_error why;
    calyx_filter *f;
    const calyx_options want = {.bits = UINT64_C(8) << 30, .capacity = 1};
    must(calyx_new(&want, &f, &why), &why);
    for (uint64_t i = 0; i < 40000000; i++) calyx_add_u64(f, i, NULL);
    uint8_t *bytes = take_pages((size_t)CHUNKS * CHUNK);
    need(bytes != NULL, "memory");
    for (size_t i = 0; i < (size_t)CHUNKS * CHUNK; i++)
        bytes[i] = (uint8_t)(i * i >> 3);

    struct series all[4] = {{.rounds = ROUNDS},
                            {.rounds = ROUNDS},
                            {.rounds = ROUNDS},
                            {.rounds = ROUNDS}};
    double mapped = 1e18;
    for (int i = 0; i < ROUNDS; i++) {
        all[0].ns[i] = save(f, ours);
        all[1].ns[i] = plain_save(bytes, plain);
        /* Whoever comes first pays for memory that the system has to find. */
        const double first = load(ours), second = plain_load(plain);
        all[3].ns[i] = fmin(second, plain_load(plain));
        all[2].ns[i] = fmin(first, load(ours));
        const double time = map(ours);
        if (time < mapped) mapped = time;
    }
    printf("a filter of 1 GiB, in %s\n", folder);
    print("save", &all[0], &all[1]);
    print("load", &all[2], &all[3]);
    printf("  map   %8.3f ms\n", mapped / 1e6);
    unlink(ours);
    unlink(plain);
    give_pages(bytes, (size_t)CHUNKS * CHUNK);
    calyx_free(f);
}
