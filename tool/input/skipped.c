#include "input/skipped.h"

#include <stdio.h>

#include "input/key_options.h"

/* By the pointer to the first name, NULL for standard input: it is the same in
 * each pass over these files. */
static struct reading_skips {
    const char *first_file;
    struct skipped_lines skipped;
    bool said;
} * readings;
static size_t reading_count, reading_room;

static struct reading_skips *skips_of(const char *first_file) {
    for (size_t i = 0; i < reading_count; i++)
        if (readings[i].first_file == first_file) return &readings[i];
    readings =
        with_room(readings, &reading_room, reading_count + 1, sizeof *readings);
    readings[reading_count] = (struct reading_skips){.first_file = first_file};
    return &readings[reading_count++];
}

/* "2 lack the key, 1 is broken" */
static void describe(const struct skipped_lines *skipped, char *text,
                     size_t room) {
    char number[TEXT_SIZE];
    int n = 0;
    if (skipped->missing)
        n = snprintf(text, room, "%s lack%s the key",
                     count_text(skipped->missing, number),
                     skipped->missing == 1 ? "s" : "");
    if (skipped->invalid)
        snprintf(text + n, room - (size_t)n, "%s%s %s broken", n ? ", " : "",
                 count_text(skipped->invalid, number),
                 skipped->invalid == 1 ? "is" : "are");
}

/* If a path of --jsonl looks like one of jq, and lines lack it. */
static const char *hint(const struct skipped_lines *skipped) {
    const char *text = "";
    for (size_t i = 0; key_form.json && i < key_form.ranges_count; i++)
        if (skipped->missing && !*text)
            text = json_path_hint(key_form.ranges[i].name);
    return *text ? text : key_options_hint();
}

static void judge(const char *name, const struct skipped_lines *skipped) {
    char what[120], out[TEXT_SIZE], all[TEXT_SIZE];
    const uint64_t left_out = skipped->missing + skipped->invalid;
    if (left_out <= skipped->all / 2) return;
    describe(skipped, what, sizeof what);
    count_text(left_out, out);
    count_text(skipped->all, all);
    const char *const before = name ? name : "", *const colon =
                                                     name ? ": " : "";
    if (left_out == skipped->all)
        fail("%s%sno line has a key: of %s line%s %s%s", before, colon, all,
             left_out == 1 ? "" : "s", what, hint(skipped));
    warn("%s%s%s of %s lines were left out: %s%s", before, colon, out, all,
         what, hint(skipped));
}

void skipped_note(int count, char **files, const struct skipped_lines *skipped,
                  bool whole) {
    if (!skipped->all) return;
    struct reading_skips *const reading = skips_of(count ? files[0] : NULL);
    reading->skipped = *skipped;
    if (!whole || reading->said) return;
    reading->said = true;
    judge(count == 1 ? files[0] : NULL, skipped);
}

bool skipped_sum(struct skipped_lines *sum) {
    *sum = (struct skipped_lines){0};
    for (size_t i = 0; i < reading_count; i++) {
        sum->all += readings[i].skipped.all;
        sum->missing += readings[i].skipped.missing;
        sum->invalid += readings[i].skipped.invalid;
    }
    return missing_key == MISSING_IS_SKIPPED || skips_invalid;
}
