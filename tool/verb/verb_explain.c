/*
 * calyx explain: what a lookup of a key tests, and what it finds there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/filter_file.h"
#include "frame/json.h"
#include "input/fields.h"
#include "input/key_options.h"

static const char *filter_name;
static bool as_json;

/* What a lookup of one key tests. */
struct lookup {
    const char *word; /* the key, as it was given */
    uint64_t hash;
    bool is_found, is_allowed;
    calyx_info info; /* of the filter */
    calyx_test *tests;
    size_t count;
};

/* Tests of one type in one part. */
struct test_step {
    const calyx_test *tests;
    size_t count, passed;
};

static struct test_step step_at(const struct lookup *l, size_t i) {
    struct test_step step = {.tests = l->tests + i};
    for (; i < l->count && l->tests[i].part == step.tests->part &&
           l->tests[i].type == step.tests->type;
         i++) {
        step.count++;
        step.passed += l->tests[i].passes;
    }
    return step;
}

/* ---- For people --------------------------------------------------------- */

static void print_name(const char *name) {
    printf("  %-9s ", name);
}

/* "17 of 195, in part 2 of 3", counted from 0 as in the file. */
static void print_block(const struct lookup *l, const calyx_test *test,
                        const char *name) {
    char block[TEXT_SIZE], blocks[TEXT_SIZE];
    print_name(name);
    printf("%s of %s", count_text(test->block, block),
           count_text(test->blocks, blocks));
    if (l->info.parts > 1)
        printf(", in part %u of %u", test->part, l->info.parts);
}

/* Where every bit is a block of its own, the bits say it all. */
static bool has_blocks(const struct test_step *step) {
    return step->tests->block != step->tests->at;
}

static void print_bits(const struct lookup *l, const struct test_step *step) {
    char text[TEXT_SIZE];
    const calyx_test *const tests = step->tests;
    for (size_t i = 0; i < step->count && has_blocks(step); i++) {
        if (i && tests[i].block == tests[i - 1].block) continue;
        print_block(l, &tests[i], "block");
        printf("\n");
    }
    print_name("bits");
    for (size_t i = 0; i < step->count; i++)
        printf("%s%s %s", i ? ", " : "", count_text(tests[i].at, text),
               tests[i].passes ? "set" : "not set");
    printf("\n");
}

static void print_code(const struct lookup *l, const struct test_step *step) {
    const calyx_test *const test = step->tests;
    print_block(l, test, "bucket");
    printf("\n");
    print_name("code");
    printf("0x%" PRIx64 ", %u bits: ", test->value, test->number);
    if (test->passes)
        printf("in slot %" PRIu64 "\n", test->at);
    else
        printf("in no slot\n");
}

static void print_rows(const struct test_step *step) {
    char text[TEXT_SIZE];
    const char *between = "";
    print_name("rows");
    for (uint32_t j = 0; j < 64; j++) {
        if (!(step->tests->value >> j & 1)) continue;
        printf("%s%s", between, count_text(step->tests->at + j, text));
        between = ", ";
    }
    printf("\n");
    print_name("sums");
    printf("%zu of %zu are as wanted: ", step->passed, step->count);
    for (size_t i = 0; i < step->count; i++)
        putchar('0' + (step->tests[i].wanted == step->tests[i].passes));
    printf(" for ");
    for (size_t i = 0; i < step->count; i++)
        putchar('0' + step->tests[i].wanted);
    printf("\n");
}

static void print_step(const struct lookup *l, const struct test_step *step) {
    switch (step->tests->type) {
        case CALYX_TEST_BIT: print_bits(l, step); break;
        case CALYX_TEST_CODE: print_code(l, step); break;
        case CALYX_TEST_SPILLED:
            print_name("spilled");
            printf("%s entry has the code\n", step->passed ? "an" : "no");
            break;
        case CALYX_TEST_BUMPED:
            print_block(l, step->tests, "group");
            printf("%s\n", step->passed ? ": bumped to the next part" : "");
            break;
        case CALYX_TEST_SUM: print_rows(step); break;
    }
}

static const char *answer_of(const struct lookup *l) {
    return l->is_allowed ? "no: it is on the allow list"
           : l->is_found ? "maybe"
                         : "no";
}

static void print_lookup(const struct lookup *l) {
    printf("%s\n", l->word);
    print_name("answer");
    printf("%s\n", answer_of(l));
    print_name("hash");
    printf("0x%016" PRIx64 ", by %s", l->hash, l->info.hash);
    if (l->info.seed) printf(" with seed %" PRIu64, l->info.seed);
    printf("\n");
    for (size_t i = 0; i < l->count;) {
        const struct test_step step = step_at(l, i);
        print_step(l, &step);
        i += step.count;
    }
}

/* ---- For programs ------------------------------------------------------- */

static void write_hex(const char *name, uint64_t value) {
    char text[2 + 16 + 1];
    snprintf(text, sizeof text, "0x%016" PRIx64, value);
    json_text(name, text);
}

static void write_test(const calyx_test *test) {
    static const char *const names[] = {
        [CALYX_TEST_BIT] = "bit",         [CALYX_TEST_CODE] = "code",
        [CALYX_TEST_SPILLED] = "spilled", [CALYX_TEST_BUMPED] = "bumped",
        [CALYX_TEST_SUM] = "sum",
    };
    json_open(NULL, '{');
    json_text("test", names[test->type]);
    json_count("part", test->part);
    json_count("block", test->block);
    json_count("blocks", test->blocks);
    if (test->type == CALYX_TEST_BIT) json_count("bit", test->at);
    if (test->type == CALYX_TEST_CODE) {
        write_hex("code", test->value);
        json_count("code_bits", test->number);
        if (test->passes) json_count("slot", test->at);
    }
    if (test->type == CALYX_TEST_SUM) {
        json_open("rows", '[');
        for (uint32_t j = 0; j < 64; j++)
            if (test->value >> j & 1) json_count(NULL, test->at + j);
        json_close();
        json_count("wanted", test->wanted);
    }
    json_answer("passes", test->passes);
    json_close();
}

static void write_lookup(const struct lookup *l) {
    json_open(NULL, '{');
    json_text("key", l->word);
    json_text("kind", l->info.kind);
    write_hex("hash", l->hash);
    json_answer("found", l->is_found);
    json_answer("allowed", l->is_allowed);
    json_open("tests", '[');
    for (size_t i = 0; i < l->count; i++) write_test(&l->tests[i]);
    json_close();
    json_close();
}

/* ---- The verb ----------------------------------------------------------- */

/* Returns whether the filter may have the key. */
static bool explain(const calyx_filter *f, const char *word,
                    const calyx_key *key) {
    struct lookup l = {
        .word = word,
        .hash = calyx_hash(f, key->data, key->size),
        .is_found = calyx_has(f, key->data, key->size),
        .is_allowed = calyx_is_allowed(f, key->data, key->size),
        .count = calyx_explain(f, key->data, key->size, NULL, 0),
    };
    filter_expect_health(f, filter_name);
    calyx_info_of(f, &l.info);
    l.tests = alloc_memory(l.count * sizeof *l.tests);
    calyx_explain(f, key->data, key->size, l.tests, l.count);
    (as_json ? write_lookup : print_lookup)(&l);
    free(l.tests);
    return l.is_found;
}

/* A word is a key, not a line: only options that change keys are used, not
 * options that select them in a line. */
static void use_key_options(calyx_filter *f) {
    key_options_use(1, &filter_name, &f);
    free(key_form.ranges);
    key_form =
        (struct key_options){.fold = key_form.fold, .trim = key_form.trim};
}

static int run(int count, char **operands) {
    if (!filter_name) fail("missing -f FILTER: calyx explain -f FILTER KEY...");
    calyx_filter *const f = filter_open(filter_name);
    use_key_options(f);
    bool any = false;
    if (as_json) json_open(NULL, '[');
    for (int i = 0; i < count; i++) {
        const calyx_key word = {operands[i], strlen(operands[i])};
        struct key_maker maker = {0};
        char error[FIELD_ERROR_ROOM];
        if (i > 0 && !as_json) printf("\n");
        if (make_key(&maker, &word, NULL, error) != KEY_MADE)
            fail("'%s' is no key: %s", operands[i], error);
        const calyx_key key = {maker.bytes, maker.size};
        any |= explain(f, operands[i], &key);
        free(maker.bytes);
    }
    if (as_json) json_close();
    calyx_free(f);
    return any ? EXIT_YES : EXIT_NO;
}

static const struct group options = {
    "Options",
    {
        {'f', "filter", "FILTER", "The filter, in a file of that name.",
         parse_text, &filter_name},
        {0, "json", NULL,
         "Print an array with one object for each KEY, for programs.",
         parse_flag, &as_json},
    },
};

const struct verb verb_explain = {
    .name = "explain",
    .summary = "show what a lookup of a key tests, bit by bit",
    .synopsis = "-f FILTER [--json] KEY...",
    .prose =
        {"Shows the hash of each KEY, where in the filter it leads, and what "
         "is there. Numbers count from 0, as in doc/FORMAT.md.",
         "In a Bloom filter a key has some bits, in one block or in several: "
         "if all are set, the answer is 'maybe'; one that is not set proves "
         "that the key was never added. In a table, bucket or distinct, a key "
         "has a bucket and a code, which is in a slot of the bucket or, if "
         "that was full, among the spilled entries. In a ribbon filter a key "
         "chooses some of 48 rows, which must sum up, modulo 2, to bits of its "
         "hash; or its group was bumped, and the next part has it.",
         "KEY is a key, not a line: of the options for keys that the filter "
         "was built with, only -i and --trim change it."},
    .groups = {&options, &secret_group},
    .examples = {{"calyx explain -f seen.calyx rose",
                  "the bits of a word, and which of them are set"}},
    .status = "0 if the filter may have one of the keys, 1 if it has none, 2 "
              "on an error, with a message on standard error.",
    .least = 1,
    .most = -1,
    .run = run,
};
