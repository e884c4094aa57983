/*
 * A fuzz target without libFuzzer: run it on files, and on all files of
 * folders, and on those that the target makes by itself. With --mutate=N each
 * is also changed N times, in the same ways on every machine, by the target's
 * own mutator if it has one.
 *
 *     replay_decode [--mutate=N] fuzz/corpus/decode
 *
 * If REPLAY_NAMES is set, every file is named before it is tried.
 */
#define _DEFAULT_SOURCE /* opendir, stat */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

static size_t mutations, files, runs;
static uint64_t state = 1;

static uint64_t roll(uint64_t limit) {
    state += UINT64_C(0x9E3779B97F4A7C15);
    return fuzz_mix(state) % limit;
}

/* A poor man's: flip a bit, set a byte, cut, copy a piece elsewhere. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) {
    if (size == 0) return 0;
    const size_t at = (size_t)roll(size), n = (size_t)roll(size - at) % 16;
    switch (roll(5)) {
        case 0: data[at] = (uint8_t)(data[at] ^ 1u << roll(8)); break;
        case 1: data[at] = (uint8_t)roll(256); break;
        case 2: return at ? at : 1;
        case 3: memmove(data + roll(size - n), data + at, n); break;
        default:
            if (size + n > most) break;
            memset(data + size, (int)roll(256), n);
            return size + n;
    }
    return size;
}

#pragma weak LLVMFuzzerCustomMutator
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed);

#pragma weak fuzz_seed

/* On a copy of exactly that size, so that a sanitizer sees its end. */
static void run(const uint8_t *data, size_t size) {
    uint8_t *exact = malloc(size ? size : 1);
    DEMAND(exact);
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    runs++;
}

static void run_mutated(const uint8_t *data, size_t size) {
    const size_t most = size + 16384;
    uint8_t *changed = malloc(most);
    DEMAND(changed);
    size_t now = 0;
    for (size_t i = 0; i < mutations; i++) {
        if (i % 8 == 0) { /* afresh; else one change on top of another */
            memcpy(changed, data, size);
            now = size;
        }
        now = LLVMFuzzerCustomMutator
                  ? LLVMFuzzerCustomMutator(changed, now, most,
                                            (unsigned)roll(UINT32_MAX))
                  : LLVMFuzzerMutate(changed, now, most);
        run(changed, now);
    }
    free(changed);
}

static void run_file(const char *path, size_t size) {
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size + 1);
    if (!file || !data || fread(data, 1, size, file) != size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(2);
    }
    fclose(file);
    if (getenv("REPLAY_NAMES")) fprintf(stderr, "%s\n", path);
    run(data, size);
    if (mutations) run_mutated(data, size);
    free(data);
    files++;
}

static void run_seeds(void) {
    static uint8_t data[1 << 16];
    size_t size;
    for (unsigned i = 0; (size = fuzz_seed(i, data, sizeof data)); i++) {
        run(data, size);
        if (mutations) run_mutated(data, size);
        files++;
    }
}

static void run_path(const char *path) {
    struct stat is;
    if (stat(path, &is) != 0) {
        fprintf(stderr, "%s: is not there\n", path);
        exit(2);
    }
    if (!S_ISDIR(is.st_mode)) {
        run_file(path, (size_t)is.st_size);
        return;
    }
    DIR *folder = opendir(path);
    DEMAND(folder);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char inner[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        run_path(inner);
    }
    closedir(folder);
}

int main(int count, char **words) {
    static const char option[] = "--mutate=";
    for (int i = 1; i < count; i++) {
        if (strncmp(words[i], option, sizeof option - 1) == 0)
            mutations = strtoul(words[i] + sizeof option - 1, NULL, 10);
        else
            run_path(words[i]);
    }
    if (fuzz_seed) run_seeds();
    printf("%zu files, %zu runs\n", files, runs);
    return files ? 0 : 2;
}
