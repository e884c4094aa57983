#include "frame/passwords.h"

#include <stdio.h>
#include <string.h>

#include "tool.h"

size_t secret_size(const char *rest) {
    const char *const at = strrchr(rest, '@');
    return at ? (size_t)(at - rest) : 0;
}

/* The original words, and what `shown` shows instead. */
static struct hidden {
    const char *shown;
    size_t size;
    const char *full;
} * hidden;
static size_t hidden_count;

/* A word, or the value of an option, that begins as paths do is no URL. */
static bool is_path(const char *word) {
    if (*word == '-') {
        word += strspn(word, "-abcdefghijklmnopqrstuvwxyz");
        word += *word == '=';
    }
    return *word == '/' || strncmp(word, "./", 2) == 0 ||
           strncmp(word, "../", 3) == 0;
}

static void hide(char **word) {
    char *const mark = strstr(*word, "://");
    if (!mark || is_path(*word)) return;
    char *const rest = mark + 3;
    const size_t size = secret_size(rest);
    if (!size) return;

    hidden = resize_memory(hidden, (hidden_count + 1) * sizeof *hidden);
    const char *const full = copy_text(*word);
    memset(rest, '*', size);
    char *const shown = alloc_memory(strlen(full) + 4);
    sprintf(shown, "%.*s***%s", (int)(rest - *word), full, rest + size);
    hidden[hidden_count++] = (struct hidden){shown, strlen(shown), full};
    *word = shown;
}

void hide_passwords(int count, char **words) {
    for (int i = 0; i < count; i++) hide(&words[i]);
}

/* The word may be the end of one, after --server= */
const char *as_given(const char *word) {
    for (size_t i = 0; i < hidden_count; i++)
        if (word >= hidden[i].shown && word < hidden[i].shown + hidden[i].size)
            return hidden[i].full + (word - hidden[i].shown);
    return word;
}
