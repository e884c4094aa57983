/*
 * Help for people and manual pages, from the tables of the verbs. What is said
 * of a verb is said once, in its file; here it only gets its shape.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

static const char *const headline =
    "Bloom filters for files, pipes and servers";

static const char *const about =
    "A Bloom filter stores keys in about 10 bits each. It says yes to every "
    "key that was added, and to a small share of others: the false-positive "
    "rate.";

static const char *const file_names =
    "As a FILE, - is standard input or output. A word with :// and an @ after "
    "it may be a URL with a password, and is hidden, so no file is found by "
    "it. With ./ before its name, a file may be called anything: ./- and "
    "./a://b@c.";

static const struct example tour[] = {
    {"calyx build -p 1% -o seen.calyx urls.txt", "build a filter from a list"},
    {"calyx check -v -f seen.calyx new.txt", "the lines that are not in it"},
    {"crawl | calyx add seen.calyx --new | fetch", "never seen before"},
    {NULL, NULL},
};

/* The verbs that most people need; 'calyx help all' lists the others, too. */
static const char *const usual_verbs[] = {
    "build", "check", "add",  "dedup", "common",
    "minus", "plan",  "info", "push",  NULL,
};

/* Environment variables of the verbs; the page of each has details. */
static const struct {
    const char *name, *text;
} environment[] = {
    {"TMPDIR", "Where temporary files go; the default is /tmp."},
    {"CALYX_REDIS_URL, CALYX_REDIS_USER, CALYX_REDIS_PASSWORD",
     "The server for push, pull and check, and the user and password for it."},
    {"CALYX_TLS_CA, CALYX_TLS_CERT, CALYX_TLS_KEY",
     "For rediss:// URLs: the authorities to trust, a file or a folder; and "
     "files with a client certificate and its key, if the server requires "
     "one."},
    {"CALYX_KERNEL", "The instruction set to use, such as scalar, instead of "
                     "the best that the processor has."},
};

static const char *const status_of_all =
    "0 for yes or success; 1 for no, where a verb checks something; 2 on an "
    "error, with a message on standard error.";

static const char *const usual_status =
    "0 on success, 2 on an error, with a message on standard error.";

/* ---- Plain text --------------------------------------------------------- */

enum { WIDTH = 80 };

/* Print text in lines of WIDTH, from column `at` on, indented by `indent`. */
static void wrap(const char *text, int at, int indent) {
    while (*text) {
        const int size = (int)strcspn(text, " ");
        if (at > indent && at + 1 + size > WIDTH) {
            printf("\n");
            at = 0;
        }
        if (at < indent)
            at += printf("%*s", indent - at, "");
        else if (at > indent)
            at += printf(" ");
        at += printf("%.*s", size, text);
        text += size;
        text += strspn(text, " ");
    }
    printf("\n");
}

static void print_option(const struct verb_option *o) {
    enum { COLUMN = 24 };
    int at = o->letter ? printf("  -%c, ", o->letter) : printf("      ");
    at += printf("--%s", o->name);
    if (o->argument)
        at += printf("%s%s", *o->argument == '[' ? "" : " ", o->argument);
    if (at + 2 > COLUMN) {
        printf("\n");
        at = 0;
    } else {
        at += printf("%*s", COLUMN - at, "");
    }
    wrap(o->text, at, COLUMN);
}

static void print_paragraphs(const char *const *text) {
    for (; *text; text++) {
        printf("\n");
        wrap(*text, 0, 0);
    }
}

static void print_examples(const struct example *example) {
    printf("\nExamples:\n");
    for (; example->command; example++) {
        printf("  %s\n", example->command);
        wrap(example->text, 0, 6);
    }
}

/* ---- Help of a verb: what most people need, then "More" ------------------ */

static bool is_common(const struct verb *verb, const struct verb_option *o) {
    if (!*verb->common) return true;
    for (const char *const *name = verb->common; *name; name++)
        if (strcmp(*name, o->name) == 0) return true;
    return false;
}

/* The options of a group that are common, or those that are not, under the
 * title. Returns whether there are any. */
static bool print_group(const struct verb *verb, const struct group *group,
                        bool common, const char *title) {
    bool any = false;
    for (const struct verb_option *o = group->options; o->name; o++) {
        if (is_common(verb, o) != common) continue;
        if (!any && title) printf("\n%s:\n", title);
        print_option(o);
        any = true;
    }
    return any;
}

static void print_common_options(const struct verb *verb) {
    const char *title = "Common options";
    for (const struct group *const *group = verb->groups; *group; group++)
        if (print_group(verb, *group, true,
                        *verb->common ? title : (*group)->title))
            title = NULL;
}

static void print_other_options(const struct verb *verb) {
    for (const struct group *const *group = verb->groups; *group; group++)
        print_group(verb, *group, false, (*group)->title);
}

void print_help(const struct verb *verb) {
    const bool all_common = !*verb->common;
    printf("calyx %s: %s\n\nUsage: calyx %s %s\n\n", verb->name, verb->summary,
           verb->name, verb->synopsis);
    wrap(verb->prose[0], 0, 0);
    if (all_common) print_paragraphs(verb->prose + 1);
    print_common_options(verb);
    if (verb->examples->command) print_examples(verb->examples);
    printf("\nExit status:\n");
    wrap(verb->status ? verb->status : usual_status, 0, 2);
    if (all_common) return;
    printf("\nMore:\n");
    print_paragraphs(verb->prose + 1);
    print_other_options(verb);
}

/* ---- The overview, on one screen of 24 lines ----------------------------- */

static void print_verb(const struct verb *verb) {
    printf("  %-12s%s\n", verb->name, verb->summary);
}

static bool is_usual(const struct verb *verb) {
    for (const char *const *name = usual_verbs; *name; name++)
        if (strcmp(*name, verb->name) == 0) return true;
    return false;
}

static void print_head(void) {
    printf("calyx: %s\n\nUsage: calyx VERB [OPTION]... [FILE]...\n\n",
           headline);
    wrap(about, 0, 0);
    printf("\n");
}

void print_overview(void) {
    print_head();
    for (const struct verb *const *verb = verbs; *verb; verb++)
        if (is_usual(*verb)) print_verb(*verb);
    printf("\nExamples:\n");
    for (const struct example *example = tour; example->command; example++)
        printf("  %-46s%s\n", example->command, example->text);
    printf("\n'calyx help all' lists all verbs, 'calyx help VERB' explains "
           "one.\n");
}

void print_verbs(void) {
    print_head();
    for (const struct verb *const *verb = verbs; *verb; verb++)
        print_verb(*verb);
    print_examples(tour);
    printf("\n'calyx help VERB' explains a verb; 'calyx --version' shows what "
           "is built in.\n");
}

/* ---- Roff --------------------------------------------------------------- */

/* Text as roff wants it: no line may start as a request, and a dash that people
 * type is not a hyphen. */
static void roff(const char *text) {
    if (*text == '.' || *text == '\'') printf("\\&");
    for (; *text; text++) {
        if (*text == '\\')
            printf("\\e");
        else if (*text == '-')
            printf("\\-");
        else
            putchar(*text);
    }
}

/* A title in capitals. */
static void section(const char *title) {
    printf(".SH ");
    for (; *title; title++) putchar(toupper((unsigned char)*title));
    printf("\n");
}

static void paragraph(const char *text) {
    printf(".PP\n");
    roff(text);
    printf("\n");
}

static void header(const char *page, const char *summary) {
    printf(".TH %s 1 \"\" \"calyx %s\" \"User Commands\"\n.SH NAME\n", page,
           calyx_version());
    roff(page);
    printf(" \\- ");
    roff(summary);
    printf("\n");
}

static void roff_option(const struct verb_option *o) {
    printf(".TP\n");
    if (o->letter) printf("\\fB\\-%c\\fR, ", o->letter);
    printf("\\fB\\-\\-");
    roff(o->name);
    printf("\\fR");
    if (o->argument)
        printf("%s\\fI%s\\fR", *o->argument == '[' ? "" : " ", o->argument);
    printf("\n");
    roff(o->text);
    printf("\n");
}

/* A name in bold, and what it is. */
static void roff_item(const char *name, const char *text) {
    printf(".TP\n\\fB");
    roff(name);
    printf("\\fR\n");
    roff(text);
    printf("\n");
}

static void roff_examples(const struct example *example) {
    section("Examples");
    for (; example->command; example++)
        roff_item(example->command, example->text);
}

static void manual_of_all(void) {
    header("calyx", headline);
    section("Synopsis");
    printf("\\fBcalyx\\fR \\fIVERB\\fR [\\fIOPTION\\fR]... "
           "[\\fIFILE\\fR]...\n");
    section("Description");
    paragraph(about);
    paragraph(file_names);
    section("Verbs");
    for (const struct verb *const *verb = verbs; *verb; verb++)
        roff_item((*verb)->name, (*verb)->summary);
    roff_examples(tour);
    section("Exit status");
    paragraph(status_of_all);
    section("Environment");
    for (size_t i = 0; i < sizeof environment / sizeof *environment; i++)
        roff_item(environment[i].name, environment[i].text);
    section("See also"); /* names are not to be hyphenated: \% */
    for (const struct verb *const *verb = verbs; *verb; verb++)
        printf("\\fB\\%%calyx\\-%s\\fR(1),\n", (*verb)->name);
    printf("\\fB\\%%calyx\\fR(3)\n");
}

void print_manual(const struct verb *verb) {
    if (!verb) {
        manual_of_all();
        return;
    }
    char page[64];
    snprintf(page, sizeof page, "calyx-%s", verb->name);
    header(page, verb->summary);
    section("Synopsis");
    printf("\\fBcalyx %s\\fR ", verb->name);
    roff(verb->synopsis);
    printf("\n");
    section("Description");
    for (const char *const *text = verb->prose; *text; text++) paragraph(*text);
    for (const struct group *const *group = verb->groups; *group; group++) {
        section((*group)->title);
        for (const struct verb_option *o = (*group)->options; o->name; o++)
            roff_option(o);
    }
    if (verb->examples->command) roff_examples(verb->examples);
    section("Exit status");
    paragraph(verb->status ? verb->status : usual_status);
    section("See also");
    printf("\\fBcalyx\\fR(1)\n");
}
