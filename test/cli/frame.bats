# The frame of the command: help, manual pages, versions, and what is said of
# verbs and options that do not exist.

load common

verbs() {
    ls "$root"/tool/*/verb_*.c | sed 's/.*verb_//; s/\.c$//'
}

@test "without a verb it shows the overview and exits 2" {
    run_calyx
    is_status 2
    says "Usage: calyx VERB"
    complains "missing verb: calyx VERB"
}

@test "the overview fits on one screen, and says what this is" {
    run_calyx --help
    is_status 0
    [ "$(wc -l <out)" -lt 24 ]
    [ "$(wc -L <out)" -le 80 ]
    says "Bloom filters"
    [ "$(grep -c '^  calyx \|| calyx ' out)" -eq 3 ]
    run_calyx help --man
    grep -A1 '^\.SH NAME' out | grep -q "Bloom filters"
}

@test "help lists every verb, and every verb has help" {
    run_calyx help all
    is_status 0
    [ "$(wc -L <out)" -le 80 ]
    for verb in $(verbs); do
        says "  $verb "
    done
    for verb in $(verbs); do
        run_calyx help "$verb"
        is_status 0
        says "Usage: calyx $verb"
        says "Exit status:"
    done
}

@test "help of a verb begins with common options and examples; all options are there once" {
    for verb in build check add dedup common minus plan push; do
        run_calyx help "$verb"
        sed '/^More:$/,$d' out >first
        grep -q '^Common options:$' first && grep -q '^Examples:$' first
        [ "$(wc -l <first)" -le 65 ]
        grep -oE '^ {2,6}(-., )?--[a-z0-9-]+' out | sort >shown
        sort -u shown | cmp - shown
        run_calyx help --man "$verb"
        [ "$(grep -c '^\(\\fB\\-.\\fR, \)\?\\fB\\-\\-' out)" = "$(wc -l <shown)" ]
    done
}

@test "VERB --help and VERB -h say what help VERB says" {
    run_calyx help help
    cp out wanted
    for option in --help -h; do
        run_calyx help $option
        is_status 0
        cmp out wanted
    done
}

@test "help never differs from the manual page" {
    # Every word of the help is in the page; the page is taken out of roff by
    # dropping its marks.
    for verb in $(verbs); do
        run_calyx help --man "$verb"
        is_status 0
        says ".TH calyx-$verb 1"
        sed 's/\\f[BIR]//g; s/\\-/-/g; s/\\e/\\/g; s/\\&//g' out |
            tr -s ' \n' '\n\n' | tr A-Z a-z | sort -u >page
        run_calyx help "$verb"
        sed 's/^[A-Z][a-z ]*:$//; s/^Usage: //; s/^calyx [a-z]*: //' out |
            tr -s ' \n' '\n\n' | tr A-Z a-z | sort -u >help
        comm -23 help page >missing
        [ ! -s missing ] || { cat missing >&2; false; }
    done
}

@test "--version prints the version and what is built in" {
    run_calyx --version
    is_status 0
    says "calyx $(sed -n 's/^#define CALYX_VERSION_[A-Z]* //p' \
        "$root/include/calyx/calyx.h" | paste -sd .)"
    says "kinds: line"
}

@test "an unknown verb gets a suggestion" {
    run_calyx hepl
    fails_with "calyx: unknown verb 'hepl'; did you mean 'help'?"
    run_calyx frobnicate
    fails_with "calyx: unknown verb 'frobnicate'; 'calyx help all' lists"
}

@test "an unknown option gets a suggestion" {
    run_calyx help --mna
    fails_with "calyx help: unknown option --mna; did you mean --man?"
    run_calyx help -x
    fails_with "calyx help: unknown option -x; see 'calyx help help'"
    run_calyx --frob
    fails_with "unknown option '--frob' before the verb"
}

@test "names of options may be cut short, unless two begin so" {
    run_calyx plan --keys 1000 --rat 1%
    is_status 0
    run_calyx plan --ke 1000
    fails_with "option --ke could be --keys or --key-bytes"
}

@test "verbs that other programs have lead to ours" {
    for pair in uniq:dedup grep:check subtract:minus; do
        run_calyx ${pair%:*} file
        fails_with "here it is 'calyx ${pair#*:}'"
    done
}

@test "a value for an option that takes none is refused" {
    run_calyx help --man=yes
    fails_with "unexpected value: --man takes none, found 'yes'"
}

@test "an unexpected operand is named" {
    run_calyx help help again
    fails_with "unexpected operand 'again': calyx help [--man] [all | VERB]"
}

@test "output that cannot be written is trouble" {
    for words in help "help build" "build --help" --help --version; do
        run sh -c "\"\$CALYX\" $words >/dev/full"
        [ "$status" -eq 2 ]
        [[ $output == *"cannot write"*"No space left"* ]]
    done
}

@test "no file name makes a message obey it" {
    run_calyx info $'no\e]52;c;eA==\a\x7f\xc2\x9b1m\r\xc3\xbc'
    fails_with $'no\\x1b]52;c;eA==\\x07\\x7f\xc2\\x9b1m\\x0d\xc3\xbc: cannot open it'
    [ "$(wc -l <err)" -eq 1 ]
}
