#include "exact/spool.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exact/spill.h"

/*
 * The sketch is HyperLogLog: a hash picks one of 2^16 registers by its high
 * bits, and the register keeps the longest run of zeros that the other bits
 * started with, plus one. With many different hashes runs get long; equal ones
 * change nothing.
 */
enum {
    REGISTER_BITS = 16,
    REGISTERS = 1 << REGISTER_BITS,
    REST_BITS = 64 - REGISTER_BITS,
    ROOM = 1 << 20, /* hashes in memory */
};

struct spool {
    uint64_t *hashes;
    size_t count;
    uint64_t written; /* words in the file    */
    int fd;           /* -1: all are in memory */
    uint8_t longest[REGISTERS];
};

/* ---- The sketch --------------------------------------------------------- */

static void note(struct spool *s, uint64_t hash) {
    uint8_t *const longest = &s->longest[hash >> REST_BITS];
    const uint64_t rest = hash << REGISTER_BITS;
    const int run = rest ? __builtin_clzll(rest) + 1 : REST_BITS + 1;
    if (run > *longest) *longest = (uint8_t)run;
}

/* The two functions and the sum are the estimator of O. Ertl, "New cardinality
 * estimation algorithms for HyperLogLog sketches" (2017), algorithm 6: good
 * from none to all, without a table of corrections. */
static double sigma(double x) {
    if (x == 1) return INFINITY;
    double y = 1, z = x, before;
    do {
        x *= x;
        before = z;
        z += x * y;
        y += y;
    } while (z != before);
    return z;
}

static double tau(double x) {
    if (x == 0 || x == 1) return 0;
    double y = 1, z = 1 - x, before;
    do {
        x = sqrt(x);
        before = z;
        y /= 2;
        z -= (1 - x) * (1 - x) * y;
    } while (z != before);
    return z / 3;
}

double spool_distinct(const struct spool *s) {
    double with[REST_BITS + 2] = {0}; /* registers with this value */
    for (size_t i = 0; i < REGISTERS; i++) with[s->longest[i]]++;
    const double m = REGISTERS;
    double sum = m * tau(1 - with[REST_BITS + 1] / m);
    for (int run = REST_BITS; run >= 1; run--) sum = (sum + with[run]) / 2;
    sum += m * sigma(with[0] / m);
    return m * m / (2 * log(2) * sum);
}

/* ---- The hashes --------------------------------------------------------- */

struct spool *spool_open(void) {
    struct spool *const s = alloc_memory(sizeof *s);
    memset(s, 0, sizeof *s);
    s->fd = -1;
    s->hashes = alloc_memory(ROOM * sizeof *s->hashes);
    return s;
}

static void to_file(struct spool *s) {
    if (s->fd < 0 && (s->fd = spill_file()) < 0)
        fail_os(spill_folder(),
                "make a temporary file for hashes; name another "
                "folder in TMPDIR, or give --keys");
    const char *at = (const char *)s->hashes;
    for (size_t left = s->count * sizeof *s->hashes; left > 0;) {
        const ssize_t n = write(s->fd, at, left);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            fail_os(spill_folder(),
                    "write 8 bytes for each line here; name another "
                    "folder in TMPDIR, or give --keys");
        at += n;
        left -= (size_t)n;
    }
    s->written += s->count;
    s->count = 0;
}

static void from_file(struct spool *s) {
    size_t size = 0;
    for (ssize_t n = 1; n && size < ROOM * sizeof *s->hashes;) {
        n = read(s->fd, (char *)s->hashes + size,
                 ROOM * sizeof *s->hashes - size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_os(spill_folder(), "read hashes back");
        size += (size_t)n;
    }
    s->count = size / sizeof *s->hashes;
    if (s->count < ROOM && s->count < s->written)
        fail_at(spill_folder(), 0,
                "a temporary file lost its end while it was used");
    s->written -= s->count;
}

static void put_words(struct spool *s, const uint64_t *words, size_t n) {
    while (n > 0) {
        if (s->count == ROOM) to_file(s);
        const size_t room = ROOM - s->count;
        const size_t some = n < room ? n : room;
        memcpy(s->hashes + s->count, words, some * sizeof *words);
        s->count += some;
        words += some;
        n -= some;
    }
}

void spool_put(struct spool *s, const uint64_t *hashes, size_t n) {
    for (size_t i = 0; i < n; i++) note(s, hashes[i]);
    put_words(s, hashes, n);
}

void spool_mark(struct spool *s, uint64_t word) {
    put_words(s, &word, 1);
}

void spool_take(struct spool *s,
                void (*take)(void *context, const uint64_t *hashes, size_t n),
                void *context) {
    if (s->fd >= 0) {
        to_file(s);
        if (lseek(s->fd, 0, SEEK_SET) != 0)
            fail_os(spill_folder(), "read hashes back");
    }
    do {
        if (s->fd >= 0) from_file(s);
        if (s->count) take(context, s->hashes, s->count);
    } while (s->fd >= 0 && s->count);
}

void spool_close(struct spool *s) {
    if (s->fd >= 0) close(s->fd);
    free(s->hashes);
    free(s);
}
