#include "frame/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

/* Our signals are blocked, for a thread that waits for them. */
static _Noreturn void run_shell(const char *command, int output) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(output, STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

pid_t child_start(const char *command) {
    int ends[2];
    if (pipe(ends) != 0) fail_os("a pipe", "make");
    const pid_t child = fork();
    if (child < 0) fail_os("/bin/sh", "start");
    if (child == 0) {
        close(ends[0]);
        run_shell(command, ends[1]);
    }
    close(ends[1]);
    if (dup2(ends[0], STDIN_FILENO) < 0) fail_os("standard input", "replace");
    close(ends[0]);
    return child;
}

const char *child_trouble(pid_t child) {
    static char how[80];
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) fail_os("the command", "wait for");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return NULL;
    if (WIFEXITED(status))
        snprintf(how, sizeof how, "ended with %d", WEXITSTATUS(status));
    else
        snprintf(how, sizeof how, "was ended by signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    return how;
}
