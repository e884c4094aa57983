/*
 * calyx pull: a filter, from a server into a file.
 *
 * Received chunks are stored in FILE.part:
 *
 *     0        "calyx pull 1", the cursor of the next chunk, and the size of
 *              the head; each in a line
 *     512      the head
 *     65536    the chunks, one after another
 *
 * so that a later run can resume at the cursor; the server knows whether its
 * filter is still the same. At the end the part file is read back, compared
 * with the checksum of the whole, and saved.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "exact/spill.h"
#include "files/filter_file.h"
#include "files/result.h"
#include "frame/draft.h"
#include "frame/lock.h"
#include "server/chunks.h"
#include "server/cluster.h"
#include "server/foreign.h"
#include "server/plain.h"

static struct url address;
static struct cluster *server;

/* ---- The part ------------------------------------------------------------ */

enum { HEAD_AT = 512, CHUNKS_AT = 65536, MOST_HEAD = CHUNKS_AT - HEAD_AT };
#define MARK "calyx pull 1\n"

static struct {
    int fd;
    char *path; /* NULL: it has no name */
    char cursor[128];
    size_t head_size;
    uint8_t *head;
    uint64_t bytes; /* of all chunks */
    uint64_t done;  /* chunks */
    uint64_t sum;   /* of those, as the server says */
} part;

static const char *part_name(void) {
    return part.path ? part.path : spill_folder();
}

static void put_at(uint64_t at, const void *bytes, size_t size) {
    for (const uint8_t *from = bytes; size > 0;) {
        const ssize_t n = pwrite(part.fd, from, size, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_os(part_name(), "write it");
        from += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
}

static bool get_at(uint64_t at, void *bytes, size_t size) {
    for (uint8_t *to = bytes; size > 0;) {
        const ssize_t n = pread(part.fd, to, size, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_os(part_name(), "read it");
        if (n == 0) return false;
        to += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return true;
}

/* Only when a chunk has been written is the cursor moved after it. */
static void note_cursor(const char *cursor, size_t size) {
    char lines[HEAD_AT] = "";
    if (size >= sizeof part.cursor)
        fail("%s: the server gave a cursor of %zu bytes", address.shown, size);
    memcpy(part.cursor, cursor, size);
    part.cursor[size] = '\0';
    snprintf(lines, sizeof lines, MARK "%s\n%zu\n", part.cursor,
             part.head_size);
    put_at(0, lines, sizeof lines);
}

/* Its memory is not touched for this, and so costs nothing. */
static bool take_head(const uint8_t *head, size_t size, calyx_error *why) {
    calyx_filter *f;
    calyx_info info;
    if (filter_of_head(head, size, &f, why) != CALYX_OK) return false;
    calyx_info_of(f, &info);
    calyx_free(f);
    free(part.head);
    part.head = alloc_memory(size);
    memcpy(part.head, head, size);
    part.head_size = size;
    part.bytes = info.bytes;
    return true;
}

/* LIFE.NUMBER.SUM */
static bool read_cursor(void) {
    uint64_t number, sum;
    int sum_at = 0;
    if (sscanf(part.cursor, "%*[0-9a-f].%" SCNu64 ".%n", &number, &sum_at) !=
            1 ||
        !sum_at ||
        !dump_read_sum(part.cursor + sum_at, strlen(part.cursor + sum_at),
                       &sum))
        return false;
    part.done = number;
    part.sum = sum;
    return number < dump_chunks(part.bytes);
}

/* Go on with what a run before left; false if there is nothing of use. Only the
 * server knows whether it is of this filter; so at least one chunk must be
 * missing, which the server then confirms. */
static bool resume(void) {
    char lines[HEAD_AT + 1] = "";
    static uint8_t head[MOST_HEAD];
    size_t head_size;
    if (!get_at(0, lines, HEAD_AT) ||
        sscanf(lines, MARK "%100[0-9a-f.]\n%zu\n", part.cursor, &head_size) !=
            2 ||
        head_size > sizeof head || !get_at(HEAD_AT, head, head_size))
        return false;
    calyx_error why;
    return take_head(head, head_size, &why) && read_cursor();
}

/* What is under the name of the part is written over and removed in the end: so
 * it must be what a pull of this user began, and nothing else. */
static void expect_own_part(void) {
    struct stat is;
    char mark[sizeof MARK - 1];
    if (fstat(part.fd, &is) != 0) fail_os(part.path, "look at it");
    if (S_ISREG(is.st_mode) && is.st_uid == geteuid() &&
        (is.st_size == 0 || (get_at(0, mark, sizeof mark) &&
                             memcmp(mark, MARK, sizeof mark) == 0)))
        return;
    fail_at(part.path, 0,
            "this is not what a 'calyx pull' of yours has left, but would be "
            "written over; move it away, or name another FILE with -o");
}

/* Never with more access than FILE has, if it is there. */
static void open_named_part(const char *out) {
    struct stat old;
    const bool replaces = stat(out, &old) == 0 && S_ISREG(old.st_mode);
    part.fd =
        open(part.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
             replaces ? 0600 : 0666);
    const bool made = part.fd >= 0;
    if (!made && errno == EEXIST)
        part.fd = open(part.path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (part.fd < 0)
        fail_os(part.path, errno == ELOOP
                               ? "use it for what has come, as it is a link"
                               : "make it");
    if (!made) expect_own_part();
    if (!try_lock(part.fd, part.path))
        fail_at(part.path, 0, "another pull is writing it");
    if (replaces) copy_access(part.fd, &old, false, part.path);
    if (made) put_at(0, MARK, sizeof MARK - 1); /* from now on it is ours */
}

static void open_part(const char *out) {
    if (!out) {
        part.fd = spill_file();
        if (part.fd < 0)
            fail_os(spill_folder(), "make a temporary file; name another "
                                    "folder in TMPDIR");
        return;
    }
    part.path = alloc_memory(strlen(out) + 6);
    sprintf(part.path, "%s.part", out);
    open_named_part(out);
}

/* ---- Asking -------------------------------------------------------------- */

static struct call call;
static struct progress progress;

static double share(void *unused) {
    (void)unused;
    return part.bytes ? (double)progress.bytes / (double)part.bytes : -1;
}

static void note_progress(void) {
    const uint64_t here = part.done * DUMP_CHUNK_BYTES;
    progress.bytes = here < part.bytes ? here : part.bytes;
}

struct answer {
    struct reply *reply;
    const char *cursor, *bytes;
    size_t cursor_size, size;
    uint64_t sum;
};

/* False if the filter is not the one that it was. */
static bool ask(const char *cursor, struct answer *a) {
    call_start(&call, "BF.DUMP");
    call_add(&call, address.key, address.key_size);
    call_text(&call, cursor);
    a->reply = cluster_query(server, &call, false);
    const char *const error = reply_error(a->reply);
    if (error && strstr(error, "begin again with cursor 0")) {
        reply_free(a->reply);
        return false;
    }
    if (error && strcmp(error, "ERR not found") == 0)
        fail("%s: there is no such key", address.shown);
    if (error) fail_reply(&address, &call, error);
    size_t digits;
    const char *sum;
    if (reply_parts(a->reply) != 3 ||
        !(a->cursor = reply_text(reply_part(a->reply, 0), &a->cursor_size)) ||
        !(sum = reply_text(reply_part(a->reply, 1), &digits)) ||
        !dump_read_sum(sum, digits, &a->sum) ||
        !(a->bytes = reply_text(reply_part(a->reply, 2), &a->size)))
        fail_answer(&address, &call, "");
    return true;
}

static void check_sum(const struct answer *a, const char *what) {
    if (dump_sum(a->bytes, a->size) != a->sum)
        fail("%s: %s arrived damaged", address.shown, what);
}

static void begin(void) {
    struct answer a;
    if (!ask("0", &a))
        fail("%s: the server refuses to begin with cursor 0", address.shown);
    check_sum(&a, "the head");
    if (a.size > MOST_HEAD)
        fail("%s: the head has %zu bytes", address.shown, a.size);
    calyx_error why;
    if (!take_head((const uint8_t *)a.bytes, a.size, &why))
        fail("%s: %s", address.shown, why.text);
    part.done = part.sum = 0;
    put_at(HEAD_AT, a.bytes, a.size);
    note_cursor(a.cursor, a.cursor_size);
    reply_free(a.reply);
}

static bool take_chunk(void) {
    struct answer a;
    if (!ask(part.cursor, &a)) return false;
    check_sum(&a, "a chunk");
    if (a.size != dump_chunk_size(part.bytes, part.done))
        fail("%s: a chunk has %zu bytes", address.shown, a.size);
    put_at(CHUNKS_AT + part.done * DUMP_CHUNK_BYTES, a.bytes, a.size);
    part.sum = dump_sum_with(part.sum, a.sum);
    part.done++;
    note_cursor(a.cursor, a.cursor_size);
    note_progress();
    reply_free(a.reply);
    return true;
}

/* All chunks, of one filter; from the beginning if another takes its place. */
static void take_all(bool goes_on) {
    enum { MOST_TRIES = 10 };
    bool resumed = goes_on;
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        if (!goes_on) begin();
        note_progress();
        goes_on = false;
        while (part.done < dump_chunks(part.bytes) && take_chunk()) {}
        if (part.done == dump_chunks(part.bytes) && resumed)
            warn("%s: this went on with what an earlier pull had left; keys "
                 "that were added since that one began may be missing",
                 address.shown);
        if (part.done == dump_chunks(part.bytes)) return;
        resumed = false;
        warn("%s: the filter is not the one that it was; beginning again",
             address.shown);
    }
    fail("%s: the filter changes faster than it can be read", address.shown);
}

/* ---- The file ------------------------------------------------------------ */

static _Noreturn void drop_part(const char *name, const char *what) {
    if (part.path) unlink(part.path);
    fail_at(name, 0, "%s", what);
}

static calyx_filter *read_back(void) {
    calyx_filter *f;
    calyx_error why;
    uint64_t sum = 0;
    bool fits = true;
    if (filter_of_head(part.head, part.head_size, &f, &why) != CALYX_OK)
        fail_at(part_name(), 0, "%s", why.text);
    uint8_t *const chunk = alloc_memory(DUMP_CHUNK_BYTES);
    for (uint64_t n = 0; n < part.done; n++) {
        const size_t size = dump_chunk_size(part.bytes, n);
        if (!get_at(CHUNKS_AT + n * DUMP_CHUNK_BYTES, chunk, size)) break;
        sum = dump_sum_with(sum, dump_sum(chunk, size));
        fits &=
            calyx_put_bits(f, n * DUMP_CHUNK_BYTES, chunk, size) == CALYX_OK;
    }
    free(chunk);
    if (sum != part.sum)
        drop_part(part_name(),
                  "the partial file of the filter is damaged, and was removed; "
                  "pull it again");
    if (!fits)
        drop_part(address.shown,
                  "the server sent bits that a filter of its head can't have");
    return f;
}

static const struct foreign_module *as; /* NULL: Calyx */

static int pull_foreign(const char *out) {
    struct foreign_session session = {.server = server,
                                      .address = &address,
                                      .as = as,
                                      .key = shard_name(&address, 0, 0)};
    struct output *const output = output_open(out, result_replaces());
    foreign_pull(&session, output);
    output_close(output);
    cluster_close(server);
    free(session.key.text);
    return EXIT_YES;
}

/* If no key was added, the very bytes that were pushed; else the library makes
 * a new file of them. */
static void save_plain(const struct plain_file *file, const char *out) {
    if (!file->is_open) {
        struct output *const output = output_open(out, result_replaces());
        output_write(output, file->bytes, file->size);
        output_close(output);
        return;
    }
    const calyx_open_options how = {.key = secret_key()};
    calyx_filter *f;
    calyx_error why;
    if (calyx_view(file->bytes, file->size, &how, &f, &why) != CALYX_OK)
        fail("%s: %s", address.shown, why.text);
    result_save(f);
    calyx_free(f);
}

static int pull_plain(const char *out) {
    struct plain_filter *const f = plain_open(server, &address, secret_key());
    const struct plain_file file = plain_pull(f);
    plain_close(f);
    cluster_close(server);
    save_plain(&file, out);
    free(file.bytes);
    return EXIT_YES;
}

static int run(int count, char **operands) {
    (void)count;
    const char *const out = result_path();
    address = parse_url(operands[0]);
    server = cluster_open(&address);
    if (as) return pull_foreign(out);
    const struct name name = {address.key, address.key_size};
    if (plain_kind_of(server, &call, &name) == PLAIN_FILTER)
        return pull_plain(out);
    open_part(out);
    progress.share = share;
    progress.of_bytes = true;
    progress_begin(&progress);
    take_all(resume());
    progress_end();
    cluster_close(server);
    call_free(&call);
    calyx_filter *const f = read_back();
    result_save(f);
    if (part.path) unlink(part.path);
    calyx_free(f);
    return EXIT_YES;
}

static const struct group options = {
    "Options",
    {
        {0, "as", "MODULE",
         "Read a filter of another module as it is: redisbloom or "
         "valkey-bloom; or bits in a string: redisson, or a layout in one "
         "line, such as 'murmur3-32 seeds 41..47 mod 5000000 msb'.",
         parse_foreign, &as},
    },
};

const struct verb verb_pull = {
    .name = "pull",
    .summary = "save a filter from a Redis or Valkey server to a file",
    .synopsis = "-o FILE [--force] [--as MODULE] [OPTION]... URL",
    .prose =
        {"Reads a filter from a server that has the calyx module, in "
         "chunks of 1 MiB with checksums, and saves it in FILE. Keys may "
         "be added meanwhile: the file has every key that was in the "
         "filter when pull began.",
         "If the connection breaks, pull continues when the server is "
         "back. What has arrived is stored in FILE.part, so that the same "
         "command resumes after pull itself was ended, and says so: keys "
         "that were added since the first run began may be missing. If "
         "the filter was replaced or the server restarted, it starts "
         "over. With standard output nothing is stored. A FILE.part that "
         "was not left by a pull of the same user is not touched: that is "
         "an error. It has the permissions of FILE, if that exists.",
         "With --as it reads a filter of another module, from a server "
         "that need not have calyx. FILE is then a dump with a checksum, "
         "which 'calyx push --as' loads into another server, 'calyx "
         "check' and 'calyx info' read, and 'calyx convert --to' turns "
         "into what RESTORE takes. No other verb reads it: its hash is "
         "the module's. Of RedisBloom it is what BF.SCANDUMP replies; do "
         "not add keys meanwhile.",
         "A filter that 'calyx push --plain' stored as strings is read by "
         "GETRANGE, from a server that needs no module. If no key was "
         "added, FILE has the very bytes that were pushed, which are "
         "compared with their checksums. If keys were added, it is a new "
         "file of the same filter; what the server changed by a fault "
         "cannot be distinguished from keys then. If this pull is ended, it "
         "begins anew.",
         "URL is as for 'calyx push', whose help also describes passwords "
         "and TLS."},
    .groups = {&result_group, &options, &secret_group, &server_group,
               &progress_group},
    .examples = {{"calyx pull -o seen.calyx redis://localhost:6379/seen",
                  "save the filter under the key 'seen'"}},
    .least = 1,
    .most = 1,
    .run = run,
};
