# Filters of filters: calyx merge, compare and freeze.

load common

make() {
    seq 1000 >a.txt
    seq 501 1500 >b.txt
    seq 1401 1600 >c.txt
    for name in a b c; do
        "$CALYX" build -n 2000 "$@" -o $name $name.txt
    done
}

# ---- merge ------------------------------------------------------------------

@test "merge makes the filter that one build of all would have made" {
    make
    run_calyx merge -o m a b c
    is_status 0
    quiet
    "$CALYX" build -n 2000 -o whole a.txt b.txt c.txt
    [ "$("$CALYX" check -c -f m a.txt b.txt c.txt)" -eq 2200 ]
    for f in m whole; do
        "$CALYX" convert --to raw $f >$f.raw
    done
    cmp m.raw whole.raw
}

@test "merge --intersect keeps what all have" {
    make
    run_calyx merge --intersect -o m a b
    is_status 0
    seq 501 1000 >both
    [ "$("$CALYX" check -c -f m both)" -eq 500 ]
    [ "$("$CALYX" check -c -f m c.txt)" -lt 20 ]
}

@test "merge writes to standard output, and packs by name" {
    needs zstd
    make
    "$CALYX" merge -o m a b
    "$CALYX" merge a b | "$CALYX" info --json - | jq -e '.[0].keys > 1400'
    "$CALYX" merge -o m.zst a b
    [ "$(zstd -dc m.zst | "$CALYX" check -c -f - a.txt)" -eq 1000 ]
}

@test "merge replaces only with --force, even one of its own" {
    make
    run_calyx merge -o a a b
    fails_with "calyx merge: a: exists already; --force replaces it"
    run_calyx merge --force -o a a b
    is_status 0
    [ "$("$CALYX" check -c -f a b.txt)" -eq 1000 ]
}

@test "merge names the files that do not fit, and leaves nothing" {
    make
    "$CALYX" build -n 3000 -o larger a.txt
    run_calyx merge -o m a larger
    fails_with "calyx merge: a and larger: "
    [ ! -e m ]
    run_calyx merge -o m a
    fails_with "missing operand: expected 2 or more, found 1: calyx merge"
    run_calyx merge -o m a nothing
    fails_with "nothing: cannot open it"
    "$CALYX" add --create --seed 1 one.calyx a.txt
    "$CALYX" add --create --seed 2 two.calyx a.txt
    run_calyx merge -o m one.calyx two.calyx
    fails_with "one.calyx and two.calyx: their seeds differ"
    ! grep -q -e --fold err
    run_calyx merge --fold -o m one.calyx two.calyx
    fails_with "one.calyx and two.calyx: "
    [ "$(ls -A | grep -c new)" -eq 0 ]
}

@test "filters of distinct keys merge, whatever they have grown to" {
    seq 300 >few && seq 200 20000 >many
    for name in few many; do
        "$CALYX" build --kind distinct -n 100 --growth 2 -o $name.calyx $name
    done
    for files in "few.calyx many.calyx" "many.calyx few.calyx"; do
        run_calyx merge --force -o m $files
        is_status 0
        quiet
        [ "$("$CALYX" check -c -f m few many)" -eq 20101 ]
        "$CALYX" info --json m | jq -e '.[0].kind == "distinct" and .[0].keys > 19700 and .[0].keys <= 20000'
    done
    # What was merged goes on as one that was never two.
    "$CALYX" add m <(seq 30000)
    [ "$("$CALYX" check -c -f m <(seq 30000))" -eq 30000 ]

    for words in "merge --intersect -o no" compare; do
        run_calyx $words few.calyx many.calyx
        fails_with "few.calyx and many.calyx: filters of kind distinct cannot be "
    done
    "$CALYX" build --kind distinct -n 200 --growth 2 -o other.calyx few
    run_calyx merge -o no few.calyx other.calyx
    fails_with "few.calyx and other.calyx: "
    [ ! -e no ]
}

@test "filters of distinct keys that have no room for each other say so" {
    for i in 1 2; do
        "$CALYX" build --kind distinct -n 1000 -o $i.calyx <(seq ${i}001 $((i + 1))000)
    done
    run_calyx merge -o no 1.calyx 2.calyx
    fails_with "1.calyx and 2.calyx: the keys of both have no room in a filter of this size; build them with --growth, or with a larger --keys"
    [ ! -e no ]
}

# ---- compare ----------------------------------------------------------------

@test "compare estimates union, intersection and Jaccard index" {
    make
    run_calyx compare --json a b
    is_status 0
    quiet
    python3 -m json.tool out >/dev/null
    jq -e '.a == "a" and .b == "b" and
        (.keys_a > 950 and .keys_a < 1050) and
        (.either > 1430 and .either < 1570) and
        (.both > 430 and .both < 570) and
        (.only_a > 430 and .only_a < 570) and
        (.only_b > 430 and .only_b < 570) and
        (.jaccard > 0.29 and .jaccard < 0.38)' out
    run_calyx compare a b
    is_status 0
    for row in a b either both "only a" "only b" Jaccard; do
        grep -q "^$row  *[0-9]" out
    done
}

@test "compare of a filter with itself is 1" {
    make
    run_calyx compare a a
    is_status 0
    grep -q '^Jaccard  *1.0000' out
}

@test "compare refuses what does not fit" {
    make
    "$CALYX" build -n 2000 --seed 1 -o seeded a.txt
    run_calyx compare a seeded
    fails_with "calyx compare: a and seeded: "
    run_calyx compare a b c
    fails_with "unexpected operand 'c'"
}

# ---- freeze -----------------------------------------------------------------

@test "freeze makes a line filter a fifth of the size, with the same answers" {
    make --kind counting
    run_calyx freeze -o frozen a
    is_status 0
    quiet
    "$CALYX" info --json a frozen |
        jq -e '.[1].kind == "line" and (.[0].bytes / .[1].bytes | 5 <= . and . < 5.1)'
    for f in a frozen; do
        seq 100000 | "$CALYX" check -f $f >answers.$f
    done
    cmp answers.a answers.frozen
}

@test "freeze refuses other kinds, and files that exist" {
    make
    run_calyx freeze -o frozen a
    fails_with "calyx freeze: a: only counting filters can be frozen"
    [ ! -e frozen ]
    "$CALYX" build --kind counting -n 100 -o counting a.txt 2>/dev/null
    run_calyx freeze -o b counting
    fails_with "b: exists already"
    run_calyx freeze --force -o b counting
    is_status 0
}

@test "nothing is written to a terminal" {
    make --kind counting
    for command in "freeze a" "merge a b" "convert --to raw a"; do
        run script -qec "'$CALYX' $command" /dev/null
        [ "$status" -eq 2 ]
        [[ $output == *"standard output is a terminal"* ]]
    done
}

# ---- merge --fold -------------------------------------------------------------

@test "merge --fold takes filters of different sizes, and loses no key" {
    seq 1000 >a.txt
    seq 5001 9000 >b.txt
    seq 20000 20300 >c.txt
    for name in a b c; do "$CALYX" build -p 1e-3 --probes 10 -o $name $name.txt; done
    run_calyx merge -o m a b
    fails_with "or --fold them to one size"
    for order in "a b c" "c b a" "b a c"; do
        run_calyx merge --force --fold -o m $order
        is_status 0
        complains "m: holds about "
        complains "expect a rate of"
        [ "$("$CALYX" check -c -f m a.txt b.txt c.txt)" -eq 5301 ]
        [ "$(stat -c %s m)" -eq "$(stat -c %s c)" ]
    done
    "$CALYX" build -n 100000 -p 1e-3 --probes 10 -o large a.txt
    "$CALYX" build -n 10000 -p 1e-3 --probes 10 -o small c.txt
    run_calyx merge --fold -o both large small
    quiet
    [ "$("$CALYX" check -c -f both a.txt c.txt)" -eq 1301 ]
    [ "$(seq 100001 200000 | "$CALYX" check -c -f both)" -lt 200 ]
}

@test "merge --fold names what it cannot fold" {
    seq 1000 >a.txt
    "$CALYX" build -n 1000 -p 1e-3 -o a a.txt
    "$CALYX" build -n 500 -p 1e-6 -o rate a.txt
    run_calyx merge --fold -o m a rate
    fails_with "probes"
    complains "query both: calyx check -f A -f B"
    "$CALYX" build --kind counting -n 1100 -o c1 a.txt
    "$CALYX" build --kind counting -n 500 -o c2 a.txt
    run_calyx merge --fold -o m c1 c2
    fails_with "counted twice"
    [ ! -e m ]
}

@test "compare of empty filters says 0, not -0" {
    "$CALYX" build -n 100 -o a /dev/null
    run_calyx compare --json a a
    ! grep -q -- "-0" out || false
}
