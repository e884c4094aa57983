# calyx add and calyx remove.

load common

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
    flowers
}

@test "add adds in place" {
    before=$(stat -c %i flowers.calyx)
    run_calyx add flowers.calyx <<<tulip
    is_status 0
    prints
    [ "$(stat -c %i flowers.calyx)" = "$before" ]
    run_calyx check -f flowers.calyx <<<tulip
    prints tulip
}

@test "add --new prints the fresh lines, each once" {
    printf '%s\n' rose tulip moss tulip >garden
    run_calyx add flowers.calyx --new garden
    is_status 0
    prints tulip moss
    run_calyx add --new flowers.calyx garden
    is_status 1
    prints
}

@test "add --new passes lines on as they come" {
    mkfifo lines
    "$CALYX" add flowers.calyx --new <lines >fresh 3>&- 5>&- &
    exec 5>lines
    for line in tulip moss; do
        echo $line >&5
        await grep -qx $line fresh
    done
    exec 5>&-
    wait
}

@test "a stream that is ended by a signal leaves a sound, sealed file" {
    for signal in INT TERM HUP; do
        rm -f fresh
        mkfifo lines
        # a shell's job in the background ignores SIGINT, and so does what it
        # starts; env undoes that
        env --default-signal=INT "$CALYX" add flowers.calyx --new <lines >fresh 3>&- 5>&- &
        pid=$!
        exec 5>lines
        echo "seen-$signal" >&5
        await grep -q . fresh
        kill -$signal $pid
        status=0
        wait $pid || status=$?
        exec 5>&-
        rm lines
        [ $status -eq $((128 + $(kill -l $signal))) ]
        run_calyx check -c -f flowers.calyx <<<"seen-$signal"
        prints 1
        # what is read whole is checked against its checksums, if it is sealed
        run_calyx check -c -f - fresh <flowers.calyx
        is_status 0
    done
}

@test "filters that grow, count or are packed are replaced as a whole" {
    needs gzip
    "$CALYX" build -n 10 --growth 2 -o grows.calyx /dev/null
    "$CALYX" build -n 1000 --kind counting -o counts.calyx /dev/null
    "$CALYX" build -n 1000 -o packed.calyx.gz /dev/null
    for filter in grows.calyx counts.calyx packed.calyx.gz; do
        run_calyx add $filter --new <<<rose
        is_status 0
        prints rose
        run_calyx check -f $filter <<<rose
        is_status 0
    done
    gzip -t packed.calyx.gz
    seq 1000 | "$CALYX" add grows.calyx
    seq 1000 | "$CALYX" check -vc -f grows.calyx >out || [ $? -eq 1 ]
    prints 0
}

@test "one process at a time changes a filter" {
    "$CALYX" build -n 1000 --kind counting -o counts.calyx /dev/null
    for filter in flowers.calyx counts.calyx; do
        rm -f fresh
        mkfifo lines
        "$CALYX" add $filter --new <lines >fresh 3>&- 5>&- &
        exec 5>lines
        echo x >&5
        await grep -q x fresh
        run_calyx add $filter <<<y
        fails_with "$filter: another process changes it now"
        exec 5>&-
        wait
        rm lines
    done
}

# The rate that a filter of 10 000 keys warns of, once it holds N, against the share of
# 200 000 absent keys that pass: within 3 %.
warns_truly() {
    local n=$1 filter=$2 passed said
    said=$(sed -n 's/.*expect a rate of \([0-9.]*\) % instead of .*/\1/p' err)
    passed=$(seq 1000001 1200000 | "$CALYX" check -c -f "$filter")
    awk -v said="$said" -v seen="$(echo "$passed" | awk '{print $1 / 2000}')" -v n="$n" '
        BEGIN { off = said / seen - 1; print n, said, seen
                exit !(said > 0 && off < 0.03 && off > -0.03) }' >&2
}

# bats test_tags=full
@test "an overfull filter warns of the rate that it has, up to ten times its capacity" {
    kinds=$(kinds_that ".can_intersect and .can_add")
    for kind in $kinds; do
        "$CALYX" build -n 10000 --kind $kind -o $kind.calyx /dev/null
        from=1
        for n in 15000 20000 30000 50000 100000; do
            run_calyx add $kind.calyx <(seq $from $n)
            warns_truly $n $kind.calyx
            holds=$(sed -n 's/.*holds about \([0-9 ]*\) keys.*/\1/p' err | tr -d ' ')
            [ $((holds * 20)) -gt $((n * 19)) ] && [ $((holds * 20)) -lt $((n * 21)) ]
            from=$((n + 1))
        done
    done
    seq 30000 | "$CALYX" build -n 10000 -o built.calyx 2>err
    warns_truly 30000 built.calyx
}

@test "a filter that gets too full is reported, a strict one lets none in" {
    "$CALYX" build -n 100 -o small.calyx /dev/null
    run_calyx add small.calyx <(seq 1000)
    is_status 0
    complains "small.calyx: holds about"
    complains "but was planned for 100: expect a rate of"
    "$CALYX" build -n 100 --strict -o strict.calyx /dev/null
    run_calyx add strict.calyx <(seq 1000)
    fails_with "the filter is full"
}

@test "add wants a filter that exists" {
    run_calyx add
    fails_with "missing FILTER: calyx add FILTER [FILE]..., or --server URL"
    run_calyx add nowhere.calyx <<<x
    fails_with "nowhere.calyx: there is no such file; 'calyx add --create' makes it"
    run_calyx add - <<<x
    fails_with "standard input cannot be changed"
    run_calyx remove nowhere.calyx <<<x
    fails_with "nowhere.calyx: there is no such file"
    ! grep -q "add --create" err
}

@test "a table with saturated buckets says which rate to expect" {
    seq 300 | awk '{ for (i = 0; i < 300; i++) print }' >copies
    run_calyx add --create -n 100 --growth 2 --kind bucket --seed 21 table.calyx copies
    is_status 0
    [ "$("$CALYX" check -c -f table.calyx copies)" = 90000 ]
    complains "table.calyx: chosen keys or many copies of keys saturated"
    complains "expect a rate of"
    run_calyx info table.calyx
    says "every key passes there"
}

@test "remove forgets, once for each time it was added" {
    printf '%s\n' rose rose iris | "$CALYX" build --kind counting -p 1e-8 -o counts.calyx
    run_calyx remove counts.calyx <<<rose
    is_status 0
    run_calyx check -f counts.calyx <<<rose
    is_status 0
    run_calyx remove counts.calyx <<<rose
    run_calyx check -f counts.calyx <<<rose
    is_status 1
    run_calyx check -f counts.calyx <<<iris
    is_status 0
    run_calyx remove counts.calyx <<<moss
    is_status 1
    run_calyx remove --absent counts.calyx <<<$'moss\niris'
    is_status 0
    prints moss
}

@test "remove wants a filter that counts" {
    run_calyx remove flowers.calyx <<<rose
    fails_with "flowers.calyx: keys cannot be removed from kind line; expected kind bucket or counting"
}

@test "closed standard streams do not become the filter that is changed" {
    printf 'a\tb\nc\n' >lines
    for closed in '2>&-' '>&- 2>&-' '<&- 2>&-' '<&- >&- 2>&-'; do
        rm flowers.calyx
        flowers
        if eval "\"\$CALYX\" add flowers.calyx --new -k 2 lines $closed"; then
            return 1
        fi
        run_calyx verify flowers.calyx
        is_status 0
    done
    run_calyx add flowers.calyx <&-
    fails_with "standard input: cannot read it: Bad file descriptor"
}

@test "a bucket filter of lines that come several times has each once" {
    for i in {1..10}; do seq 5000; done >many
    "$CALYX" build --kind bucket -o once.calyx <(seq 5000)
    "$CALYX" build --kind bucket -o many.calyx many
    cmp once.calyx many.calyx
    "$CALYX" build --kind bucket -n 5000 -o given.calyx many
    [ "$(seq 5000 | "$CALYX" check -c -f given.calyx)" = 5000 ]
    "$CALYX" remove many.calyx <(seq 4000)
    [ "$(seq 4001 5000 | "$CALYX" check -c -f many.calyx)" = 1000 ]
    [ "$(seq 4000 | "$CALYX" check -c -f many.calyx)" -lt 200 ]

    for i in {1..9}; do seq 300000; done >large # its lines could be estimated
    "$CALYX" build --kind bucket -o large.calyx large
    [ "$(seq 300000 | "$CALYX" check -c -f large.calyx)" = 300000 ]
    [ "$("$CALYX" info --json large.calyx | jq ".[0].capacity")" = 300000 ]
}

@test "a few lines that are added a hundred times leave room in a bucket filter that grows" {
    "$CALYX" build --kind bucket -n 100 --growth 2 -o often.calyx /dev/null
    for i in {1..100}; do seq 300; done | "$CALYX" add often.calyx
    seq 301 9000 | "$CALYX" add often.calyx
    for i in {1..20}; do seq 300; done | "$CALYX" remove often.calyx
    [ "$(seq 9000 | "$CALYX" check -c -f often.calyx)" = 9000 ]
    [ "$(python3 "$root/examples/read_filter.py" often.calyx {1..9000} | wc -l)" = 9000 ]
}

@test "a bucket filter that is full says what to do" {
    run_calyx build --kind bucket -n 300 -o small.calyx <(seq 9000)
    fails_with "the filter is full at 300 keys; give a larger --keys, or --growth"
}

@test "a bucket filter takes keys, gives them up and grows" {
    "$CALYX" build --kind bucket -n 1000 --growth 2 -o grown.calyx <(seq 900)
    seq 901 9000 | "$CALYX" add grown.calyx
    run_calyx check -f grown.calyx --count <(seq 9000)
    prints 9000
    run_calyx remove grown.calyx <(seq 1000)
    is_status 0
    run_calyx check -f grown.calyx --count <(seq 1001 9000)
    prints 8000
    [ "$("$CALYX" check -f grown.calyx --count <(seq 1000))" -lt 30 ]
    run_calyx merge -o both.calyx grown.calyx grown.calyx
    fails_with "filters of kind bucket cannot be combined: make one of all keys, or use kind counting"
    ! grep -q -e --fold err || false
}

@test "lines that come again take no room in a filter of distinct keys" {
    seq 900 | "$CALYX" build --kind distinct -n 100 --growth 2 -o days.calyx
    "$CALYX" info --json days.calyx >first
    for day in 1 2 3; do
        run_calyx add days.calyx <(seq 900 | shuf --random-source=<(yes $day))
        is_status 0
        quiet
    done
    "$CALYX" info --json days.calyx >last
    cmp <(jq '.[0] | .keys, .bytes, .rate' first) <(jq '.[0] | .keys, .bytes, .rate' last)
    jq -e '.[0] | .keys <= 900 and .keys > 880' last
    [ "$("$CALYX" check -c -f days.calyx <(seq 900))" -eq 900 ]
    [ "$("$CALYX" add --new days.calyx <(seq 900) | wc -l)" -eq 0 ]

    run_calyx remove days.calyx <<<1
    fails_with "days.calyx: keys cannot be removed from kind distinct; expected kind bucket or counting"
}

@test "what a bucket filter cannot do, it says, and what can" {
    seq 1000 | "$CALYX" build --kind bucket -o a.calyx
    seq 1000 | "$CALYX" build --kind bucket -o b.calyx
    run_calyx compare a.calyx b.calyx
    fails_with "cannot be compared: make one of all keys, or use kind counting"
    run_calyx merge --fold -o no.calyx a.calyx b.calyx
    fails_with "cannot be folded: make one of all keys, or use kind counting"
    run_calyx freeze -o no.calyx a.calyx
    fails_with "build a filter of kind line from the keys"
    run_calyx convert --to raw -o no.calyx a.calyx
    fails_with "a table of fingerprints, and the form is for bits"
    run_calyx add --at-most-once --new a.calyx <<<new
    fails_with "--at-most-once requires a filter that is changed in place"
    run_calyx info a.calyx
    says "% of the slots in use"
    [ ! -e no.calyx ]
}

@test "remove says which lines a bucket filter never had" {
    seq 1000 | "$CALYX" build --kind bucket -p 0.1% -o a.calyx
    seq 5001 6000 >never
    run_calyx remove --absent a.calyx never
    # a false positive is removed, in place of another key: 1 in 1000
    [ "$(wc -l <out)" -ge 985 ]
    [ "$(seq 1000 | "$CALYX" check -c -f a.calyx)" -ge 985 ]
}

@test "add to a full filter of fingerprints says what to do" {
    seq 1000 | "$CALYX" build --kind bucket -n 1000 -o full.calyx
    seq 1001 9000 >more
    run_calyx add full.calyx more
    fails_with "the filter is full: it has 1 "
    complains "was made for 1 000, and kind bucket has no room for more in a fixed size"
    complains "with --growth"
    run_calyx add full.calyx --new more
    fails_with "kind bucket has no room for more"
}
