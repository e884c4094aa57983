/*
 * calyx info: what a filter is, how full, and what to expect of it.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "files/filter_file.h"
#include "files/foreign_file.h"
#include "frame/json.h"
#include "http/http_filter.h"
#include "input/key_options.h"
#include "tool.h"

static bool as_json;

/* ---- For people --------------------------------------------------------- */

/* Somebody else's words: nothing in them may move the cursor. */
static void print_text(const char *name, const char *text) {
    printf("  %-9s ", name);
    for (; *text; text++) putchar(iscntrl((unsigned char)*text) ? ' ' : *text);
    printf("\n");
}

/* As in the universal set of 'calyx build --all'. */
static bool has_all_keys(const calyx_info *is) {
    return is->can & CALYX_CAN_INTERSECT && is->fill >= 1;
}

/* Bits by chance: at capacity half of all filters seem to hold a few keys more,
 * by about the square root of their number. */
static bool is_overfull(const calyx_info *is) {
    const double capacity = (double)is->capacity;
    return is->fpr_now > is->fpr && !has_all_keys(is) &&
           (is->items > is->capacity ||
            is->distinct > capacity + 4 * sqrt(capacity));
}

/* What is known of a filter. Of one by URL the bits are not read. */
struct shown_filter {
    calyx_info info;
    const char *comment, *keyed_by;
    bool lacks_bits;
};

static void print_info(const char *name, const struct shown_filter *shown) {
    const calyx_info *const is = &shown->info;
    char a[TEXT_SIZE], b[TEXT_SIZE];
    printf("%s\n", name);
    printf("  kind      %s", is->kind);
    if (is->growth > 0)
        printf(", grows by %g: %u part%s so far", is->growth, is->parts,
               is->parts == 1 ? "" : "s");
    printf("%s\n", is->strict ? ", strict: no key past its capacity" : "");
    printf("  keys      ");
    if (has_all_keys(is))
        printf("all there are: every bit is set");
    else
        printf("%s of %s", count_text(is->items, a),
               count_text(is->capacity, b));
    if (is->universe)
        printf("; exact for the %s of its universe",
               count_text(is->universe, a));
    if (is->grows_to)
        printf("; keeps its rate up to %s", count_text(is->grows_to, a));
    printf("\n");
    if (shown->lacks_bits) {
        printf("  rate      %s promised\n", rate_text(is->fpr, b));
    } else if (is->universe) {
        printf("  rate      none is wrong in the universe; %s of other keys "
               "pass\n",
               rate_text(is->fpr, b));
    } else {
        if (!has_all_keys(is))
            printf("  distinct  about %s, judged by the bits\n",
                   count_text((uint64_t)round(is->distinct), a));
        printf("  rate      %s now, %s promised\n", rate_text(is->fpr_now, a),
               rate_text(is->fpr, b));
    }
    printf("  size      %s", size_text(is->bytes, a));
    if (is->capacity) /* an exact filter may have no key */
        printf(", %.2f bits a key at capacity",
               8 * (double)is->bytes / (double)is->capacity);
    printf("\n");
    printf("  bits      %s", count_text(is->bits, a));
    const bool has_slots = is->can & CALYX_CAN_GROW_IN_PLACE;
    if (!shown->lacks_bits)
        printf(", %s %s", rate_text(is->fill, b),
               has_slots ? "of the slots in use" : "set");
    if (!has_slots) printf("; %u probes a key", is->probes);
    printf("\n");
    if (strcmp(is->hash, "siphash") == 0)
        printf("  hash      siphash, with a secret key\n");
    else
        printf("  hash      %s, seed %llu\n", is->hash,
               (unsigned long long)is->seed);
    if (is->allowed)
        printf("  allowed   %s key%s known not to be in it\n",
               count_text(is->allowed, a), is->allowed == 1 ? " is" : "s are");
    if (shown->keyed_by && *shown->keyed_by)
        print_text("keyed by", shown->keyed_by);
    if (*shown->comment) print_text("comment", shown->comment);
    if (is->saturated)
        printf("  saturated %s of %s buckets, by chosen keys or many copies of "
               "keys: every key passes there\n",
               count_text(is->saturated, a), count_text(is->bits / 512, b));
    if (is_overfull(is))
        printf("  note      it holds more keys than it was made for, so its "
               "rate is over the promised one\n");
}

/* Without the numbers that its layout does not have. */
static void print_foreign(const char *name, const struct foreign_file *f) {
    const struct foreign_facts is = foreign_file_describe(f);
    char a[TEXT_SIZE], b[TEXT_SIZE];
    printf("%s\n", name);
    printf("  layout    %s%s%s\n", f->filter.layout->name,
           *is.variant ? ", " : "", is.variant);
    printf("  items     %s\n", f->items->name);
    if (is.counts && is.capacity)
        printf("  keys      %s of %s\n", count_text(is.items, a),
               count_text(is.capacity, b));
    if (is.distinct > 0)
        printf("  distinct  about %s, judged by the bits\n",
               count_text((uint64_t)round(is.distinct), a));
    printf("  rate      %s now", rate_text(is.rate_now, a));
    if (is.rate > 0) printf(", %s promised", rate_text(is.rate, b));
    printf("\n");
    printf("  bits      %s, %s set; %u probes a key\n", count_text(is.bits, a),
           rate_text((double)is.set / (double)is.bits, b), is.probes);
    if (is.parts > 1) printf("  parts     %u\n", is.parts);
    if (is.note) printf("  note      %s\n", is.note);
}

/* ---- For programs ------------------------------------------------------- */

static void write_info(const char *name, const struct shown_filter *shown) {
    const calyx_info *const is = &shown->info;
    json_open(NULL, '{');
    json_text("file", name);
    json_text("kind", is->kind);
    json_count("keys", is->items);
    json_count("capacity", is->capacity);
    if (!shown->lacks_bits) json_number("distinct", is->distinct);
    if (!shown->lacks_bits) json_number("rate", is->fpr_now);
    json_number("rate_promised", is->fpr);
    json_count("bytes", is->bytes);
    json_count("bits", is->bits);
    if (!shown->lacks_bits) json_number("fill", is->fill);
    json_count("probes", is->probes);
    json_count("parts", is->parts);
    json_number("growth", is->growth);
    if (is->grows_to) json_count("grows_to", is->grows_to);
    if (is->saturated) json_count("saturated", is->saturated);
    json_answer("strict", is->strict);
    json_text("hash", is->hash);
    json_count("seed", is->seed);
    json_count("allowed", is->allowed);
    json_text("comment", shown->comment);
    if (shown->keyed_by) json_text("key_options", shown->keyed_by);
    json_close();
}

static void write_foreign(const char *name, const struct foreign_file *f) {
    const struct foreign_facts is = foreign_file_describe(f);
    json_open(NULL, '{');
    json_text("file", name);
    json_text("layout", f->filter.layout->name);
    json_text("variant", is.variant);
    json_text("items", f->items->name);
    if (is.counts) json_count("keys", is.items);
    if (is.capacity) json_count("capacity", is.capacity);
    if (is.distinct > 0) json_number("distinct", is.distinct);
    json_number("rate", is.rate_now);
    if (is.rate > 0) json_number("rate_promised", is.rate);
    json_count("bits", is.bits);
    json_number("fill", (double)is.set / (double)is.bits);
    json_count("probes", is.probes);
    json_count("parts", is.parts);
    if (is.note) json_text("note", is.note);
    json_close();
}

/* ---- The verb ----------------------------------------------------------- */

static void show_file(const char *path) {
    struct foreign_file *foreign;
    calyx_filter *const f = filter_open_any(path, &foreign);
    if (foreign) {
        (as_json ? write_foreign : print_foreign)(path, foreign);
        foreign_file_free(foreign);
        return;
    }
    filter_expect_whole(f, path);
    struct shown_filter shown = {.comment = calyx_comment(f),
                                 .keyed_by = key_options_of(f)};
    calyx_describe(f, &shown.info);
    (as_json ? write_info : print_info)(path, &shown);
    calyx_free(f);
}

static void show_url(const char *url) {
    struct http_filter *const f = http_filter_open(url, secret_key(), false);
    const struct http_facts facts = http_filter_facts(f);
    const struct shown_filter shown = {.info = facts.info,
                                       .comment = facts.comment,
                                       .keyed_by = facts.key_options,
                                       .lacks_bits = true};
    (as_json ? write_info : print_info)(url, &shown);
    http_filter_close(f);
}

static int run(int count, char **operands) {
    if (as_json) json_open(NULL, '[');
    for (int i = 0; i < count; i++) {
        if (i > 0 && !as_json) printf("\n");
        (is_http_url(operands[i]) ? show_url : show_file)(operands[i]);
    }
    if (as_json) json_close();
    return EXIT_YES;
}

static const struct group options = {
    "Options",
    {
        {0, "json", NULL,
         "Print an array with one object for each FILE, for programs.",
         parse_flag, &as_json},
    },
};

const struct verb verb_info = {
    .name = "info",
    .summary = "show what filters are, how full they are, and their rate",
    .synopsis = "[--json] FILE...",
    .prose =
        {"Shows the kind, keys, size and hash of each filter; the rate that it "
         "was made for, and up to how many keys; and the rate to expect now, "
         "estimated from the bits that are set. FILE may be compressed by gzip "
         "or zstd; - is standard input.",
         "Keys are counted when they are added; false positives are not "
         "counted. The number of distinct keys is an independent estimate from "
         "the bits. For it the whole filter is read and compared with its "
         "checksums: a damaged filter is an error.",
         "FILE may be a URL, http:// or https://. Then only the header and the "
         "state are read, a few kB, and what needs all bits is left out.",
         "Of a filter of another program, which 'calyx convert' or 'calyx pull "
         "--as' has made, it shows what its layout says: most have neither the "
         "number of keys nor the rate."},
    .groups = {&options, &owned_group, &secret_group},
    .examples = {{"calyx info seen.calyx", "show one filter"},
                 {"calyx info --layout 'murmur3-32 seeds 41..47 mod 5000000 "
                  "msb' seen.bits",
                  "raw bits, of a program of one's own"},
                 {"calyx info --json *.calyx | jq '.[] | select(.rate > .01)'",
                  "those with a rate over 1 % now"}},
    .least = 1,
    .most = -1,
    .run = run,
};
