/* The options of the commands that make filters: a table of words. */
#ifndef CALYX_MODULE_OPTIONS_H
#define CALYX_MODULE_OPTIONS_H

#include "layout/layout.h"
#include "server/api.h"

struct options {
    struct filter_params params;
    bool no_create;
    bool our_words; /* CF.INSERT has some that RedisBloom does not have */
    int items;      /* index of the first item; argc if there is none */
};

/* NULL, or the text of an error; "" for a wrong number of arguments. The texts
 * are RedisBloom's, and stay valid until the next call. */
const char *parse_reserve(RedisModuleString **argv, int argc,
                          struct options *out);
const char *parse_insert(RedisModuleString **argv, int argc,
                         struct options *out);

/* What a new filter is made of unless options say otherwise. */
struct filter_params default_params(void);

/* Is it this word, in any case? */
bool is_word(RedisModuleString *text, const char *word);

/* NULL, or the text of an error: the word at `at` was given before, from `from`
 * on, with another value. */
const char *check_repeated(const char *word, RedisModuleString **argv, int from,
                           int at);

/* Numbers, as the commands and the configuration take them. */
enum number { NUMBER, NO_NUMBER, OUT_OF_RANGE };
enum number parse_rate(RedisModuleString *text, double *rate);
/* As a rate of RedisBloom: at most 0.25. */
enum number parse_error_rate(RedisModuleString *text, double *error);
enum number parse_whole(RedisModuleString *text, long long least,
                        long long most, long long *number);
bool parse_seed(const char *text, size_t size, uint64_t *seed);

#endif
