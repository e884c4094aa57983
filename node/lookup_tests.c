/*
 * What a lookup tests, found by asking the library, so that the page can show
 * it and knows no kind. A test is a sum: some bits of the body, added modulo 2,
 * must be a certain bit. In a Bloom filter each test is one bit that must be 1;
 * in a static filter it is an equation, or a flag that must be 0.
 */
#include <calyx/calyx.h>
#include <string.h>

#ifdef __wasm__
#define EXPORT(type, name) __attribute__((export_name(#name))) type page_##name
#else
#define EXPORT(type, name) type page_##name
#endif

enum {
    LINE_BITS = 8 * CALYX_LINE_BYTES,
    BITS_MOST = 2048, /* of all tests of a lookup: 31 sums of 48 bits, a flag */
    TRIES = 1 << 14,  /* random lines, for one that is answered with yes     */
    ROUNDS = 32       /* random lines that the tests found have to explain   */
};

struct lookup {
    const calyx_layout *layout;
    uint32_t part;
    uint64_t hash;
    size_t bits; /* of the lines that it reads */
};

static uint8_t lines[CALYX_LINES_MOST * CALYX_LINE_BYTES];
static struct test_bit {
    uint32_t bit, test; /* of the lines; number of the test */
} found[BITS_MOST];
static uint32_t firsts[BITS_MOST]; /* the first bit of each test */
static uint8_t sums[BITS_MOST];    /* and what it must be        */

static bool is_yes(const struct lookup *l) {
    return calyx_layout_has(l->layout, l->part, l->hash, lines);
}

static void flip(uint32_t bit) {
    lines[bit / 8] ^= (uint8_t)(1 << bit % 8);
}

static unsigned bit_at(uint32_t bit) {
    return lines[bit / 8] >> bit % 8 & 1U;
}

static bool is_yes_without(const struct lookup *l, uint32_t a, uint32_t b) {
    flip(a);
    if (b != a) flip(b);
    const bool yes = is_yes(l);
    flip(a);
    if (b != a) flip(b);
    return yes;
}

/* xorshift64 (Marsaglia 2003). */
static void randomize(uint64_t *state) {
    for (size_t i = 0; i < sizeof lines; i++) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        lines[i] = (uint8_t)(*state >> 32);
    }
}

/* Lines with the answer yes: all ones, or by chance. */
static bool find_yes(const struct lookup *l, uint64_t *state) {
    memset(lines, 0xff, sizeof lines);
    for (int i = 0; i < TRIES && !is_yes(l); i++) randomize(state);
    return is_yes(l);
}

/* A bit is tested if the answer is no without it. Two bits are of one test if
 * the answer is yes without both. Returns the number of tested bits. */
static size_t find_tests(const struct lookup *l, uint32_t *tests) {
    size_t n = 0;
    *tests = 0;
    for (uint32_t bit = 0; bit < l->bits; bit++) {
        if (is_yes_without(l, bit, bit)) continue;
        uint32_t test = 0;
        while (test < *tests && !is_yes_without(l, bit, firsts[test])) test++;
        if (n == BITS_MOST) return 0;
        if (test == *tests) {
            firsts[(*tests)++] = bit;
            sums[test] = 0;
        }
        sums[test] ^= (uint8_t)bit_at(bit);
        found[n++] = (struct test_bit){bit, test};
    }
    return n;
}

/* Do the tests hold? If `repair`, make them. */
static bool hold(size_t n, uint32_t tests, bool repair) {
    static uint8_t now[BITS_MOST];
    memset(now, 0, tests);
    for (size_t i = 0; i < n; i++)
        now[found[i].test] ^= (uint8_t)bit_at(found[i].bit);
    bool all = true;
    for (uint32_t test = 0; test < tests; test++) {
        if (now[test] == sums[test]) continue;
        if (repair) flip(firsts[test]);
        all = false;
    }
    return all || repair;
}

/* Where the body of the part starts in the file. */
static uint64_t body_at(const struct lookup *l) {
    calyx_section body = {0};
    for (uint32_t i = 0; calyx_layout_section(l->layout, i, &body); i++)
        if (body.type == CALYX_SECTION_BODY && body.number == l->part) break;
    return body.at;
}

/*
 * The bits of the body that a lookup of this hash tests, in its order: three
 * numbers each, the bit, the number of its test, and the sum that this must
 * have. A negative bit ends them. None if the kind does not say which lines it
 * reads, or does not answer by such tests: then they fail to explain its
 * answers to random lines.
 */
EXPORT(const double *, lookup_tests)
(const calyx_layout *layout, int part, uint64_t hash) {
    static double result[3 * BITS_MOST + 1];
    uint64_t at[CALYX_LINES_MOST], state = 0x9E3779B97F4A7C15;
    struct lookup l = {layout, (uint32_t)part, hash, 0};
    l.bits = LINE_BITS * calyx_layout_lines(layout, l.part, hash, at);
    uint32_t tests = 0;
    size_t n = l.bits && find_yes(&l, &state) ? find_tests(&l, &tests) : 0;
    for (int i = 0; i < ROUNDS && n; i++) {
        randomize(&state);
        const bool expected = hold(n, tests, i % 2);
        if (is_yes(&l) != expected) n = 0;
    }
    const uint64_t start = body_at(&l);
    for (size_t i = 0; i < n; i++) {
        const uint32_t bit = found[i].bit;
        result[3 * i] =
            (double)(8 * (at[bit / LINE_BITS] - start) + bit % LINE_BITS);
        result[3 * i + 1] = found[i].test;
        result[3 * i + 2] = sums[found[i].test];
    }
    result[3 * n] = -1;
    return result;
}
