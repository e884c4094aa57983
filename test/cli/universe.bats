# Exact filters: build --exact, verify --universe, and all that is done with
# them.

load common

lists() {
    seq 100000 >all
    seq 7 97 100000 >in
}

@test "an exact filter has its lines and no other line of the universe" {
    lists
    "$CALYX" build --exact --universe all -o f.calyx in
    "$CALYX" check -f f.calyx all >out
    cmp in out
    run_calyx verify --universe all --included in f.calyx
    grep -q "no answer is wrong" out
    "$CALYX" minus all f.calyx >out
    grep -vxFf in all | cmp - out
    bytes=$("$CALYX" info --json f.calyx | jq '.[0].bytes')
    [ "$bytes" -le 1700 ] # the least is 1.04 kB, and some for few keys
}

@test "order, threads, memory, packing and pipes make no difference" {
    lists
    "$CALYX" build --exact --universe all -o a.calyx in
    gzip -k all
    tac in >backwards
    "$CALYX" build --exact --universe all.gz -j 4 -o b.calyx backwards
    cat in in | "$CALYX" build --exact --universe all --universe all -S 256KiB -o c.calyx
    tac all | "$CALYX" build --exact --universe - -j 1 -o d.calyx in
    for file in b c d; do
        cmp a.calyx $file.calyx
    done
}

@test "keys outside of the universe are named, counted and refused, or join it" {
    lists
    (cat in; echo tulip; seq 200001 200020) >more
    run_calyx build --exact --universe all -o f.calyx more
    fails_with "21 of the included keys are not in the universe"
    complains "not in the universe: tulip"
    [ "$(grep -c 200015 err)" = 0 ]
    [ ! -e f.calyx ]
    "$CALYX" build --exact --force-include --universe all -o f.calyx more
    (cat all more) >larger
    run_calyx verify --universe larger --included more f.calyx
    grep -q "no answer is wrong" out
    run_calyx verify --universe all --included more f.calyx
    fails_with "21 of the included keys are not in the universe"
    run_calyx verify --universe all --included all f.calyx
    fails_with "98969 of 100000 answers are wrong"
}

@test "keys may be fields, and both lists have the same form" {
    seq 5000 | awk '{print $1 ",x" $1}' >all.csv
    awk 'NR % 10 == 3' all.csv >in.csv
    (echo a,b; cat all.csv) >all
    (echo a,b; cat in.csv) >in
    "$CALYX" build --csv --header -k b --exact --universe all -o f.calyx in
    run_calyx check -c -f f.calyx all
    prints 500
    run_calyx verify --universe all --included in f.calyx
    grep -q "no answer is wrong" out
}

@test "options that do not fit are refused" {
    lists
    run_calyx build --exact -o f.calyx in
    fails_with "--exact needs --universe"
    run_calyx build --universe all -o f.calyx in
    fails_with "--universe needs --exact"
    run_calyx build --force-include -o f.calyx in
    fails_with "--force-include goes with --exact"
    run_calyx build --exact --universe all --kind line -o f.calyx in
    fails_with "of kind ribbon, not line"
    run_calyx build --exact --universe all --part 1/2 -n 5 -o f.part in
    fails_with "it takes no --keys"
    run_calyx build --exact --universe all -S 64KiB -o f.calyx all
    fails_with "give more"
    run_calyx plan -n 10 --universe 5
    fails_with "which are among them"
}

@test "plan says size and rate, and build keeps to them" {
    lists
    run_calyx plan -n 1031 --universe 100000
    grep -q "exact filter  *1.66 kB" out
    grep -q "0.781 % of the keys outside of the universe pass" out
    "$CALYX" build --exact --universe all -p 0.1% -o f.calyx in
    run_calyx info f.calyx
    grep -q "exact for the 100 000 of its universe" out
    grep -q "0.0977 % of other keys pass" out
    run_calyx verify --universe all --included in f.calyx
    grep -q "no answer is wrong" out
}

@test "an update makes a small change, and is exact for the new lists" {
    lists
    "$CALYX" build --exact --universe all -o 0.calyx in
    for day in 1 2 3; do
        (tail -n +6 in; seq $((day * 9 + 1)) 1000 4000) | sort -un >next
        mv next in
        seq $((100000 + 10 * day)) >all
        "$CALYX" build --exact --universe all --update $((day - 1)).calyx -o $day.calyx in
        run_calyx verify --universe all --included in $day.calyx
        grep -q "no answer is wrong" out
        "$CALYX" diff -o $day.change $((day - 1)).calyx $day.calyx
        [ "$(stat -c %s $day.change)" -le 600 ]
        "$CALYX" patch -o client.calyx --force $((day - 1)).calyx $day.change
        cmp client.calyx $day.calyx
    done
    "$CALYX" check -f 3.calyx all | cmp - in
    run_calyx info 3.calyx
    grep -q "exact for the 100 030" out
}

@test "an update of another filter, or with other options, is refused" {
    lists
    "$CALYX" build -o plain.calyx in
    "$CALYX" build --exact --universe all -o f.calyx in
    run_calyx build --exact --universe all --update plain.calyx -o g.calyx in
    fails_with "it is not exact"
    run_calyx build --exact --universe all --update f.calyx --seed 5 -o g.calyx in
    fails_with "takes the hash and the seed of f.calyx"
    run_calyx build --update f.calyx -o g.calyx in
    fails_with "--update goes with --exact"
    run_calyx build --exact --universe all --update f.calyx -o g.calyx all
    fails_with "build another filter"
}

@test "standard input is one list, and lists may be empty" {
    lists
    for words in "build --force-include --exact --universe - -o f.calyx" \
        "build --force-include --exact --universe - -o f.calyx -" \
        "verify --universe - --included - g.calyx"; do
        [ -e g.calyx ] || "$CALYX" build --exact --universe all -o g.calyx in
        # shellcheck disable=SC2086
        run_calyx $words <all
        fails_with "standard input is named 2 times"
    done
    [ ! -e f.calyx ]
    "$CALYX" build --exact --universe all -o none.calyx /dev/null
    run_calyx check -c -f none.calyx all
    is_status 1
    run_calyx info none.calyx
    grep -q "exact for the 100 000" out
    ! grep -qw inf out
}
