# The options for keys travel with the filter.

load common

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
    printf '%s\n' 'Rose,1' 'iris,2' '"a, b",3' >list.csv
    printf '%s\n' 'ROSE,9' 'Moss,9' '"A, B",9' >other.csv
}

@test "check, add, verify, remove and minus go by what the filter was built with" {
    "$CALYX" build -p 1e-8 --kind counting -i --csv -k 1 -o f.calyx list.csv
    run_calyx check -f f.calyx other.csv
    prints 'ROSE,9' '"A, B",9'
    quiet
    run_calyx minus other.csv f.calyx
    prints 'Moss,9'
    run_calyx verify --absent 1000 --against other.csv f.calyx
    fails_with "1 keys of the list are not in it"
    run_calyx verify --absent 1000 --against list.csv f.calyx
    is_status 0
    run_calyx add f.calyx --new other.csv
    prints 'Moss,9'
    run_calyx verify --absent 1000 --against other.csv f.calyx
    is_status 0
    printf 'moss,5\n' | "$CALYX" remove f.calyx
    run_calyx check -vf f.calyx other.csv
    prints 'Moss,9'
}

@test "add --create stores the options for keys" {
    "$CALYX" add --create -n 100 -p 1e-8 -i --csv -k 1 f.calyx list.csv
    run_calyx check -f f.calyx other.csv
    prints 'ROSE,9' '"A, B",9'
    run_calyx add --create -n 100 f.calyx other.csv # the options of the filter
    quiet
    run_calyx check -vc -f f.calyx other.csv
    prints 0
}

@test "each option comes back as it was given" {
    printf 'a:B:c\0d:E:f\0' >zero
    printf 'a\001B\n' >odd
    printf '1,"a, b ""c\\"\n2,x\n' >names.csv
    printf '{"a": {"b": 1}, "c": 2}\n' >list.jsonl
    while IFS='|' read -r options file text; do
        eval "run_calyx build --force -o f.calyx $options $file"
        is_status 0
        run_calyx info f.calyx
        says "  keyed by  $text"
        run_calyx info --json f.calyx
        [ "$(python3 -c 'import json; print(json.load(open("out"))[0]["key_options"])')" = "$text" ]
        run_calyx check -vc -f f.calyx $file # all are found
        is_status 1
        quiet
        prints 0
        eval "run_calyx check -vc $options -f f.calyx $file"
        is_status 1
        quiet
    done <<'ROWS'
-i|list.csv|-i
-z -k 2 -t :|zero|-z -t : -k 2
-0ik 1,3 -t:|zero|-z -i -t : -k 1,3
--crlf|list.csv|--crlf
--csv -k 2-|list.csv|--csv -k 2-
--csv -t , -k -1|list.csv|--csv -k -1
--csv -k -2--1,1|list.csv|--csv -k -2-,1
-t , -k 1|list.csv|-t , -k 1
-t $'\x01' -k 1-2|odd|-t \x01 -k 1-2
-t ' ' -k 1|list.csv|-t \x20 -k 1
-t '\' -k 1|list.csv|-t \x5c -k 1
-t ', ' -k 1|list.csv|-t ,\x20 -k 1
--trim --blanks -k 1|list.csv|--trim --blanks -k 1
--csv --header -k Rose,1|list.csv|--header --csv -k "Rose",1
--csv --header -k '"a, b \"c\\"'|names.csv|--header --csv -k "a,\x20b\x20\"c\\"
--jsonl a.b --jsonl c|list.jsonl|--jsonl "a.b" --jsonl "c"
ROWS
    run_calyx build --force -o f.calyx list.csv
    run_calyx info f.calyx
    ! grep -q "keyed by" out || false
}

@test "packed filters and merged ones keep their options" {
    needs gzip
    "$CALYX" build -n 100 -i -o a.calyx list.csv
    gzip -k a.calyx
    "$CALYX" merge -o both.calyx a.calyx a.calyx
    "$CALYX" build -n 100 --kind counting -i -o counting.calyx list.csv
    "$CALYX" freeze -o frozen.calyx counting.calyx
    "$CALYX" build -n 100 -i -o - list.csv >piped
    for file in a.calyx.gz both.calyx frozen.calyx piped; do
        echo ROSE,1 | "$CALYX" check -q -f $file
    done
}

@test "other options are obeyed, and it is said if they may miss keys" {
    "$CALYX" build -p 1e-8 --crlf -o crlf.calyx list.csv
    run_calyx check --whole-line -f crlf.calyx list.csv
    prints 'Rose,1' 'iris,2' '"a, b",3'
    complains "crlf.calyx was built with --crlf; going by --whole-line, as given"
    [ "$(wc -l <err)" -eq 1 ]
    "$CALYX" build -p 1e-8 -o whole.calyx <(printf '%s\n' Rose iris)
    run_calyx check -k 1,2 -t , -f whole.calyx list.csv
    complains "whole.calyx was built with no options for keys; going by -t , -k 1,2, as given"
    # a list may have another form than the one that the filter was built of
    run_calyx check -k 1 --csv -f whole.calyx list.csv
    prints 'Rose,1' 'iris,2'
    quiet
    "$CALYX" build -p 1e-8 --csv -k 1 -o field.calyx list.csv
    run_calyx check --csv -k 2 -f field.calyx list.csv
    complains "field.calyx was built with --csv -k 1; going by --csv -k 2, as given"
    printf '%s\n' Rose moss >lines
    run_calyx check --whole-line -f field.calyx lines
    prints Rose
}

@test "-i and --trim must be the options of the filter, in every verb that looks up or adds keys" {
    printf '%s\n' Rose iris >keys
    "$CALYX" build -p 1e-6 --kind bucket -o plain.calyx keys
    "$CALYX" build -p 1e-6 --kind bucket -i --trim -o changed.calyx keys
    cp plain.calyx plain && cp changed.calyx changed
    for verb in "check keys -f" "verify --against keys" add "add --new" remove allow "minus keys"; do
        run_calyx $verb plain.calyx -i
        fails_with "plain.calyx: it was built without -i, and with it keys with capital letters would not be found; leave out -i, or build the filter with it"
        run_calyx $verb plain.calyx --trim
        fails_with "plain.calyx: it was built without --trim, and with it keys with white space at their ends would not be found"
        run_calyx $verb changed.calyx --trim
        fails_with "changed.calyx: it was built with -i, and without it keys with capital letters would not be found; give -i, too"
        run_calyx $verb changed.calyx -i -k 1
        fails_with "changed.calyx: it was built with --trim"
        ! grep -q . out || [[ $verb == verify* ]]
    done
    cmp plain plain.calyx
    cmp changed changed.calyx
    run_calyx check --whole-line -i --trim -f changed.calyx <<<' ROSE '
    prints ' ROSE '
    quiet
}

@test "a line without the field that the filter was built with says what to do" {
    "$CALYX" build -t , -k 2 -o f.calyx list.csv
    echo rose | { run_calyx check -f f.calyx; is_status 2; }
    complains "standard input:1: missing field 2: found 1 field; the filter was built with -t , -k 2: other options for keys, or --whole-line, replace that"
}

@test "several filters must agree, unless options are given" {
    "$CALYX" build -p 1e-8 -i -o a.calyx list.csv
    "$CALYX" build -p 1e-8 -o b.calyx list.csv
    "$CALYX" build -p 1e-8 -i -o c.calyx other.csv
    run_calyx check -f a.calyx -f b.calyx list.csv
    fails_with "a.calyx was built with -i, and b.calyx with no options for keys: query them one by one"
    ! grep -q "or give" err || false
    "$CALYX" build -p 1e-8 --crlf -o crlf.calyx list.csv
    run_calyx check -f crlf.calyx -f b.calyx list.csv
    fails_with "crlf.calyx was built with --crlf, and b.calyx with no options for keys: query them one by one, or give the options for keys to go by, or --whole-line"
    run_calyx check -f a.calyx --except b.calyx list.csv
    is_status 2
    run_calyx minus list.csv a.calyx b.calyx
    fails_with "a.calyx was built with -i, and b.calyx with no options for keys"
    run_calyx check -i -f a.calyx -f b.calyx list.csv
    fails_with "b.calyx: it was built without -i"
    run_calyx check -c -f a.calyx -f c.calyx other.csv
    is_status 0
    quiet
    prints 3
    run_calyx merge -o d.calyx a.calyx b.calyx
    fails_with "a.calyx was built with -i, and b.calyx with no options for keys: no lookup would find the keys of both"
    [ ! -e d.calyx ]
    run_calyx merge -o d.calyx b.calyx crlf.calyx
    is_status 0
    complains "b.calyx was built with no options for keys, and crlf.calyx with --crlf; the result says no options for keys"
}

# bats test_tags=full
@test "options that this calyx does not know are refused, unless others are given" {
    "$CALYX" build -p 1e-8 -i -o f.calyx list.csv
    # set the property by the library, as a later version would
    cat >set.c <<'C'
#include <calyx/calyx.h>
int main(int n, char **words) {
    calyx_filter *f;
    return n != 3 || calyx_load(words[1], 0, &f, 0) ||
           calyx_set_property(f, "key-options", words[2], 0) ||
           calyx_save(f, words[1], 0);
}
C
    libraries="-lm -lpthread"
    ! is_sanitized || libraries="$libraries -fsanitize=address,undefined"
    cc -I"$root/include" set.c -o set "$(dirname "$CALYX")/libcalyx.a" $libraries
    for text in --unicode "-i " " -i" "-i -i" "-k 0" "-k" "-t" "-t ab" "-t \\x" "-k 2,,3" "-i -z"; do
        ./set f.calyx "$text"
        run_calyx check -f f.calyx list.csv
        fails_with "f.calyx: the options for keys that it was built with are not known to this calyx"
    done
    run_calyx check -i -f f.calyx list.csv
    is_status 0
}
