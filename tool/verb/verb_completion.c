/*
 * calyx completion: what a shell should offer when Tab is pressed, made of the
 * tables that the options are read by. So it knows every verb and option there
 * is, and no other.
 */
#include <stdio.h>
#include <string.h>

#include "tool.h"

/* ---- What can stand where ----------------------------------------------- */

enum { WORDS_SIZE = 1024 };

static void add_word(char *words, const char *word, size_t size) {
    const size_t used = strlen(words);
    snprintf(words + used, WORDS_SIZE - used, "%s%.*s", used ? " " : "",
             (int)size, word);
}

static void add_list(char *words, const char *const *list) {
    for (; *list; list++) add_word(words, *list, strlen(*list));
}

static void add_verbs(char *words) {
    for (const struct verb *const *verb = verbs; *verb; verb++)
        add_word(words, (*verb)->name, strlen((*verb)->name));
}

/* The possible words of an argument, by its name in the help: those in
 * "this|that", or the names of something; none if it is free text. */
static const char *choices(const char *argument) {
    static char words[WORDS_SIZE];
    *words = '\0';
    if (!argument)
        return words;
    else if (strcmp(argument, "KIND") == 0)
        add_list(words, calyx_kinds());
    else if (strcmp(argument, "HASH") == 0)
        add_list(words, calyx_hashes());
    else if (strcmp(argument, "VERB") == 0)
        add_verbs(words);
    else if (strchr(argument, '|'))
        for (const char *at = argument; *at; at += strspn(at, "|")) {
            const size_t size = strcspn(at, "|");
            add_word(words, at, size);
            at += size;
        }
    return words;
}

static bool is_file(const char *argument) {
    return strstr(argument, "FILE") || strcmp(argument, "LIST") == 0 ||
           strcmp(argument, "FILTER") == 0;
}

/* What a verb calls its operands: the last word of its synopsis. */
static const char *operand(const struct verb *verb) {
    static char word[64];
    const char *const space = strrchr(verb->synopsis, ' ');
    const char *const last = space ? space + 1 : verb->synopsis;
    snprintf(word, sizeof word, "%.*s",
             (int)strcspn(last + (*last == '['), "]"), last + (*last == '['));
    return word;
}

static bool takes_operands(const struct verb *verb) {
    return verb->most != 0;
}

typedef void each_option(const struct verb *verb, const struct verb_option *o);

static void for_options(const struct verb *verb, each_option *each) {
    for (const struct group *const *group = verb->groups; *group; group++)
        for (const struct verb_option *o = (*group)->options; o->name; o++)
            each(verb, o);
}

/* The first sentence of what an option does, or as much of it as is short, safe
 * between single quotes and in the brackets that zsh wants. */
static void print_gist(const char *text) {
    enum { LONG = 60 };
    for (int n = 0; *text; text++, n++) {
        if ((*text == '.' || *text == ';') && (text[1] == ' ' || !text[1]))
            break;
        if (n >= LONG && *text == ' ') {
            printf(" ...");
            break;
        }
        if (*text == ':')
            putchar(',');
        else if (strchr("'[]\\", *text))
            putchar(' ');
        else
            putchar(*text);
    }
}

/* ---- bash --------------------------------------------------------------- */

static void bash_name(const struct verb *verb, const struct verb_option *o) {
    (void)verb;
    printf(" --%s", o->name);
    if (o->letter) printf(" -%c", o->letter);
}

static void bash_value(const struct verb *verb, const struct verb_option *o) {
    if (!o->argument) return;
    printf("    %s:--%s", verb->name, o->name);
    if (o->letter) printf(" | %s:-%c", verb->name, o->letter);
    if (*choices(o->argument))
        printf(") offer=\"%s\" ;;\n", choices(o->argument));
    else if (is_file(o->argument))
        printf(") return ;;\n");
    else
        printf(") compopt +o default 2>/dev/null; return ;;\n");
}

static void bash(void) {
    char all[WORDS_SIZE] = "";
    add_verbs(all);
    printf("# Completion of calyx for bash: source <(calyx completion bash)\n"
           "_calyx() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]}\n"
           "    local before=${COMP_WORDS[COMP_CWORD - 1]} offer=\n"
           "    COMPREPLY=()\n"
           "    # --name=value comes in three words\n"
           "    if [[ $word == = ]]; then\n"
           "        word=\n"
           "    elif [[ $before == = ]]; then\n"
           "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
           "    fi\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        COMPREPLY=($(compgen -W '%s --help --version' -- "
           "\"$word\"))\n"
           "        return\n"
           "    fi\n"
           "    # the value of an option\n"
           "    case ${COMP_WORDS[1]}:$before in\n",
           all);
    for (const struct verb *const *verb = verbs; *verb; verb++)
        for_options(*verb, bash_value);
    printf("    esac\n"
           "    # an option, or an operand\n"
           "    if [[ ! $offer && $word == -* ]]; then\n"
           "        case ${COMP_WORDS[1]} in\n");
    for (const struct verb *const *verb = verbs; *verb; verb++) {
        printf("        %s) offer=\"--help", (*verb)->name);
        for_options(*verb, bash_name);
        printf("\" ;;\n");
    }
    printf("        esac\n"
           "    elif [[ ! $offer ]]; then\n"
           "        case ${COMP_WORDS[1]} in\n");
    for (const struct verb *const *verb = verbs; *verb; verb++)
        if (*choices(operand(*verb)))
            printf("        %s) offer=\"%s\" ;;\n", (*verb)->name,
                   choices(operand(*verb)));
    printf("        esac\n"
           "    fi\n"
           "    COMPREPLY=($(compgen -W \"$offer\" -- \"$word\"))\n"
           "}\n"
           "complete -o default -F _calyx calyx\n");
}

/* ---- zsh ---------------------------------------------------------------- */

static void zsh_value(const char *argument) {
    printf(":%s:", argument);
    if (*choices(argument))
        printf("(%s)", choices(argument));
    else if (is_file(argument))
        printf("_files");
    else
        printf(" ");
}

static void zsh_option(const struct verb *verb, const struct verb_option *o) {
    (void)verb;
    const char *const equals = o->argument ? "=" : "";
    printf(" \\\n            ");
    if (o->letter)
        printf("'*'{-%c%s,--%s%s}", o->letter, o->argument ? "+" : "", o->name,
               equals);
    else
        printf("'*--%s%s'", o->name, equals);
    printf("'[");
    print_gist(o->text);
    printf("]");
    if (o->argument) zsh_value(o->argument);
    printf("'");
}

static void zsh(void) {
    printf("#compdef calyx\n"
           "# Completion of calyx for zsh: calyx completion zsh >_calyx, in a\n"
           "# folder of fpath; or source <(calyx completion zsh)\n"
           "_calyx() {\n"
           "    local -a verbs=(\n");
    for (const struct verb *const *verb = verbs; *verb; verb++) {
        printf("        '%s:", (*verb)->name);
        print_gist((*verb)->summary);
        printf("'\n");
    }
    printf("    )\n"
           "    if ((CURRENT == 2)); then\n"
           "        _describe verb verbs\n"
           "        return\n"
           "    fi\n"
           "    shift words\n"
           "    ((CURRENT--))\n"
           "    case $words[1] in\n");
    for (const struct verb *const *verb = verbs; *verb; verb++) {
        printf("    %s)\n        _arguments -s -S \\\n"
               "            '(- *)'{-h,--help}'[show how to use it]'",
               (*verb)->name);
        for_options(*verb, zsh_option);
        if (takes_operands(*verb)) {
            const char *const words = choices(operand(*verb));
            printf(" \\\n            '*: :%s%s%s'", *words ? "(" : "",
                   *words ? words : "_files", *words ? ")" : "");
        }
        printf(" ;;\n");
    }
    printf("    esac\n"
           "}\n"
           "if [ \"$funcstack[1]\" = _calyx ]; then\n"
           "    _calyx \"$@\"\n"
           "else\n"
           "    compdef _calyx calyx\n"
           "fi\n");
}

/* ---- fish --------------------------------------------------------------- */

static void fish_option(const struct verb *verb, const struct verb_option *o) {
    printf("complete -c calyx -n '__fish_seen_subcommand_from %s' -l %s",
           verb->name, o->name);
    if (o->letter) printf(" -s %c", o->letter);
    if (o->argument && *choices(o->argument))
        printf(" -x -a '%s'", choices(o->argument));
    else if (o->argument)
        printf(is_file(o->argument) ? " -r -F" : " -x");
    printf(" -d '");
    print_gist(o->text);
    printf("'\n");
}

static void fish(void) {
    printf("# Completion of calyx for fish: calyx completion fish "
           ">~/.config/fish/completions/calyx.fish\n"
           "complete -c calyx -f\n"
           "complete -c calyx -n __fish_use_subcommand -l help -d 'list the "
           "verbs'\n"
           "complete -c calyx -n __fish_use_subcommand -l version -d 'show "
           "what is built in'\n");
    for (const struct verb *const *verb = verbs; *verb; verb++) {
        printf("complete -c calyx -n __fish_use_subcommand -a %s -d '",
               (*verb)->name);
        print_gist((*verb)->summary);
        printf("'\n");
        for_options(*verb, fish_option);
        if (!takes_operands(*verb)) continue;
        printf("complete -c calyx -n '__fish_seen_subcommand_from %s'",
               (*verb)->name);
        if (*choices(operand(*verb)))
            printf(" -a '%s'\n", choices(operand(*verb)));
        else
            printf(" -F\n");
    }
}

/* ---- The verb ----------------------------------------------------------- */

static const struct {
    const char *name;
    void (*print)(void);
} shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

static int run(int count, char **operands) {
    (void)count;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shells[i].name, operands[0]) == 0) {
            shells[i].print();
            return EXIT_YES;
        }
    fail("unknown shell '%s'; there are bash, zsh and fish", operands[0]);
}

const struct verb verb_completion = {
    .name = "completion",
    .summary = "print a script that completes verbs and options in a shell",
    .synopsis = "bash|zsh|fish",
    .prose = {"Prints a script that makes the Tab key complete verbs, options "
              "and their values after calyx. It is generated from the tables "
              "that parse the options, so it fits the calyx that printed it."},
    .examples =
        {{"source <(calyx completion bash)",
          "complete in this bash; put it into ~/.bashrc for all"},
         {"calyx completion zsh > ~/.zfunc/_calyx",
          "complete in zsh, where ~/.zfunc is in fpath"},
         {"calyx completion fish > ~/.config/fish/completions/calyx.fish",
          "complete in fish"}},
    .least = 1,
    .most = 1,
    .run = run,
};
