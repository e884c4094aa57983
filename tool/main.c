/*
 * The calyx command: filters at the shell. This file finds the verb and runs
 * it; tool.h says what a verb is.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frame/file_list.h"
#include "frame/passwords.h"
#include "tool.h"

/* The verbs there are, in the order of the help. */
#define VERBS(ROW)  \
    ROW(build)      \
    ROW(check)      \
    ROW(add)        \
    ROW(remove)     \
    ROW(allow)      \
    ROW(common)     \
    ROW(minus)      \
    ROW(dedup)      \
    ROW(plan)       \
    ROW(info)       \
    ROW(explain)    \
    ROW(verify)     \
    ROW(merge)      \
    ROW(compare)    \
    ROW(freeze)     \
    ROW(convert)    \
    ROW(hash)       \
    ROW(join)       \
    ROW(diff)       \
    ROW(patch)      \
    ROW(push)       \
    ROW(pull)       \
    ROW(completion) \
    ROW(help)

#define DECLARE(name) extern const struct verb verb_##name;
VERBS(DECLARE)

#define ADDRESS(name) &verb_##name,
const struct verb *const verbs[] = {VERBS(ADDRESS) NULL};

#define NAME(name) #name,
static const char *const names[] = {VERBS(NAME) NULL};

/* What people know from elsewhere. */
static const char *verb_like(const char *name) {
    static const struct {
        const char *theirs, *ours;
    } known[] = {
        {"uniq", "dedup"},     {"unique", "dedup"},     {"distinct", "dedup"},
        {"grep", "check"},     {"query", "check"},      {"exists", "check"},
        {"delta", "diff"},     {"subtract", "minus"},   {"except", "minus"},
        {"comm", "common"},    {"intersect", "common"}, {"union", "merge"},
        {"create", "build"},   {"make", "build"},       {"new", "build"},
        {"insert", "add"},     {"delete", "remove"},    {"rm", "remove"},
        {"size", "plan"},      {"calc", "plan"},        {"stats", "info"},
        {"show", "info"},      {"fsck", "verify"},      {"import", "convert"},
        {"export", "convert"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].theirs) == 0) return known[i].ours;
    return NULL;
}

const struct verb *verb_named(const char *name) {
    for (const struct verb *const *verb = verbs; *verb; verb++)
        if (strcmp((*verb)->name, name) == 0) return *verb;

    const char *const ours = verb_like(name);
    if (ours)
        fail("unknown verb '%s'; here it is 'calyx %s'. 'calyx help %s' says "
             "more",
             name, ours, ours);
    const char *const near = nearest(name, names);
    if (near)
        fail("unknown verb '%s'; did you mean '%s'? 'calyx help all' lists "
             "them",
             name, near);
    fail("unknown verb '%s'; 'calyx help all' lists them", name);
}

static void print_version(void) {
    printf("calyx %s\nkinds: ", calyx_version());
    for (const char *const *kind = calyx_kinds(); *kind; kind++)
        printf("%s%s", *kind, kind[1] ? ", " : "\nhashes: ");
    for (const char *const *hash = calyx_hashes(); *hash; hash++)
        printf("%s%s", *hash, hash[1] ? ", " : "\nkernels here: ");
    for (const char *const *kernel = calyx_kernels(); *kernel; kernel++)
        printf("%s%s", *kernel, kernel[1] ? ", " : "\n");
}

int finish(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    if (errno == EPIPE) end_of_pipe();
    fail_os("standard output", "write");
}

/* A closed standard stream must not become the descriptor of the next file that
 * is opened: a message would be written into a filter. Its stand-in is open the
 * wrong way round, so it fails as a closed one does. */
static void occupy_standard_streams(void) {
    static const int wrong_ways[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", wrong_ways[fd]) != fd)
            exit(EXIT_TROUBLE); /* no way to report it */
}

/* The C library reserves 64 MiB of address space for each thread that
 * allocates, and `ulimit -v` counts it. Our threads seldom allocate: one heap
 * will do. */
static void share_heap(void) {
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1);
#endif
}

static bool is_one_of(const char *word, const char *name, const char *letter) {
    return strcmp(word, name) == 0 || strcmp(word, letter) == 0;
}

int main(int count, char **words) {
    hide_passwords(count, words);
    occupy_standard_streams();
    block_signals();
    share_heap();
    if (count < 2) {
        print_overview();
        finish(0);
        fail("missing verb: calyx VERB …");
    }

    const char *const word = words[1];
    if (is_one_of(word, "--version", "-V")) {
        print_version();
        return finish(EXIT_YES);
    }
    if (is_one_of(word, "--help", "-h")) {
        print_overview();
        return finish(EXIT_YES);
    }
    if (*word == '-')
        fail("unknown option '%s' before the verb; there are --help and "
             "--version",
             word);

    const struct verb *const verb = verb_named(word);
    verb_name = verb->name;
    guard_mappings();
    int operands = read_options(verb, count - 2, words + 2);
    start_signal_thread();
    char **const operand = operands_with_files(words + 2, &operands);
    if (operands < verb->least)
        fail("missing operand: expected %d or more, found %d: calyx %s %s",
             verb->least, operands, verb->name, verb->synopsis);
    if (verb->most >= 0 && operands > verb->most)
        fail("unexpected operand '%s': calyx %s %s", operand[verb->most],
             verb->name, verb->synopsis);
    return finish(verb->run(operands, operand));
}
