#include "frame/file_list.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *list; /* NULL: none */

void parse_file_list(const struct verb_option *option, const char *value) {
    (void)option;
    if (list) fail("option --files0-from may be given once");
    list = value;
}

static char **named; /* by add_operand */
static size_t named_count, named_room;

void add_operand(const char *name) {
    named = with_room(named, &named_room, named_count + 1, sizeof *named);
    named[named_count++] = (char *)(uintptr_t)name;
}

static bool is_standard(const char *name) {
    return strcmp(name, "-") == 0;
}

/* All bytes of a file, and a NUL after them. */
static char *read_all(FILE *file, const char *name, size_t *size) {
    char *bytes = NULL;
    size_t room = 0;
    for (*size = 0;;) {
        room = room ? 2 * room : 4096;
        bytes = resize_memory(bytes, room);
        *size += fread(bytes + *size, 1, room - 1 - *size, file);
        if (*size < room - 1) break;
    }
    if (ferror(file)) fail_os(name, "read it");
    bytes[*size] = '\0';
    return bytes;
}

static char *read_list(const char **name, size_t *size) {
    const bool standard = is_standard(list);
    *name = standard ? "standard input" : list;
    FILE *const file = standard ? stdin : fopen(list, "rbe");
    if (!file) fail_os(*name, "open it");
    char *const bytes = read_all(file, *name, size);
    if (!standard) fclose(file);
    if (*size == 0) fail_at(*name, 0, "expected names of files, found none");
    if (!memchr(bytes, '\0', *size) && memchr(bytes, '\n', *size))
        fail_at(*name, 0,
                "found lines, expected names that end in a byte 0, as find "
                "-print0 writes them; tr '\\n' '\\0' makes names of them");
    return bytes;
}

char **operands_with_files(char **operands, int *count) {
    if (!list && !*count && named_count) {
        *count = (int)named_count;
        return named;
    }
    if (!list) return operands;
    const char *name;
    size_t size;
    char *const bytes = read_list(&name, &size), *const end = bytes + size;
    size_t n = (size_t)*count, room = n + 64;
    static char **all; /* as long as the process */
    all = alloc_memory(room * sizeof *all);
    if (n) memcpy(all, operands, n * sizeof *all);
    for (char *at = bytes; at < end; at += strlen(at) + 1, n++) {
        const uint64_t number = n - (size_t)*count + 1;
        if (!*at) fail_at(name, number, "the name of a file is empty");
        if (is_standard(list) && is_standard(at))
            fail_at(name, number,
                    "- is standard input, which has the names of the files");
        if (n == INT_MAX) fail_at(name, 0, "it names too many files");
        all = with_room(all, &room, n + 1, sizeof *all);
        all[n] = at;
    }
    *count = (int)n;
    return all;
}

/* As -, or as /dev/stdin if it is a pipe: a file can be opened twice there. */
static bool is_standard_input(const char *path) {
    struct stat is, standard;
    if (is_standard(path)) return true;
    return stat(path, &is) == 0 && fstat(STDIN_FILENO, &standard) == 0 &&
           S_ISFIFO(is.st_mode) && is.st_dev == standard.st_dev &&
           is.st_ino == standard.st_ino;
}

void expect_one_standard_input(const struct texts *option, int count,
                               char **files) {
    int uses = count == 0;
    for (int i = 0; i < count; i++) uses += is_standard_input(files[i]);
    for (size_t i = 0; option && i < option->count; i++)
        uses += is_standard_input(option->text[i]);
    if (uses > 1)
        fail("standard input is named %d times; it can be read once", uses);
}
