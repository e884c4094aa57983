#include "base/radix_sort.h"

#include <string.h>

enum {
    DIGIT_BITS = 8,
    DIGITS = 1 << DIGIT_BITS,
    FEW = 24 /* words for which insertion is faster */
};

static void insertion_sort(uint64_t *words, size_t n) {
    for (size_t i = 1; i < n; i++) {
        const uint64_t word = words[i];
        size_t to = i;
        for (; to > 0 && words[to - 1] > word; to--) words[to] = words[to - 1];
        words[to] = word;
    }
}

/* Group words by the `bits` bits above `shift`. Each word goes where the next
 * one with its bits belongs, and the word that was there goes on. */
static void group_by_digit(uint64_t *words, size_t n, int shift, int bits,
                           size_t ends[DIGITS]) {
    size_t next[DIGITS], sum = 0;
    const size_t values = (size_t)1 << bits;
    const uint64_t mask = values - 1;
    memset(ends, 0, values * sizeof *ends);
    for (size_t i = 0; i < n; i++) ends[words[i] >> shift & mask]++;
    for (size_t v = 0; v < values; v++) {
        next[v] = sum;
        ends[v] = sum += ends[v];
    }
    for (size_t v = 0; v < values; v++)
        while (next[v] < ends[v]) {
            uint64_t word = words[next[v]];
            for (size_t to; (to = word >> shift & mask) != v;) {
                const uint64_t displaced = words[next[to]];
                words[next[to]++] = word;
                word = displaced;
            }
            words[next[v]++] = word;
        }
}

void partition_words(uint64_t *words, size_t n, int bits, uint64_t *ends) {
    const int first = bits < DIGIT_BITS ? bits : DIGIT_BITS;
    const int rest = bits - first;
    size_t inner[DIGITS], outer[DIGITS] = {n};
    if (first) group_by_digit(words, n, 64 - first, first, outer);
    for (size_t v = 0, from = 0; v < (size_t)1 << first; from = outer[v++]) {
        inner[0] = outer[v] - from;
        if (rest)
            group_by_digit(words + from, inner[0], 64 - bits, rest, inner);
        for (size_t w = 0; w < (size_t)1 << rest; w++)
            *ends++ = from + inner[w];
    }
}

void sort_words(uint64_t *words, size_t n, int bits) {
    size_t ends[DIGITS];
    if (n <= FEW || bits == 0) {
        insertion_sort(words, bits ? n : 0);
        return;
    }
    int digit = 1; /* such that about 8 words have the same */
    while (digit < DIGIT_BITS && digit < bits && n >> digit > 8) digit++;
    bits -= digit;
    group_by_digit(words, n, bits, digit, ends);
    for (size_t v = 0, from = 0; v < (size_t)1 << digit; from = ends[v++])
        sort_words(words + from, ends[v] - from, bits);
}

size_t limit_copies(uint64_t *words, size_t n, uint32_t copies,
                    uint64_t *distinct) {
    size_t left = 0;
    uint64_t different = 0;
    for (size_t i = 0, equal = 0; i < n; i++) {
        const uint64_t word = words[i];
        equal = left > 0 && words[left - 1] == word ? equal + 1 : 1;
        different += equal == 1;
        words[left] = word;
        left += equal <= copies;
    }
    *distinct = different;
    return left;
}
