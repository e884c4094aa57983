/*
 * Files that come from other machines: part files, as calyx_join reads them,
 * and files of hashes. Any bytes give an error, or what can be used: a joined
 * file loads, and has the number of keys that its parts say.
 *
 * The first byte chooses what the rest is, and which checksums are made good
 * again: else few changes would come further than these.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "build/part_file.h"
#include "wire/hash_file.h"

enum { AS_HASHES = 1, REPAIRS = 2 };

static void store(uint8_t *to, uint64_t value) {
    for (int i = 0; i < 8; i++) to[i] = (uint8_t)(value >> 8 * i);
}

/* A name in a folder that is in memory, if there is one. */
static const char *scratch_name(void) {
    static char name[64];
    const char *const folder =
        access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(name, sizeof name, "%s/calyx-fuzz-%ld", folder, (long)getpid());
    return name;
}

/* ---- Part files ---------------------------------------------------------- */

static void repair_part(uint8_t *bytes, size_t size) {
    struct part_head head;
    struct description d;
    if (size < PART_HEAD_BYTES + FIXED_BYTES) return;
    const uint32_t header = bytes[PART_HEAD_BYTES + 32] |
                            (uint32_t)bytes[PART_HEAD_BYTES + 33] << 8;
    if (header >= 8 && size - PART_HEAD_BYTES >= header)
        store(bytes + PART_HEAD_BYTES + header - 8,
              checksum(bytes + PART_HEAD_BYTES, header - 8, 0));
    store(bytes + 120, checksum(bytes, 120, 0));
    if (check_part_head(bytes, size, &head, &d, NULL) != CALYX_OK) return;
    if (head.file_bytes != size) return;
    store(bytes + size - 8, last_sum(bytes + head.sums_at,
                                     size - 8 - (size_t)head.sums_at, bytes));
}

static int in_memory(const uint8_t *bytes, size_t size) {
    const int fd = memfd_create("part", 0);
    DEMAND(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    return fd;
}

static void use_joined(const char *name, uint64_t items) {
    calyx_open_options how = {.key = (const uint8_t *)"sixteen secrets"};
    calyx_filter *f;
    calyx_error why;
    const calyx_status status = calyx_load(name, &how, &f, &why);
    if (status == CALYX_WRONG_KEY) return;
    DEMAND(status == CALYX_OK);
    calyx_info info;
    calyx_describe(f, &info);
    DEMAND(info.items <= items);
    calyx_has(f, "rose", 4);
    calyx_free(f);
}

static void join(const uint8_t *bytes, size_t size) {
    char path[64];
    const char *const paths[] = {path}, *const to = scratch_name();
    struct part_head head;
    struct description d;
    calyx_error why;
    /* A head may claim a filter that takes long to make. */
    if (check_part_head(bytes, size, &head, &d, &why) == CALYX_OK &&
        (d.layout.file_bytes > 1 << 20 || head.bumped > 1 << 16))
        return;
    const int fd = in_memory(bytes, size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    memset(&why, 'x', sizeof why);
    const calyx_status status = calyx_join(paths, 1, NULL, to, &why);
    if (status == CALYX_OK)
        use_joined(to, head.items);
    else
        DEMAND(why.status == status && memchr(why.text, 0, sizeof why.text));
    unlink(to);
    close(fd);
}

/* ---- Files of hashes ----------------------------------------------------- */

static void repair_hashes(uint8_t *bytes, size_t size) {
    struct hash_head head;
    if (size < HASH_START_BYTES || hash_check_start(bytes, &head)) return;
    const size_t end = HASH_START_BYTES + head.text_bytes;
    if (size < end + 8) return;
    store(bytes + end, XXH64(bytes, end, 0));
    size_t at = end + 8, n;
    while (size - at >= HASH_CHUNK_START) {
        const size_t rest = hash_chunk_rest(bytes + at, &n);
        if (!rest || size - at - HASH_CHUNK_START < rest) return;
        const size_t sum = at + HASH_CHUNK_START + rest - 8;
        store(bytes + sum, XXH64(bytes + at, sum - at, 0));
        at = sum + 8;
    }
}

static void read_hashes(const uint8_t *bytes, size_t size) {
    struct hash_head head;
    if (size < HASH_START_BYTES || hash_check_start(bytes, &head)) return;
    size_t at = HASH_START_BYTES + head.text_bytes + 8, n;
    if (size < at || hash_check_head(bytes, &head)) return;
    DEMAND(head.part >= 1 && head.part <= head.parts);
    DEMAND(strlen(head.hash) < sizeof head.hash);
    for (uint64_t number = 0; size - at >= HASH_CHUNK_START; number++) {
        const size_t rest = hash_chunk_rest(bytes + at, &n);
        DEMAND(rest <= HASH_CHUNK_BYTES && n <= (rest ? HASH_CHUNK_MOST : n));
        if (!rest || size - at - HASH_CHUNK_START < rest ||
            !hash_check_chunk(bytes + at, HASH_CHUNK_START + rest, number))
            return;
        if (n == 0) {
            hash_end_total(bytes + at);
            return;
        }
        at += HASH_CHUNK_START + rest;
    }
}

/* ---- The target ---------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const uint8_t choice = data[0];
    uint8_t *const bytes = malloc(size - 1); /* a sanitizer sees its end */
    DEMAND(bytes);
    memcpy(bytes, data + 1, size - 1);
    if (choice & AS_HASHES) {
        if (choice & REPAIRS) repair_hashes(bytes, size - 1);
        read_hashes(bytes, size - 1);
    } else {
        if (choice & REPAIRS) repair_part(bytes, size - 1);
        join(bytes, size - 1);
    }
    free(bytes);
    return 0;
}

/* ---- Seeds --------------------------------------------------------------- */

static size_t seed_hashes(uint8_t *to) {
    const struct hash_head head = {
        .part = 1, .parts = 3, .hash = "xxh3", .text_bytes = 2};
    uint8_t *at = to;
    at += hash_put_head(at, &head, "-i");
    for (uint64_t i = 0; i < 2; i++) {
        for (uint64_t k = 0; k < 5; k++)
            store(at + HASH_CHUNK_START + 8 * k, fuzz_mix(5 * i + k));
        at += hash_put_chunk(at, i, 5);
    }
    at += hash_put_end(at, 2, 10);
    return (size_t)(at - to);
}

static size_t seed_part(const char *kind, uint64_t keys, uint8_t *to,
                        size_t most) {
    const calyx_builder_options want = {
        .filter = {.kind = kind, .capacity = keys}, .part = 1, .parts = 1};
    calyx_builder *b;
    DEMAND(calyx_builder_new(&want, &b, NULL) == CALYX_OK);
    for (uint64_t i = 0; i < keys; i++)
        DEMAND(calyx_builder_add_many_u64(b, &i, 1, NULL) == CALYX_OK);
    DEMAND(calyx_builder_save(b, scratch_name(), NULL) == CALYX_OK);
    calyx_builder_free(b);
    FILE *const file = fopen(scratch_name(), "rb");
    DEMAND(file);
    const size_t size = fread(to, 1, most, file);
    fclose(file);
    unlink(scratch_name());
    return size;
}

size_t fuzz_seed(unsigned number, uint8_t *data, size_t most) {
    static const char *const kinds[] = {"line", "split", "ribbon"};
    if (number >= 8) return 0;
    data[0] = (uint8_t)(number & REPAIRS);
    if (number < 2) {
        data[0] |= AS_HASHES;
        return 1 + seed_hashes(data + 1);
    }
    return 1 + seed_part(kinds[(number - 2) / 2], number % 2 ? 400 : 9,
                         data + 1, most - 1);
}
