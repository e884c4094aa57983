#include "input/source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef CALYX_HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef CALYX_HAVE_ZSTD
#include <zstd.h>
#endif

#include "tool.h"

enum source_packing { UNKNOWN, PLAIN, GZIP, ZSTD };
enum {
    PACKED_SIZE = 1 << 17,
    PIPE_SIZE = 1 << 20,
    SOURCE_TEXT = 200,
    GZIP_FIRST = 0x1f /* byte of a member */
};

struct byte_source {
    const char *name;
    int fd;
    enum source_packing packing;
    bool ended;     /* the file has no more bytes                  */
    bool is_output; /* and not to be read                          */
    bool in_middle; /* of a packed stream, so it must not end here */
    bool regular;
    bool limited;    /* to the bytes that it had when it was noted */
    struct stat was; /* when it was opened or noted, if it is regular */
    uint64_t start;  /* where reading began in it */
    uint64_t done;
    uint8_t *packed; /* bytes read but not used: the first, or packed ones */
    size_t at, packed_size;
    uint8_t head[LOOK_BYTES]; /* unpacked bytes that were looked at */
    size_t head_at, head_size;
    char trouble[SOURCE_TEXT];
    struct kept_text *kept;    /* or NULL */
    struct text_range *places; /* in it */
    uint64_t kept_at;          /* place of the next byte, when read again */
#ifdef CALYX_HAVE_ZLIB
    z_stream gzip;
#endif
#ifdef CALYX_HAVE_ZSTD
    ZSTD_DStream *zstd;
#endif
};

/* ---- The file that is written -------------------------------------------- */

static bool refuses_output;
static struct stat standard_output; /* if it is refused */

void source_refuse_output(void) {
    refuses_output = fstat(STDOUT_FILENO, &standard_output) == 0 &&
                     S_ISREG(standard_output.st_mode);
}

static bool is_standard_output(const struct stat *is) {
    return refuses_output && is->st_dev == standard_output.st_dev &&
           is->st_ino == standard_output.st_ino;
}

bool file_is_output(const char *path) {
    struct stat is;
    return is_regular_file(path) && stat(path, &is) == 0 &&
           is_standard_output(&is);
}

bool source_is_output(const struct byte_source *s) {
    return s->is_output;
}

/* ---- Files that are read several times ----------------------------------- */

static struct noted_file {
    const char *path;
    struct stat was;
    bool has_size; /* files of /proc say 0 */
} * noted;
static int noted_count;
static bool limits_to_noted;

static bool is_empty(const char *path) {
    char byte;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool empty = fd >= 0 && read(fd, &byte, 1) == 0;
    if (fd >= 0) close(fd);
    return empty;
}

static int compare_noted(const void *a, const void *b) {
    const struct stat *const x = &((const struct noted_file *)a)->was;
    const struct stat *const y = &((const struct noted_file *)b)->was;
    if (x->st_dev != y->st_dev) return x->st_dev < y->st_dev ? -1 : 1;
    return (x->st_ino > y->st_ino) - (x->st_ino < y->st_ino);
}

void note_files(int count, char **files) {
    noted = alloc_memory((size_t)(count ? count : 1) * sizeof *noted);
    for (int i = 0; i < count; i++) {
        struct noted_file *const n = &noted[noted_count];
        n->path = files[i];
        if (!is_regular_file(files[i]) || stat(files[i], &n->was) != 0)
            continue;
        n->has_size = n->was.st_size > 0 || is_empty(files[i]);
        noted_count++;
    }
    qsort(noted, (size_t)noted_count, sizeof *noted, compare_noted);
}

void read_noted_bytes_only(void) {
    limits_to_noted = true;
}

/* What was noted of a file that is to be read as it was; NULL: nothing. */
static const struct noted_file *limit_of(const struct stat *is) {
    if (!limits_to_noted) return NULL;
    const struct noted_file wanted = {.was = *is};
    const struct noted_file *const n = bsearch(
        &wanted, noted, (size_t)noted_count, sizeof *noted, compare_noted);
    return n && n->has_size ? n : NULL;
}

uint64_t bytes_to_read(const struct stat *is) {
    const struct noted_file *const n = limit_of(is);
    return (uint64_t)(n && n->was.st_size < is->st_size ? n->was.st_size
                                                        : is->st_size);
}

/* ---- The file ----------------------------------------------------------- */

struct byte_source *source_try(const char *path) {
    const bool standard = strcmp(path, "-") == 0;
    const int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;

    struct byte_source *const s = alloc_memory(sizeof *s);
    *s = (struct byte_source){.name = standard ? "standard input" : path,
                              .fd = fd};
    s->regular = fstat(fd, &s->was) == 0 && S_ISREG(s->was.st_mode);
    if (s->regular) {
        const off_t at = lseek(fd, 0, SEEK_CUR);
        s->start = at > 0 ? (uint64_t)at : 0;
        const struct noted_file *const n = standard ? NULL : limit_of(&s->was);
        s->limited = n != NULL;
        if (n) s->was = n->was;
        s->is_output = is_standard_output(&s->was);
        if (s->is_output && standard && s->start >= (uint64_t)s->was.st_size) {
            s->is_output = false;
            s->ended = true;
        }
        posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    } else {
        /* a pipe: the writer waits for the reader less often */
        fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE);
    }
    s->packed = alloc_memory(PACKED_SIZE);
    return s;
}

struct byte_source *source_open(const char *path) {
    struct byte_source *const s = source_try(path);
    if (!s) fail_os(path, "open it");
    return s;
}

static ssize_t trouble(struct byte_source *s, const char *what) {
    snprintf(s->trouble, sizeof s->trouble, "%s", what);
    return -1;
}

static bool was_written(const struct stat *was, const struct stat *is) {
    return is->st_mtim.tv_sec != was->st_mtim.tv_sec ||
           is->st_mtim.tv_nsec != was->st_mtim.tv_nsec;
}

/* Is the file another one than it `was`? It may have grown if `may_grow`. Says
 * how in `text`, of SOURCE_TEXT bytes. */
static bool file_changed(const struct stat *was, const struct stat *is,
                         bool may_grow, char *text) {
    const bool same = is->st_dev == was->st_dev && is->st_ino == was->st_ino;
    const bool grew = may_grow && is->st_size > was->st_size;
    if (is->st_size < was->st_size)
        snprintf(text, SOURCE_TEXT,
                 "shrank from %lld to %lld bytes while it was read",
                 (long long)was->st_size, (long long)is->st_size);
    else if (!same || (was_written(was, is) && !grew))
        snprintf(text, SOURCE_TEXT, "changed while it was read");
    else
        return false;
    return true;
}

/* 0, or -1 if what was read is not all that there was. A file may also have
 * shrunk and grown again; not that it ends before its size says so, as the
 * files of /sys do. */
static ssize_t end_of_file(struct byte_source *s) {
    struct stat is;
    s->ended = true;
    if (!s->regular) return 0;
    if (fstat(s->fd, &is) != 0) return trouble(s, "cannot look at it again");
    const bool early = s->start + s->done < (uint64_t)s->was.st_size;
    return file_changed(&s->was, &is, !early, s->trouble) ? -1 : 0;
}

void expect_same_files(void) {
    for (int i = 0; i < noted_count; i++) {
        struct stat is;
        char text[SOURCE_TEXT];
        if (stat(noted[i].path, &is) != 0)
            fail_os(noted[i].path, "look at it again");
        if (file_changed(&noted[i].was, &is, true, text))
            fail_at(noted[i].path, 0, "%s", text);
    }
}

bool file_was_touched(const char *path) {
    struct stat is;
    const struct noted_file *const n =
        stat(path, &is) == 0 ? limit_of(&is) : NULL;
    return !n || n->was.st_size != is.st_size || was_written(&n->was, &is);
}

/* A packed file that grows is read to its end, or it would end in its middle.
 */
static uint64_t bytes_left(const struct byte_source *s) {
    const uint64_t at = s->start + s->done;
    const uint64_t end = (uint64_t)s->was.st_size;
    if (!s->limited || s->packing > PLAIN) return UINT64_MAX;
    return at < end ? end - at : 0;
}

static ssize_t read_file(struct byte_source *s, void *buffer, size_t size) {
    if (s->ended) return 0;
    ssize_t n;
    const uint64_t left = bytes_left(s);
    if (left == 0) return end_of_file(s);
    if (size > left) size = (size_t)left;
    do n = read(s->fd, buffer, size);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        snprintf(s->trouble, sizeof s->trouble, "cannot read it: %s",
                 strerror(errno));
        return -1;
    }
    if (n == 0) return end_of_file(s);
    s->done += (uint64_t)n;
    return n;
}

/* ---- What it is, by its first bytes -------------------------------------- */

/* The magic numbers of RFC 1952 and RFC 8878; a zstd file may also start with a
 * skippable frame. `mask` says which bits count. */
static const struct {
    enum source_packing packing;
    uint8_t bytes, magic[4], mask[4];
} packings[] = {
    {GZIP, 2, {GZIP_FIRST, 0x8b}, {0xff, 0xff}},
    {ZSTD, 4, {0x28, 0xb5, 0x2f, 0xfd}, {0xff, 0xff, 0xff, 0xff}},
    {ZSTD, 4, {0x50, 0x2a, 0x4d, 0x18}, {0xf0, 0xff, 0xff, 0xff}},
};

/* UNKNOWN: more bytes are needed. */
static enum source_packing packing_of(const uint8_t *bytes, size_t size) {
    enum source_packing packing = PLAIN;
    for (size_t i = 0; i < sizeof packings / sizeof *packings; i++) {
        size_t same = 0;
        while (same < size && same < packings[i].bytes &&
               (bytes[same] & packings[i].mask[same]) ==
                   packings[i].magic[same])
            same++;
        if (same == packings[i].bytes) return packings[i].packing;
        if (same == size) packing = UNKNOWN;
    }
    return packing;
}

/* Reads no more than it needs to, so that lines that come slowly are seen as
 * soon as they are there. */
static bool find_packing(struct byte_source *s) {
    if (s->packing != UNKNOWN) return true;
    while ((s->packing = packing_of(s->packed, s->packed_size)) == UNKNOWN) {
        const ssize_t n = read_file(s, s->packed + s->packed_size,
                                    PACKED_SIZE - s->packed_size);
        if (n < 0) return false;
        if (n == 0) {
            s->packing = PLAIN;
            break;
        }
        s->packed_size += (size_t)n;
    }
    return true;
}

/* ---- Unpacking ---------------------------------------------------------- */

#if defined CALYX_HAVE_ZLIB || defined CALYX_HAVE_ZSTD
/* Fill the buffer of compressed bytes. Returns 1, 0 at the end, -1 on an error.
 */
static ssize_t refill(struct byte_source *s) {
    if (s->at < s->packed_size) return 1;
    const ssize_t n = read_file(s, s->packed, PACKED_SIZE);
    if (n > 0) {
        s->at = 0;
        s->packed_size = (size_t)n;
        return 1;
    }
    if (n == 0 && s->in_middle)
        return trouble(s, "damaged: the packed data ends in its middle");
    return n;
}
#endif

#ifdef CALYX_HAVE_ZLIB
/* Zeros up to the end of the file, with which tapes fill a block. Other bytes
 * may be a member that is damaged, so they are not left out as gzip does. */
static ssize_t skip_padding(struct byte_source *s) {
    ssize_t more;
    while ((more = refill(s)) > 0)
        if (s->packed[s->at++])
            return trouble(
                s, "damaged: after the packed data are bytes that are neither "
                   "gzip data nor zeros; 'gzip -dc' leaves them out");
    return more;
}

static ssize_t read_gzip(struct byte_source *s, void *buffer, size_t size) {
    const uInt room = size < (1u << 30) ? (uInt)size : 1u << 30;
    for (;;) {
        const ssize_t more = refill(s);
        if (more <= 0) return more;
        if (!s->in_middle) { /* the first member, or one more */
            if (s->gzip.state && s->packed[s->at] != GZIP_FIRST)
                return skip_padding(s);
            const int status = s->gzip.state ? inflateReset(&s->gzip)
                                             : inflateInit2(&s->gzip, 15 + 16);
            if (status != Z_OK) return trouble(s, "no memory to unpack it");
            s->in_middle = true;
        }
        s->gzip.next_in = s->packed + s->at;
        s->gzip.avail_in = (uInt)(s->packed_size - s->at);
        s->gzip.next_out = buffer;
        s->gzip.avail_out = room;
        const int status = inflate(&s->gzip, Z_NO_FLUSH);
        s->at = s->packed_size - s->gzip.avail_in;
        if (status == Z_STREAM_END)
            s->in_middle = false;
        else if (status != Z_OK)
            return trouble(s, status == Z_MEM_ERROR
                                  ? "no memory to unpack it"
                                  : "damaged: this is not sound gzip data");
        const uInt made = room - s->gzip.avail_out;
        if (made > 0) return (ssize_t)made;
    }
}
#else
static ssize_t read_gzip(struct byte_source *s, void *buffer, size_t size) {
    (void)buffer, (void)size;
    return trouble(s, "this is gzip data, and this calyx was built without "
                      "zlib; pipe it through 'gzip -dc'");
}
#endif

#ifdef CALYX_HAVE_ZSTD
static ssize_t read_zstd(struct byte_source *s, void *buffer, size_t size) {
    if (!s->zstd && !(s->zstd = ZSTD_createDStream()))
        return trouble(s, "no memory to unpack it");
    for (;;) {
        const ssize_t more = refill(s);
        if (more <= 0) return more;
        ZSTD_inBuffer in = {s->packed, s->packed_size, s->at};
        ZSTD_outBuffer out = {buffer, size, 0};
        const size_t status = ZSTD_decompressStream(s->zstd, &out, &in);
        s->at = in.pos;
        if (ZSTD_isError(status)) {
            snprintf(s->trouble, sizeof s->trouble,
                     "damaged: this is not sound zstd data: %s",
                     ZSTD_getErrorName(status));
            return -1;
        }
        s->in_middle = status != 0;
        if (out.pos > 0) return (ssize_t)out.pos;
    }
}
#else
static ssize_t read_zstd(struct byte_source *s, void *buffer, size_t size) {
    (void)buffer, (void)size;
    return trouble(s, "this is zstd data, and this calyx was built without "
                      "libzstd; pipe it through 'zstd -dc'");
}
#endif

/* ---- Reading ------------------------------------------------------------ */

static ssize_t read_unpacked(struct byte_source *s, void *buffer, size_t size) {
    if (!find_packing(s)) return -1;
    if (s->packing == GZIP) return read_gzip(s, buffer, size);
    if (s->packing == ZSTD) return read_zstd(s, buffer, size);
    if (s->at == s->packed_size) return read_file(s, buffer, size);

    const size_t left = s->packed_size - s->at;
    const size_t n = left < size ? left : size;
    memcpy(buffer, s->packed + s->at, n);
    s->at += n;
    return (ssize_t)n;
}

static ssize_t read_new(struct byte_source *s, void *buffer, size_t size) {
    if (s->head_at == s->head_size)
        return s->trouble[0] ? -1 : read_unpacked(s, buffer, size);
    const size_t left = s->head_size - s->head_at;
    const size_t n = left < size ? left : size;
    memcpy(buffer, s->head + s->head_at, n);
    s->head_at += n;
    return (ssize_t)n;
}

/* The page of stored text that a place is in begins here. */
static uint64_t page_begin(uint64_t place) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return place / page * page;
}

/* Limits of a process count addresses, too: so pages that are done with are
 * unmapped. */
static void unmap_before(struct kept_text *text, uint64_t place) {
    const uint64_t end = page_begin(place);
    if (end <= text->unmapped) return;
    munmap(text->bytes + text->unmapped, end - text->unmapped);
    text->unmapped = end;
}

static void unmap_unused(struct kept_text *text) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t end = page_begin(text->end + page);
    if (end >= text->room) return;
    munmap(text->bytes + end, text->room - end);
    text->room = end;
}

static ssize_t read_again(struct byte_source *s, void *buffer, size_t size) {
    const uint64_t left = s->places->end - s->kept_at;
    const size_t n = left < size ? (size_t)left : size;
    memcpy(buffer, s->kept->bytes + s->kept_at, n);
    s->kept_at += n;
    unmap_before(s->kept, s->kept_at);
    return (ssize_t)n;
}

static ssize_t read_and_keep(struct byte_source *s, void *buffer, size_t size) {
    struct kept_text *const text = s->kept;
    const uint64_t end = s->places->end;
    if (end >= text->room) text->full = true;
    if (text->full) return 0;
    const uint64_t room = text->room - end;
    const ssize_t n = read_new(s, buffer, room < size ? (size_t)room : size);
    if (n <= 0) return n;
    memcpy(text->bytes + end, buffer, (size_t)n);
    s->places->end = text->end = end + (uint64_t)n;
    return n;
}

ssize_t source_read(struct byte_source *s, void *buffer, size_t size) {
    if (!s->kept) return read_new(s, buffer, size);
    if (!s->kept->again) return read_and_keep(s, buffer, size);
    return s->kept_at < s->places->end ? read_again(s, buffer, size)
                                       : read_new(s, buffer, size);
}

bool source_ready(const struct byte_source *s) {
    if (s->kept && s->kept_at < s->places->end) return true;
    if (s->regular || s->head_at < s->head_size || s->at < s->packed_size)
        return true;
    struct pollfd wait = {.fd = s->fd, .events = POLLIN};
    return poll(&wait, 1, 0) > 0;
}

/* ---- What it is, unpacked ------------------------------------------------ */

/* Like find_packing, reads no more than it needs to. An error is reported by
 * the next source_read. */
static const struct look *look(struct byte_source *s) {
    for (bool more;;) {
        const struct look *const found = look_at(s->head, s->head_size, &more);
        if (!more) return found;
        const ssize_t n =
            read_unpacked(s, s->head + s->head_size, LOOK_BYTES - s->head_size);
        if (n <= 0) return found;
        s->head_size += (size_t)n;
    }
}

bool source_expect_lines(struct byte_source *s) {
    if (s->kept && s->kept->again) return true; /* it was looked at before */
    const struct look *const is = look(s);
    if (!is) return true;
    if (is->kind == UTF8_MARK) {
        s->head_at = is->size;
        return true;
    }
    if (is->kind == A_FILTER || is->kind == A_DUMP)
        snprintf(s->trouble, sizeof s->trouble,
                 "not a list of lines but %s; query it with 'calyx check -f "
                 "FILTER', or read its bytes as lines with --text",
                 is->name);
    else if (!is->pipe)
        snprintf(s->trouble, sizeof s->trouble,
                 "not a list of lines but %s, for '%s'; read its bytes as "
                 "lines with --text",
                 is->name,
                 is->kind == HASHES ? "calyx build --part" : "calyx join");
    else
        snprintf(s->trouble, sizeof s->trouble,
                 "not a list of lines but %s; pipe it through '%s', or read "
                 "its bytes as lines with --text",
                 is->name, is->pipe);
    return false;
}

bool source_is(struct byte_source *s, enum look_kind kind) {
    const struct look *const is = look(s);
    return is && is->kind == kind;
}

bool file_is(const char *path, enum look_kind kind) {
    if (!is_regular_file(path)) return false;
    struct byte_source *const s = source_open(path);
    const bool is = source_is(s, kind);
    source_close(s);
    return is;
}

void source_expect_filter(struct byte_source *s) {
    const struct look *const is = look(s);
    if (is && is->kind == A_FILTER) return;
    if (is && is->kind == A_PART)
        fail_at(s->name, 0,
                "a part of a calyx filter, and no whole one: 'calyx join -o "
                "FILTER PART...' makes one of all parts");
    if (is && is->kind == HASHES)
        fail_at(s->name, 0,
                "a file of hashes, and no calyx filter: 'calyx build --part' "
                "reads it");
    if (is && is->kind == A_DUMP)
        fail_at(
            s->name, 0,
            "it is a filter of another program, which 'calyx check', 'calyx "
            "info', 'calyx verify', 'calyx convert --to' and 'calyx push --as' "
            "read");
    if (is && is->pipe)
        fail_at(s->name, 0, "not a calyx filter, but %s; pipe it through '%s'",
                is->name, is->pipe);
    if (is || looks_like_text(s->head, s->head_size))
        fail_at(s->name, 0,
                "not a calyx filter: it looks like text; 'calyx build -o "
                "FILTER LIST' makes a filter of lines");
}

size_t source_fill(struct byte_source *s, void *bytes, size_t size) {
    size_t done = 0;
    while (done < size) {
        const ssize_t n = source_read(s, (char *)bytes + done, size - done);
        if (n < 0) fail_at(s->name, 0, "%s", s->trouble);
        if (n == 0) break;
        done += (size_t)n;
    }
    return done;
}

/* ---- About it ------------------------------------------------------------ */

const char *source_name(const struct byte_source *s) {
    return s->name;
}

const char *source_trouble(const struct byte_source *s) {
    return s->trouble;
}

uint64_t source_done(const struct byte_source *s) {
    return s->done;
}

uint64_t source_size(const struct byte_source *s) {
    return s->regular ? (uint64_t)s->was.st_size : 0;
}

uint64_t source_offset(const struct byte_source *s) {
    if (s->kept) return s->places->end - s->places->start;
    return s->start + s->done - (s->packed_size - s->at) -
           (s->head_size - s->head_at);
}

bool source_is_plain_file(struct byte_source *s) {
    return s->regular && find_packing(s) && s->packing == PLAIN;
}

static void close_file(struct byte_source *s) {
    if (s->fd > STDIN_FILENO) close(s->fd);
    s->fd = -1;
}

static void free_source(struct byte_source *s) {
#ifdef CALYX_HAVE_ZLIB
    if (s->gzip.state) inflateEnd(&s->gzip);
#endif
#ifdef CALYX_HAVE_ZSTD
    ZSTD_freeDStream(s->zstd);
#endif
    close_file(s);
    free(s->packed);
    free(s);
}

void source_close(struct byte_source *s) {
    if (!s->kept)
        free_source(s);
    else if (s->ended)
        close_file(s);
}

/* ---- Text that is stored ---------------------------------------------------
 */

bool kept_text_open(struct kept_text *text, size_t sources, uint64_t room) {
    enum { SMALL = 1 << 22 }; /* bytes that are not worth huge pages */
    void *const bytes =
        mmap(NULL, room, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED) return false;
    if (room > SMALL)
        madvise((char *)bytes + SMALL, room - SMALL, MADV_HUGEPAGE);
    *text = (struct kept_text){
        .bytes = bytes,
        .room = room,
        .ranges = alloc_memory(sources * sizeof *text->ranges),
        .sources = alloc_memory(sources * sizeof *text->sources),
        .count = sources};
    for (size_t i = 0; i < sources; i++) {
        text->ranges[i].start = UINT64_MAX;
        text->ranges[i].end = UINT64_MAX;
    }
    return true;
}

void kept_text_close(struct kept_text *text) {
    if (!text->bytes) return;
    for (size_t i = 0; i < text->opened; i++)
        if (text->sources[i]) free_source(text->sources[i]);
    if (text->unmapped < text->room)
        munmap(text->bytes + text->unmapped, text->room - text->unmapped);
    free(text->ranges);
    free(text->sources);
    *text = (struct kept_text){0};
}

void kept_text_again(struct kept_text *text) {
    unmap_unused(text);
    text->again = true;
    text->next = 0;
    for (size_t i = 0; i < text->opened; i++)
        if (text->sources[i]) text->sources[i]->kept_at = text->ranges[i].start;
}

struct byte_source *kept_source_try(struct kept_text *text, const char *path) {
    if (text->again && text->next < text->opened) {
        struct byte_source *const opened = text->sources[text->next++];
        return opened ? opened : source_try(path);
    }
    struct byte_source *const s = source_try(path);
    if (text->again) return s;
    struct text_range *const range = &text->ranges[text->opened];
    const uint64_t start = text->end + 1;
    range->end = text->end = start;
    range->start = start;
    text->sources[text->opened++] = s;
    if (!s) return NULL;
    s->kept = text;
    s->places = range;
    s->kept_at = UINT64_MAX;
    return s;
}
