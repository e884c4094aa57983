#include "input/estimate.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input/records.h"
#include "input/source.h"

enum { PIECES = 256, PIECE = 8192 };

/* A sample of less than an eighth of the bytes; for smaller files there is not
 * much time to be saved, either. */
static const uint64_t least_size = UINT64_C(8) * PIECES * PIECE;

/* More than the least by this share is no guess any more. */
static const double most_doubt = 0.025;

/* To open a named pipe and close it would lose bytes. */
static bool is_plain(const char *path, uint64_t *size) {
    if (!is_regular_file(path)) return false;
    struct byte_source *const source = source_try(path);
    if (!source) return false; /* reading it will report that */
    const bool plain = source_is_plain_file(source);
    *size = source_size(source);
    source_close(source);
    return plain;
}

/* How many lines end in the piece at this place, for each of its bytes; below
 * 0 if it cannot be read. */
static double density(const char *path, uint64_t place) {
    static char piece[PIECE];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    const ssize_t n = pread(fd, piece, PIECE, (off_t)place);
    close(fd);
    if (n <= 0) return -1;
    size_t ends = 0;
    for (ssize_t i = 0; i < n; i++) ends += piece[i] == record_end();
    return (double)ends / (double)n;
}

/* One density for each piece, over all files. */
static bool sample(char **files, const uint64_t *sizes, uint64_t total,
                   double *densities) {
    uint64_t before = 0; /* bytes in the files before this one */
    for (int i = 0, file = 0; i < PIECES; i++) {
        const uint64_t place = total / PIECES * (uint64_t)i;
        for (; place - before >= sizes[file]; file++) before += sizes[file];
        densities[i] = density(files[file], place - before);
        if (densities[i] < 0) return false;
    }
    return true;
}

/* The mean plus three times its standard error. The error comes from the
 * differences of neighbours, so that a file that changes slowly, such as a
 * sorted one, does not look mixed. */
static double upper_mean(const double *densities) {
    double sum = densities[0], squares = 0;
    for (int i = 1; i < PIECES; i++) {
        const double step = densities[i] - densities[i - 1];
        sum += densities[i];
        squares += step * step;
    }
    const double mean = sum / (double)PIECES;
    const double error = sqrt(squares / (double)(2 * (PIECES - 1) * PIECES));
    return 3 * error <= most_doubt * mean ? mean + 3 * error : 0;
}

bool estimate_lines(int count, char **files, uint64_t *lines) {
    if (count == 0 || !record_ends_are_plain()) return false;
    uint64_t *const sizes = alloc_memory((size_t)count * sizeof *sizes);
    uint64_t total = 0;
    bool plain = true;
    for (int i = 0; i < count && plain; i++) {
        plain = is_plain(files[i], &sizes[i]);
        if (plain) total += sizes[i];
    }
    double densities[PIECES];
    double mean = 0;
    if (plain && total >= least_size && sample(files, sizes, total, densities))
        mean = upper_mean(densities);
    free(sizes);
    if (!(mean > 0)) return false;
    *lines = (uint64_t)ceil(mean * (double)total) + (uint64_t)count;
    return true;
}
