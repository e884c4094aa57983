/*
 * calyx check: which lines may be in a filter; or with -v, which certainly are
 * not. Its options follow grep.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exact/key_table.h"
#include "files/filter_file.h"
#include "files/foreign_file.h"
#include "files/new_filter.h"
#include "frame/file_list.h"
#include "http/http_filter.h"
#include "input/header.h"
#include "input/pipeline.h"
#include "server/foreign.h"
#include "server/query.h"
#include "server/shards.h"

static struct texts names, allow_lists;
static const char *except_name, *server_url;
static uint64_t shards;
static bool invert, count_only, numbered, quiet, show_filter, verify;
static bool show_file, list_with, list_without, ignored;
static uint64_t most = UINT64_MAX;

/* ---- The filters -------------------------------------------------------- */

/* Which filters have a line: one bit each. */
typedef uint64_t filter_set;
enum { MOST_FILTERS = 64 };

/* One that was named. */
struct queried {
    calyx_filter
        *filter; /* an empty one, to hash, if it is by URL or foreign */
    struct http_filter *http;     /* by URL           */
    struct foreign_file *foreign; /* another program's */
    bool shares_hash;             /* with the first, and needs no keys */
};
static struct queried queried[MOST_FILTERS], except;
static _Atomic uint64_t lines_in[MOST_FILTERS];
static struct key_table *allowed;

static bool is_standard(const char *name) {
    return strcmp(name, "-") == 0;
}

/* Standard input can be read once. */
static void look_for_standard_input(int count, char **files) {
    int uses = count == 0;
    for (int i = 0; i < count; i++) uses += is_standard(files[i]);
    for (size_t i = 0; i < names.count; i++) uses += is_standard(names.text[i]);
    for (size_t i = 0; i < allow_lists.count; i++)
        uses += is_standard(allow_lists.text[i]);
    if (except_name) uses += is_standard(except_name);
    if (uses > 1)
        fail("standard input is to be read as more than one of filters, lists "
             "and lines%s",
             count ? "" : "; name a file of lines");
}

static bool limited(void) {
    return most != UINT64_MAX;
}

static size_t http_count(void) {
    size_t n = 0;
    for (size_t f = 0; f < names.count; f++) n += queried[f].http != NULL;
    return n;
}

/* Are all lines of a block to be looked up at once, elsewhere? */
static bool queries_remote(void) {
    return server_url || http_count() > 0;
}

/* For what hashes here, and is queried elsewhere or in another way. */
static const calyx_options plain = {0};

/* The filter in the server counts as the first; the one here only hashes, for
 * --allow. */
static void open_remote(void) {
    query_open(server_url, shards, secret_key());
    queried[0].filter = new_hasher(&plain);
    char *const options = query_key_options();
    key_options_set(queried[0].filter, options);
    free(options);
    static const char *name;
    name = query_name();
    names = (struct texts){&name, 1};
}

/* Bits in a string of the server are read as a whole, and queried here. */
static void fetch_remote(void) {
    if (shards) fail("--shards does not go with --layout");
    static const char *name;
    struct foreign_filter f;
    name = foreign_fetch(server_url, &owned.choice, &f);
    queried[0].foreign = foreign_file_of(&f, owned.items);
    queried[0].filter = new_hasher(&plain);
    names = (struct texts){&name, 1};
    server_url = NULL;
}

static void open_file(const char *path, struct queried *q) {
    q->filter = filter_open_any(path, &q->foreign);
    if (q->foreign) q->filter = new_hasher(&plain); /* it was read as a whole */
}

static void open_filter(const char *name, struct queried *q) {
    if (is_http_url(name) && owned.choice.layout)
        fail("%s: --layout goes with files and --server; download it", name);
    if (!is_http_url(name)) {
        open_file(name, q);
        if (verify) filter_expect_whole(q->filter, name);
        return;
    }
    q->http = http_filter_open(name, secret_key(), verify);
    http_filter_expect_lookups(q->http);
    q->filter = http_filter_stand_in(q->http, secret_key());
}

/* An allow list is of keys, not of hashes. */
static bool has_list(const calyx_filter *f) {
    calyx_info info;
    calyx_info_of(f, &info);
    return info.allowed > 0;
}

static void open_filters(void) {
    if (!names.count)
        fail("missing -f FILTER: calyx check -f FILTER [FILE]..., or --server "
             "URL");
    if (shards) fail("--shards is for --server");
    if (names.count > MOST_FILTERS)
        fail("at most %d filters can be queried at once, not %zu", MOST_FILTERS,
             names.count);
    for (size_t i = 0; i < names.count; i++) {
        open_filter(names.text[i], &queried[i]);
        /* filters with one hash and seed or key agree on this one, too */
        const char *const probe = "calyx";
        queried[i].shares_hash = calyx_hash(queried[i].filter, probe, 5) ==
                                     calyx_hash(queried[0].filter, probe, 5) &&
                                 !has_list(queried[i].filter);
    }
}

/* All filters are queried for the same key, including --except. */
static void use_key_options(void) {
    const char *all_names[MOST_FILTERS + 1];
    calyx_filter *all[MOST_FILTERS + 1];
    size_t n = 0;
    for (; n < names.count; n++) {
        all_names[n] = names.text[n];
        all[n] = queried[n].filter;
    }
    all_names[n] = except_name;
    all[n] = except.filter;
    key_options_use(n + (except.filter != NULL), all_names, all);
}

/* What was said elsewhere of the keys of this block. */
struct line_answers {
    filter_set *sets; /* NULL: there is nothing elsewhere */
    size_t used;
};

/* Ask for all keys of a block at once: it takes as long as for one. */
static bool *query_server(struct text_block *block, struct key_batch *batch,
                          size_t *count) {
    struct remote_keys keys = {0};
    batch_start(batch, block);
    while (batch_next(batch, block))
        remote_keys_add(&keys, batch->keys, batch->count);
    *count = keys.count;
    return query_keys(&keys);
}

static bool *query_http(struct text_block *block, struct key_batch *batch,
                        size_t f, size_t *count) {
    hash_block(block, batch, queried[f].filter, false);
    *count = block->lines;
    bool *const found = alloc_memory(*count + 1);
    http_filter_has(queried[f].http, block->hashes, *count, found);
    if (!http_filter_has_list(queried[f].http)) return found;
    block->ended = 0; /* once more, for the keys */
    size_t at = 0;
    batch_start(batch, block);
    for (; batch_next(batch, block); at += batch->count)
        http_filter_take_back(queried[f].http, batch->keys, batch->count,
                              found + at);
    return found;
}

static struct line_answers query_remote(struct text_block *block,
                                        struct key_batch *batch) {
    struct line_answers answers = {0};
    for (size_t f = 0; f < names.count; f++) {
        size_t n;
        if (!server_url && !queried[f].http) continue;
        bool *const found = server_url ? query_server(block, batch, &n)
                                       : query_http(block, batch, f, &n);
        block->lines = 0; /* they are gone through once more */
        if (!answers.sets) {
            answers.sets = alloc_memory((n + 1) * sizeof *answers.sets);
            memset(answers.sets, 0, n * sizeof *answers.sets);
        }
        for (size_t i = 0; i < n; i++)
            answers.sets[i] |= (filter_set)found[i] << f;
        free(found);
    }
    return answers;
}

static void look_up(const struct queried *q, const calyx_key *keys, size_t n,
                    bool *found) {
    if (q->foreign)
        foreign_file_has_many(q->foreign, keys, n, found);
    else
        calyx_has_many(q->filter, keys, n, found);
}

/* Which filters here have each key. It is hashed once for all that hash alike.
 */
static void ask(const calyx_key *keys, size_t n, filter_set *sets) {
    bool found[BATCH_ROOM];
    uint64_t hashes[BATCH_ROOM];
    calyx_hash_many(queried[0].filter, keys, n, hashes);
    for (size_t f = 0; f < names.count; f++) {
        if (queried[f].http) continue;
        if (queried[f].shares_hash && !queried[f].foreign)
            calyx_has_hashes(queried[f].filter, hashes, n, found);
        else
            look_up(&queried[f], keys, n, found);
        for (size_t i = 0; i < n; i++) sets[i] |= (filter_set)found[i] << f;
    }
}

/* Take back what is known to be wrong, or excepted. */
static void take_back(const calyx_key *keys, size_t n, filter_set *sets) {
    for (size_t i = 0; i < n; i++) {
        if (!sets[i]) continue;
        const calyx_key *const key = &keys[i];
        bool found = false;
        if (except.filter) look_up(&except, key, 1, &found);
        if (allowed && !found)
            found = key_table_find_one(allowed, key,
                                       calyx_hash(queried[0].filter, key->data,
                                                  key->size)) != NULL;
        if (found) sets[i] = 0;
    }
}

/* Which lines are selected; and with -H, because of which filters. */
static void select_lines(const calyx_key *keys, size_t n,
                         struct line_answers *answers, bool *chosen,
                         filter_set *sets) {
    if (!answers->sets && names.count == 1 && !show_filter && !allowed &&
        !except.filter) {
        look_up(&queried[0], keys, n, chosen);
        for (size_t i = 0; i < n; i++) chosen[i] = chosen[i] != invert;
        return;
    }
    for (size_t i = 0; i < n; i++)
        sets[i] = answers->sets ? answers->sets[answers->used++] : 0;
    if (!server_url) ask(keys, n, sets);
    if (allowed || except.filter) take_back(keys, n, sets);
    for (size_t i = 0; i < n; i++) chosen[i] = (sets[i] != 0) != invert;
}

static bool allow(struct text_block *block, struct key_batch *batch) {
    batch_start(batch, block);
    while (batch_next(batch, block))
        for (size_t i = 0; i < batch->count; i++) {
            const calyx_key *const key = &batch->keys[i];
            const uint64_t hash =
                calyx_hash(queried[0].filter, key->data, key->size);
            if (!key_table_find_one(allowed, key, hash))
                key_table_insert(allowed, key, hash, NULL);
        }
    return true;
}

static void read_allowed(void) {
    if (!allow_lists.count) return;
    allowed = key_table_new(0, false);
    key_table_start(allowed, queried[0].filter, 0, UINT64_MAX / 4);
    const struct stages stages = {.in_order = allow};
    run_pipeline(&stages, (int)allow_lists.count, (char **)allow_lists.text);
}

/* ---- The lines ---------------------------------------------------------- */

static bool prefix_file; /* the name of the file before a line */
static uint64_t selected;

static void put_text(struct text_block *block, const char *text) {
    block_output(block, text, strlen(text));
    block_output(block, ":", 1);
}

static void put_number(struct text_block *block, uint64_t number, char end) {
    char digits[24], *at = digits + sizeof digits;
    *--at = end;
    do *--at = (char)('0' + number % 10);
    while (number /= 10);
    block_output(block, at, (size_t)(digits + sizeof digits - at));
}

static void put_line(struct text_block *block, const calyx_key *line,
                     uint64_t number, const char *filter) {
    if (filter) put_text(block, filter);
    if (prefix_file) put_text(block, block->file);
    if (numbered) put_number(block, number, ':');
    block_output_line(block, line->data, line->size);
}

/* Once for each filter that has it, if they are to be named. */
static void put_lines(struct text_block *block, const calyx_key *line,
                      uint64_t number, filter_set set) {
    if (!show_filter || !set) {
        put_line(block, line, number, NULL);
        return;
    }
    for (; set; set &= set - 1)
        put_line(block, line, number, names.text[__builtin_ctzll(set)]);
}

/* To cut the output at the last line that is wanted. */
static void note_end(struct text_block *block) {
    room_for_ends(block, block->selected + 1)[block->selected] =
        block->out_size;
}

static void put_selected(struct text_block *block,
                         const struct key_batch *batch, const bool *chosen,
                         const filter_set *sets) {
    for (size_t i = 0; i < batch->count; i++) {
        if (!chosen[i]) continue;
        put_lines(block, &batch->lines[i], batch->numbers[i],
                  show_filter ? sets[i] : 0);
        if (limited()) note_end(block);
        block->selected++;
    }
}

/* Where the next of these is, or n. */
static size_t next_of(bool which, const bool *chosen, size_t from, size_t n) {
    const bool *const at = memchr(chosen + from, which, n - from);
    return at ? (size_t)(at - chosen) : n;
}

/* The same for lines without a prefix: adjacent lines together, as they are in
 * the block. */
static void put_plain(struct text_block *block, const struct key_batch *batch,
                      const bool *chosen) {
    const size_t n = batch->count;
    for (size_t from = 0, to; from < n; from = to) {
        from = next_of(true, chosen, from, n);
        to = next_of(false, chosen, from, n);
        if (from == to) break;
        const char *const first = batch->lines[from].data;
        const calyx_key *const last = &batch->lines[to - 1];
        block_output_lines(block, first,
                           (size_t)((const char *)last->data - first) +
                               last->size + 1);
        block->selected += to - from;
    }
}

static void count_selected(struct text_block *block, size_t n,
                           const bool *chosen, const filter_set *sets) {
    for (size_t i = 0; i < n; i++) block->selected += chosen[i];
    if (!show_filter) return;
    for (size_t f = 0; f < names.count; f++) {
        uint64_t lines = 0;
        for (size_t i = 0; i < n; i++) lines += (sets[i] >> f & 1) != invert;
        lines_in[f] += lines;
    }
}

static bool prints_lines(void) {
    return !quiet && !count_only && !list_with && !list_without;
}

/* ---- Files -------------------------------------------------------------- */

static bool looks_at_files(void) {
    return !quiet && (list_with || list_without || (count_only && show_file));
}

/* The file whose lines come. */
static struct {
    const char *name; /* NULL: none yet */
    uint64_t selected;
    bool unread;
} current;
static _Atomic uint64_t listed; /* by -l: the number of the last such file */

static void put_name(struct text_block *block, const char *name) {
    block_output_line(block, name, strlen(name));
}

static void put_file(struct text_block *block) {
    if (!current.name || current.unread) return;
    if (list_without && !current.selected) put_name(block, current.name);
    if (!count_only) return;
    const char end = '\n';
    put_text(block, current.name);
    put_number(block, current.selected, end);
}

/* In order. What is known of a file only at its end is put out by the block
 * that follows. */
static void look_at_file(struct text_block *block) {
    if (block->starts_file) {
        put_file(block);
        current.name = block->file;
        current.selected = 0;
        current.unread = false;
    }
    current.unread |= block->trouble[0] != '\0';
    if (list_with && block->selected && !current.selected) {
        put_name(block, block->file);
        listed = block->file_number;
    }
    current.selected += block->selected;
}

/* The last file. */
static void end_files(struct output *output) {
    struct text_block block = {0};
    put_file(&block);
    if (block.out_size) output_write(output, block.out, block.out_size);
    block_free(&block);
}

static void in_parallel(struct text_block *block, struct key_batch *batch) {
    bool chosen[BATCH_ROOM];
    filter_set sets[BATCH_ROOM];
    struct line_answers answers = {0};
    if (list_with && block->file_number == listed) return;
    if (queries_remote()) answers = query_remote(block, batch);
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        select_lines(batch->keys, batch->count, &answers, chosen, sets);
        block->lines += batch->count;
        if (!prints_lines())
            count_selected(block, batch->count, chosen, sets);
        else if (show_filter || numbered || prefix_file || limited())
            put_selected(block, batch, chosen, sets);
        else
            put_plain(block, batch, chosen);
    }
    free(answers.sets);
}

/* All lines of this block have been looked up by now, and none is printed. */
static void expect_health(void) {
    for (size_t f = 0; f < names.count; f++)
        filter_expect_health(queried[f].filter, names.text[f]);
    if (except.filter) filter_expect_health(except.filter, except_name);
}

static bool in_order(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    expect_health();
    if (looks_at_files()) look_at_file(block);
    if (block->selected >= most - selected) {
        const uint64_t last = most - selected;
        if (block->out_size) block->out_size = block->ends[last - 1];
        selected = most;
        return false;
    }
    selected += block->selected;
    return !(quiet && selected);
}

/* ---- The verb ----------------------------------------------------------- */

static void print_counts(void) {
    if (!show_filter) {
        printf("%" PRIu64 "\n", selected);
        return;
    }
    for (size_t f = 0; f < names.count; f++)
        printf("%s:%" PRIu64 "\n", names.text[f], lines_in[f]);
}

static double expected_rate(void) {
    double none = 1;
    for (size_t f = 0; f < names.count; f++) {
        const struct queried *const q = &queried[f];
        calyx_info info;
        filter_expect_whole(q->filter, names.text[f]);
        calyx_describe(q->filter, &info);
        none *= 1 - (q->foreign ? foreign_file_describe(q->foreign).rate_now
                                : info.fpr_now);
    }
    return 1 - none;
}

static struct http_traffic all_traffic(void) {
    struct http_traffic all = {0};
    for (size_t f = 0; f < names.count; f++) {
        if (!queried[f].http) continue;
        const struct http_traffic one = http_filter_traffic(queried[f].http);
        all.requests += one.requests;
        all.bytes += one.bytes;
    }
    return all;
}

/* The rate is the rate of the bits, which are known only of filters here. */
static void report_all(const struct input_totals *totals) {
    const struct http_traffic traffic = all_traffic();
    struct figure figures[4] = {
        {"keys", (double)totals->lines, true},
        {"selected", (double)selected, true},
    };
    size_t n = 2;
    if (!queries_remote())
        figures[n++] = (struct figure){"expected_rate", expected_rate(), false};
    if (http_count()) {
        figures[n++] =
            (struct figure){"http_requests", (double)traffic.requests, true};
        figures[n++] =
            (struct figure){"http_bytes", (double)traffic.bytes, true};
    }
    report(totals, figures, n);
}

static void expect_sound_options(void) {
    if (limited() && count_only && show_filter)
        fail("--max-count does not go with --count and --filter-name");
    if ((list_with || list_without) &&
        (count_only || show_filter || limited() || (list_with && list_without)))
        fail("--files-with-matches and --files-without-match print only names: "
             "they do not go with each other, --count, --filter-name and "
             "--max-count");
    if (count_only && show_file && (limited() || show_filter))
        fail("--count of each file does not go with --max-count and "
             "--filter-name");
}

static int run(int count, char **files) {
    expect_sound_options();
    look_for_standard_input(count, files);
    if (server_url && names.count)
        fail("--server does not go with -f: query one, then the other");
    if (server_url)
        (owned.choice.layout ? fetch_remote : open_remote)();
    else
        open_filters();
    if (except_name && is_http_url(except_name))
        fail("--except: expected a file, found a URL");
    if (except_name) open_file(except_name, &except);
    use_key_options();
    if (most == 0) {
        if (count_only && !quiet) print_counts();
        return EXIT_NO;
    }
    read_allowed();
    prefix_file = show_file || (numbered && count > 1);
    const struct stages stages = {
        .in_parallel = in_parallel,
        .in_order = in_order,
        .numbered = numbered,
        .goes_on = true,
        .output = prints_lines() || looks_at_files() ? output_open(NULL, false)
                                                     : NULL,
    };
    if (prints_lines())
        lines_go_to(stages.output, count, files, LINES_OF_ALL_FILES);
    const struct input_totals totals = run_pipeline(&stages, count, files);
    if (looks_at_files()) end_files(stages.output);
    output_close(stages.output);
    if (count_only && !quiet && !show_file) print_counts();
    if (wants_report()) report_all(&totals);
    if (server_url) query_close();
    for (size_t f = 0; f < names.count; f++)
        if (queried[f].http) http_filter_close(queried[f].http);
    if (totals.unread && !(quiet && selected)) return EXIT_TROUBLE;
    return selected ? EXIT_YES : EXIT_NO;
}

static const struct group options = {
    "Options",
    {
        {'f', "filter", "FILTER",
         "Query this filter: a file, or a URL, http:// or https://. May be "
         "given several times: a line is selected if any of them may have it.",
         parse_texts, &names},
        {0, "server", "URL",
         "Query the filter under this key of a server; 'calyx help push' "
         "describes the URL. Lines are sent in batches, each to the shard that "
         "it belongs to. The options for keys are the options of the filter, "
         "if this "
         "user may call BF.DUMP.",
         parse_text, &server_url},
        {0, "shards", "N",
         "The filter in the server has N shards. By default KEY:shards in the "
         "server says so.",
         parse_shards, &shards},
        {'v', "invert", NULL,
         "Select the lines that are certainly in none of the filters.",
         parse_flag, &invert},
        {0, "invert-match", NULL, "The same as -v.", parse_flag, &invert},
        {'c', "count", NULL,
         "Print the number of selected lines instead; with -H, for each "
         "filter.",
         parse_flag, &count_only},
        {'n', "line-number", NULL,
         "Print the number of the line before it; if there are several files, "
         "the name of the file before that.",
         parse_flag, &numbered},
        {0, "file-name", NULL,
         "Print before a line the name of its file; with -c, the number of "
         "selected lines of each file.",
         parse_flag, &show_file},
        {'l', "files-with-matches", NULL,
         "Print only the names of the files that have a selected line.",
         parse_flag, &list_with},
        {'L', "files-without-match", NULL,
         "Print only the names of the files that have none.", parse_flag,
         &list_without},
        {0, "line-buffered", NULL,
         "For scripts written for grep: lines are always printed as soon as "
         "they come.",
         parse_flag, &ignored},
        {'q', "quiet", NULL,
         "Print nothing, and stop at the first selected line.", parse_flag,
         &quiet},
        {'m', "max-count", "N", "Stop after N selected lines.", parse_count,
         &most},
        {'H', "filter-name", NULL,
         "Print before a line the name of the filter that may have it, and the "
         "line once for each such filter.",
         parse_flag, &show_filter},
        {0, "allow", "LIST",
         "Answer no for the lines of LIST, an exact list of known false "
         "positives, as if 'calyx allow' had put them on the list of each "
         "filter. Its lines have the form of the input.",
         parse_texts, &allow_lists},
        {0, "verify", NULL,
         "Of a filter by URL, read ranges of 64 KiB instead of single places, "
         "and compare each with its checksum. Of a file, compare all of it "
         "first.",
         parse_flag, &verify},
        {0, "except", "FILTER",
         "Answer no for what this filter may have, whatever the others say.",
         parse_text, &except_name},
        FILE_LIST_OPTION,
    },
};

const struct verb verb_check = {
    .name = "check",
    .summary = "print the lines that may be in a filter, or with -v are not",
    .synopsis = "(-f FILTER... | --server URL) [OPTION]... [FILE]...",
    .prose =
        {"Prints the lines that may be in the filter, whole and in order; with "
         "-v, the lines that are certainly not in it. Lines that were added "
         "are always printed, other lines at the filter's false-positive rate.",
         "Reads the files, or standard input if there is none or it is '-'.",
         "The options that choose the key are those that the filter was built "
         "with. Options on the command line replace them, for input that has "
         "the key elsewhere. Several filters must have been built with the "
         "same options, unless some are given. -i and --trim change the bytes "
         "of a key: they must be given if and only if the filter was built "
         "with them.",
         "Damaged bytes never answer: each range of the filter is compared "
         "with its checksum before it is first used, and a mismatch is an "
         "error. Only 'calyx verify' checks all ranges.",
         "A list that shrinks or is overwritten while it is read is an error. "
         "One that only grows is read to its end.",
         "If a file cannot be read, an error message says so and the others "
         "are still read. The exit status is then 2, unless -q found a match. "
         "The file that lines are printed to, as by '*.txt >out.txt', is not "
         "read either: reading it would never end.",
         "A filter by URL is not downloaded: for each line its place in the "
         "file is read, about 64 bytes for most kinds, by up to 256 requests "
         "at a time. The server must send byte ranges and an ETag or "
         "Last-Modified. The header is checked by its checksum, and a change "
         "of the file on the server is an error; so are answers that are not "
         "the bytes requested. Without --verify, damage within the bits is "
         "found only where whole ranges of 64 KiB were read: TLS protects "
         "the transfer and the ETag pins the version, but neither knows the "
         "server's disk. A "
         "user and password may stand in the URL; CALYX_TLS_CA, CALYX_TLS_CERT "
         "and CALYX_TLS_KEY name files as 'calyx help push' says, and "
         "CALYX_HTTP_TIMEOUT is the time to wait for a server that is silent "
         "or sends less than 1 kB a second, 30s by default. Then check queries "
         "the server once more, by new connections, and fails if it is silent "
         "again, however many lines there are. After an error of the server "
         "(429, 5xx), check waits as "
         "long as the server asks for, up to that time, and tries four times.",
         "With --server, a missing or incomplete filter is an error, not a no. "
         "If a connection breaks or a cluster fails over, check waits and "
         "queries again. With --layout it is for bits in a string that "
         "clients have set, of redisson or of a layout in one line, in a "
         "server without Calyx: the string is read as a whole, and queried "
         "here."},
    .common = {"filter", "server", "invert", "count", "quiet", "line-number",
               "file-name", "fields", "csv"},
    .groups = {&options, &owned_group, &key_group, &secret_group, &server_group,
               &work_group, &progress_group},
    .examples =
        {{"calyx check -f seen.calyx -v new.txt",
          "lines that were certainly never seen"},
         {"calyx check -f pwned.calyx -k 1 -t : users.txt",
          "whole lines, by their first field"},
         {"calyx check -f bad.calyx -f worse.calyx -H --except good.calyx",
          "which of two lists may have each line, except lines of a third"},
         {"calyx check -f https://example.com/bad.calyx urls.txt",
          "query a filter on a web server, without downloading it"},
         {"calyx check --server redis://localhost/seen -v new.txt",
          "query a filter in a server"},
         {"calyx check -q -f seen.calyx new.txt && echo some",
          "query by the exit status"}},
    .status = "0 if a line was selected, 1 if none was, 2 on an error, with a "
              "message on standard error.",
    .most = -1,
    .run = run,
};
