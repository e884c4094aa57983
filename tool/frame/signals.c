/*
 * The watch: one thread that waits for signals and draws the progress bar. That
 * a thread waits for signals, instead of a handler that may interrupt anything
 * anywhere, is what lets an early end be an orderly one.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

static sigset_t signals;
static bool always, never;
static bool draws; /* a bar, once the work takes over a second */

const struct group progress_group = {
    "Progress",
    {
        {0, "progress", NULL,
         "Show progress on standard error, even if that is not a terminal.",
         parse_flag, &always},
        {0, "no-progress", NULL,
         "Show no progress. SIGUSR1 still prints one line of it.", parse_flag,
         &never},
    },
};

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- Progress ----------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of these: */
static struct progress *current;
static double started;
static bool drawn;
static double reached;  /* the share of all that was done before `current` */
static double expected; /* bytes that were still to be read then */

void progress_begin(struct progress *progress) {
    pthread_mutex_lock(&lock);
    current = progress;
    started = seconds_now();
    pthread_mutex_unlock(&lock);
}

void progress_expect(uint64_t bytes) {
    pthread_mutex_lock(&lock);
    expected = (double)bytes;
    pthread_mutex_unlock(&lock);
}

/* How much of what is left is done, if `share` of this reading is. */
static double share_of_rest(double share) {
    const double size = (double)current->size;
    return size < expected ? share * size / expected : share;
}

/* The next reading goes on where this one has come to. */
static void count_as_done(void) {
    const double share = current->share(current->context);
    if (share < 0) return;
    reached += (1 - reached) * share_of_rest(share);
    expected = fmax(0, expected - share * (double)current->size);
}

static void erase(void) {
    if (drawn) fputs("\r\033[K", stderr);
    drawn = false;
}

void progress_hide(void) {
    pthread_mutex_lock(&lock);
    erase();
    pthread_mutex_unlock(&lock);
}

void progress_end(void) {
    pthread_mutex_lock(&lock);
    erase();
    if (current) count_as_done();
    current = NULL;
    pthread_mutex_unlock(&lock);
}

static void print_time(double seconds) {
    const unsigned long s = (unsigned long)seconds;
    if (s < 3600)
        fprintf(stderr, "%lu:%02lu", s / 60, s % 60);
    else
        fprintf(stderr, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
}

static void print_progress(void) {
    const double elapsed = seconds_now() - started;
    const double share = current->share(current->context);
    const double of_rest = share < 0 ? share : share_of_rest(share);
    char done[TEXT_SIZE], rate[TEXT_SIZE];
    if (share >= 0) /* 100 % is when the work is done, and this is gone */
        fprintf(stderr, "%3.0f %%, ",
                floor(fmin(99, 100 * (reached + (1 - reached) * of_rest))));
    fprintf(stderr, "%s%s, %s/s",
            current->of_bytes ? size_text(current->bytes, done)
                              : count_text(current->lines, done),
            current->of_bytes ? "" : " lines",
            size_text((uint64_t)((double)current->bytes /
                                 (elapsed > 0 ? elapsed : 1)),
                      rate));
    const double left = elapsed * (1 - of_rest) / of_rest;
    if (share > 0 && left >= 1) {
        fputs(", ", stderr);
        print_time(left);
        fputs(" left", stderr);
    }
}

static void draw(void) {
    pthread_mutex_lock(&lock);
    if (current && seconds_now() - started >= 1) {
        erase();
        print_progress();
        drawn = true;
        fflush(stderr);
    }
    pthread_mutex_unlock(&lock);
}

static void print_line_now(void) {
    pthread_mutex_lock(&lock);
    erase();
    fprintf(stderr, "calyx %s: ", verb_name);
    if (current)
        print_progress();
    else
        fputs("not reading lines", stderr);
    fputs("\n", stderr);
    pthread_mutex_unlock(&lock);
}

/* ---- Signals ------------------------------------------------------------ */

/* Writes that cannot be done fail, instead of ending us: EPIPE and EFBIG. */
void block_signals(void) {
    const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct sigaction old; /* nohup and & ignore some of them: so do we */
        sigaction(ends[i], NULL, &old);
        if (old.sa_handler != SIG_IGN) sigaddset(&signals, ends[i]);
    }
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN); /* EPIPE: end_of_pipe */
    signal(SIGXFSZ, SIG_IGN); /* and EFBIG          */
}

static void *watch(void *unused) {
    (void)unused;
    const struct timespec while_drawing = {.tv_nsec = 200000000};
    for (;;) {
        const int signal_number =
            draws ? sigtimedwait(&signals, NULL, &while_drawing)
                  : sigwaitinfo(&signals, NULL);
        if (signal_number == SIGUSR1)
            print_line_now();
        else if (signal_number > 0) {
            progress_end();
            end_by(signal_number);
        } else if (errno == EAGAIN)
            draw();
    }
    return NULL;
}

void start_signal_thread(void) {
    draws = !never && (always || isatty(STDERR_FILENO));
    pthread_t thread;
    start_thread(&thread, watch, NULL);
    pthread_detach(thread);
}
