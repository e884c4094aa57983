/*
 * Calyx in SQLite, a loadable extension:
 *
 *     calyx_has(filter, key)            1, or 0, which is certain
 *     calyx_build(key [, rate [, kind]])  an aggregate: a filter, as a blob
 *     calyx_info(filter)                what it is, as JSON
 *
 * A filter is the path of a file, which is mapped, or a blob. A connection
 * keeps what it opened. A statement looks once whether a file was replaced, at
 * its first row: SQLite keeps the filter of a constant argument for it
 * (auxiliary data). A blob that is no constant is compared with the last one,
 * byte by byte.
 */
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1

#include <calyx/calyx.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILES_MOST = 16,    /* that a connection keeps open while no statement uses
                           them                                               */
    JSON_SUBTYPE = 'J', /* how SQLite's functions know JSON from text      */
    ALIGNMENT = 64      /* that calyx_view wants                           */
};

/* ---- Errors -------------------------------------------------------------- */

static void fail_text(sqlite3_context *context, const char *text) {
    char *const whole = sqlite3_mprintf("calyx: %s", text);
    if (whole)
        sqlite3_result_error(context, whole, -1);
    else
        sqlite3_result_error_nomem(context);
    sqlite3_free(whole);
}

static void fail(sqlite3_context *context, const calyx_error *why) {
    if (why->status == CALYX_NO_MEMORY)
        sqlite3_result_error_nomem(context);
    else
        fail_text(context, why->text);
}

/* ---- Filters that a connection has open ---------------------------------- */

/* A file, which may be replaced, or a blob. */
struct source {
    struct source *next;
    unsigned users;       /* statements that hold a filter of it  */
    calyx_live *live;     /* of a file; else NULL                 */
    calyx_filter *view;   /* of a blob, over its bytes            */
    size_t size;          /* of the path with its end, or the blob */
    unsigned char *bytes; /* the path, or the blob                */
};

struct connection {
    struct source *sources; /* the last used first */
};

/* A filter of a source, for the time of a statement. */
struct held {
    struct connection *connection;
    struct source *source;
    const calyx_filter *filter;
};

static void source_free(struct source *s) {
    calyx_live_free(s->live);
    calyx_free(s->view);
    free(s->bytes);
    free(s);
}

static void connection_free(void *data) {
    struct connection *const connection = data;
    while (connection->sources) {
        struct source *const s = connection->sources;
        connection->sources = s->next;
        source_free(s);
    }
    free(connection);
}

/* Close what is beyond the limits: one blob, and the last files. */
static void close_unused(struct connection *connection) {
    unsigned files = 0, blobs = 0;
    for (struct source **at = &connection->sources; *at;) {
        struct source *const s = *at;
        const bool beyond = s->live ? ++files > FILES_MOST : ++blobs > 1;
        if (beyond && s->users == 0) {
            *at = s->next;
            source_free(s);
        } else {
            at = &s->next;
        }
    }
}

/* Take a source out of the list, if it is there. */
static struct source *take(struct connection *connection, bool is_file,
                           const void *bytes, size_t size) {
    for (struct source **at = &connection->sources; *at; at = &(*at)->next) {
        struct source *const s = *at;
        if (!s->live == is_file || s->size != size ||
            memcmp(s->bytes, bytes, size) != 0)
            continue;
        *at = s->next;
        return s;
    }
    return NULL;
}

static struct source *source_new(bool is_file, const void *bytes, size_t size,
                                 calyx_error *why) {
    struct source *const s = calloc(1, sizeof *s);
    const size_t room = (size + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    if (s) s->bytes = aligned_alloc(ALIGNMENT, room);
    if (!s || !s->bytes) {
        free(s);
        why->status = CALYX_NO_MEMORY;
        return NULL;
    }
    s->size = size;
    memcpy(s->bytes, bytes, size);
    const calyx_open_options whole = {.verify = CALYX_VERIFY_WHOLE};
    const calyx_status status =
        is_file ? calyx_live_open(bytes, NULL, &s->live, why)
                : calyx_view(s->bytes, size, &whole, &s->view, why);
    if (status == CALYX_OK) return s;
    source_free(s);
    return NULL;
}

static bool open_source(struct held *held, bool is_file, const void *bytes,
                        size_t size, calyx_error *why) {
    struct connection *const connection = held->connection;
    struct source *s = take(connection, is_file, bytes, size);
    if (!s) s = source_new(is_file, bytes, size, why);
    if (!s) return false;
    s->next = connection->sources;
    connection->sources = s;
    if (s->live && calyx_live_refresh(s->live, NULL, why) != CALYX_OK)
        return false;
    held->filter = s->live ? calyx_live_acquire(s->live) : s->view;
    held->source = s;
    s->users++;
    close_unused(connection);
    return true;
}

static void release(void *data) {
    struct held *const held = data;
    struct source *const s = held->source;
    if (s->live) calyx_live_release(s->live, held->filter);
    s->users--;
    close_unused(held->connection);
    sqlite3_free(held);
}

/* Hold the filter of an argument. NULL, with an error, if there is none. */
static struct held *hold(sqlite3_context *context, sqlite3_value *argument) {
    const int type = sqlite3_value_type(argument);
    if (type != SQLITE_TEXT && type != SQLITE_BLOB) {
        fail_text(context, "a filter is the path of a file, or a blob of "
                           "calyx_build, not a number or NULL");
        return NULL;
    }
    const bool is_file = type == SQLITE_TEXT;
    const void *const bytes = is_file
                                  ? (const void *)sqlite3_value_text(argument)
                                  : sqlite3_value_blob(argument);
    const size_t size = (size_t)sqlite3_value_bytes(argument);
    if (is_file && bytes && strlen(bytes) != size) {
        fail_text(context, "a path has no zero byte");
        return NULL;
    }
    struct held *const held = sqlite3_malloc(sizeof *held);
    if (!held || (!bytes && size > 0)) {
        sqlite3_free(held);
        sqlite3_result_error_nomem(context);
        return NULL;
    }
    *held = (struct held){.connection = sqlite3_user_data(context)};
    calyx_error why;
    if (open_source(held, is_file, bytes ? bytes : "", size + is_file, &why))
        return held;
    sqlite3_free(held);
    fail(context, &why);
    return NULL;
}

/* ---- Keys ---------------------------------------------------------------- */

struct sql_key {
    calyx_key key;
    unsigned char number[8];
};

/* An integer is its 8 bytes in little-endian order, a text its UTF-8, a blob
 * its bytes. False, with an error, if it is none; NULL is not passed. */
static bool key_of(sqlite3_context *context, sqlite3_value *value,
                   struct sql_key *k) {
    const void *bytes = NULL;
    switch (sqlite3_value_type(value)) {
        case SQLITE_INTEGER: {
            const uint64_t number = (uint64_t)sqlite3_value_int64(value);
            for (int i = 0; i < 8; i++)
                k->number[i] = (unsigned char)(number >> 8 * i);
            k->key = (calyx_key){k->number, sizeof k->number};
            return true;
        }
        case SQLITE_TEXT: bytes = sqlite3_value_text(value); break;
        case SQLITE_BLOB: bytes = sqlite3_value_blob(value); break;
        default:
            fail_text(context, "a key is an integer, a text or a blob, not a "
                               "real number: cast it");
            return false;
    }
    k->key = (calyx_key){bytes, (size_t)sqlite3_value_bytes(value)};
    if (bytes || k->key.size == 0) return true;
    sqlite3_result_error_nomem(context);
    return false;
}

/* ---- calyx_has(filter, key) ---------------------------------------------- */

static void look_up(sqlite3_context *context, const calyx_filter *filter,
                    sqlite3_value *value) {
    struct sql_key k;
    if (sqlite3_value_type(value) == SQLITE_NULL) return; /* NULL */
    if (!key_of(context, value, &k)) return;
    const bool found = calyx_has(filter, k.key.data, k.key.size);
    calyx_error why;
    if (found && calyx_health(filter, &why) != CALYX_OK)
        fail(context, &why);
    else
        sqlite3_result_int(context, found);
}

static void has_function(sqlite3_context *context, int count,
                         sqlite3_value **arguments) {
    (void)count;
    struct held *held = sqlite3_get_auxdata(context, 0);
    if (held) {
        look_up(context, held->filter, arguments[1]);
        return;
    }
    held = hold(context, arguments[0]);
    if (!held) return;
    look_up(context, held->filter, arguments[1]);
    sqlite3_set_auxdata(context, 0, held, release); /* may release it */
}

/* ---- calyx_build(key, rate, kind) ---------------------------------------- */

struct build {
    calyx_builder *builder;
    double rate;
    bool failed; /* and the error was reported */
};

/* Of the second argument; 0, the default, without it or if it is NULL. */
static bool rate_of(sqlite3_context *context, int count,
                    sqlite3_value **arguments, double *rate) {
    *rate = 0;
    if (count < 2 || sqlite3_value_type(arguments[1]) == SQLITE_NULL)
        return true;
    *rate = sqlite3_value_double(arguments[1]);
    if (*rate > 0 && *rate < 1) return true;
    fail_text(context, "the rate of calyx_build is a number between 0 and 1, "
                       "such as 0.01");
    return false;
}

static bool start(sqlite3_context *context, struct build *build, int count,
                  sqlite3_value **arguments) {
    const char *const kind =
        count > 2 ? (const char *)sqlite3_value_text(arguments[2]) : NULL;
    const calyx_builder_options want = {
        .filter = {.kind = kind, .fpr = build->rate}};
    calyx_error why;
    if (calyx_builder_new(&want, &build->builder, &why) == CALYX_OK)
        return true;
    fail(context, &why);
    return false;
}

static bool add(sqlite3_context *context, struct build *build, int count,
                sqlite3_value **arguments) {
    double rate;
    if (!rate_of(context, count, arguments, &rate)) return false;
    if (!build->builder) {
        build->rate = rate;
        if (!start(context, build, count, arguments)) return false;
    }
    if (rate < build->rate || rate > build->rate) {
        fail_text(context, "the rate of calyx_build differs from row to row");
        return false;
    }
    struct sql_key k;
    if (sqlite3_value_type(arguments[0]) == SQLITE_NULL) return true;
    if (!key_of(context, arguments[0], &k)) return false;
    calyx_error why;
    if (calyx_builder_add(build->builder, k.key.data, k.key.size, &why) ==
        CALYX_OK)
        return true;
    fail(context, &why);
    return false;
}

static void build_step(sqlite3_context *context, int count,
                       sqlite3_value **arguments) {
    struct build *const build =
        sqlite3_aggregate_context(context, sizeof *build);
    if (!build)
        sqlite3_result_error_nomem(context);
    else if (!build->failed)
        build->failed = !add(context, build, count, arguments);
}

static void return_blob(sqlite3_context *context, const calyx_filter *filter) {
    const uint64_t size = calyx_encoded_size(filter);
    void *const bytes = sqlite3_malloc64(size);
    calyx_error why;
    if (!bytes) {
        sqlite3_result_error_nomem(context);
    } else if (calyx_encode(filter, bytes, size, &why) != CALYX_OK) {
        sqlite3_free(bytes);
        fail(context, &why);
    } else {
        sqlite3_result_blob64(context, bytes, size, sqlite3_free);
    }
}

static void build_end(sqlite3_context *context) {
    struct build none = {0};
    struct build *build = sqlite3_aggregate_context(context, 0);
    if (!build) build = &none; /* there was no row */
    calyx_filter *filter = NULL;
    calyx_error why;
    if (!build->failed && (build->builder || start(context, build, 0, NULL))) {
        if (calyx_builder_finish(build->builder, &filter, &why) == CALYX_OK)
            return_blob(context, filter);
        else
            fail(context, &why);
    }
    calyx_free(filter);
    calyx_builder_free(build->builder);
    build->builder = NULL;
}

/* ---- calyx_info(filter) -------------------------------------------------- */

/* SQLite writes the JSON. The names are as in `calyx info --json`. */
static const char info_query[] =
    "SELECT json_object('kind', ?1, 'keys', ?2, 'capacity', ?3, 'distinct', ?4,"
    " 'rate', ?5, 'rate_promised', ?6, 'bytes', ?7, 'bits', ?8, 'fill', ?9,"
    " 'probes', ?10, 'parts', ?11, 'growth', ?12,"
    " 'strict', json(iif(?13, 'true', 'false')), 'hash', ?14,"
    " 'seed', json(printf('%llu', ?15)), 'allowed', ?17, 'comment', ?16)";

static int bind_info(sqlite3_stmt *query, const calyx_filter *filter) {
    calyx_info info;
    calyx_describe(filter, &info);
    const sqlite3_int64 integers[][2] = {{2, (sqlite3_int64)info.items},
                                         {3, (sqlite3_int64)info.capacity},
                                         {7, (sqlite3_int64)info.bytes},
                                         {8, (sqlite3_int64)info.bits},
                                         {10, info.probes},
                                         {11, info.parts},
                                         {13, info.strict},
                                         {15, (sqlite3_int64)info.seed},
                                         {17, (sqlite3_int64)info.allowed}};
    const struct {
        int at;
        double is;
    } reals[] = {{4, info.distinct},
                 {5, info.fpr_now},
                 {6, info.fpr},
                 {9, info.fill},
                 {12, info.growth}};
    const struct {
        int at;
        const char *is;
    } texts[] = {{1, info.kind}, {14, info.hash}, {16, calyx_comment(filter)}};
    int bad = SQLITE_OK;
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        bad |= sqlite3_bind_int64(query, (int)integers[i][0], integers[i][1]);
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        bad |= sqlite3_bind_double(query, reals[i].at, reals[i].is);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        bad |= sqlite3_bind_text(query, texts[i].at, texts[i].is, -1,
                                 SQLITE_STATIC);
    return bad;
}

static void return_info(sqlite3_context *context, const calyx_filter *filter) {
    sqlite3 *const db = sqlite3_context_db_handle(context);
    sqlite3_stmt *query = NULL;
    calyx_error why;
    if (sqlite3_prepare_v2(db, info_query, -1, &query, NULL) != SQLITE_OK ||
        bind_info(query, filter) != SQLITE_OK ||
        sqlite3_step(query) != SQLITE_ROW) {
        fail_text(context, sqlite3_errmsg(db));
    } else if (calyx_health(filter, &why) != CALYX_OK) {
        fail(context, &why);
    } else {
        sqlite3_result_value(context, sqlite3_column_value(query, 0));
        sqlite3_result_subtype(context, JSON_SUBTYPE);
    }
    sqlite3_finalize(query);
}

static void info_function(sqlite3_context *context, int count,
                          sqlite3_value **arguments) {
    (void)count;
    struct held *const held = hold(context, arguments[0]);
    if (!held) return;
    return_info(context, held->filter);
    release(held);
}

/* ---- The extension ------------------------------------------------------- */

/* All but calyx_build may read files, so a database that is not trusted
 * (PRAGMA trusted_schema = OFF) cannot call them from its views and triggers.
 */
static int add_functions(sqlite3 *db, struct connection *connection) {
    const int pure = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    int status = SQLITE_OK;
    for (int count = 1; count <= 3 && status == SQLITE_OK; count++)
        status =
            sqlite3_create_function_v2(db, "calyx_build", count, pure, NULL,
                                       NULL, build_step, build_end, NULL);
    if (status == SQLITE_OK)
        status = sqlite3_create_function_v2(db, "calyx_info", 1, SQLITE_UTF8,
                                            connection, info_function, NULL,
                                            NULL, NULL);
    return status;
}

__attribute__((visibility("default"))) int sqlite3_extension_init(
    sqlite3 *db, char **error, const sqlite3_api_routines *api) {
    SQLITE_EXTENSION_INIT2(api)
    (void)error;
    struct connection *const connection = calloc(1, sizeof *connection);
    if (!connection) return SQLITE_NOMEM;
    /* calyx_has owns the connection's data: it ends with the connection, and if
     * this call fails. */
    const int status =
        sqlite3_create_function_v2(db, "calyx_has", 2, SQLITE_UTF8, connection,
                                   has_function, NULL, NULL, connection_free);
    return status == SQLITE_OK ? add_functions(db, connection) : status;
}
