#include "input/pipeline.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input/part_lines.h"
#include "input/skipped.h"

/* ---- Options ------------------------------------------------------------ */

static uint64_t jobs;
static bool stats;
static const char *json_stats;

const struct group work_group = {
    "Threads and figures",
    {
        {'j', "jobs", "N",
         "Use N threads; the default, and 0, is one for each processor. "
         "Results and their order do not depend on it, and memory hardly does.",
         parse_count, &jobs},
        {0, "stats", NULL,
         "When done, print figures on standard error: lines, bytes, seconds, "
         "lines that --missing=skip and --invalid=skip left out, and what this "
         "verb counts.",
         parse_flag, &stats},
        {0, "json-stats", "FILE",
         "Write the same figures to FILE as a JSON object; - is standard "
         "error. An existing FILE is replaced.",
         parse_text, &json_stats},
    },
};

enum { MOST_THREADS = 256 };

size_t thread_count(void) {
    if (jobs > MOST_THREADS)
        fail("--jobs: expected at most %d threads, found %" PRIu64,
             MOST_THREADS, jobs);
    if (jobs) return (size_t)jobs;
    cpu_set_t ours; /* those that this process may use */
    if (sched_getaffinity(0, sizeof ours, &ours) != 0) return 1;
    const int n = CPU_COUNT(&ours);
    return n < 1 ? 1 : n > 64 ? 64 : (size_t)n;
}

uint32_t builder_threads(void) {
    enum { MOST = 64 };
    const size_t threads = thread_count();
    return threads < MOST ? (uint32_t)threads : MOST;
}

/* Small enough to stay in the second-level cache between reading, cutting and
 * hashing; and with many threads smaller, so that all take no more than 4 MiB
 * together, up to 64. */
static size_t block_size(size_t threads) {
    const size_t share = ((size_t)4 << 20) / threads;
    const size_t least = (size_t)64 << 10, most = (size_t)256 << 10;
    return share < least ? least : share > most ? most : share;
}

/* ---- The threads -------------------------------------------------------- */

struct pipeline {
    const struct stages *stages;
    struct line_input *input;
    struct progress progress;

    pthread_mutex_t reading;
    uint64_t read; /* blocks */

    pthread_mutex_t order;
    pthread_cond_t order_moved;
    uint64_t done; /* blocks; the number of the next in order */
    _Atomic bool over;

    /* For the thread whose block is next in order: */
    uint64_t line; /* number of the last line of this file */
    struct input_totals totals;
    struct skipped_lines skipped;
};

static bool read_block(struct pipeline *s, struct text_block *block) {
    pthread_mutex_lock(&s->reading);
    const bool more = !s->over && input_next(s->input, block);
    if (more) block->number = s->read++;
    pthread_mutex_unlock(&s->reading);
    return more;
}

static void await_order(struct pipeline *s, uint64_t number) {
    pthread_mutex_lock(&s->order);
    while (s->done != number) pthread_cond_wait(&s->order_moved, &s->order);
    pthread_mutex_unlock(&s->order);
}

static void end_order(struct pipeline *s) {
    pthread_mutex_lock(&s->order);
    s->done++;
    pthread_cond_broadcast(&s->order_moved);
    pthread_mutex_unlock(&s->order);
}

/* Reading ends here. */
static _Noreturn void fail_in(const struct pipeline *s,
                              const struct text_block *block, uint64_t line,
                              const char *text) {
    const char *const so_far = s->stages->so_far;
    fail_at(block->file, line, "%s%s%s", text, so_far ? "; " : "",
            so_far ? so_far : "");
}

static void run_in_order(struct pipeline *s, struct text_block *block,
                         struct key_batch *batch) {
    if (block->starts_file) s->line = block->header_lines;
    if (s->stages->in_order) {
        if (!s->stages->unguarded) begin_change();
        const bool goes_on = s->stages->in_order(block, batch);
        if (!s->stages->unguarded) end_change();
        if (!goes_on) s->over = true;
    }
    if (block->out_size)
        output_write(s->stages->output, block->out, block->out_size);
    if (block->stretch_size)
        output_write(s->stages->output, block->text + block->stretch,
                     block->stretch_size);
    s->line += block->ended;
    if (block->error[0] && !s->over)
        fail_in(s, block, s->line + 1, block->error);
    if (block->trouble[0] && !s->over) {
        if (!s->stages->goes_on) fail_in(s, block, 0, block->trouble);
        warn_at(block->file, "%s", block->trouble);
        s->totals.unread++;
    }
    s->skipped.all += block->skipped.all;
    s->skipped.missing += block->skipped.missing;
    s->skipped.invalid += block->skipped.invalid;
    s->totals.lines += block->lines;
    s->totals.bytes += block->size;
    s->progress.lines = s->totals.lines;
    s->progress.bytes = s->totals.bytes;
}

static void *run(void *context) {
    struct pipeline *const s = context;
    struct text_block block = {.context = s->stages->context,
                               .work = alloc_memory(s->stages->work_size + 1)};
    memset(block.work, 0, s->stages->work_size);
    struct key_batch *const batch = alloc_memory(sizeof *batch);
    memset(batch, 0, sizeof *batch);
    while (read_block(s, &block)) {
        leave_lines_out(batch, &block);
        select_part_lines(&block, batch);
        if (s->stages->in_parallel) s->stages->in_parallel(&block, batch);
        await_order(s, block.number);
        const bool over = s->over;
        if (!over) run_in_order(s, &block, batch);
        end_order(s);
        if (s->stages->after_order && !over) s->stages->after_order(&block);
    }
    if (s->stages->free_work) s->stages->free_work(block.work);
    free(block.work);
    batch_free(batch);
    free(batch);
    block_free(&block);
    return NULL;
}

static double share(void *input) {
    return input_share(input);
}

struct input_totals run_pipeline(const struct stages *stages, int count,
                                 char **files) {
    const size_t threads = thread_count();
    struct pipeline s = {
        .stages = stages,
        .input = input_open(count, files, stages->numbered, block_size(threads),
                            stages->kept),
        .reading = PTHREAD_MUTEX_INITIALIZER,
        .order = PTHREAD_MUTEX_INITIALIZER,
        .order_moved = PTHREAD_COND_INITIALIZER,
        .progress = {.share = share, .size = size_of_files(count, files)}};
    const double started = seconds_now();
    s.progress.context = s.input;
    progress_begin(&s.progress);

    pthread_t others[MOST_THREADS];
    for (size_t i = 1; i < threads; i++) start_thread(&others[i], run, &s);
    run(&s);
    for (size_t i = 1; i < threads; i++) pthread_join(others[i], NULL);

    progress_end();
    input_close(s.input);
    s.totals.seconds = seconds_now() - started;
    skipped_note(count, files, &s.skipped, !s.over);
    return s.totals;
}

/* ---- Hashes of a block -------------------------------------------------- */

uint64_t *room_for_hashes(struct text_block *block, size_t lines) {
    return block->hashes = with_room(block->hashes, &block->hash_room, lines,
                                     sizeof *block->hashes);
}

size_t *room_for_ends(struct text_block *block, size_t lines) {
    return block->ends = with_room(block->ends, &block->end_room, lines,
                                   sizeof *block->ends);
}

void note_ends(struct text_block *block, const struct key_batch *batch) {
    const size_t lines = block->lines + batch->count;
    room_for_ends(block, lines);
    for (size_t i = 0; i < batch->count; i++) {
        const calyx_key *const line = &batch->lines[i];
        block->ends[block->lines + i] =
            (size_t)((const char *)line->data - block->text) + line->size;
    }
    block->lines = lines;
}

void hash_block(struct text_block *block, struct key_batch *batch,
                const calyx_filter *f, bool ends) {
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        calyx_hash_many(f, batch->keys, batch->count,
                        room_for_hashes(block, block->lines + batch->count) +
                            block->lines);
        if (ends)
            note_ends(block, batch);
        else
            block->lines += batch->count;
    }
}

size_t select_hashes(uint64_t *hashes, const bool *chosen, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        hashes[count] = hashes[i];
        count += chosen[i];
    }
    return count;
}

/* ---- Counting ------------------------------------------------------------ */

static void count_block(struct text_block *block, struct key_batch *batch) {
    batch_start(batch, block);
    while (batch_next(batch, block)) block->lines += batch->count;
}

uint64_t count_lines(int count, char **files) {
    const struct stages stages = {.in_parallel = count_block};
    if (count == 0)
        fail("standard input can be read only once; give the number of its "
             "keys with -n");
    for (int i = 0; i < count; i++)
        if (!is_regular_file(files[i]))
            fail("%s: it can be read only once; give the number of its keys "
                 "with -n",
                 files[i]);
    return run_pipeline(&stages, count, files).lines;
}

/* ---- Figures ------------------------------------------------------------ */

static void print_figure(const struct figure *figure) {
    char text[TEXT_SIZE];
    if (figure->whole)
        count_text((uint64_t)figure->value, text);
    else
        snprintf(text, sizeof text, "%.6g", figure->value);
    char name[32];
    snprintf(name, sizeof name, "%s", figure->name);
    for (char *at = name; (at = strchr(at, '_'));) *at = ' ';
    fprintf(stderr, "%-14s %s\n", name, text);
}

static size_t json_figure(const struct figure *figure, char *to, size_t room) {
    const int n =
        figure->whole
            ? snprintf(to, room, ", \"%s\": %" PRIu64, figure->name,
                       (uint64_t)figure->value)
            : snprintf(to, room, ", \"%s\": %.9g", figure->name, figure->value);
    return (size_t)n;
}

static void write_json(const struct figure *all, size_t count) {
    char text[1024];
    size_t n =
        (size_t)snprintf(text, sizeof text, "{\"verb\": \"%s\"", verb_name);
    for (size_t i = 0; i < count; i++)
        n += json_figure(&all[i], text + n, sizeof text - n);
    n += (size_t)snprintf(text + n, sizeof text - n, "}\n");
    if (strcmp(json_stats, "-") == 0) {
        fputs(text, stderr);
        return;
    }
    struct output *const output = output_open(json_stats, true);
    output_write(output, text, n);
    output_close(output);
}

bool wants_report(void) {
    return stats || json_stats;
}

void report(const struct input_totals *totals, const struct figure *figures,
            size_t count) {
    enum { MOST = 18 };
    struct figure all[MOST] = {
        {"lines", (double)totals->lines, true},
        {"bytes", (double)totals->bytes, true},
        {"seconds", totals->seconds, false},
    };
    size_t n = 3;
    struct skipped_lines skipped;
    if (skipped_sum(&skipped)) {
        all[n++] =
            (struct figure){"skipped_missing", (double)skipped.missing, true};
        all[n++] =
            (struct figure){"skipped_invalid", (double)skipped.invalid, true};
    }
    for (size_t i = 0; i < count; i++) all[n++] = figures[i];
    if (stats)
        for (size_t i = 0; i < n; i++) print_figure(&all[i]);
    if (json_stats) write_json(all, n);
}
