#include "frame/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DEEPEST = 8 };
static char open_brackets[DEEPEST];
static int depth;
static bool fresh = true; /* nothing was written since the last bracket */

/* ---- Text --------------------------------------------------------------- */

/* Bytes of the UTF-8 character here; 0 if it is none. */
static int character_size(const unsigned char *text) {
    const unsigned char first = *text;
    const int size = first < 0x80                    ? 1
                     : first >= 0xC2 && first < 0xE0 ? 2
                     : first >= 0xE0 && first < 0xF0 ? 3
                     : first >= 0xF0 && first < 0xF5 ? 4
                                                     : 0;
    for (int i = 1; i < size; i++)
        if ((text[i] & 0xC0) != 0x80) return 0;
    /* too long for what they say, half a pair, or past the last */
    if (first == 0xE0 && text[1] < 0xA0) return 0;
    if (first == 0xED && text[1] >= 0xA0) return 0;
    if (first == 0xF0 && text[1] < 0x90) return 0;
    if (first == 0xF4 && text[1] >= 0x90) return 0;
    return size;
}

static void quote(const char *text) {
    putchar('"');
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        const int size = character_size(at);
        if (size == 0)
            printf("\\ufffd");
        else if (*at < 0x20 || *at == 0x7F)
            printf("\\u%04x", *at);
        else if (*at == '"' || *at == '\\')
            printf("\\%c", *at);
        else
            fwrite(at, 1, (size_t)size, stdout);
        at += size ? size : 1;
    }
    putchar('"');
}

/* ---- Values ------------------------------------------------------------- */

static void start(const char *name) {
    if (depth > 0) printf("%s\n%*s", fresh ? "" : ",", 2 * depth, "");
    if (name) {
        quote(name);
        printf(": ");
    }
    fresh = false;
}

static void finish(void) {
    if (depth == 0) printf("\n");
}

void json_open(const char *name, char bracket) {
    assert(depth < DEEPEST);
    start(name);
    putchar(bracket);
    open_brackets[depth++] = bracket;
    fresh = true;
}

void json_close(void) {
    assert(depth > 0);
    const char bracket = open_brackets[--depth];
    if (!fresh) printf("\n%*s", 2 * depth, "");
    putchar(bracket == '{' ? '}' : ']');
    fresh = false;
    finish();
}

void json_text(const char *name, const char *text) {
    start(name);
    quote(text);
}

void json_count(const char *name, uint64_t count) {
    start(name);
    printf("%" PRIu64, count);
}

void json_number(const char *name, double number) {
    start(name);
    if (isfinite(number))
        printf("%.12g", number);
    else
        printf("null");
}

void json_answer(const char *name, bool answer) {
    start(name);
    printf(answer ? "true" : "false");
}
