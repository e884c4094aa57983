/*
 * The frame of the calyx command: what every verb uses.
 *
 * A verb is one file, verb/verb_NAME.c, that exports one `const struct verb`,
 * and one row in main.c. That struct is the only source of its help, its manual
 * page and its completion, and drives the parsing of its options.
 *
 * A process runs one verb once. So options are parsed into static variables,
 * and an error ends the process: fail() and its variants print one line, remove
 * unfinished files, and exit with EXIT_TROUBLE.
 */
#ifndef CALYX_TOOL_H
#define CALYX_TOOL_H

#include <calyx/calyx.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_YES = 0, EXIT_NO = 1, EXIT_TROUBLE = 2 };

/* ---- Verbs (main.c) ----------------------------------------------------- */

/* One option. `parse` stores its value in `into`; the functions for it are
 * below. */
struct verb_option {
    char letter;          /* 0: it has none                           */
    const char *name;     /* long name, without the dashes            */
    const char *argument; /* such as "FILE"; NULL: it takes none; in brackets,
                             "[=RATE]": may be left out, and then
                             `parse` gets NULL                        */
    const char *text;     /* one or two sentences, in one long string */
    void (*parse)(const struct verb_option *option, const char *value);
    void *into;
};

/* Options that belong together; several verbs may share a group. Here and
 * below, a list has room for more than any verb needs: its last entry stays
 * empty. */
struct group {
    const char *title; /* "Options", "The key in a line" */
    struct verb_option options[24];
};

struct example {
    const char *command, *text;
};

struct verb {
    const char *name;
    const char *summary;            /* one line, no full stop              */
    const char *synopsis;           /* what follows the name               */
    const char *prose[16];          /* paragraphs; the first says it all   */
    const char *common[12];         /* names of the options that help shows
                                       first; none: all                    */
    const struct group *groups[10]; /* of options                          */
    struct example examples[10];
    const char *status; /* what exit 0 and 1 mean; NULL: usual */
    int least, most;    /* operands wanted; most < 0: any number */
    int (*run)(int count, char **operands);
};

/* All of them, in the order of the help; ends with NULL. */
extern const struct verb *const verbs[];
const struct verb *verb_named(const char *name);

/* The status to exit with. What was printed must have arrived: if not, fails,
 * or ends as a closed pipe does. */
int finish(int status);

/* ---- Reading options (args.c) ------------------------------------------- */

/* Parse the options of a verb, in any order and place. The operands are moved
 * to the front of `words`; their number is returned. Ends the process after
 * printing help if an option says so. */
int read_options(const struct verb *verb, int count, char **words);

/* How options parse their value. On each line, what `into` points to. */
struct texts {
    const char **text;
    size_t count;
};
void parse_flag(const struct verb_option *, const char *); /* bool, made true */
void parse_text(const struct verb_option *, const char *); /* const char * */
void parse_texts(const struct verb_option *, const char *); /* struct texts */
void parse_count(const struct verb_option *,
                 const char *); /* uint64_t, from 0   */
void parse_positive(const struct verb_option *,
                    const char *); /* uint64_t, from 1   */
void parse_size(const struct verb_option *,
                const char *); /* uint64_t, bytes, 1 */
void parse_rate(const struct verb_option *,
                const char *); /* double, in (0, 1)  */
void parse_time(const struct verb_option *, const char *); /* double, seconds */
void parse_share(const struct verb_option *,
                 const char *); /* double, in [0, 1]  */

/* The name that is most like `name`, if one is, else NULL. */
const char *nearest(const char *name, const char *const *names);

/* ---- Numbers (number.c) ------------------------------------------------- */

/* K, M, G and T are powers of 1000; Ki, Mi, Gi and Ti powers of 1024. Each
 * returns false if the text has another form. */
bool count_from(const char *text, uint64_t *count); /* 10M, 1e9, 1.5G       */
bool size_from(const char *text, uint64_t *bytes);  /* 64KiB, 10M, 1G, 4096B */
bool rate_from(const char *text, double *rate);     /* 0.01, 1%, 1/1000     */
bool time_from(const char *text, double *seconds);  /* 50ns, 3us, 2s, 5min  */

/* The value of a hexadecimal digit; -1 if it is none. */
static inline int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The same for people, in a buffer of TEXT_SIZE: "1 234 567", "1.2 GB", and a
 * rate as "1 %" or "1 in 1 000 000". All return the buffer. */
enum { TEXT_SIZE = 32 };
char *count_text(uint64_t count, char *buffer);
char *size_text(uint64_t bytes, char *buffer);
char *rate_text(double rate, char *buffer);

/* ---- Trouble (fail.c) --------------------------------------------------- */

/* Print "calyx VERB: TEXT" and exit with EXIT_TROUBLE. fail_at puts "FILE: "
 * before the text, or "FILE:LINE: " if the line is not 0; fail_os ends with
 * what errno says; fail_with with the words of a calyx_error, which name the
 * file. */
#define PRINTS(text, first) __attribute__((format(printf, text, first)))
_Noreturn void fail(const char *format, ...) PRINTS(1, 2);
_Noreturn void fail_at(const char *file, uint64_t line, const char *format, ...)
    PRINTS(3, 4);
_Noreturn void fail_os(const char *file, const char *what);
_Noreturn void fail_with(const calyx_error *why);

bool is_http_url(const char *word); /* http:// or https:// */

/* Print "calyx VERB: TEXT" and go on. */
void warn(const char *format, ...) PRINTS(1, 2);

/* The same of a file: "calyx VERB: FILE: TEXT" */
void warn_at(const char *file, const char *format, ...) PRINTS(2, 3);

/* The verb that runs, for messages; main sets it. */
extern const char *verb_name;

/* When the reader of our output has gone: end as SIGPIPE would, in silence. */
_Noreturn void end_of_pipe(void);

/* Called first when the process ends early: by an error, or by a closed pipe.
 * For what must be finished, such as sealing a file that is changed in place.
 */
extern void (*at_early_end)(void);

/* Files to remove if the process ends early, by an error or by a signal: `path`
 * must stay valid until forget_file. */
void remember_file(const char *path);
void forget_file(const char *path);
void remove_files(void); /* also for signal handlers */

/* Around what must not be cut in two by an early end, such as a change of a
 * file in place: at_early_end runs before or after it. May be nested. */
void begin_change(void);
void end_change(void);

/* End as this signal would, after cleaning up. */
_Noreturn void end_by(int signal_number);

/* Is there a regular file of this name, which is not "-"? */
bool is_regular_file(const char *path);

/* ---- Files that are mapped (mapping.c) ---------------------------------- */

/* From here on a SIGBUS, for a mapped file that was cut, ends the process with
 * a message that names it. */
void guard_mappings(void);

/* Have the disk reserve the blocks of a file that is to be changed in place, so
 * that it is not full when a hole is written to. Fails if it is full now. Reads
 * and writes nothing. */
void reserve_blocks(const char *path);

/* ---- Signals and progress (signals.c) ------------------------------------ */

/* A thread that waits for SIGINT, SIGTERM and SIGHUP, for which it calls
 * end_by, and draws the progress bar. The signals are blocked in all others. */
void block_signals(void);       /* before any thread is made */
void start_signal_thread(void); /* when options have been read */

/* --progress, --no-progress */
extern const struct group progress_group;

/* What the bar and SIGUSR1 show, until progress_end. `share` may return -1 if
 * unknown, and is called from the signal thread. */
struct progress {
    double (*share)(void *context);
    void *context;
    uint64_t
        size; /* what the share is of, in bytes; 0: of all there is to do */
    _Atomic uint64_t lines, bytes;
    bool of_bytes; /* and not of lines */
};
void progress_begin(struct progress *progress);

/* About how many bytes will be read, if files are read several times. The share
 * that is shown goes from 0 to 1 over all of them, and never back, even if more
 * are read than expected. */
void progress_expect(uint64_t bytes);
void progress_hide(void); /* for a message; it comes back */
void progress_end(void);
double seconds_now(void);

/* Starts a thread with a stack of 1 MiB, or fails. */
void start_thread(pthread_t *thread, void *(*run)(void *), void *context);

/* malloc and realloc that fail() when there is no memory. */
void *alloc_memory(size_t size);
void *resize_memory(void *old, size_t size);
char *copy_text(const char *text);

/* An array with room for `wanted` elements of this size. If it must grow, it is
 * at least doubled. */
static inline void *with_room(void *array, size_t *room, size_t wanted,
                              size_t size) {
    enum { LEAST = 64 };
    if (wanted <= *room) return array;
    *room = 2 * *room > wanted ? 2 * *room : wanted;
    if (*room < LEAST) *room = LEAST;
    return resize_memory(array, *room * size);
}

/* ---- Output (output.c) -------------------------------------------------- */

/* Where bytes go: standard output, for NULL and "-"; or a file, which appears
 * under its name only when it is complete. An existing one is an error unless
 * `replace`. Compressed if the name ends in .gz or .zst. All of them fail(). */
struct output;
struct output *output_open(const char *path, bool replace);
/* Before the first byte: pack it, whatever its name, by the best packer there
 * is, if any. */
void output_pack(struct output *output);
void output_write(struct output *output, const void *bytes, size_t size);
void output_close(struct output *output); /* the file appears; NULL is fine */

bool output_is_standard(const struct output *output);

/* Drop the next bytes: they are those that were written so far. */
void output_skip(struct output *output, uint64_t bytes);

/* Write this text first: before anything else is written, or when it is closed.
 * It is not needed before. */
void output_begin_with(struct output *output, calyx_key (*text)(void));

/* Fail now if output_open or filter_save will do so after the work: there is a
 * file that is not to be replaced, or no folder to write to. */
void expect_output(const char *path, bool replace);

/* Raise the limit of open files so that this many more can be, if it can be. */
void allow_open_files(uint64_t number);

bool is_plain_name(const char *path); /* of a file that is not to be packed */

/* ---- Help (help.c) ------------------------------------------------------ */

void print_overview(void);
void print_verbs(void); /* all of them */
void print_help(const struct verb *verb);
void print_manual(const struct verb *verb); /* roff; NULL for calyx(1) */

#endif
