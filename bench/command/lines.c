/*
 * Helpers for measuring the command. Lines are all different, and other ones
 * for other seeds.
 *
 *   calyx-lines make COUNT SEED     lines like URLs, of about 60 bytes
 *   calyx-lines keys COUNT SEED     lines of 20 bytes
 *   calyx-lines mails COUNT SEED    lines like e-mail addresses
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

static void make(uint64_t count, uint64_t seed, put_line *put_one) {
    static char buffer[1 << 16];
    char *to = buffer;
    for (uint64_t i = 0; i < count; i++) {
        to = put_one(to, mix((seed << 40) + i));
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

int main(int count, char **words) {
    static const struct {
        const char *name;
        put_line *put_one;
    } makers[] = {{"make", put_url}, {"keys", put_key}, {"mails", put_mail}};
    for (size_t i = 0; count == 4 && i < sizeof makers / sizeof *makers; i++)
        if (strcmp(words[1], makers[i].name) == 0) {
            make(strtoull(words[2], NULL, 10), strtoull(words[3], NULL, 10),
                 makers[i].put_one);
            return 0;
        }
    if (count == 3 && strcmp(words[1], "floor") == 0) {
        run_floor(words[2]);
        return 0;
    }
    fputs("usage: calyx-lines make|keys|mails COUNT SEED | floor FILE\n",
          stderr);
    return 2;
}
