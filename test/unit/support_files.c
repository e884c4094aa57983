#include "support_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bits.h"

char folder[FOLDER_BYTES];
char path[PATH_MAX], other_path[PATH_MAX];

int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s/calyx_test_XXXXXX",
             temporary_or("/tmp"));
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/f", folder);
    snprintf(other_path, sizeof other_path, "%s/g", folder);
    return 0;
}

int end_folder(void **state) {
    (void)state;
    unlink(path);
    unlink(other_path);
    return rmdir(folder);
}

calyx_filter *map(const char *name, calyx_access access) {
    calyx_filter *f = NULL;
    calyx_error why;
    if (calyx_map(name, access, NULL, &f, &why) != CALYX_OK)
        fail_msg("%s", why.text);
    return f;
}

calyx_filter *load(const char *name) {
    calyx_filter *f = NULL;
    calyx_error why;
    if (calyx_load(name, NULL, &f, &why) != CALYX_OK) fail_msg("%s", why.text);
    return f;
}

calyx_status verify_file(const char *name) {
    calyx_filter *f = map(name, CALYX_READ);
    const calyx_status status = calyx_verify(f, NULL);
    calyx_free(f);
    return status;
}

static void write_at(int fd, const void *bytes, size_t size, uint64_t at) {
    assert_int_equal(pwrite(fd, bytes, size, (off_t)at), size);
}

int save_sparse(const calyx_filter *f, const char *name,
                struct file_layout *layout) {
    struct description d;
    uint8_t header[MOST_HEADER], slot[SLOT_BYTES];
    const struct state state = {.generation = 1, .sealed = true};
    assert_true(describe_filter(f, PAGE_ALIGNED, &d));
    store_header(&d, header);
    store_slot(&d, &state, slot);

    const int fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0666);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)d.layout.file_bytes), 0);
    write_at(fd, header, d.layout.header_bytes, 0);
    write_at(fd, slot, sizeof slot, d.layout.slot_at[0]);
    *layout = d.layout;
    return fd;
}

void write_sum(int fd, const struct file_layout *layout, uint64_t range) {
    static const uint8_t zeros[1 << 16];
    uint8_t sum[8];
    const size_t size = range_size(*layout->body_bytes, range * RANGE_BYTES);
    store64(sum, range_sum(zeros, size, range));
    write_at(fd, sum, sizeof sum, layout->tables_at + 8 * range);
}

void write_sums(int fd, const struct file_layout *layout, const calyx_filter *f,
                uint64_t hash) {
    uint64_t ranges[MOST_RANGES_OF_KEY];
    size_t n = ranges_of_key(f, f->newest, hash, ranges);
    while (n-- > 0) write_sum(fd, layout, ranges[n]);
}
