/*
 * calyx bench: how fast filters are here. The program calyx-bench measures; it
 * is separate, since it needs libraries that the command does not.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

static const char program[] = "calyx-bench";

/* The program in the folder of this one, if that is known. */
static const char *beside(void) {
    static char path[PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
    if (size <= 0 || (size_t)size >= sizeof path) return NULL;
    path[size] = '\0';
    char *const slash = strrchr(path, '/');
    if (!slash || slash + 1 + sizeof program > path + sizeof path) return NULL;
    strcpy(slash + 1, program);
    return path;
}

static int run(int count, char **operands) {
    char name[] = "calyx-bench", quick[] = "--quick";
    char **const words = alloc_memory(((size_t)count + 3) * sizeof *words);
    int n = 0;
    words[n++] = name;
    if (count == 0) words[n++] = quick;
    for (int i = 0; i < count; i++) words[n++] = operands[i];
    words[n] = NULL;

    unblock_signals();
    const char *const path = beside();
    if (path) execv(path, words);
    if (!path || errno == ENOENT) execvp(program, words);
    if (errno != ENOENT) fail_os(program, "run it");
    fail("there is no %s beside this command or in PATH; 'make bench' in the "
         "source of calyx builds and runs it",
         program);
}

const struct verb verb_bench = {
    .name = "bench",
    .summary = "measure how fast filters are on this machine",
    .synopsis = "[-- OPTION...]",
    .prose =
        (const char *const[]){
            "Runs the program calyx-bench, which must be in the folder of this "
            "one or in PATH, with the options given after --. Without any, it "
            "runs with --quick, which takes about half a minute. 'make bench' "
            "in the source of calyx builds it.",
            NULL},
    .examples =
        (const struct example[]){
            {"calyx bench", "what matters most, in half a minute"},
            {"calyx bench -- --help", "what else can be measured"},
            {0},
        },
    .status = "That of calyx-bench: 0 on success. 2 if it is not found.",
    .most = -1,
    .run = run,
};
