/*
 * Numbers as people write them, to and fro. A suffix of K, M, G or T multiplies
 * by a power of 1000, and of Ki, Mi, Gi or Ti by one of 1024, for counts and
 * for sizes alike: 10M is ten million of whatever it counts.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* ---- From text ---------------------------------------------------------- */

/* A decimal number; strtod would also take "inf", "nan" and "0x1p3". Returns
 * what follows it, or NULL. */
static const char *decimal(const char *text, double *number) {
    if (!isdigit((unsigned char)*text) && *text != '.') return NULL;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) return NULL;
    char *end;
    *number = strtod(text, &end);
    return end == text || !isfinite(*number) ? NULL : end;
}

/* The factor of a suffix; `*end` is moved past it. */
static uint64_t factor(const char **end) {
    const char *const letters = "KMGT";
    const char letter = (char)toupper((unsigned char)**end);
    const char *const at = letter ? strchr(letters, letter) : NULL;
    if (!at) return 1;
    ++*end;
    const bool binary = **end == 'i';
    *end += binary;
    uint64_t product = 1;
    for (const char *l = letters; l <= at; l++) product *= binary ? 1024 : 1000;
    return product;
}

/* Whole numbers with a suffix, exact as long as they are written in digits. */
static bool whole(const char *text, const char *unit, uint64_t *out) {
    double number;
    const char *end = decimal(text, &number);
    if (!end) return false;

    const char *const digits_end = text + strspn(text, "0123456789");
    const bool digits_only = digits_end == end;
    const uint64_t by = factor(&end);
    if (*end && toupper((unsigned char)*end) != *unit) return false;
    if (*end && end[1]) return false;

    if (digits_only) {
        errno = 0;
        const uint64_t n = strtoull(text, NULL, 10);
        return errno == 0 && !__builtin_mul_overflow(n, by, out);
    }
    number *= (double)by;
    if (!(number < 0x1p63) || number != floor(number)) return false;
    *out = (uint64_t)number;
    return true;
}

bool count_from(const char *text, uint64_t *count) {
    return whole(text, "", count);
}

bool size_from(const char *text, uint64_t *bytes) {
    return whole(text, "B", bytes);
}

bool rate_from(const char *text, double *rate) {
    const char *end = decimal(text, rate);
    if (!end) return false;
    if (strcmp(end, "%") == 0) {
        *rate /= 100;
        return true;
    }
    if (*end == '/') {
        double below;
        end = decimal(end + 1, &below);
        if (!end || !(below > 0)) return false;
        *rate /= below * (double)factor(&end);
    }
    return *end == '\0';
}

bool time_from(const char *text, double *seconds) {
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},
                 {"s", 1},     {"min", 60},  {"h", 3600}};

    const char *const end = decimal(text, seconds);
    for (size_t i = 0; end && i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].unit) == 0) {
            *seconds *= units[i].seconds;
            return true;
        }
    return false;
}

/* ---- To text ------------------------------------------------------------ */

char *count_text(uint64_t count, char *buffer) {
    char digits[TEXT_SIZE];
    const int n = snprintf(digits, sizeof digits, "%" PRIu64, count);
    char *to = buffer;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) *to++ = ' ';
        *to++ = digits[i];
    }
    *to = '\0';
    return buffer;
}

char *size_text(uint64_t bytes, char *buffer) {
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 999.5 && unit < 5; unit++) size /= 1000;
    const int places = unit == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    snprintf(buffer, TEXT_SIZE, "%.*f %s", places, size, units[unit]);
    return buffer;
}

char *rate_text(double rate, char *buffer) {
    if (rate >= 1e-4 || rate <= 0) {
        snprintf(buffer, TEXT_SIZE, "%.3g %%", 100 * rate);
        return buffer;
    }
    const double in = 1 / rate;
    if (!(in < 1e15)) {
        snprintf(buffer, TEXT_SIZE, "1 in %.3g", in);
        return buffer;
    }
    /* three digits are as many as mean something */
    const double step = pow(10, floor(log10(in)) - 2);
    char number[TEXT_SIZE];
    snprintf(buffer, TEXT_SIZE, "1 in %.26s",
             count_text((uint64_t)(round(in / step) * step), number));
    return buffer;
}
