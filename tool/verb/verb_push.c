/*
 * calyx push: a filter, from a file into a server.
 *
 * It is sent in chunks, each with a checksum, and the server stores those that
 * arrive. Whatever breaks, the connection, the server or this process, the
 * server knows what is missing; no state is stored here. A filter can be
 * queried only when it is complete and verified.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/filter_file.h"
#include "frame/child.h"
#include "input/key_options.h"
#include "input/source.h"
#include "server/chunks.h"
#include "server/cluster.h"
#include "server/foreign.h"
#include "server/plain.h"
#include "server/rebuild_tokens.h"
#include "server/shards.h"

static bool swap;
static uint64_t shards;
static const struct foreign_module *as; /* NULL: Calyx */
static uint64_t list_keys;
static double list_rate = 0.01;
static bool plain;
static double expire;
static uint64_t piece_size = PLAIN_PIECE_MOST;
static bool begin_only; /* --rebuild-begin */
static struct rebuild_tokens tokens;
static const char *command;

/* ---- What is pushed, and where to ---------------------------------------- */

static struct url address;
static struct cluster *server;
static struct call call; /* its memory serves all commands */

static struct load {
    const char *file;
    const calyx_filter *filter;
    uint8_t *head;
    size_t head_size;
    uint64_t bytes, chunks;
    struct name target; /* the key of the filter, and */
    struct name key;    /* the key that it is loaded under, perhaps the same */
    uint64_t number;    /* of the shard, or 0 */
    uint64_t done;      /* chunks that the server has */
    uint64_t sum;       /* of those */
    uint64_t furthest;  /* chunks that it had by its last reply */
    int tries;          /* since it had more than before */
} load;

static struct progress progress;
static uint64_t bytes_before; /* this filter */

static double share(void *all) {
    return (double)progress.bytes / (double)*(const uint64_t *)all;
}

static void note_progress(void) {
    const uint64_t here = load.done * DUMP_CHUNK_BYTES;
    progress.bytes = bytes_before + (here < load.bytes ? here : load.bytes);
}

static void start_load(const char *step) {
    call_for(&call, "BF.RESTORE", &load.key);
    call_text(&call, step);
}

/* Whatever breaks is tried again, but not for ever. */
static void note_try(void) {
    enum { MOST_TRIES = 100 };
    if (++load.tries > MOST_TRIES)
        fail("%s: tried %d times, and %s is still not loaded; does another "
             "push throw it away, or the server lose it?",
             address.shown, MOST_TRIES, load.target.text);
}

/* ---- Chunks -------------------------------------------------------------- */

static void read_chunk(uint64_t number, uint8_t *bytes) {
    calyx_get_bits(load.filter, number * DUMP_CHUNK_BYTES, bytes,
                   dump_chunk_size(load.bytes, number));
}

/* The sum of the first chunks of the file. */
static uint64_t sum_of_first(uint64_t count) {
    uint8_t *const bytes = alloc_memory(DUMP_CHUNK_BYTES);
    uint64_t sum = 0;
    for (uint64_t n = 0; n < count; n++) {
        read_chunk(n, bytes);
        sum =
            dump_sum_with(sum, dump_sum(bytes, dump_chunk_size(load.bytes, n)));
    }
    free(bytes);
    return sum;
}

/* The command for a chunk; the bytes and texts must stay until it is sent. */
struct parcel {
    uint8_t *bytes;
    uint64_t sum;
    char number[24];
    struct dump_text digits;
};

static void call_chunk(struct parcel *parcel, uint64_t number) {
    const size_t size = dump_chunk_size(load.bytes, number);
    read_chunk(number, parcel->bytes);
    parcel->sum = dump_sum(parcel->bytes, size);
    parcel->digits = dump_sum_text(parcel->sum);
    snprintf(parcel->number, sizeof parcel->number, "%" PRIu64, number);
    start_load("CHUNK");
    call_text(&call, parcel->number);
    call_text(&call, parcel->digits.text);
    call_add(&call, parcel->bytes, size);
}

static void chunk_arrived(const struct parcel *parcel) {
    load.done++;
    load.sum = dump_sum_with(load.sum, parcel->sum);
    note_progress();
}

/* Commands in flight at a time. */
enum { AHEAD = 8 };
static struct parcel parcels[AHEAD];

/* Send the next few; false if the server must be queried for what it has. */
static bool send_some(void) {
    const uint64_t left = load.chunks - load.done;
    const uint64_t some = left < AHEAD ? left : AHEAD;
    int nodes[AHEAD];
    bool good = true;
    for (uint64_t i = 0; i < some; i++) {
        call_chunk(&parcels[i], load.done + i);
        nodes[i] = cluster_post(server, &call);
    }
    for (uint64_t i = 0; i < some; i++) {
        struct reply *const reply = cluster_receive(server, nodes[i]);
        long long here;
        good = good && reply && reply_number(reply, &here) &&
               here == (long long)load.done + 1;
        if (good) chunk_arrived(&parcels[i]);
        reply_free(reply);
    }
    return good;
}

/* Send the next one alone: this finds the node that has the key now, and
 * reports what is wrong. Another push of the same file may have sent more
 * meanwhile; the next query of the server shows that. */
static void send_one(void) {
    if (load.done == load.chunks) return;
    call_chunk(&parcels[0], load.done);
    struct reply *const reply = cluster_demand(server, &call);
    long long here;
    if (reply_number(reply, &here) && here == (long long)load.done + 1)
        chunk_arrived(&parcels[0]);
    reply_free(reply);
}

/* ---- Beginning and going on ---------------------------------------------- */

static void read_status(const struct reply *reply) {
    long long here, all;
    size_t size;
    const char *sum;
    if (reply_parts(reply) != 3 || !reply_number(reply_part(reply, 0), &here) ||
        !reply_number(reply_part(reply, 1), &all) ||
        !(sum = reply_text(reply_part(reply, 2), &size)) ||
        !dump_read_sum(sum, size, &load.sum) || here < 0 || here > all ||
        (uint64_t)all != load.chunks)
        fail_answer(&address, &call, "");
    load.done = (uint64_t)here;
    if (load.done > load.furthest) {
        load.furthest = load.done;
        load.tries = 0;
    }
    note_progress();
}

/* Equal bits may mean other keys, by another hash or seed. */
static bool has_this_head(void) {
    call_for(&call, "BF.DUMP", &load.key);
    call_text(&call, "0");
    struct reply *const reply = cluster_demand(server, &call);
    size_t size = 0;
    const char *const head = reply_parts(reply) == 3
                                 ? reply_text(reply_part(reply, 2), &size)
                                 : NULL;
    if (!head) fail_answer(&address, &call, "");
    const bool has = are_heads_of_one((const uint8_t *)head, size, load.head,
                                      load.head_size);
    reply_free(reply);
    return has;
}

/* The server has a whole filter there. Is it this one, whose push ended before
 * it heard so? Then to commit it again does nothing. */
static bool is_there_already(void) {
    const struct dump_text whole = dump_sum_text(sum_of_first(load.chunks));
    start_load("COMMIT");
    call_text(&call, whole.text);
    struct reply *const reply = cluster_query(server, &call, false);
    const bool is = !reply_error(reply);
    reply_free(reply);
    return is && has_this_head();
}

enum found { GOES_ON, IS_THERE };

/* Ask for the state of the load, which begins if it has not. */
static enum found begin(void) {
    const struct dump_text sum =
        dump_sum_text(dump_sum(load.head, load.head_size));
    for (;;) {
        note_try();
        start_load("BEGIN");
        call_text(&call, sum.text);
        call_add(&call, load.head, load.head_size);
        struct reply *const reply = cluster_query(server, &call, false);
        const char *const error = reply_error(reply);
        if (!error) {
            read_status(reply);
            reply_free(reply);
            if (load.sum == sum_of_first(load.done)) return GOES_ON;
        } else if (strcmp(error, "ERR item exists") == 0) {
            reply_free(reply);
            if (is_there_already()) return IS_THERE;
            if (load.key.text == load.target.text)
                fail("%s: there is a filter under %s already; --swap puts "
                     "this one in its place",
                     address.shown, load.target.text);
        } else if (!strstr(error, "another filter is being loaded")) {
            fail_reply(&address, &call, error);
        } else {
            reply_free(reply);
        }
        warn("%s: what another push left half done under %s is thrown away",
             address.shown, load.key.text);
        cluster_unlink(server, &call, &load.key);
    }
}

static void commit(void) {
    const struct dump_text sum = dump_sum_text(load.sum);
    start_load("COMMIT");
    call_text(&call, sum.text);
    reply_free(cluster_demand(server, &call));
}

/* ---- Swapping ------------------------------------------------------------ */

/* How often the target was swapped. 0: there is no filter; -1: this user may
 * not call BF.INFO. */
static long long generation_now(void) {
    long long generation = 0;
    call_for(&call, "BF.INFO", &load.target);
    call_text(&call, "GENERATION");
    struct reply *const reply = cluster_query(server, &call, false);
    const char *const error = reply_error(reply);
    if (error && strncmp(error, "NOPERM", 6) == 0) generation = -1;
    if (reply_parts(reply) == 1)
        reply_number(reply_part(reply, 0), &generation);
    reply_free(reply);
    return generation;
}

/* The staged key is gone: by the swap, or the server has lost it. */
static void expect_swapped(long long before) {
    const long long now = generation_now();
    if (before < 0 || now < 0 ? cluster_has_key(server, &call, &load.target)
                              : now > before)
        return;
    fail("%s: the server has lost the filter that was to take the place of %s: "
         "did it restart? Push again",
         address.shown, load.target.text);
}

/* If the answer is lost, it was done if the staged key is gone, and the target
 * is of a later generation. */
static void take_the_place(void) {
    char token[24];
    const long long before = generation_now();
    snprintf(token, sizeof token, "%" PRIu64, tokens.token[load.number]);
    for (load.tries = 0;;) {
        note_try();
        call_for(&call, "BF.SWAP", &load.target);
        call_add(&call, load.key.text, load.key.size);
        if (tokens.count) call_text(&call, "REBUILD");
        if (tokens.count) call_text(&call, token);
        struct reply *const reply = cluster_query(server, &call, true);
        const char *const error = reply ? reply_error(reply) : NULL;
        if (error) fail_reply(&address, &call, error);
        reply_free(reply);
        if (reply) return;
        if (!cluster_has_key(server, &call, &load.key)) {
            expect_swapped(before);
            return;
        }
    }
}

/* A key in the same slot of a cluster as this one. */
static struct name staged_of(const struct name *key) {
    const char *const open = memchr(key->text, '{', key->size);
    const char *const close =
        open ? memchr(open, '}', key->size - (size_t)(open - key->text)) : NULL;
    const bool tagged = close && close > open + 1;
    struct name staged = {alloc_memory(key->size + 16), 0};
    char *at = staged.text;
    if (!tagged) *at++ = '{';
    memcpy(at, key->text, key->size);
    at += key->size;
    strcpy(at, tagged ? ":staged" : "}:staged");
    staged.size = (size_t)(at - staged.text) + strlen(at);
    return staged;
}

/* ---- One filter ---------------------------------------------------------- */

static void push(const char *file, struct name target, uint64_t number) {
    calyx_filter *const f = filter_open_whole(file);
    calyx_info info;
    calyx_info_of(f, &info);
    load = (struct load){.file = file,
                         .filter = f,
                         .bytes = info.bytes,
                         .chunks = dump_chunks(info.bytes),
                         .target = target,
                         .number = number,
                         .key = swap ? staged_of(&target) : target};
    load.head = head_of(f, &load.head_size);
    while (begin() == GOES_ON) {
        send_one();
        while (load.done < load.chunks && send_some()) {}
        if (load.done < load.chunks) continue; /* what has arrived, then? */
        commit();
        break;
    }
    if (swap) take_the_place();
    bytes_before += load.bytes;
    free(load.head);
    if (swap) free(load.key.text);
    free(target.text);
    calyx_free(f);
}

/* ---- To another module --------------------------------------------------- */

static int push_foreign(char *file) {
    const struct name key = shard_name(&address, 0, 0);
    if (shards)
        fail("--shards and --as are both given; shards are found by clients "
             "that know of them, and other modules have none");
    server = cluster_open(&address);
    struct foreign_session session = {.server = server,
                                      .address = &address,
                                      .as = as,
                                      .target = key,
                                      .key = staged_of(&key),
                                      .swap = swap};
    if (file_is(file, A_DUMP))
        foreign_push_dump(&session, file);
    else
        foreign_push_list(&session, list_keys, list_rate, file);
    cluster_close(server);
    free(session.key.text);
    free(key.text);
    return EXIT_YES;
}

/* ---- As plain strings ---------------------------------------------------- */

static int push_plain(const char *file) {
    if (shards || as)
        fail("--plain goes with neither --shards nor --as: it cuts the file "
             "into pieces by itself, for servers without a module");
    if (piece_size < PLAIN_PIECE_LEAST || piece_size > PLAIN_PIECE_MOST)
        fail("--piece: expected 64KiB to 64MiB");
    if (expire > 0 && !(expire >= 1 && expire <= 1e9))
        fail("--expire: expected 1s or more, up to 30 years");
    calyx_filter *const f = filter_open_whole(file);
    server = cluster_open(&address);
    plain_push(&(struct plain_push){.server = server,
                                    .address = &address,
                                    .file = file,
                                    .filter = f,
                                    .swap = swap,
                                    .expire = expire,
                                    .piece = piece_size});
    cluster_close(server);
    calyx_free(f);
    return EXIT_YES;
}

/* ---- Shards -------------------------------------------------------------- */

/* Clients learn from a key beside the shards how many there are. It must not
 * change: a key that is in shard 3 of 16 may be in shard 19 of 32. */
static void expect_count(void) {
    if (memchr(address.key, '{', address.key_size))
        fail("%s: with a { in its name, all shards would be in one slot",
             address.shown);
    const uint64_t there = shards_there(server, &address);
    if (there && there != shards)
        fail("%s: it has %" PRIu64 " shards, not %" PRIu64
             "; push under another name, and let clients change over",
             address.shown, there, shards);
}

static void push_shards(const char *stem) {
    expect_count();
    for (uint64_t i = 0; i < shards; i++) {
        char *const file = shard_file(stem, i, shards);
        push(file, shard_name(&address, i, shards), i);
        free(file);
    }
    shards_note(server, &address, shards);
}

/* ---- Rebuilds ------------------------------------------------------------ */

/* FOLDER/FILE as FOLDER/.FILE.ID.new, which is nobody else's (draft.c). */
static char *new_name_of(const char *file) {
    const char *const slash = strrchr(file, '/');
    const int folder = slash ? (int)(slash - file) + 1 : 0;
    const size_t size = strlen(file) + 32;
    char *const name = alloc_memory(size);
    snprintf(name, size, "%.*s.%.200s.%ld.new", folder, file, file + folder,
             (long)getpid());
    return name;
}

/* 'calyx build' of standard input. */
static void build_from_input(char *file) {
    char rate[40], keys[24];
    char *words[] = {"--force", "-o", file, "-p", rate, "-n", keys, NULL};
    const int without_keys = 5, all = 7;
    const struct verb *const build = verb_named("build");
    snprintf(rate, sizeof rate, "%.17g", list_rate);
    snprintf(keys, sizeof keys, "%" PRIu64, list_keys);
    char *no_files[] = {NULL};
    read_options(build, list_keys ? all : without_keys, words);
    build->run(0, no_files);
}

/* Returns the name of a draft: the list may be cut short until its command has
 * ended with 0, and another rebuild may make a file of the same name. */
static char *build_from_command(const char *file) {
    char *const made = new_name_of(file);
    rebuild_begin(&address, 0, &tokens);
    const pid_t child = child_start(command);
    remember_file(made);
    build_from_input(made);
    const char *const trouble = child_trouble(child);
    if (trouble) {
        rebuild_abort(&address, 0, &tokens);
        fail("the command %s: its list may not be whole, so nothing is pushed",
             trouble);
    }
    return made;
}

/* The draft that was pushed becomes the file. */
static void keep_draft(char *made, const char *file) {
    if (rename(made, file) != 0) fail_os(file, "rename to");
    forget_file(made);
    free(made);
}

static void check_rebuild(int count) {
    const bool rebuilds = begin_only || tokens.count || command;
    if (rebuilds && (as || plain))
        fail("--as and --plain are for servers without Calyx, which have no "
             "BF.REBUILD");
    if (begin_only + (tokens.count > 0) + (command != NULL) > 1)
        fail(
            "--rebuild-begin, --rebuild and --from-command exclude each other");
    if (tokens.count && tokens.count != (shards ? shards : 1))
        fail("--rebuild has %" PRIu64 " tokens for %" PRIu64 " filters",
             tokens.count, shards ? shards : 1);
    if (command && shards)
        fail("--from-command makes one filter; for shards use --rebuild-begin "
             "and 'calyx build --shards'");
    if (count != (begin_only ? 1 : 2))
        fail(begin_only ? "--rebuild-begin takes a URL alone"
                        : "expected FILE and URL");
    swap |= rebuilds;
}

/* ---- The verb ------------------------------------------------------------ */

static uint64_t bytes_of(const char *file) {
    calyx_info info;
    calyx_filter *const f = filter_open(file);
    calyx_info_of(f, &info);
    calyx_free(f);
    return info.bytes;
}

static uint64_t bytes_in_all(const char *file) {
    uint64_t bytes = 0;
    if (!shards) return bytes_of(file);
    for (uint64_t i = 0; i < shards; i++) {
        char *const shard = shard_file(file, i, shards);
        bytes += bytes_of(shard);
        free(shard);
    }
    return bytes;
}

static int run(int count, char **operands) {
    const char *file = operands[0];
    check_rebuild(count);
    address = parse_url(operands[count - 1]);
    if (as && !plain) return push_foreign(operands[0]);
    if (!command && (list_keys || key_options_given()))
        fail("-n and the options for keys are for a list, which --as and "
             "--from-command take; a Calyx filter has its own");
    if (plain) return push_plain(file);
    if (secret_key())
        fail("--key-file goes with --plain: a module knows no secret key");
    if (expire > 0 || piece_size != PLAIN_PIECE_MOST)
        fail("--expire and --piece go with --plain; of a filter in a module, "
             "EXPIRE sets the time");
    if (begin_only) {
        rebuild_begin(&address, shards, &tokens);
        print_tokens(&tokens);
        return EXIT_YES;
    }
    char *const draft = command ? build_from_command(file) : NULL;
    if (draft) file = draft;
    if (shards) look_for_shards(file, shards);
    uint64_t all = bytes_in_all(file);
    server = cluster_open(&address);
    for (int i = 0; i < AHEAD; i++)
        parcels[i].bytes = alloc_memory(DUMP_CHUNK_BYTES);
    progress.share = share;
    progress.context = &all;
    progress.of_bytes = true;
    progress_begin(&progress);
    if (shards)
        push_shards(file);
    else
        push(file, shard_name(&address, 0, 0), 0);
    progress_end();
    for (int i = 0; i < AHEAD; i++) free(parcels[i].bytes);
    cluster_close(server);
    if (draft) keep_draft(draft, operands[0]);
    return EXIT_YES;
}

static const struct group options = {
    "Options",
    {
        {0, "swap", NULL,
         "Load the filter under another key, {KEY}:staged, and when it is "
         "complete replace what is under KEY by it, in one step, by BF.SWAP. "
         "Until then clients are answered by the old filter. The server needs "
         "memory for both.",
         parse_flag, &swap},
        {0, "shards", "N",
         "Push the N shards that 'calyx build --shards N -o FILE' made, one "
         "after the other, to the keys KEY:{0}, KEY:{1} and so on. FILE is the "
         "name that was given there.",
         parse_shards, &shards},
        {0, "from-command", "COMMAND",
         "Rebuild the filter from the lines that COMMAND of the shell prints, "
         "make FILE of them, and swap it in, with what was added under KEY "
         "since COMMAND began. If COMMAND does not end with 0, nothing is "
         "pushed.",
         parse_text, &command},
        {0, "rebuild-begin", NULL,
         "Announce a rebuild, before the list is read, and print its token. "
         "The only operand is URL.",
         parse_flag, &begin_only},
        {0, "rebuild", "TOKEN",
         "Swap the filter in with what was added since --rebuild-begin printed "
         "this TOKEN.",
         parse_tokens, &tokens},
        {0, "as", "MODULE",
         "Make a filter of another module, redisbloom or valkey-bloom, from "
         "the keys in FILE, which is then a list of lines, or - for standard "
         "input; or from a FILE that 'pull --as', 'convert --from' or 'build "
         "--layout' made. The server need not have the calyx module. With "
         "redisson, or a layout in one line, FILE becomes bits in a "
         "string.",
         parse_foreign, &as},
        {0, "plain", NULL,
         "Store the file as plain strings, on a server that loads no module. "
         "'calyx check', 'add' and 'pull' find out by themselves.",
         parse_flag, &plain},
        {0, "expire", "TIME",
         "With --plain: all of the filter expires after TIME, such as 10min or "
         "24h. Without it a filter does not expire, and with --swap it expires "
         "when the old one would.",
         parse_time, &expire},
        {0, "piece", "SIZE",
         "With --plain: the size of a string, at most, for servers with a "
         "lower limit; 64KiB to 64MiB, the default.",
         parse_size, &piece_size},
        {'n', "keys", "KEYS",
         "With --as: the number of keys. By default the lines are counted "
         "first. With --from-command: as in 'calyx build'.",
         parse_positive, &list_keys},
        {'p', "rate", "RATE",
         "With --as and --from-command: the false-positive rate. The default "
         "is 1%.",
         parse_rate, &list_rate},
    },
};

const struct verb verb_push = {
    .name = "push",
    .summary = "load a filter into a Redis or Valkey server",
    .synopsis = "[--swap] [--plain | --shards N | --as MODULE] [OPTION]... "
                "FILE URL",
    .prose =
        {"Loads the filter in FILE into a server that has the calyx module, in "
         "chunks of 1 MiB with checksums; --plain needs no module. Until the "
         "filter is complete, the key answers with an error, never with no.",
         "The filter may be larger than 512 MB, and the server serves others "
         "between two chunks.",
         "If the connection breaks or the server goes away, push continues "
         "when it is back. If push itself is ended, the same command resumes "
         "where the last one stopped. It leaves a key that cannot be queried "
         "yet; UNLINK removes it.",
         "URL is redis://[USER:PASSWORD@]HOST[:PORT][/DB]/KEY, or rediss:// "
         "for TLS, or redis+unix://[USER:PASSWORD@]/PATH?key=KEY[&db=DB] for a "
         "UNIX socket. A KEY that begins with a number and a slash needs the "
         "DB before it. Bytes that a URL cannot contain are written as %2F, "
         "and so is an @ in KEY, as %40. A word without :// is a KEY at the "
         "server in $CALYX_REDIS_URL. Any node of a cluster will do: push "
         "finds the right one.",
         "User and password may be in the URL, in $CALYX_REDIS_USER and "
         "$CALYX_REDIS_PASSWORD, or in $CALYX_REDIS_URL. In the URL they are "
         "overwritten in the list of processes at once, and no message shows "
         "them.",
         "With rediss:// nothing is sent before the server has proved its "
         "identity: its certificate must be for the HOST in the URL, by name "
         "or by IP address, and for a node of a cluster for the host that the "
         "cluster announces. It must be signed by an authority that the system "
         "trusts, or, if $CALYX_TLS_CA is set, by one in that file, or in that "
         "folder, which 'openssl rehash' has prepared. If the server requires "
         "a "
         "client certificate, as Redis does by default, $CALYX_TLS_CERT names "
         "its file, and $CALYX_TLS_KEY the file of its key, without a pass "
         "phrase; "
         "both may be in the first. TLS before 1.2 is not used.",
         "With --shards one logical filter of any size is distributed over the "
         "nodes of a cluster; doc/COMMANDS.md says how clients find the shard "
         "of a key. A filter that was built as one cannot be split, since it "
         "does not know its keys: build the shards from the list. With --swap "
         "each shard is swapped when it is loaded, so the server needs memory "
         "for only one more shard.",
         "A filter that is made from a list lacks what was added to the old "
         "filter while the list was read, and --swap alone would forget it. "
         "With "
         "--from-command, or with --rebuild-begin before the list is read and "
         "--rebuild when the filter is made, the server records these keys, "
         "and the swap brings them along. Put a key into the list first, then "
         "add it to the filter in the server. The swap is refused if these "
         "keys take more than 64 MiB, or if another rebuild began since: then "
         "begin again. doc/COMMANDS.md, BF.REBUILD, says more.",
         "With --as the keys go to the server by BF.RESERVE and BF.INSERT, "
         "which RedisBloom, valkey-bloom and services with either of them "
         "have. The filter is filled under {KEY}:staged and renamed when it is "
         "complete; with --swap it replaces what is under KEY. If push is "
         "ended, the next one begins again. A filter of Calyx cannot be pushed "
         "so: it does not know its keys, and the modules hash in other ways. "
         "The options for keys choose the key in a line.",
         "With --plain the server needs no module: the bytes of FILE become "
         "strings of at most 64 MiB, and KEY a hash that describes them. A "
         "lookup reads 64 bytes by GETRANGE, and 'calyx add --server' sets the "
         "bits of a key by BITFIELD, beside any number of other clients. In a "
         "cluster the strings are spread over all nodes, unless KEY has a hash "
         "tag, such as {ids}. All clients see the filter at one moment, when "
         "it is complete, and with --swap no mix of two filters; the server "
         "needs memory for both. If push is ended, what it has sent expires "
         "after a day. Keys that are added to the old filter while a new one "
         "is pushed are in the old one only. A kind whose lookups cannot be "
         "done in pieces is refused; keys can be added to kind line. "
         "doc/SERVERS.md says which servers can load a module and which "
         "cannot."},
    .common = {"swap", "plain", "shards", "from-command", "expire"},
    .groups = {&options, &key_group, &secret_group, &server_group,
               &progress_group},
    .examples =
        {{"calyx push seen.calyx redis://localhost:6379/seen",
          "load a filter under the key 'seen'"},
         {"calyx push --swap tonight.calyx redis://cache.example/allowed",
          "replace one that clients are querying"},
         {"calyx push --from-command 'psql -Atc \"SELECT id FROM product\"' -p "
          "1% products.calyx redis://localhost/products",
          "rebuild a filter from a database; nothing is lost that is added "
          "meanwhile"},
         {"token=$(calyx push --rebuild-begin redis://localhost/products) && "
          "calyx build --force -o p.calyx products.txt && calyx push --rebuild "
          "$token "
          "p.calyx redis://localhost/products",
          "the same in three steps"},
         {"CALYX_TLS_CA=ca.pem calyx push seen.calyx "
          "rediss://cache.example/seen",
          "by TLS, to a server whose certificate is signed by your own "
          "authority"},
         {"calyx build --shards 16 -o ids.calyx ids.txt && calyx push --shards "
          "16 ids.calyx redis://node1.example/ids",
          "one filter over a cluster"},
         {"calyx push --as redisbloom --swap -p 0.1% ids.txt "
          "redis://cache.example/ids",
          "a filter of RedisBloom, from a list"},
         {"calyx push --plain --swap seen.calyx redis://cache.example/seen",
          "as strings, for a server that loads no module"}},
    .least = 1,
    .most = 2,
    .run = run,
};
