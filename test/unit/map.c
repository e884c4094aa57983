/*
 * Filters used in place. Opening reads next to nothing; adding survives the
 * death of the process; and a file that is cut short under a filter makes it
 * say yes, or kills its process, but never makes it say no.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "store/ranges.h"
#include "support.h"
#include "support_files.h"

static off_t size_of(const char *name) {
    struct stat is;
    assert_int_equal(stat(name, &is), 0);
    return is.st_size;
}

/* ---- Filters in files ---------------------------------------------------- */

enum { KEYS = 1000 };

/* A filter of these keys, and perhaps more room than they need. */
static void save_numbers(calyx_options want, uint64_t n) {
    calyx_filter *f = make_filter(want);
    add_numbers(f, 0, n);
    assert_ok(calyx_save(f, path, NULL));
    calyx_free(f);
}

/* ---- Opening ------------------------------------------------------------- */

/* An empty filter of any size, its bodies a hole in the file. Only the ranges
 * of two keys have checksums; the others must never be read. */
static void make_sparse(const char *kind, uint64_t bits) {
    calyx_filter *f = make_filter((calyx_options){.kind = kind, .bits = bits});
    struct file_layout layout;
    const int fd = save_sparse(f, path, &layout);
    write_sums(fd, &layout, f, calyx_hash(f, "rose", 4));
    write_sums(fd, &layout, f, calyx_hash(f, "iris", 4));
    calyx_free(f);
    assert_int_equal(fsync(fd), 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static size_t pages_in_memory(void *base, size_t size) {
    const size_t pages = (size + 4095) / 4096;
    unsigned char *in = malloc(pages);
    assert_int_equal(mincore(base, size, in), 0);
    size_t resident = 0;
    for (size_t i = 0; i < pages; i++) resident += in[i] & 1;
    free(in);
    return resident;
}

static long resident_pages(void) {
    long all, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &all, &resident), 2);
    fclose(file);
    return resident;
}

/* Judged by what was read, since time says little on a busy machine. */
static void opening_a_gibibyte_takes_hardly_any_memory(void **state) {
    (void)state;
    EACH_KIND(kind) {
        make_sparse(*kind, UINT64_C(1) << 33);
        struct books books = {0};
        const calyx_memory hooks = hooks_of(&books);
        const calyx_open_options how = {.memory = &hooks};
        calyx_filter *f = NULL;
        const long before = resident_pages();

        assert_ok(calyx_map(path, CALYX_READ, &how, &f, NULL));

        const long after = resident_pages();
        const struct image *image = image_of(f);
        const size_t size = (size_t)image->d.layout.file_bytes;
        assert_true(size > (size_t)1 << 30);
        /* The system reads some megabytes ahead, unasked. */
        assert_true(pages_in_memory(image->base, size) < size / 4096 / 32);
        assert_true(after - before < 256);
        assert_true(books.most < (32 << 10) + size / RANGE_BYTES);
        /* A table is compared as a whole, ranges without a checksum, too. */
        assert_int_equal(has(f, "rose"), is_table(*kind));
        calyx_free(f);
        assert_int_equal(books.blocks, 0);
    }
}

/* Not the megabytes around each line that a system reads ahead. */
static void a_lookup_in_a_cold_file_reads_its_range_alone(void **state) {
    (void)state;
    enum { RANGE_PAGES = RANGE_BYTES / 4096, OTHER_PAGES = 8 };
    make_sparse("line", UINT64_C(1) << 33);
    calyx_filter *f = map(path, CALYX_READ);
    const struct image *image = image_of(f);
    const size_t size = (size_t)image->d.layout.file_bytes;
    const size_t before = pages_in_memory(image->base, size);

    assert_false(has(f, "rose"));
    assert_false(has(f, "iris"));

    const size_t after = pages_in_memory(image->base, size);
    assert_true(after > before);
    assert_in_range(after - before, 1, 2 * RANGE_PAGES + OTHER_PAGES);
    calyx_free(f);
}

/* What the system knows of the reads to expect of a mapping: two letters each,
 * as /proc writes them. Empty if it does not say. */
static void flags_of(const void *at, char *flags, size_t size) {
    char line[512];
    bool is_here = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    flags[0] = 0;
    while (file && fgets(line, sizeof line, file)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            is_here = from == (uintptr_t)at;
        else if (is_here && strncmp(line, "VmFlags:", 8) == 0)
            snprintf(flags, size, "%s", line);
    }
    if (file) fclose(file);
}

/* Bytes that a system expects to be read once, in order, leave memory first. */
static void a_file_that_was_compared_stays_in_memory(void **state) {
    (void)state;
    char flags[512];
    for (int how = 0; how < 3; how++) {
        save_numbers((calyx_options){.capacity = 100000}, KEYS);
        calyx_filter *f = map(path, how < 2 ? CALYX_READ : CALYX_WRITE);
        if (how == 1)
            assert_ok(calyx_verify(f, NULL));
        else
            info_of(f);
        flags_of(image_of(f)->base, flags, sizeof flags);
        if (!flags[0]) print_message("not run: no flags of mappings\n");
        assert_null(strstr(flags, " sr"));
        calyx_free(f);
    }
}

/* A line more in a filter of 5 GB. The work is what comes into memory: what was
 * read and what was written. */
static void adding_a_key_does_not_depend_on_the_size(void **state) {
    (void)state;
    static const char *const kinds[] = {"line", "flat", NULL};
    for (const char *const *kind = kinds; *kind; kind++) {
        make_sparse(*kind, UINT64_C(5) << 33);
        calyx_filter *f = map(path, CALYX_WRITE);
        const struct image *image = image_of(f);
        const uint64_t all = number_of_ranges(image);
        add(f, "rose");
        assert_ok(calyx_sync(f, NULL));
        const uint64_t compared = all - f->lent->unverified;
        assert_true(compared >= 1 && compared <= f->newest->shape.probes);
        assert_int_equal(image->marked, compared);
        assert_ok(calyx_close(f, NULL));

        f = map(path, CALYX_READ);
        image = image_of(f);
        const size_t size = (size_t)image->d.layout.file_bytes;
        assert_true(size > (size_t)5 << 30);
        assert_true(pages_in_memory(image->base, size) < (32 << 20) / 4096);
        assert_true(has(f, "rose"));
        assert_false(has(f, "iris"));
        assert_ok(calyx_health(f, NULL));
        assert_true(all - f->lent->unverified <= 2 * f->newest->shape.probes);
        calyx_free(f);
    }
}

/* From the lines about the mapping in /proc/self/smaps, in kB. */
static long kilobytes_of(const char *what) {
    FILE *file = fopen("/proc/self/smaps", "r");
    assert_non_null(file);
    char line[PATH_MAX + 200];
    bool here = false;
    long sum = 0, n;
    while (fgets(line, sizeof line, file)) {
        if (strstr(line, " r") && strchr(line, '-') && !strstr(line, " kB"))
            here = strstr(line, path) != NULL;
        const size_t length = strlen(what);
        if (here && strncmp(line, what, length) == 0 &&
            sscanf(line + length, ": %ld", &n) == 1)
            sum += n;
    }
    fclose(file);
    return sum;
}

static void many_processes_share_the_pages(void **state) {
    (void)state;
    enum { PROCESSES = 3 };
    save_numbers((calyx_options){.bits = UINT64_C(1) << 27}, KEYS);
    int ready[2], done[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(done), 0);
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] > 0) continue;
        calyx_filter *f = NULL;
        char byte = 0;
        if (calyx_map(path, CALYX_READ, NULL, &f, NULL) != CALYX_OK) _exit(1);
        if (calyx_verify(f, NULL) != CALYX_OK) _exit(2); /* reads all */
        close(done[1]);
        if (write(ready[1], &byte, 1) != 1) _exit(3);
        if (read(done[0], &byte, 1) != 0) _exit(4); /* until it is closed */
        _exit(0);
    }
    close(ready[1]);
    calyx_filter *f = map(path, CALYX_READ);
    assert_ok(calyx_verify(f, NULL));
    char bytes[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(read(ready[0], bytes + i, 1), 1);

    const long resident = kilobytes_of("Rss"), share = kilobytes_of("Pss");
    const long own = kilobytes_of("Private_Dirty");

    close(done[1]);
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_true(resident >= 16 << 10);
    assert_true(share < resident / (PROCESSES + 1) + 64);
    assert_int_equal(own, 0);
    calyx_free(f);
    close(ready[0]);
    close(done[0]);
}

static void a_mapped_file_cannot_be_changed(void **state) {
    (void)state;
    EACH_KIND(kind) {
        save_numbers((calyx_options){.kind = *kind}, 10);
        calyx_filter *f = map(path, CALYX_READ);
        assert_int_equal(calyx_add(f, "rose", 4, NULL), CALYX_READ_ONLY);
        assert_int_equal(calyx_clear(f), CALYX_READ_ONLY);
        assert_int_equal(calyx_set_comment(f, "mine"), CALYX_READ_ONLY);
        calyx_error why;
        assert_int_equal(calyx_sync(f, &why), CALYX_READ_ONLY);
        assert_ok(calyx_verify(f, NULL));
        calyx_free(f);
    }
}

/* ---- Adding in place ----------------------------------------------------- */

static void what_is_added_is_seen_by_others_at_once(void **state) {
    (void)state;
    EACH_KIND(kind) {
        if (!is_bits_alone(*kind)) continue;
        save_numbers((calyx_options){.kind = *kind}, 0);
        calyx_filter *reader = map(path, CALYX_READ),
                     *writer = map(path, CALYX_WRITE);
        assert_false(info_of(writer).read_only);

        assert_true(add(writer, "rose"));
        assert_true(has(reader, "rose"));
        assert_ok(calyx_sync(writer, NULL));
        const uint64_t numbers[] = {1, 2, 3};
        assert_ok(calyx_add_many_u64(writer, numbers, 3, NULL, NULL));
        assert_int_equal(calyx_has_many_u64(reader, numbers, 3, NULL), 3);

        calyx_free(writer);
        assert_true(has(reader, "rose"));
        calyx_free(reader);
        calyx_filter *f = load(path);
        assert_true(has(f, "rose"));
        assert_int_equal(info_of(f).items, 4);
        calyx_free(f);
    }
}

static void a_file_is_unsealed_from_opening_to_closing(void **state) {
    (void)state;
    EACH_KIND(kind) {
        if (!is_bits_alone(*kind)) continue;
        save_numbers((calyx_options){.kind = *kind}, KEYS);
        assert_ok(verify_file(path));
        for (int round = 0; round < 3; round++) {
            calyx_filter *f = map(path, CALYX_WRITE);
            calyx_error why;
            assert_int_equal(verify_file(path), CALYX_UNSEALED);
            add(f, round == 0 ? "rose" : round == 1 ? "iris" : "tulip");
            assert_int_equal(verify_file(path), CALYX_UNSEALED);
            assert_ok(calyx_sync(f, &why));
            assert_int_equal(verify_file(path), CALYX_UNSEALED);
            assert_int_equal(calyx_verify(f, &why), CALYX_UNSEALED);
            assert_true(strlen(why.text) > 10);
            assert_ok(calyx_sync(f, NULL));
            calyx_free(f);
            assert_ok(verify_file(path));
        }
        calyx_filter *f = load(path);
        assert_has_numbers(f, 0, KEYS);
        assert_true(has(f, "rose") && has(f, "iris") && has(f, "tulip"));
        calyx_free(f);
    }
}

/* Checksums that are out of date are no damage. */
static void a_reader_that_mapped_before_the_writer_can_verify(void **state) {
    (void)state;
    save_numbers((calyx_options){0}, KEYS);
    calyx_filter *reader = map(path, CALYX_READ),
                 *writer = map(path, CALYX_WRITE);
    add(writer, "rose");
    assert_ok(calyx_sync(writer, NULL));
    assert_int_equal(calyx_verify(reader, NULL), CALYX_UNSEALED);
    calyx_free(writer);
    assert_ok(calyx_verify(reader, NULL));
    calyx_free(reader);
}

static void the_number_of_items_is_stored_in_place(void **state) {
    (void)state;
    save_numbers((calyx_options){.capacity = 2 * KEYS, .fpr = 1e-5}, KEYS);
    calyx_filter *f = map(path, CALYX_WRITE);
    assert_int_equal(info_of(f).items, KEYS);
    for (uint64_t i = 0; i < 2 * KEYS; i++)
        assert_ok(calyx_add_u64(f, i, NULL));
    const uint64_t items = info_of(f).items;
    assert_true(items > 2 * KEYS - 10);
    assert_ok(calyx_sync(f, NULL));
    calyx_filter *reader = map(path, CALYX_READ); /* as after a crash */
    assert_int_equal(info_of(reader).items, items);
    calyx_free(reader);
    calyx_free(f);
    f = load(path);
    assert_int_equal(info_of(f).items, items);
    calyx_free(f);
}

static void there_is_one_writer_at_a_time(void **state) {
    (void)state;
    save_numbers((calyx_options){0}, KEYS);
    calyx_filter *first = map(path, CALYX_WRITE), *second = NULL;
    calyx_error why;
    assert_int_equal(calyx_map(path, CALYX_WRITE, NULL, &second, &why),
                     CALYX_IO);
    assert_null(second);
    assert_non_null(strstr(why.text, path));
    assert_non_null(strstr(why.text, "another process"));
    assert_int_equal(why.os_code, EWOULDBLOCK);
    calyx_filter *reader =
        map(path, CALYX_READ); /* but any number of readers */
    assert_has_numbers(reader, 0, KEYS);
    calyx_free(reader);
    calyx_free(first);
    second = map(path, CALYX_WRITE);
    calyx_free(second);
    assert_ok(verify_file(path));
}

/* Memory that lets the first writer end while the second opens: after it has
 * looked at the file, and before it has it to itself. */
static void *take_late(void *context, size_t size, size_t alignment) {
    calyx_filter **first = context;
    if (*first) {
        add(*first, "iris");
        assert_ok(calyx_sync(*first, NULL));
        calyx_free(*first);
        *first = NULL;
    }
    return counted_allocate(&(struct books){0}, size, alignment);
}

static void give_late(void *context, void *block, size_t size) {
    (void)context;
    counted_release(&(struct books){0}, block, size);
}

static void a_writer_knows_what_the_one_before_it_did(void **state) {
    (void)state;
    save_numbers((calyx_options){0}, KEYS);
    calyx_filter *first = map(path, CALYX_WRITE), *second = NULL;
    const calyx_memory hooks = {take_late, give_late, &first};
    const calyx_open_options how = {.memory = &hooks};
    if (calyx_map(path, CALYX_WRITE, &how, &second, NULL) != CALYX_OK) {
        calyx_free(first); /* locked out, which is fine too */
        return;
    }
    add(second, "rose");

    assert_int_equal(verify_file(path),
                     CALYX_UNSEALED); /* even if it died now */
    assert_true(info_of(second).items >= KEYS);
    assert_ok(calyx_sync(second, NULL));
    assert_int_equal(verify_file(path), CALYX_UNSEALED);
    calyx_filter *f = load(path);
    assert_true(has(f, "rose") && has(f, "iris"));
    calyx_free(f);
    calyx_free(second);
    assert_ok(verify_file(path));
}

/* The two slots, at the end of the file. */
static void read_slots(uint8_t slots[2][SLOT_BYTES]) {
    const int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    const off_t end = size_of(path);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pread(fd, slots[i], SLOT_BYTES, end - 1024 + 512 * i),
                         SLOT_BYTES);
    close(fd);
}

static bool is_whole(const uint8_t slot[SLOT_BYTES]) {
    return load64(slot) && load64(slot + 56) == checksum(slot, 56, 0);
}

/* The slot that counted before a change is not touched by it: else a death in
 * the middle of the change would leave none. */
static void assert_one_slot_stays(uint8_t before[2][SLOT_BYTES]) {
    uint8_t after[2][SLOT_BYTES];
    read_slots(after);
    const int latest =
        is_whole(before[1]) && load64(before[1]) > load64(before[0]);
    assert_true(is_whole(before[latest]));
    assert_memory_equal(before[latest], after[latest], SLOT_BYTES);
    assert_true(is_whole(after[!latest]));
    memcpy(before, after, sizeof after);
}

static void a_change_of_state_leaves_the_last_one_whole(void **state) {
    (void)state;
    save_numbers((calyx_options){0}, KEYS);
    uint8_t slots[2][SLOT_BYTES];
    read_slots(slots);
    calyx_filter *f = map(path, CALYX_WRITE);
    assert_one_slot_stays(slots);
    for (int i = 0; i < 3; i++) {
        assert_ok(calyx_sync(f, NULL));
        assert_one_slot_stays(slots);
    }
    calyx_free(f);
    assert_one_slot_stays(slots);
}

static void counters_cannot_be_changed_in_place(void **state) {
    (void)state;
    save_numbers((calyx_options){.kind = "counting"}, 10);
    calyx_filter *f = NULL;
    calyx_error why;
    assert_int_equal(calyx_map(path, CALYX_WRITE, NULL, &f, &why),
                     CALYX_CANNOT);
    assert_null(f);
    assert_non_null(strstr(why.text, "counting"));
    assert_non_null(strstr(why.text, path));
    assert_ok(verify_file(path));
}

static void a_filter_does_not_grow_in_place(void **state) {
    (void)state;
    EACH_KIND(kind) {
        if (!is_bits_alone(*kind)) continue;
        save_numbers(
            (calyx_options){.kind = *kind, .capacity = 100, .growth = 2}, 250);
        calyx_filter *f = map(path, CALYX_WRITE);
        const calyx_info before = info_of(f);
        uint64_t n = 250;
        while (calyx_add_u64(f, n, NULL) == CALYX_OK) n++;
        assert_int_equal(calyx_add_u64(f, n, NULL), CALYX_FULL);
        assert_true(n < 5000);
        assert_ok(calyx_add_u64(f, 0, NULL)); /* which is there */
        assert_int_equal(info_of(f).parts, before.parts);
        assert_int_equal(info_of(f).capacity, before.capacity);
        calyx_free(f);

        f = load(path); /* in memory it goes on */
        assert_has_numbers(f, 0, n);
        assert_ok(calyx_add_u64(f, n, NULL));
        calyx_free(f);
    }
}

static void in_place_bits_are_only_ever_set(void **state) {
    (void)state;
    save_numbers((calyx_options){0}, KEYS);
    calyx_filter *other = make_filter((calyx_options){0});
    add(other, "rose");
    calyx_filter *f = map(path, CALYX_WRITE);
    assert_int_equal(calyx_clear(f), CALYX_READ_ONLY);
    assert_int_equal(calyx_intersect(f, other, NULL), CALYX_READ_ONLY);
    assert_int_equal(calyx_set_comment(f, "mine"), CALYX_READ_ONLY);
    assert_int_equal(calyx_remove(f, "rose", 4, NULL), CALYX_CANNOT);
    assert_has_numbers(f, 0, KEYS);
    if (calyx_merge(f, other, NULL) == CALYX_OK) assert_true(has(f, "rose"));
    calyx_free(f);
    calyx_free(other);
    assert_ok(verify_file(path));
    f = load(path);
    assert_has_numbers(f, 0, KEYS);
    calyx_free(f);
}

static void a_copy_of_what_is_in_place_grows_and_forgets(void **state) {
    (void)state;
    save_numbers((calyx_options){.capacity = 100, .growth = 2}, 100);
    calyx_filter *f = map(path, CALYX_WRITE), *copy = NULL;
    assert_ok(calyx_copy(f, &copy, NULL));
    calyx_free(f);
    for (uint64_t i = 0; i < 500; i++) assert_ok(calyx_add_u64(copy, i, NULL));
    assert_true(info_of(copy).parts > 1);
    assert_int_equal(calyx_sync(copy, NULL), CALYX_READ_ONLY);
    assert_ok(calyx_clear(copy));
    calyx_free(copy);
    assert_ok(verify_file(path));
}

/* ---- Sudden death -------------------------------------------------------- */

enum { ROUNDS = 200, BATCH = 10 };

/* Add numbers from `next` on, and report through the pipe how far they are
 * synced, until killed. */
static void add_until_killed(uint64_t next, int acknowledges) {
    calyx_filter *f = NULL;
    if (calyx_map(path, CALYX_WRITE, NULL, &f, NULL) != CALYX_OK) _exit(1);
    for (;;) {
        for (int i = 0; i < BATCH; i++)
            if (calyx_add_u64(f, next++, NULL) != CALYX_OK) _exit(2);
        if (calyx_sync(f, NULL) != CALYX_OK) _exit(3);
        if (write(acknowledges, &next, sizeof next) != sizeof next) _exit(4);
    }
}

/* Let a writer acknowledge `batches`, however long that takes, and kill it a
 * little later. Returns how many keys are acknowledged then. */
static uint64_t kill_a_writer(uint64_t next, uint64_t batches,
                              long microseconds) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) add_until_killed(next, ends[1]);
    close(ends[1]);
    while (batches-- > 0)
        assert_int_equal(read(ends[0], &next, sizeof next), sizeof next);
    nanosleep(&(struct timespec){0, 1000 * microseconds}, NULL);
    kill(child, SIGKILL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    for (uint64_t n; read(ends[0], &n, sizeof n) == sizeof n;) next = n;
    close(ends[0]);
    return next;
}

static void what_was_synced_survives_sudden_death(void **state) {
    (void)state;
    struct generator from = {4};
    static const char *const kinds[] = {"line", "split", "flat", "line"};
    uint64_t total = 0;
    for (int i = 0; i < 4; i++) {
        save_numbers((calyx_options){.kind = kinds[i], .capacity = 100000}, 0);
        uint64_t acknowledged = 0;
        for (int round = 0; round < ROUNDS / 4; round++) {
            const uint64_t batches = random_below(&from, 3);
            acknowledged = kill_a_writer(acknowledged, batches,
                                         (long)random_below(&from, 8000));

            calyx_filter *f = map(path, CALYX_READ);
            assert_has_numbers(f, 0, acknowledged);
            calyx_free(f);
            f = load(path);
            assert_has_numbers(f, 0, acknowledged);
            calyx_free(f);
        }
        total += acknowledged;
        calyx_free(map(path, CALYX_WRITE)); /* the next to come seals it */
        assert_ok(verify_file(path));
        calyx_filter *f = load(path);
        assert_has_numbers(f, 0, acknowledged);
        calyx_free(f);
    }
    assert_true(total > 0); /* else it has shown nothing */
}

/* ---- Files cut short ----------------------------------------------------- */

static sigjmp_buf past_the_end;

static void jump_on(int signal) {
    (void)signal;
    siglongjmp(past_the_end, 1);
}

/* In a child: which of the keys does it deny? Dying in a lookup is no answer;
 * the next key follows. */
static void ask_all(const calyx_filter *f) {
    static volatile uint64_t number;
    static uint64_t numbers[KEYS];
    static volatile bool found[KEYS];
    signal(SIGBUS, jump_on);
    for (number = 0; number < KEYS; number++) {
        const uint64_t i = numbers[number] = number;
        if (sigsetjmp(past_the_end, 1)) continue;
        if (!calyx_has_u64(f, i)) _exit(1);
    }
    if (sigsetjmp(past_the_end, 1)) return;
    if (calyx_has_many_u64(f, numbers, KEYS, (bool *)found) != KEYS) _exit(2);
    for (int i = 0; i < KEYS; i++)
        if (!found[i]) _exit(3);
}

enum after { STAYS_CUT, IS_EXTENDED };

/* Cut the file under a filter that is mapped, and ask it. */
static void assert_never_denies(off_t size, enum after after,
                                calyx_access access) {
    const off_t whole = size_of(path);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        calyx_filter *f = NULL;
        if (calyx_map(path, access, NULL, &f, NULL) != CALYX_OK) _exit(10);
        if (!calyx_has_u64(f, 1)) _exit(11); /* some pages are in */
        if (truncate(path, size) != 0) _exit(12);
        if (after == IS_EXTENDED && truncate(path, whole) != 0) _exit(13);
        ask_all(f);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        fail_msg("cut to %ld of %ld: %d", (long)size, (long)whole,
                 WEXITSTATUS(status));
}

static void a_file_cut_short_never_says_no(void **state) {
    (void)state;
    EACH_KIND(kind) {
        const calyx_options want = {
            .kind = *kind, .capacity = 300, .growth = 2, .fpr = 1e-3};
        save_numbers(want, KEYS);
        const off_t whole = size_of(path);
        const off_t end = whole - 1024; /* the slots */
        const off_t tables = end / 4096 * 4096;
        off_t cuts[200] = {0,          1,          100,       whole - 1024,
                           end + 1,    end - 1,    end - 8,   tables + 8,
                           tables,     tables - 1, whole / 2, whole / 2 + 33,
                           tables + 1, tables - 64};
        int n = 14;
        for (off_t at = 4096; at < whole && n < 198; at += 4096) {
            cuts[n++] = at;
            cuts[n++] = at + 100;
        }
        for (int i = 0; i < n; i++)
            for (int after = STAYS_CUT; after <= IS_EXTENDED; after++) {
                const bool writes = i % 4 == 3 && is_bits_alone(*kind);
                save_numbers(want, KEYS);
                assert_never_denies(cuts[i], (enum after)after,
                                    writes ? CALYX_WRITE : CALYX_READ);
            }
    }
}

/* A batch this large, of a filter this large, is sorted first. */
static void a_batch_on_a_file_cut_short_never_says_no(void **state) {
    (void)state;
    enum { MANY = 700000 };
    static const char *const kinds[] = {"line", "counting"};
    uint64_t *const numbers = malloc(MANY * sizeof *numbers);
    bool *const found = malloc(MANY);
    for (uint64_t i = 0; i < MANY; i++) numbers[i] = i;
    for (size_t kind = 0; kind < 2; kind++) {
        calyx_filter *f = make_filter((calyx_options){
            .kind = kinds[kind], .capacity = 2000, .growth = 2});
        assert_ok(calyx_add_many_u64(f, numbers, MANY, NULL, NULL));
        assert_ok(calyx_save(f, path, NULL));
        calyx_free(f);
        f = map(path, CALYX_READ);
        const off_t whole = size_of(path);
        assert_int_equal(truncate(path, whole / 3), 0);
        assert_int_equal(truncate(path, whole), 0);
        memset(found, false, MANY);
        assert_int_equal(calyx_has_many_u64(f, numbers, MANY, found), MANY);
        for (size_t i = 0; i < MANY; i++) assert_true(found[i]);
        assert_int_equal(calyx_has_many_u64(f, numbers, MANY, NULL), MANY);
        calyx_free(f);
    }
    free(numbers);
    free(found);
}

/* Though all bits are there, and only the counters are gone. */
static void a_key_in_a_file_cut_short_is_never_counted_as_none(void **state) {
    (void)state;
    save_numbers((calyx_options){.kind = "counting", .capacity = KEYS}, KEYS);
    calyx_filter *f = map(path, CALYX_READ);
    const struct image *image = image_of(f);
    const uint64_t bits = bits_bytes(f->kind, &f->newest->shape);
    const off_t whole = size_of(path);
    assert_int_equal(truncate(path, (off_t)(image->d.layout.body_at[0] + bits)),
                     0);
    assert_int_equal(truncate(path, whole), 0);
    assert_has_numbers(f, 0, KEYS);
    for (uint64_t i = 0; i < KEYS; i++)
        assert_true(calyx_count(f, &i, sizeof i) > 0);
    calyx_free(f);
}

/* All that is made of such a filter would deny what it had: a copy, bytes, a
 * file. So nothing is. */
static void what_is_made_of_a_cut_file_never_says_no(void **state) {
    (void)state;
    save_numbers((calyx_options){.kind = "counting"}, KEYS);
    calyx_filter *f = map(path, CALYX_READ);
    const off_t whole = size_of(path);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(truncate(path, whole), 0); /* no signal, only zeros */
    assert_has_numbers(f, 0, KEYS);

    int deniers = 0;
    for (int i = 0; i < 5; i++) {
        calyx_filter *made = NULL;
        calyx_status status = CALYX_OK;
        if (i == 0) status = calyx_copy(f, &made, NULL);
        if (i == 1) status = calyx_fold(f, 1, &made, NULL);
        if (i == 2) status = calyx_freeze(f, &made, NULL);
        if (i == 3) {
            status = calyx_save(f, other_path, NULL);
            if (status == CALYX_OK)
                status = calyx_load(other_path, NULL, &made, NULL);
        }
        if (i == 4) {
            made = make_filter((calyx_options){.kind = "counting"});
            status = calyx_merge(made, f, NULL);
        }
        if (status == CALYX_OK && !calyx_has_u64(made, 1)) {
            static const char *const names[] = {"copy", "fold", "freeze",
                                                "save", "merge"};
            print_message("%s says no\n", names[i]);
            deniers++;
        }
        calyx_free(made);
    }
    calyx_free(f);
    assert_int_equal(deniers, 0);
}

/* Not even if all that it lost is its last kilobyte. */
static void a_file_that_was_cut_and_extended_does_not_verify(void **state) {
    (void)state;
    for (off_t lost = 1024; lost <= 12 << 10; lost += 1024) {
        save_numbers((calyx_options){0}, KEYS);
        calyx_filter *f = map(path, CALYX_READ);
        const off_t whole = size_of(path);
        assert_int_equal(truncate(path, whole > lost ? whole - lost : 0), 0);
        assert_int_equal(truncate(path, whole), 0);
        assert_int_equal(calyx_verify(f, NULL), CALYX_DAMAGED);
        calyx_free(f);
    }
}

/* Zeros stand where keys stood; to write the end anew would hide it. */
static void a_file_cut_and_extended_cannot_be_synced_or_sealed(void **state) {
    (void)state;
    save_numbers((calyx_options){.capacity = 10 * KEYS}, KEYS);
    const off_t whole = size_of(path);
    calyx_filter *f = map(path, CALYX_WRITE);
    assert_int_equal(truncate(path, 8192), 0);
    assert_int_equal(truncate(path, whole), 0);
    assert_int_equal(calyx_sync(f, NULL), CALYX_IO);
    assert_has_numbers(f, 0, KEYS);
    calyx_free(f);
    calyx_filter *loaded = NULL;
    assert_int_not_equal(calyx_load(path, NULL, &loaded, NULL), CALYX_OK);
}

static void a_file_cut_short_cannot_be_synced(void **state) {
    (void)state;
    save_numbers((calyx_options){.capacity = 10 * KEYS}, KEYS);
    calyx_filter *f = map(path, CALYX_WRITE);
    add(f, "rose");
    assert_int_equal(truncate(path, size_of(path) - 4096), 0);
    for (int i = 0; i < 2; i++) { /* nor later */
        calyx_error why = {0};
        errno = 0;
        assert_int_equal(calyx_sync(f, &why), CALYX_IO);
        assert_non_null(strstr(why.text, "did not reach the disk"));
        assert_true(why.os_code != 0);
        assert_null(strstr(why.text, "Success"));
    }
    calyx_free(f);
}

static void a_file_replaced_under_a_filter_stays_its_own(void **state) {
    (void)state;
    for (int writes = 0; writes < 2; writes++) {
        save_numbers((calyx_options){0}, KEYS);
        calyx_filter *f = map(path, writes ? CALYX_WRITE : CALYX_READ);
        calyx_filter *empty = make_filter((calyx_options){0});
        assert_ok(calyx_save(empty, other_path, NULL));
        assert_int_equal(rename(other_path, path), 0);

        assert_has_numbers(f, 0, KEYS);
        if (writes) add(f, "rose");
        for (int i = 0; i < 3 && writes; i++) {
            calyx_error why = {0};
            assert_int_equal(i < 2 ? calyx_sync(f, &why) : calyx_close(f, &why),
                             CALYX_IO);
            assert_int_equal(why.os_code, ESTALE);
            assert_non_null(strstr(why.text, "replaced"));
        }
        if (!writes) assert_ok(calyx_close(f, NULL));

        f = load(path);
        assert_true(same_bodies(f, empty));
        assert_ok(verify_file(path));
        calyx_free(f);
        calyx_free(empty);
    }
}

static void a_writer_learns_that_its_file_is_gone(void **state) {
    (void)state;
    for (int syncs = 0; syncs < 2; syncs++)
        for (int renamed = 0; renamed < 2; renamed++) {
            save_numbers((calyx_options){0}, KEYS);
            calyx_filter *f = map(path, CALYX_WRITE);
            add(f, "rose");
            assert_int_equal(renamed ? rename(path, other_path) : unlink(path),
                             0);
            calyx_error why = {0};
            if (syncs) assert_int_equal(calyx_sync(f, &why), CALYX_IO);
            if (syncs) assert_int_equal(why.os_code, ESTALE);
            assert_int_equal(calyx_close(f, &why), CALYX_IO);
            assert_int_equal(why.os_code, ESTALE);
            assert_non_null(strstr(why.text, path));
        }
}

static void a_writer_may_go_to_another_folder(void **state) {
    (void)state;
    save_numbers((calyx_options){0}, KEYS);
    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    calyx_filter *f = NULL;
    assert_ok(calyx_map("f", CALYX_WRITE, NULL, &f, NULL));
    assert_int_equal(chdir(before), 0);
    add(f, "rose");
    assert_ok(calyx_sync(f, NULL));
    assert_ok(calyx_close(f, NULL));
    assert_ok(verify_file(path));
}

static void an_unlinked_file_stays_to_the_end(void **state) {
    (void)state;
    save_numbers((calyx_options){0}, KEYS);
    calyx_filter *f = map(path, CALYX_READ);
    assert_int_equal(unlink(path), 0);
    assert_has_numbers(f, 0, KEYS);
    assert_ok(calyx_verify(f, NULL));
    calyx_free(f);
}

/* ---- fork -----------------------------------------------------------------
 */

/* Run `child` with the filter in a child of this process. */
static void run_in_child(calyx_filter *f, int (*child)(calyx_filter *f)) {
    const pid_t process = fork();
    assert_true(process >= 0);
    if (process == 0) _exit(child(f));
    int status;
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The lock is still the parent's. */
static int ask_and_close(calyx_filter *f) {
    if (count_found(f, 0, KEYS) != KEYS) return 1;
    if (calyx_close(f, NULL) != CALYX_OK) return 2;
    return calyx_map(path, CALYX_WRITE, NULL, &f, NULL) != CALYX_IO;
}

/* Returns the number of the first call that was not refused. */
static int try_to_change(calyx_filter *f) {
    calyx_filter *other = NULL;
    size_t done = 1;
    const uint64_t key = KEYS + 1;
    if (calyx_add(f, "rose", 4, NULL) != CALYX_READ_ONLY) return 1;
    if (calyx_add_u64(f, key, NULL) != CALYX_READ_ONLY) return 2;
    if (calyx_add_many_u64(f, &key, 1, NULL, &done) != CALYX_READ_ONLY)
        return 3;
    if (done != 0) return 4;
    if (calyx_new_like(f, &other, NULL) != CALYX_OK) return 5;
    if (calyx_merge(f, other, NULL) != CALYX_READ_ONLY) return 6;
    calyx_free(other);
    calyx_error why = {0};
    if (calyx_sync(f, &why) != CALYX_READ_ONLY) return 7;
    if (!strstr(why.text, "process")) return 8;
    return ask_and_close(f) ? 9 : 0;
}

static void a_child_that_frees_a_writers_filter_does_not_seal_it(void **state) {
    (void)state;
    save_numbers((calyx_options){0}, KEYS);
    calyx_filter *f = map(path, CALYX_WRITE);
    run_in_child(f, ask_and_close);
    assert_int_equal(verify_file(path), CALYX_UNSEALED);

    add_numbers(f, KEYS, 2 * KEYS);
    calyx_filter *seen = load(path);
    assert_has_numbers(seen, 0, 2 * KEYS);
    calyx_free(seen);
    assert_ok(calyx_close(f, NULL));
    assert_ok(verify_file(path));
}

static void a_child_cannot_change_what_its_parent_mapped(void **state) {
    (void)state;
    save_numbers((calyx_options){0}, KEYS);
    for (int marked = 0; marked < 2; marked++) {
        calyx_filter *f = map(path, CALYX_WRITE);
        if (marked) add_numbers(f, KEYS, 2 * KEYS);
        run_in_child(f, try_to_change);
        assert_false(calyx_has_u64(f, KEYS * UINT64_C(1000)));
        add(f, "tulip");
        assert_ok(calyx_close(f, NULL));
        assert_ok(verify_file(path));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(opening_a_gibibyte_takes_hardly_any_memory),
        IN_FOLDER(a_lookup_in_a_cold_file_reads_its_range_alone),
        IN_FOLDER(a_file_that_was_compared_stays_in_memory),
        IN_FOLDER(adding_a_key_does_not_depend_on_the_size),
        IN_FOLDER(many_processes_share_the_pages),
        IN_FOLDER(a_mapped_file_cannot_be_changed),
        IN_FOLDER(what_is_added_is_seen_by_others_at_once),
        IN_FOLDER(a_file_is_unsealed_from_opening_to_closing),
        IN_FOLDER(a_reader_that_mapped_before_the_writer_can_verify),
        IN_FOLDER(the_number_of_items_is_stored_in_place),
        IN_FOLDER(there_is_one_writer_at_a_time),
        IN_FOLDER(a_writer_knows_what_the_one_before_it_did),
        IN_FOLDER(a_change_of_state_leaves_the_last_one_whole),
        IN_FOLDER(counters_cannot_be_changed_in_place),
        IN_FOLDER(a_filter_does_not_grow_in_place),
        IN_FOLDER(in_place_bits_are_only_ever_set),
        IN_FOLDER(a_copy_of_what_is_in_place_grows_and_forgets),
        IN_FOLDER(what_was_synced_survives_sudden_death),
        IN_FOLDER(a_file_cut_short_never_says_no),
        IN_FOLDER(a_batch_on_a_file_cut_short_never_says_no),
        IN_FOLDER(a_key_in_a_file_cut_short_is_never_counted_as_none),
        IN_FOLDER(what_is_made_of_a_cut_file_never_says_no),
        IN_FOLDER(a_file_that_was_cut_and_extended_does_not_verify),
        IN_FOLDER(a_file_cut_and_extended_cannot_be_synced_or_sealed),
        IN_FOLDER(a_file_cut_short_cannot_be_synced),
        IN_FOLDER(a_file_replaced_under_a_filter_stays_its_own),
        IN_FOLDER(a_writer_learns_that_its_file_is_gone),
        IN_FOLDER(a_writer_may_go_to_another_folder),
        IN_FOLDER(an_unlinked_file_stays_to_the_end),
        IN_FOLDER(a_child_that_frees_a_writers_filter_does_not_seal_it),
        IN_FOLDER(a_child_cannot_change_what_its_parent_mapped),
    };
    return RUN_TESTS(tests);
}
