/*
 * calyx add: add lines to a filter file; with --new, a stream that remembers.
 */
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/change.h"
#include "files/filter_file.h"
#include "files/new_filter.h"
#include "frame/file_list.h"
#include "frame/lock.h"
#include "input/header.h"
#include "input/pipeline.h"
#include "server/query.h"

static bool new_only, at_most_once, create;
static const char *server_url;
static calyx_filter *filter;
static uint64_t fresh_lines;

static void in_parallel(struct text_block *block, struct key_batch *batch) {
    hash_block(block, batch, filter, new_only);
}

/* A strict filter goes by its capacity, one of fingerprints by its slots. */
static _Noreturn void fail_full(void) {
    calyx_info info;
    char items[TEXT_SIZE], capacity[TEXT_SIZE];
    begin_change();
    calyx_info_of(filter, &info);
    end_change();
    if (info.strict) fail("the filter is full, and was made to let no more in");
    fail("the filter is full: it has %s keys, was made for %s, and kind %s has "
         "no room for more in a fixed size; build it with a larger --keys, or "
         "with --growth",
         count_text(info.items, items), count_text(info.capacity, capacity),
         info.kind);
}

static void add(const struct text_block *block, size_t from, size_t to,
                bool *fresh) {
    const calyx_status status =
        calyx_add_hashes(filter, block->hashes + from, to - from, fresh, NULL);
    if (status != CALYX_OK) change_check(); /* it may know more */
    if (status == CALYX_FULL) fail_full();
    if (status != CALYX_OK) fail("%s", calyx_status_text(status));
}

/* ---- Without --new ------------------------------------------------------ */

/* Room for an answer about each line; used in order. */
static bool *room_for_answers(size_t lines) {
    static bool *answers;
    static size_t room;
    return answers = with_room(answers, &room, lines, sizeof *answers);
}

static bool add_all(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    bool *const fresh = room_for_answers(block->lines);
    change_check();
    add(block, 0, block->lines, fresh);
    for (size_t i = 0; i < block->lines; i++) fresh_lines += fresh[i];
    return true;
}

/* ---- With --new: what is new --------------------------------------------- */

/* Of lines with equal hashes, which no filter can distinguish, keep the first.
 * The table has the numbers of lines, from 1; 0 is an empty slot. */
static void drop_repeated(const struct text_block *block, bool *fresh) {
    static size_t *table;
    static size_t room;
    size_t size = 64;
    while (size < 2 * block->lines) size *= 2;
    table = with_room(table, &room, size, sizeof *table);
    memset(table, 0, size * sizeof *table);
    for (size_t i = 0; i < block->lines; i++) {
        if (!fresh[i]) continue;
        const uint64_t hash = block->hashes[i];
        size_t at = (size_t)hash & (size - 1);
        while (table[at] && block->hashes[table[at] - 1] != hash)
            at = (at + 1) & (size - 1);
        if (table[at])
            fresh[i] = false;
        else
            table[at] = i + 1;
    }
}

/* A key on the allow list is new, whatever its bits say. The keys of the lines
 * are found once more: hash_block has only hashed them. */
static void refuse_listed(struct text_block *block, struct key_batch *batch,
                          bool *found) {
    calyx_info info;
    calyx_info_of(filter, &info);
    if (!info.allowed) return;
    size_t line = 0;
    block->ended = 0;
    batch_start(batch, block);
    while (batch_next(batch, block))
        for (size_t i = 0; i < batch->count; i++, line++)
            found[line] =
                found[line] && !calyx_is_allowed(filter, batch->keys[i].data,
                                                 batch->keys[i].size);
}

/* Which lines are new, each the first time it comes. Only this process changes
 * the filter, so it can be queried for a whole block before any is added. */
static bool *find_fresh(struct text_block *block, struct key_batch *batch) {
    bool *const fresh = room_for_answers(block->lines);
    begin_change();
    calyx_has_hashes(filter, block->hashes, block->lines, fresh);
    change_check(); /* damaged ranges answer yes */
    refuse_listed(block, batch, fresh);
    end_change();
    for (size_t i = 0; i < block->lines; i++) fresh[i] = !fresh[i];
    drop_repeated(block, fresh);
    return fresh;
}

/* New keys that a strict filter still takes. */
static uint64_t room_left(void) {
    calyx_info info;
    begin_change();
    calyx_info_of(filter, &info);
    end_change();
    if (!info.strict) return UINT64_MAX;
    return info.items < info.capacity ? info.capacity - info.items : 0;
}

/* ---- With --new: batches ------------------------------------------------- */

static struct output *output;
static size_t batch_bytes; /* to write at once */
static bool to_file, to_pipe;

/* A write of at most PIPE_BUF bytes into a pipe is atomic. A regular file has
 * no reader that could die. */
static void choose_batches(void) {
    struct stat is;
    const bool known = fstat(STDOUT_FILENO, &is) == 0;
    to_file = known && S_ISREG(is.st_mode);
    to_pipe = known && S_ISFIFO(is.st_mode);
    batch_bytes = to_file ? (size_t)1 << 16 : PIPE_BUF;
}

/* Wait for room in a pipe. Returns whether a batch can then be written without
 * waiting: not if it is a line that is longer. */
static bool await_room(size_t size) {
    struct pollfd wait = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (to_file) return true;
    return to_pipe && size <= PIPE_BUF && poll(&wait, 1, -1) == 1;
}

/* Where line i of a block starts. */
static size_t start_of(const struct text_block *block, size_t i) {
    return i ? block->ends[i - 1] + 1 : 0;
}

/* Lines up to the one whose number is returned, from `from` on, are a batch: as
 * many as fit, one at least, and no more new ones than there is room for. */
static size_t batch_end(const struct text_block *block, const bool *fresh,
                        size_t from, uint64_t room) {
    size_t bytes = 0, i = from;
    for (; i < block->lines; i++) {
        if (!fresh[i]) continue;
        const size_t size = block->ends[i] + 1 - start_of(block, i);
        if (room == 0 || (bytes > 0 && size > batch_bytes - bytes)) break;
        bytes += size < batch_bytes ? size : batch_bytes;
        room--;
    }
    return i;
}

/* The new lines of a batch, neighbours together, into block->out. */
static void put_fresh(struct text_block *block, const bool *fresh, size_t from,
                      size_t to) {
    block->out_size = 0;
    for (size_t i = from; i < to; i++) {
        if (!fresh[i]) continue;
        fresh_lines++;
        const size_t start = start_of(block, i);
        while (i + 1 < to && fresh[i + 1]) {
            i++;
            fresh_lines++;
        }
        block_output_line(block, block->text + start, block->ends[i] - start);
    }
}

static void remember(const struct text_block *block, size_t from, size_t to) {
    begin_change();
    add(block, from, to, NULL);
    end_change();
}

/* A signal ends the process before or after a batch is written and stored, not
 * in between. But a write that waits must not keep a signal from ending the
 * process: so the wait for room in a pipe is not within begin_change, nor is a
 * write to a terminal or a socket. All that uses the filter is: an early end
 * closes it. */
static void print_batch(struct text_block *block, size_t from, size_t to) {
    const bool at_once = block->out_size == 0 || await_room(block->out_size);
    if (at_once) begin_change();
    if (at_most_once) remember(block, from, to);
    if (block->out_size) output_write(output, block->out, block->out_size);
    block->out_size = 0;
    if (!at_most_once) remember(block, from, to);
    if (at_once) end_change();
}

static bool print_and_add(struct text_block *block, struct key_batch *batch) {
    const bool *const fresh = find_fresh(block, batch);
    for (size_t from = 0; from < block->lines;) {
        const size_t to = batch_end(block, fresh, from, room_left());
        if (to == from) fail_full();
        put_fresh(block, fresh, from, to);
        print_batch(block, from, to);
        from = to;
    }
    return true;
}

/* ---- In a server --------------------------------------------------------- */

static void add_in_server(struct text_block *block, struct key_batch *batch) {
    struct remote_keys keys = {.adds = true};
    batch_start(batch, block);
    while (batch_next(batch, block))
        remote_keys_add(&keys, batch->keys, batch->count);
    block->lines = keys.count;
    bool *const fresh = query_keys(&keys);
    for (size_t i = 0; i < block->lines; i++) block->selected += fresh[i];
    free(fresh);
}

static bool count_added(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    fresh_lines += block->selected;
    return true;
}

static int run_in_server(int count, char **files) {
    if (new_only || at_most_once || create)
        fail("--server goes with neither --new nor --create: it adds to a "
             "filter that is there");
    const calyx_options any = {0};
    query_open(server_url, 0, secret_key());
    calyx_filter *stand_in = new_hasher(&any);
    char *const options = query_key_options();
    const char *const name = query_name();
    key_options_set(stand_in, options);
    free(options);
    key_options_use(1, &name, &stand_in);
    const struct stages stages = {
        .in_parallel = add_in_server,
        .in_order = count_added,
        .so_far = "lines before that, and perhaps some after it, were added",
    };
    const struct input_totals totals = run_pipeline(&stages, count, files);
    query_close();
    calyx_free(stand_in);
    const struct figure figures[] = {{"keys", (double)totals.lines, true},
                                     {"fresh", (double)fresh_lines, true}};
    report(&totals, figures, sizeof figures / sizeof *figures);
    return EXIT_YES;
}

/* ---- The verb ----------------------------------------------------------- */

/* Without a size, a filter that grows: distinct, unless --kind says another. */
static calyx_filter *make(void) {
    calyx_options want = options_wanted();
    if (!want.capacity && !(has_size() && wanted.rate > 0)) {
        if (has_size() || wanted.probes || wanted.strict)
            fail("--create: missing --keys, the number of keys that the filter "
                 "will hold, or --memory and --rate; without --memory, "
                 "--probes and --strict it makes a filter that grows");
        want.kind = wanted.kind;
        if (!(want.growth > 0)) want.growth = 2;
    }
    want.seeded = wanted.seed != NULL;
    return new_filter(want);
}

static void look_at_options(void) {
    if (at_most_once && !new_only)
        fail("--at-most-once goes with --new: it is about printing");
    if (!create && (wanted.keys || wanted.rate > 0 || has_size() ||
                    wanted.kind || wanted.probes || wanted.growth > 0 ||
                    wanted.strict || wanted.seed || wanted.comment))
        fail("--keys, --rate and other options of a new filter go with "
             "--create");
}

static void expect_in_place(const char *path) {
    if (at_most_once && !change_is_in_place())
        fail_at(path, 0,
                "--at-most-once requires a filter that is changed in place; a "
                "filter that counts, grows, is packed or has an allow list is "
                "saved when the input ends, which is after lines were printed");
}

static int run(int count, char **operands) {
    look_at_options();
    if (server_url) return run_in_server(count, operands);
    if (count == 0)
        fail("missing FILTER: calyx add FILTER [FILE]..., or --server URL");
    filter = change_open(operands[0], create ? make : NULL);
    expect_in_place(operands[0]);
    key_options_use(1, (const char *const *)operands, &filter);
    output = new_only ? output_open(NULL, false) : NULL;
    lines_go_to(output, count - 1, operands + 1, LINES_OF_ALL_FILES);
    choose_batches();
    const struct stages stages = {
        .in_parallel = in_parallel,
        .in_order = new_only ? print_and_add : add_all,
        .unguarded = new_only,
        .so_far = "the lines before that were added",
    };
    const struct input_totals totals =
        run_pipeline(&stages, count - 1, operands + 1);
    output_close(output);
    const calyx_info info = change_outline();
    change_close();
    warn_if_overfull(operands[0], &info);
    const struct figure figures[] = {
        {"keys", (double)totals.lines, true},
        {"fresh", (double)fresh_lines, true},
        {"expected_rate", info.fpr_now, false},
    };
    report(&totals, figures, sizeof figures / sizeof *figures);
    return new_only && !fresh_lines ? EXIT_NO : EXIT_YES;
}

static const struct group options = {
    "Options",
    {
        {0, "new", NULL,
         "Print the lines that the filter does not have, each the first time, "
         "as soon as they come.",
         parse_flag, &new_only},
        {0, "at-most-once", NULL,
         "With --new: store a line before it is printed, not after. Only for a "
         "filter that is changed in place.",
         parse_flag, &at_most_once},
        {0, "server", "URL",
         "Add to the filter under this key of a server, in place of a file; "
         "'calyx help push' describes the URL. Any number of processes may do "
         "so at once.",
         parse_text, &server_url},
        WAIT_OPTION,
        {0, "create", NULL,
         "Make FILTER if it is missing, for the number of keys in --keys; or "
         "without that, a filter of kind distinct, which grows from nothing at "
         "some 20 bits a key. Processes that do so at the same time all add to "
         "one file.",
         parse_flag, &create},
        FILE_LIST_OPTION,
    },
};

const struct verb verb_add = {
    .name = "add",
    .summary = "add lines to a filter, and with --new print the new ones",
    .synopsis = "(FILTER [--new] | --server URL) [OPTION]... [FILE]...",
    .prose =
        {"Adds the lines of the files, or of standard input, to the filter in "
         "the file FILTER, which must exist, unless --create makes it. Exit "
         "status 0 means that the keys are in the file and on the disk.",
         "With --new, add is a stream that remembers: it prints each line that "
         "it has not seen before, and stores it, also for the next run. New "
         "lines are suppressed at the filter's false-positive rate.",
         "A new line is delivered at least once: it is stored only after it "
         "was written, in batches of at most 4096 bytes (65536 into a regular "
         "file). If the process is killed, the disk is full or the reader of a "
         "pipe is gone, the lines that were not written are printed again in "
         "the next run, and so may lines of one batch that were; SIGINT, "
         "SIGTERM and SIGHUP let a batch into a pipe or file be finished. With "
         "--at-most-once a line is stored first, then written: none is printed "
         "twice, and a batch may be lost. This holds when the process is "
         "killed; when the machine crashes, keys added since the last run may "
         "be lost.",
         "Neither knows what the reader of a pipe did with a line. A pipe "
         "holds up to 64 KiB; what a reader that dies leaves there was "
         "written, and is lost. If that matters, write to a file, and read "
         "that.",
         "The file is changed in place: added keys stay, whatever happens to "
         "the process. Filters that count or grow, have an allow list, or are "
         "compressed, are read into memory instead, and replaced when the "
         "input ends, or when SIGINT, SIGTERM or a closed pipe ends the "
         "stream. If such a process is killed by SIGKILL, nothing was stored: "
         "with --new all its lines are printed again, and --at-most-once is "
         "refused.",
         "Only one process at a time can change or replace a filter; others "
         "may query it meanwhile. If FILTER is nevertheless replaced or "
         "removed, as by mv, add ends with status 2 and an error message.",
         "With --server the filter is in a server, in the calyx module or as "
         "the strings of 'calyx push --plain', and all operands are input. "
         "Exit status 0 means that the server has acknowledged all keys; with "
         "'calyx push --plain --swap' beside it, that they are in the filter "
         "that was current then or in the new one.",
         "If an input file shrinks or is overwritten while it is read, add "
         "reports an error when it reaches the end; some of its lines have "
         "been added by then. A file that only grows is read to its end."},
    .common = {"new", "create", "keys", "rate", "wait", "server", "fields",
               "csv"},
    .groups = {&options, &key_group, &secret_group, &new_filter_group,
               &work_group, &progress_group},
    .examples = {{"calyx add --create seen.calyx today.txt",
                  "add the lines of a file; the first time, make the filter"},
                 {"calyx add --create -n 10M --wait seen.calyx today.txt",
                  "the same from cron, changed in place; wait for other runs"},
                 {"crawl | calyx add seen.calyx --new | fetch",
                  "fetch only what was never seen"},
                 {"calyx add --server redis://localhost/seen today.txt",
                  "add to a filter in a server"}},
    .status = "0 on success; with --new, 1 if no line was new; 2 on an error, "
              "with a message on standard error.",
    .most = -1,
    .run = run,
};
