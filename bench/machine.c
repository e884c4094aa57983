/* The machine: its pages, and what to say of it beside its figures. */
#define _DEFAULT_SOURCE /* madvise, MAP_ANONYMOUS */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

/* ---- Huge pages ---------------------------------------------------------- */

static const size_t HUGE = (size_t)2 << 20;

static size_t whole(size_t bytes) {
    return (bytes + HUGE - 1) / HUGE * HUGE;
}

/* Not from malloc, which may hand out what was on small pages before. Huge
 * pages must be aligned to their size, so one more is taken, and what lies
 * around the aligned block is released. */
void *take_pages(size_t bytes) {
    const size_t kept = whole(bytes);
    char *const start = mmap(NULL, kept + HUGE, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return NULL;
    const size_t before = (HUGE - (uintptr_t)start % HUGE) % HUGE;
    char *const block = start + before;
    if (before) munmap(start, before);
    munmap(block + kept, HUGE - before);
    madvise(block, kept, MADV_HUGEPAGE);
    return memset(block, 0, kept);
}

void give_pages(void *pages, size_t bytes) {
    munmap(pages, whole(bytes));
}

uint64_t huge_bytes(void) {
    FILE *const file = fopen("/proc/self/smaps_rollup", "r");
    unsigned long long kib = 0;
    char line[200];
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "AnonHugePages: %llu", &kib) == 1) break;
    if (file) fclose(file);
    return kib * 1024;
}

/* ---- A description ------------------------------------------------------- */

/* The first line of a file, without its end; empty if there is none. */
static void read_line(const char *path, char *to, size_t size) {
    FILE *const file = fopen(path, "r");
    if (!file || !fgets(to, (int)size, file)) *to = '\0';
    to[strcspn(to, "\n")] = '\0';
    if (file) fclose(file);
}

/* Of one core's data or of a shared cache, in KiB, as the system reports for
 * each core: what a library reports may be the sum over a whole socket. */
static long cache_kib(int level) {
    for (int i = 0; i < 8; i++) {
        char path[120], text[80];
        const char *const form =
            "/sys/devices/system/cpu/cpu0/cache/index%d/%s";
        snprintf(path, sizeof path, form, i, "level");
        read_line(path, text, sizeof text);
        if (atoi(text) != level) continue;
        snprintf(path, sizeof path, form, i, "type");
        read_line(path, text, sizeof text);
        if (strcmp(text, "Instruction") == 0) continue;
        snprintf(path, sizeof path, form, i, "size");
        read_line(path, text, sizeof text);
        return atol(text);
    }
    return 0;
}

/* Only what is safe within quotes. */
static void read_processor(char *to, size_t size) {
    FILE *const file = fopen("/proc/cpuinfo", "r");
    char line[300];
    snprintf(to, size, "unknown processor");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "model name", 10) != 0) continue;
        const char *const colon = strchr(line, ':');
        if (!colon) continue;
        snprintf(to, size, "%s", colon + 2);
        to[strcspn(to, "\n")] = '\0';
        break;
    }
    if (file) fclose(file);
    for (char *at = to; *at; at++)
        if (*at == '"' || *at == '\\' || iscntrl((unsigned char)*at)) *at = ' ';
}

/* The word in brackets of "always [madvise] never". */
static void read_huge_mode(char *to, size_t size) {
    char line[200];
    read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line);
    const char *const start = strchr(line, '[');
    snprintf(to, size, "%s", start ? start + 1 : "none");
    to[strcspn(to, "]")] = '\0';
}

void print_machine(FILE *to, bool as_json) {
    char processor[200], huge[40], levels[80] = "";
    read_processor(processor, sizeof processor);
    read_huge_mode(huge, sizeof huge);
    for (const char *const *level = calyx_kernels(); *level; level++) {
        const size_t used = strlen(levels);
        snprintf(levels + used, sizeof levels - used, "%s%s", used ? ", " : "",
                 *level);
    }
    const char *const form =
        as_json ? "{\"processor\": \"%s\", \"levels\": \"%s\", \"cores\": %ld, "
                  "\"cache_kib\": [%ld, %ld, %ld], \"huge_pages\": \"%s\", "
                  "\"compiler\": \"%s\"}"
                : "%s (%s), %ld cores, caches of %ld, %ld and %ld KiB, huge "
                  "pages: %s, compiler %s\n";
    fprintf(to, form, processor, levels, sysconf(_SC_NPROCESSORS_ONLN),
            cache_kib(1), cache_kib(2), cache_kib(3), huge,
#ifdef __clang__
            "clang " __clang_version__
#else
            "gcc " __VERSION__
#endif
    );
}
