#include "mapped/mapped_text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "input/records.h"
#include "input/source.h"

static uint64_t page_size(void) {
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t whole_pages(uint64_t bytes) {
    return (bytes + page_size() - 1) / page_size() * page_size();
}

/* A page before the first, and less than one after each. */
uint64_t mapped_text_size(size_t files, uint64_t bytes) {
    return bytes + (files + 1) * page_size();
}

/* Has it the size that it says? Files of /proc say 0. */
static bool has_size(int fd, const struct stat *is) {
    char byte;
    return S_ISREG(is->st_mode) && (is->st_size > 0 || !read(fd, &byte, 1));
}

/* Map a file at a place, or only note where it would be if there is no room
 * yet. Returns the place after it, 0 if it cannot be mapped, or has grown out
 * of the room. */
static uint64_t map_file(const struct mapped_text *text, uint64_t place,
                         const char *path, struct text_range *range) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail_os(path, "open it");
    struct stat is;
    bool mapped = fstat(fd, &is) == 0 && has_size(fd, &is);
    const uint64_t size = mapped ? bytes_to_read(&is) : 0;
    const uint64_t after = place + whole_pages(size + 1);
    range->start = place;
    range->end = place + size;
    if (mapped && text->bytes && size)
        mapped = after <= text->size &&
                 mmap(text->bytes + place, size, PROT_READ,
                      MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    close(fd);
    return mapped ? after : 0;
}

/* The same for all. */
static uint64_t map_files(struct mapped_text *text,
                          const struct file_group *readings, size_t count) {
    uint64_t place = page_size();
    struct text_range *range = text->ranges;
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < readings[i].count && place; k++)
            place = map_file(text, place, readings[i].files[k], range++);
    return place;
}

size_t files_of_readings(const struct file_group *readings, size_t count) {
    size_t files = 0;
    for (size_t i = 0; i < count; i++)
        files += readings[i].count ? (size_t)readings[i].count : 1;
    return files;
}

static void number_readings(struct mapped_text *text,
                            const struct file_group *readings, size_t count) {
    *text = (struct mapped_text){.count = files_of_readings(readings, count)};
    text->readings = alloc_memory((text->count + 1) * sizeof *text->readings);
    size_t file = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = files_of_readings(&readings[i], 1); k > 0; k--)
            text->readings[file++] = i;
}

bool mapped_text_open(struct mapped_text *text,
                      const struct file_group *readings, size_t count) {
    number_readings(text, readings, count);
    text->ranges = alloc_memory((text->count + 1) * sizeof *text->ranges);
    text->size = map_files(text, readings, count);
    if (!text->size) return false;
    void *const room = mmap(NULL, text->size, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return false;
    text->bytes = room;
    guard_mappings();
    return map_files(text, readings, count) != 0;
}

bool mapped_text_keep(struct mapped_text *text,
                      const struct file_group *readings, size_t count,
                      struct kept_text *kept, uint64_t room) {
    number_readings(text, readings, count);
    if (!kept_text_open(kept, text->count, room)) return false;
    text->bytes = kept->bytes;
    text->ranges = kept->ranges;
    text->kept = kept;
    return true;
}

void mapped_text_close(struct mapped_text *text) {
    free(text->readings);
    if (text->kept) return;
    if (text->bytes) munmap(text->bytes, text->size);
    free(text->ranges);
}

size_t mapped_file_of(const struct mapped_text *text, uint64_t place) {
    size_t low = 0, high = text->count;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (text->ranges[middle].start <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static uint64_t bytes_after(const struct mapped_text *text, uint64_t place) {
    return text->ranges[mapped_file_of(text, place)].end - place;
}

calyx_key mapped_line(const struct mapped_text *text, uint64_t place) {
    return first_record(text->bytes + place, bytes_after(text, place));
}

bool mapped_line_is(const struct mapped_text *text, uint64_t place,
                    const calyx_key *line) {
    const uint64_t left = bytes_after(text, place);
    const char *const there = text->bytes + place;
    return line->size <= left &&
           (line->size == left || there[line->size] == record_end()) &&
           memcmp(there, line->data, line->size) == 0;
}
