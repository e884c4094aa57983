/*
 * Helpers for measuring the command. Lines are all different, and other ones
 * for other seeds.
 *
 *   calyx-lines make COUNT SEED     lines like URLs, of about 60 bytes
 *   calyx-lines keys COUNT SEED     lines of 20 bytes
 *   calyx-lines mails COUNT SEED    lines like e-mail addresses
 *   calyx-lines wide COUNT SEED     lines like URLs, of 64 bytes with the end
 *   calyx-lines paths COUNT SEED    lines of 40 bytes with the end
 *
 * The same, but not all different, and all that is equal well spread:
 *
 *   calyx-lines overlap KIND COUNT SEED   every tenth is a line of KIND COUNT 1
 *   calyx-lines repeat KIND COUNT SEED    three of ten stood there before
 *
 *   calyx-lines sum                 of lines on standard input: how many, a sum
 *                                   that does not depend on their order, and
 *                                   one that does
 *   calyx-lines floor FILE          what is measured against: read(2), and a
 *                                   memchr for each line, in one thread
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The finalizer of SplitMix64: a bijection, so that numbers stay different. */
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static char *put(char *to, const char *text) {
    const size_t size = strlen(text);
    memcpy(to, text, size);
    return to + size;
}

static char *put_hex(char *to, uint64_t number, int digits) {
    for (int i = digits - 1; i >= 0; i--)
        *to++ = "0123456789abcdef"[number >> 4 * i & 15];
    return to;
}

/* Puts the line of a number. */
typedef char *put_line(char *to, uint64_t number);

static char *put_url(char *to, uint64_t number) {
    static const char *const hosts[] = {"www.example.com",
                                        "news.example.org",
                                        "shop.example.net",
                                        "en.wiki.example.org",
                                        "a.io",
                                        "static.images.example.com",
                                        "blog.example.de",
                                        "forum.example.co.uk"};
    static const char *const folders[] = {"articles/2024/",
                                          "p/",
                                          "products/category/",
                                          "user/profile/",
                                          "index.php?id=",
                                          "images/large/",
                                          "tag/",
                                          "archive/old/pages/"};
    static const char *const tails[] = {"", ".html", "/index.html",
                                        "?ref=home"};
    const uint64_t choice = mix(number);
    to = put(to, choice & 1 ? "https://" : "http://");
    to = put(to, hosts[choice >> 1 & 7]);
    *to++ = '/';
    to = put(to, folders[choice >> 4 & 7]);
    to = put_hex(to, number, 16);
    return put(to, tails[choice >> 7 & 3]);
}

static char *put_key(char *to, uint64_t number) {
    return put_hex(put(to, "key:"), number, 16);
}

static char *put_mail(char *to, uint64_t number) {
    static const char *const names[] = {"anna", "ben.", "maria_", "j"};
    static const char *const hosts[] = {"@example.com", "@mail.example.org",
                                        "@example.co.uk", "@post.example.de"};
    const uint64_t choice = mix(number);
    to = put(to, names[choice & 3]);
    to = put_hex(to, number, 16);
    return put(to, hosts[choice >> 2 & 3]);
}

static char *put_wide(char *to, uint64_t number) {
    static const char filler[] = "/a/long/path/to/fill/up";
    to = put_hex(put(to, "https://www.example.org/"), number, 16);
    return put(to, filler);
}

static char *put_path(char *to, uint64_t number) {
    to = put_hex(put(to, "example.org/"), number, 16);
    return put(to, "/item/index");
}

/* ---- Which number stands in a line --------------------------------------- */

static uint64_t count, seed;
typedef uint64_t number_of(uint64_t i);

static uint64_t number_in(uint64_t of_seed, uint64_t i) {
    return mix((of_seed << 40) + i);
}

static uint64_t all_different(uint64_t i) {
    return number_in(seed, i);
}

/* The prime spreads them over the first list, and takes none twice. */
static uint64_t overlapping(uint64_t i) {
    return i % 10 ? number_in(seed, i) : number_in(1, i * 1000003 % count);
}

static uint64_t repeating(uint64_t i) {
    for (uint64_t chance; i && (chance = mix(~number_in(seed, i))) % 10 < 3;)
        i = chance / 10 % i;
    return number_in(seed, i);
}

static void make(put_line *put_one, number_of *number) {
    static char buffer[1 << 16];
    char *to = buffer;
    for (uint64_t i = 0; i < count; i++) {
        to = put_one(to, number(i));
        *to++ = '\n';
        if (to - buffer > (1 << 16) - 256 || i + 1 == count) {
            fwrite(buffer, 1, (size_t)(to - buffer), stdout);
            to = buffer;
        }
    }
    if (fflush(stdout) != 0) {
        perror("calyx-lines");
        exit(2);
    }
}

static void run_floor(const char *path) {
    enum { SIZE = 1 << 20 };
    static char buffer[SIZE];
    const int fd = open(path, O_RDONLY);
    if (fd < 0) {
        perror(path);
        exit(2);
    }
    uint64_t lines = 0, bytes = 0;
    for (ssize_t n; (n = read(fd, buffer, SIZE)) > 0; bytes += (uint64_t)n)
        for (const char *at = buffer, *const end = buffer + n; at < end;) {
            at = memchr(at, '\n', (size_t)(end - at));
            if (!at) break;
            at++;
            lines++;
        }
    printf("%" PRIu64 " lines, %" PRIu64 " bytes\n", lines, bytes);
}

static void run_sum(void) {
    char *line = NULL;
    size_t room = 0;
    uint64_t lines = 0, any_order = 0, this_order = 0;
    for (ssize_t n; (n = getline(&line, &room, stdin)) > 0; lines++) {
        if (line[n - 1] == '\n') n--;
        uint64_t hash = (uint64_t)n;
        for (ssize_t at = 0; at < n; at += 8) {
            uint64_t word = 0;
            memcpy(&word, line + at, (size_t)(n - at < 8 ? n - at : 8));
            hash = mix(hash ^ word) + (uint64_t)at;
        }
        any_order += mix(hash);
        this_order = mix(this_order + hash);
    }
    free(line);
    printf("%" PRIu64 " %016" PRIx64 " %016" PRIx64 "\n", lines, any_order,
           this_order);
}

static put_line *kind_named(const char *name) {
    static const struct {
        const char *name;
        put_line *put_one;
    } kinds[] = {{"make", put_url},
                 {"keys", put_key},
                 {"mails", put_mail},
                 {"wide", put_wide},
                 {"paths", put_path}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(name, kinds[i].name) == 0) return kinds[i].put_one;
    return NULL;
}

int main(int words_count, char **words) {
    number_of *number = all_different;
    if (words_count == 3 && strcmp(words[1], "floor") == 0) {
        run_floor(words[2]);
        return 0;
    }
    if (words_count == 2 && strcmp(words[1], "sum") == 0) {
        run_sum();
        return 0;
    }
    if (words_count == 5) {
        number = strcmp(words[1], "overlap") == 0  ? overlapping
                 : strcmp(words[1], "repeat") == 0 ? repeating
                                                   : NULL;
        words++;
        words_count--;
    }
    put_line *const put_one = words_count == 4 ? kind_named(words[1]) : NULL;
    if (!put_one || !number) {
        fputs("usage: calyx-lines [overlap|repeat] make|keys|mails|wide|paths "
              "COUNT SEED | sum | floor FILE\n",
              stderr);
        return 2;
    }
    count = strtoull(words[2], NULL, 10);
    seed = strtoull(words[3], NULL, 10);
    make(put_one, number);
    return 0;
}
