#include "input/header.h"

#include <stdlib.h>
#include <string.h>

#include "input/key_options.h"
#include "input/records.h"
#include "input/source.h"

static char **files; /* whose lines are printed */
static size_t file_count;
static bool output_expects, of_all, said;
static size_t first; /* the number of the file whose header is stored */
static char *text;   /* that header and its end; NULL: none yet */
static size_t text_size;

static calyx_key header_text(void) {
    return (calyx_key){text, text_size};
}

/* With the name of the column before it. */
static calyx_key header_with_count(void) {
    static const char name[] = "count\t";
    const size_t size = sizeof name - 1;
    if (!text) return (calyx_key){0};
    static char *both;
    both = resize_memory(both, size + text_size);
    memcpy(both, name, size);
    memcpy(both + size, text, text_size);
    return (calyx_key){both, size + text_size};
}

void lines_go_to(struct output *output, int count, char **names, unsigned use) {
    if (output && output_is_standard(output)) source_refuse_output();
    if (!key_form.header || !output) return;
    files = names;
    file_count = (size_t)count;
    first = file_count;
    of_all = use & LINES_OF_ALL_FILES;
    output_expects = true;
    output_begin_with(output, use & COUNT_BEFORE_LINES ? header_with_count
                                                       : header_text);
}

static void store(const calyx_key *header) {
    const char end = record_end();
    text_size = header->size + 1;
    text = resize_memory(text, text_size);
    if (header->size) memcpy(text, header->data, header->size);
    text[header->size] = end;
}

static bool is_stored(const calyx_key *header) {
    return header->size + 1 == text_size &&
           memcmp(text, header->data, header->size) == 0;
}

/* Files may be read in any order, and several times. */
void header_note(char *name, const calyx_key *header) {
    if (file_count == 0) { /* standard input */
        if (output_expects) store(header);
        return;
    }
    for (size_t i = 0; i < first; i++)
        if (files[i] == name) {
            store(header);
            first = i;
            return;
        }
    if (!of_all || said || !text || is_stored(header)) return;
    said = true;
    warn_at(name, "its header is not the header of %s, which is printed",
            files[first]);
}
