/*
 * Output. A file is written as a draft, synced, and then gets its name: others
 * see nothing or all of it. What is not a regular file, such as /dev/null or a
 * pipe, is written directly.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef CALYX_HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef CALYX_HAVE_ZSTD
#include <zstd.h>
#endif

#include "frame/draft.h"
#include "tool.h"

enum { PACKED_SIZE = 1 << 17 };

struct output {
    const char *name;         /* for messages           */
    struct draft_file *draft; /* NULL: written directly */
    int fd;
    uint64_t skipped;         /* bytes that are not to be written again */
    calyx_key (*first)(void); /* text to begin with; NULL: none, or written */
    const struct packer *packer; /* NULL: as it is */
    uint8_t *packed;
#ifdef CALYX_HAVE_ZLIB
    z_stream gzip;
#endif
#ifdef CALYX_HAVE_ZSTD
    ZSTD_CStream *zstd;
#endif
};

/* ---- Packing ------------------------------------------------------------ */

static void put(struct output *o, const void *bytes, size_t size) {
    for (const char *at = bytes; size > 0;) {
        const ssize_t n = write(o->fd, at, size < 1u << 30 ? size : 1u << 30);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EPIPE) end_of_pipe();
        if (n < 0) fail_os(o->name, "write it");
        at += n;
        size -= (size_t)n;
    }
}

enum pack_step { GO_ON, END };

#ifdef CALYX_HAVE_ZLIB
static void start_gzip(struct output *o) {
    if (deflateInit2(&o->gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        fail_at(o->name, 0, "no memory to pack it");
}

static void pack_gzip(struct output *o, const void *bytes, size_t size,
                      enum pack_step step) {
    static const int flushes[] = {Z_NO_FLUSH, Z_FINISH};
    const uint8_t *at = bytes;
    do { /* in pieces that zlib can count */
        const uInt piece = size < 1u << 30 ? (uInt)size : 1u << 30;
        o->gzip.next_in = (uint8_t *)(uintptr_t)at;
        o->gzip.avail_in = piece;
        at += piece;
        size -= piece;
        do {
            o->gzip.next_out = o->packed;
            o->gzip.avail_out = PACKED_SIZE;
            deflate(&o->gzip, size ? Z_NO_FLUSH : flushes[step]);
            put(o, o->packed, PACKED_SIZE - o->gzip.avail_out);
        } while (o->gzip.avail_out == 0);
    } while (size > 0);
    if (step == END) deflateEnd(&o->gzip);
}
#endif

#ifdef CALYX_HAVE_ZSTD
static void start_zstd(struct output *o) {
    o->zstd = ZSTD_createCStream();
    if (!o->zstd) fail_at(o->name, 0, "no memory to pack it");
    ZSTD_CCtx_setParameter(o->zstd, ZSTD_c_checksumFlag, 1);
}

static void pack_zstd(struct output *o, const void *bytes, size_t size,
                      enum pack_step step) {
    static const ZSTD_EndDirective ends[] = {ZSTD_e_continue, ZSTD_e_end};
    ZSTD_inBuffer in = {bytes, size, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {o->packed, PACKED_SIZE, 0};
        left = ZSTD_compressStream2(o->zstd, &out, &in, ends[step]);
        if (ZSTD_isError(left))
            fail_at(o->name, 0, "cannot pack it: %s", ZSTD_getErrorName(left));
        put(o, o->packed, out.pos);
    } while (in.pos < in.size || (step == END && left > 0));
    if (step == END) ZSTD_freeCStream(o->zstd);
}
#endif

/* What a name that ends so is packed by. */
static const struct packer {
    const char *ending, *name, *library;
    void (*start)(struct output *o); /* NULL: without the library */
    void (*pack)(struct output *o, const void *bytes, size_t size,
                 enum pack_step step);
} packers[] = {
#ifdef CALYX_HAVE_ZLIB
    {".gz", "gzip", "zlib", start_gzip, pack_gzip},
#else
    {".gz", "gzip", "zlib", NULL, NULL},
#endif
#ifdef CALYX_HAVE_ZSTD
    {".zst", "zstd", "libzstd", start_zstd, pack_zstd},
#else
    {".zst", "zstd", "libzstd", NULL, NULL},
#endif
};

static const struct packer *packer_named(const char *path) {
    const char *const dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof packers / sizeof *packers; i++)
        if (strcmp(dot, packers[i].ending) == 0) return &packers[i];
    return NULL;
}

static void pack(struct output *o, const void *bytes, size_t size,
                 enum pack_step step) {
    if (o->packer)
        o->packer->pack(o, bytes, size, step);
    else
        put(o, bytes, size);
}

/* ---- Files -------------------------------------------------------------- */

static void refuse_what_cannot_be_packed(const char *path) {
    const struct packer *const packer = packer_named(path);
    if (packer && !packer->start)
        fail_at(path, 0,
                "its name requires %s, and this calyx was built without %s",
                packer->name, packer->library);
}

static _Noreturn void fail_exists(const char *path) {
    fail_at(path, 0, "exists already; --force replaces it");
}

void expect_output(const char *path, bool replace) {
    struct stat is;
    if (!path || strcmp(path, "-") == 0) return;
    if (!*path) fail("the output has an empty name");
    refuse_what_cannot_be_packed(path);
    if (stat(path, &is) == 0) {
        if (S_ISREG(is.st_mode) && !replace) fail_exists(path);
        return;
    }
    if (errno != ENOENT) fail_os(path, "look at it");
    char *const folder = folder_of(path);
    if (access(folder, W_OK) != 0) fail_os(path, "make a file in its folder");
    free(folder);
}

static void open_draft(struct output *o, const char *path,
                       const struct stat *old, bool replace) {
    o->draft = draft_open(path, old, replace, o->name);
    o->fd = o->draft->fd;
}

static void open_file(struct output *o, const char *path, bool replace) {
    struct stat is;
    refuse_what_cannot_be_packed(path);
    if (stat(path, &is) != 0) {
        if (errno != ENOENT) fail_os(path, "look at it");
        open_draft(o, path, NULL, replace);
    } else if (!S_ISREG(is.st_mode)) {
        o->fd = open(path, O_WRONLY | O_CLOEXEC);
        if (o->fd < 0) fail_os(path, "open it");
    } else {
        if (!replace) fail_exists(path);
        char real[PATH_MAX]; /* a link stays, and what it names is replaced */
        if (!realpath(path, real)) fail_os(path, "follow it");
        open_draft(o, real, &is, true);
    }
}

struct output *output_open(const char *path, bool replace) {
    struct output *const o = alloc_memory(sizeof *o);
    const bool standard = !path || strcmp(path, "-") == 0;
    *o = (struct output){.name = standard ? "standard output" : path,
                         .fd = STDOUT_FILENO,
                         .packer = standard ? NULL : packer_named(path)};
    if (!standard) open_file(o, path, replace);
    if (o->packer) {
        o->packer->start(o);
        o->packed = alloc_memory(PACKED_SIZE);
    }
    return o;
}

void output_pack(struct output *o) {
    size_t best = sizeof packers / sizeof *packers;
    if (o->packer) return;
    while (best > 0 && !packers[best - 1].start) best--;
    if (best == 0) return;
    o->packer = &packers[best - 1];
    o->packer->start(o);
    o->packed = alloc_memory(PACKED_SIZE);
}

bool output_is_standard(const struct output *o) {
    return o->fd == STDOUT_FILENO;
}

void output_begin_with(struct output *o, calyx_key (*text)(void)) {
    o->first = text;
}

static void begin(struct output *o) {
    if (!o->first) return;
    const calyx_key text = o->first();
    o->first = NULL;
    pack(o, text.data, text.size, GO_ON);
}

void output_write(struct output *o, const void *bytes, size_t size) {
    begin(o);
    const size_t skipped = size < o->skipped ? size : (size_t)o->skipped;
    o->skipped -= skipped;
    pack(o, (const char *)bytes + skipped, size - skipped, GO_ON);
}

void output_skip(struct output *o, uint64_t bytes) {
    o->skipped = bytes;
}

void output_close(struct output *o) {
    if (!o) return;
    begin(o);
    pack(o, NULL, 0, END);
    if (o->draft)
        draft_publish(o->draft);
    else if (o->fd != STDOUT_FILENO && close(o->fd) != 0)
        fail_os(o->name, "close it");
    free(o->packed);
    free(o);
}

void allow_open_files(uint64_t number) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 ||
        files.rlim_cur >= number + 64 || files.rlim_cur >= files.rlim_max)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

/* ---- Names of outputs --------------------------------------------------- */

bool is_plain_name(const char *path) {
    struct stat is;
    return strcmp(path, "-") != 0 && !packer_named(path) &&
           (stat(path, &is) != 0 || S_ISREG(is.st_mode));
}
