#include "exact/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct spill {
    int fd; /* -1: all of it is in the buffer */
    char *bytes;
    size_t at, size, room;
    uint64_t file_size; /* bytes written, then bytes read back */
    uint64_t last;      /* sequence number */
    uint64_t put, records;
    uint64_t taken; /* records */
    bool ended;
};

static const char *folder;
static _Atomic uint64_t written, held, peak;

void parse_spill_folder(const struct verb_option *o, const char *value) {
    (void)o;
    folder = value;
}

const char *spill_folder(void) {
    if (folder) return folder;
    const char *const named = getenv("TMPDIR");
    return named && *named ? named : "/tmp";
}

void expect_spill(void) {
    struct stat is;
    if (stat(spill_folder(), &is) != 0)
        fail_os(spill_folder(), "use it for temporary files");
    if (!S_ISDIR(is.st_mode))
        fail_at(spill_folder(), 0,
                "found a file, expected a folder for temporary files");
}

uint64_t spill_written(void) {
    return written;
}

uint64_t spill_peak(void) {
    return peak;
}

void spill_released(uint64_t bytes) {
    held -= bytes;
}

uint64_t spill_size(const struct spill *s) {
    return s->put;
}

uint64_t spill_records(const struct spill *s) {
    return s->records;
}

/* ---- Writing ------------------------------------------------------------ */

struct spill *spill_new(size_t buffer) {
    struct spill *const s = alloc_memory(sizeof *s);
    *s = (struct spill){.fd = -1, .room = buffer};
    return s;
}

int spill_file(void) {
    const int fd = open(spill_folder(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    const char *const pattern = "/calyx-XXXXXX"; /* not every system has them */
    const size_t size = strlen(spill_folder());
    char *const path = alloc_memory(size + strlen(pattern) + 1);
    memcpy(path, spill_folder(), size);
    memcpy(path + size, pattern, strlen(pattern) + 1);
    const int named = mkostemp(path, O_CLOEXEC);
    if (named >= 0) unlink(path);
    free(path);
    return named;
}

int spill_file_or_fail(void) {
    const int fd = spill_file();
    if (fd < 0)
        fail_os(spill_folder(), "make a temporary file; -T names another "
                                "folder, -S gives more memory");
    return fd;
}

void spill_write_at(int fd, const void *bytes, size_t size, uint64_t place) {
    for (size_t done = 0; done < size;) {
        const ssize_t n = pwrite(fd, (const char *)bytes + done, size - done,
                                 (off_t)(place + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            fail_os(spill_folder(), "write temporary files; -T names another "
                                    "folder, -S gives more memory");
        done += (size_t)n;
    }
    written += size;
    const uint64_t now = atomic_fetch_add(&held, size) + size;
    uint64_t most = peak;
    while (now > most && !atomic_compare_exchange_weak(&peak, &most, now))
        ;
}

static void write_out(struct spill *s) {
    if (s->fd < 0) s->fd = spill_file_or_fail();
    spill_write_at(s->fd, s->bytes, s->size, s->file_size);
    s->file_size += s->size;
    s->size = 0;
}

/* At most ten bytes: seven bits a byte, the last below 128. */
static char *put_number(char *to, uint64_t number) {
    for (; number > 127; number >>= 7) *to++ = (char)(number | 128);
    *to++ = (char)number;
    return to;
}

static void put_bytes(struct spill *s, const void *bytes, size_t size) {
    const char *from = bytes;
    while (size > 0) {
        if (s->size == s->room) write_out(s);
        const size_t room = s->room - s->size;
        const size_t some = size < room ? size : room;
        memcpy(s->bytes + s->size, from, some);
        s->size += some;
        from += some;
        size -= some;
    }
}

static void put_piece(struct spill *s, const calyx_key *piece) {
    char head[10];
    const char *const end = put_number(head, piece->size);
    put_bytes(s, head, (size_t)(end - head));
    put_bytes(s, piece->data, piece->size);
    s->put += (uint64_t)(end - head) + piece->size;
}

void spill_put(struct spill *s, const struct record *r) {
    if (!s->bytes) s->bytes = alloc_memory(s->room);
    char head[20];
    char *end = put_number(head, r->sequence - s->last);
    end = put_number(end, r->number << 1 | r->has_line);
    put_bytes(s, head, (size_t)(end - head));
    s->put += (uint64_t)(end - head);
    put_piece(s, &r->key);
    if (r->has_line) put_piece(s, &r->line);
    s->last = r->sequence;
    s->records++;
}

/* ---- Reading ------------------------------------------------------------ */

void spill_rewind(struct spill *s, size_t buffer) {
    s->last = 0;
    if (s->fd < 0) {
        s->ended = true;
        if (s->bytes) s->bytes = resize_memory(s->bytes, s->size);
        return;
    }
    write_out(s);
    s->file_size = 0;
    free(s->bytes); /* it may be long until it is read */
    s->bytes = NULL;
    s->room = buffer;
}

/* Fewer bytes only at the end. */
static size_t read_at(int fd, char *bytes, size_t size, uint64_t place) {
    size_t done = 0;
    while (done < size) {
        const ssize_t n =
            pread(fd, bytes + done, size - done, (off_t)(place + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_os(spill_folder(), "read a temporary file back");
        if (n == 0) break;
        done += (size_t)n;
    }
    return done;
}

static _Noreturn void fail_cut(void) {
    fail_at(spill_folder(), 0,
            "a temporary file lost its end while it was used");
}

void spill_read_at(int fd, void *bytes, size_t size, uint64_t place) {
    if (read_at(fd, bytes, size, place) < size) fail_cut();
}

static void read_more(struct spill *s) {
    if (!s->bytes) s->bytes = alloc_memory(s->room);
    const size_t left = s->size - s->at;
    if (s->at) memmove(s->bytes, s->bytes + s->at, left);
    s->at = 0;
    s->size = left;
    if (left == s->room) { /* one record is larger */
        s->room *= 2;
        s->bytes = resize_memory(s->bytes, s->room);
    }
    if (s->ended) return;
    const size_t wanted = s->room - s->size;
    const size_t n = read_at(s->fd, s->bytes + s->size, wanted, s->file_size);
    s->ended = n < wanted;
    s->file_size += n;
    s->size += n;
}

/* Each returns NULL if the buffer ends before. */
static const char *take_number(const char *at, const char *end,
                               uint64_t *number) {
    *number = 0;
    for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
        *number |= (uint64_t)(*at & 127) << shift;
        if (!(*at++ & 128)) return at;
    }
    return NULL;
}

static const char *take_piece(const char *at, const char *end,
                              calyx_key *piece) {
    uint64_t size;
    at = take_number(at, end, &size);
    if (!at || size > (uint64_t)(end - at)) return NULL;
    *piece = (calyx_key){at, (size_t)size};
    return at + size;
}

static const char *take_record(const char *at, const char *end,
                               struct record *r) {
    uint64_t step, number;
    if (!(at = take_number(at, end, &step))) return NULL;
    if (!(at = take_number(at, end, &number))) return NULL;
    if (!(at = take_piece(at, end, &r->key))) return NULL;
    r->sequence = step;
    r->number = number >> 1;
    r->has_line = number & 1;
    r->line = r->key;
    return r->has_line ? take_piece(at, end, &r->line) : at;
}

size_t spill_read(struct spill *s, struct record *records, size_t most) {
    size_t count = 0;
    while (count < most) {
        const char *const at = s->bytes + s->at;
        const char *const next =
            s->at < s->size
                ? take_record(at, s->bytes + s->size, &records[count])
                : NULL;
        if (next) {
            s->last = records[count++].sequence += s->last;
            s->taken++;
            s->at += (size_t)(next - at);
        } else if (count) {
            break;
        } else if (s->ended) {
            if (s->at < s->size || s->taken < s->records) fail_cut();
            break;
        } else {
            read_more(s);
        }
    }
    return count;
}

void spill_close(struct spill *s) {
    if (!s) return;
    if (s->fd >= 0) {
        close(s->fd);
        spill_released(s->put);
    }
    free(s->bytes);
    free(s);
}
