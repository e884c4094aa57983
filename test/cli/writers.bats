# One file, one writer: locks, --wait, --create, files that are replaced.

load common

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
    seq 100 >keys
    "$CALYX" build -n 1000 -p 1e-8 -o line.calyx keys
    "$CALYX" build -n 1000 -p 1e-8 --kind counting -o counts.calyx keys
    "$CALYX" build -n 1000 -p 1e-8 --growth 2 --kind flat -o grows.calyx keys
}

# Start 'calyx add --new FILTER', which then holds the lock, until finish.
hold() {
    mkfifo lines
    rm -f fresh # of an earlier one
    "$CALYX" add --new "$1" <lines >fresh 2>held 3>&- 5>&- &
    holder=$!
    exec 5>lines
    echo held-first >&5
    await grep -qsx held-first fresh
}

# The status that it ended with.
finish() {
    [ -z "${1:-}" ] || echo "$1" >&5
    exec 5>&-
    status=0
    wait $holder || status=$?
    cp held err
    rm lines
}

# Is the file locked? To try the lock would be in the way of others.
is_locked() {
    grep -q "FLOCK .*:$(stat -c %i "$1") " /proc/locks
}

# Does process $1 sleep, which nothing but --wait does? By the number of the
# system call clock_nanosleep on x86-64 and on 64-bit ARM, or by its name.
is_waiting() {
    grep -qE '^(230|115) ' /proc/"$1"/syscall || grep -q nanosleep /proc/"$1"/wchan
}

@test "whoever would replace a filter that is being changed is refused" {
    "$CALYX" build -n 1000 -p 1e-8 -o other.calyx keys
    for filter in line.calyx counts.calyx grows.calyx; do
        hold $filter
        cp $filter before
        for words in "build --force -n 1000 -o $filter keys" \
            "merge --force -o $filter other.calyx other.calyx" \
            "freeze --force -o $filter counts.calyx" \
            "convert --to raw --force -o $filter other.calyx" \
            "add $filter keys" "remove $filter keys"; do
            run_calyx $words
            fails_with "$filter: another process changes it now"
        done
        cmp $filter before
        finish held-last
        is_status 0
        printf 'held-first\nheld-last\n' | "$CALYX" check -c -f $filter >out
        prints 2
    done
    ls -A >names
    ! grep -qx "\..*" names || false
}

@test "a filter that is being replaced cannot be changed meanwhile" {
    mkfifo lines
    "$CALYX" build --force -n 1000 -o line.calyx <lines 3>&- 5>&- &
    builder=$!
    exec 5>lines
    await is_locked line.calyx
    run_calyx add line.calyx <<<rose
    fails_with "line.calyx: another process changes it now"
    echo moss >&5
    exec 5>&-
    wait $builder
    run_calyx check -f line.calyx <<<moss
    is_status 0
}

# The first stops when its file is written, and has no name yet.
@test "of two runs that make the same file, the second replaces nothing" {
    for name in new.calyx new.calyx.gz; do
        traced -e trace=fsync --inject=fsync:signal=STOP:when=1 \
            "$CALYX" build -n 1000 -o $name keys 2>err 3>&- &
        tracer=$!
        until grep -qs "stopped by SIGSTOP" trace; do
            kill -0 $tracer # or it has ended without a stop
            sleep 0.02
        done
        echo rose | "$CALYX" build -n 1000 -p 1e-8 -o $name
        cp $name other
        kill -CONT "$(awk '/stopped by SIGSTOP/ { print $1; exit }' trace)"
        status=0
        wait $tracer || status=$?
        fails_with "$name: it has come to exist meanwhile; --force replaces it"
        cmp $name other
        rm trace
    done
    ls -A >names
    ! grep -qx "\..*" names || false
}

@test "add notices that its file was replaced or removed" {
    for filter in line.calyx counts.calyx grows.calyx; do
        cp $filter copy
        for change in "mv copy2 $filter" "rm $filter"; do
            cp copy $filter
            cp copy copy2
            hold $filter
            $change
            finish
            fails_with "$filter: another process replaced or removed the file"
            # nothing but what the other put there
            [ ! -e $filter ] || cmp $filter copy
        done
        rm -f copy2
        cp copy $filter
    done
}

@test "add --new stops at the first line after its file was replaced" {
    hold line.calyx
    cp line.calyx new
    mv new line.calyx
    echo late >&5
    # the stream is still open
    status=0
    wait $holder || status=$?
    exec 5>&-
    cp held err
    fails_with "line.calyx: another process replaced or removed the file"
    [ "$(cat fresh)" = held-first ]
    rm lines
}

@test "add --wait waits for the other, and adds to the file that is there then" {
    for filter in line.calyx counts.calyx; do
        hold $filter
        "$CALYX" add --wait $filter <<<waited 3>&- 5>&- &
        waiter=$!
        await is_waiting $waiter
        finish
        is_status 0
        wait $waiter
        printf 'held-first\nwaited\n' | "$CALYX" check -c -f $filter >out
        prints 2
        # the other may have replaced the file
        mkfifo lines
        "$CALYX" build --force -n 1000 -o $filter <lines 3>&- 5>&- &
        builder=$!
        exec 5>lines
        await is_locked $filter
        "$CALYX" add --wait=1h $filter <<<waited 3>&- 5>&- &
        waiter=$!
        await is_waiting $waiter
        echo built >&5
        exec 5>&-
        wait $builder
        wait $waiter
        rm lines
        printf 'built\nwaited\n' | "$CALYX" check -c -f $filter >out
        prints 2
    done
}

@test "remove --wait waits, too" {
    hold counts.calyx
    "$CALYX" remove --wait counts.calyx <<<7 3>&- 5>&- &
    waiter=$!
    await is_waiting $waiter
    finish
    wait $waiter
    run_calyx check -f counts.calyx <<<7
    is_status 1
}

@test "--wait has an end, by its time or by a signal" {
    hold line.calyx
    run_calyx add --wait=10ms line.calyx <<<x
    fails_with "line.calyx: another process changes it now"
    env --default-signal=INT "$CALYX" add --wait line.calyx keys 3>&- 5>&- &
    waiter=$!
    await is_waiting $waiter
    kill -INT $waiter
    status=0
    wait $waiter || status=$?
    is_status 130
    finish
    is_status 0
    run_calyx add --wait=soon line.calyx <<<x
    fails_with "--wait: expected a time such as 10s, 5min or 1h, found 'soon'"
}

@test "add --create makes the file, as build would" {
    run_calyx add --create -n 1000 -p 1e-8 new.calyx keys
    is_status 0
    "$CALYX" info --json new.calyx line.calyx | jq '.[] | del(.file)' -c | uniq >infos
    [ "$(wc -l <infos)" = 1 ]
    run_calyx check -c -f new.calyx keys
    prints 100
    run_calyx add --create -n 5 new.calyx <<<rose
    is_status 0
    run_calyx info --json new.calyx
    [ "$(jq '.[0].capacity, .[0].keys' out | xargs)" = "1000 101" ]
    run_calyx add --create --new -n 10 --growth 2 --comment hello new2.calyx <<<rose
    prints rose
    run_calyx info new2.calyx
    says "grows by 2"
    says hello
    ! grep -q "seed 0$" out || false
    run_calyx add --create -n 10 --growth 2 --seed 0 new3.calyx <<<rose
    run_calyx info new3.calyx
    says "seed 0"
    run_calyx add --create --memory 1K -p 1% --kind counting counting.calyx <<<rose
    is_status 0
    run_calyx remove counting.calyx <<<rose
    is_status 0
    ls -A >names
    ! grep -qx '\..*' names || false
}

@test "add --create without a number of keys makes a filter that grows" {
    run_calyx add --create --new grown.calyx <(seq 50000)
    is_status 0
    quiet
    "$CALYX" add --create grown.calyx <(seq 40000 100000)
    "$CALYX" verify --absent 100000 --against <(seq 100000) grown.calyx
    [ "$("$CALYX" info --json grown.calyx | jq -r '.[0].kind')" = distinct ]
    run_calyx add --create --kind bucket -p 0.1% bucket.calyx <(seq 5000)
    is_status 0
    run_calyx info bucket.calyx
    says "grows by 2"
    run_calyx add --create --new --at-most-once once.calyx keys
    fails_with "once.calyx: --at-most-once requires a filter that is changed in place"
}

@test "add --create makes a packed file, too" {
    needs gzip
    run_calyx add --create -n 1000 new.calyx.gz keys
    is_status 0
    gzip -t new.calyx.gz
    run_calyx check -c -f new.calyx.gz keys
    prints 100
}

@test "add --create says what it lacks, and makes nothing" {
    ls -A >before
    for words in --strict "--memory 1K" "--probes 3"; do
        run_calyx add --create $words new.calyx keys
        fails_with "--create: missing --keys"
    done
    run_calyx add --create --kind ribbon new.calyx keys
    is_status 2
    run_calyx add -n 100 line.calyx keys
    fails_with "--keys, --rate and other options of a new filter go with --create"
    run_calyx add --create -n 100 nowhere/new.calyx keys
    fails_with "nowhere/"
    ln -s dangling link.calyx
    run_calyx add --create -n 100 link.calyx keys
    is_status 2
    rm link.calyx
    rm out err
    ls -A >after
    diff <(grep -vxE 'out|err|before|after' before) <(grep -vxE 'out|err|before|after' after)
}

@test "processes that create one file at once lose no key" {
    for round in 1 2 3 4 5; do
        rm -f raced.calyx
        adders=
        for i in 1 2 3 4; do
            "$CALYX" add --create -n 1000 -p 1e-8 --wait raced.calyx <<<"key-$i" 3>&- &
            adders+=" $!"
        done
        for adder in $adders; do wait $adder; done
        printf 'key-%d\n' 1 2 3 4 | "$CALYX" check -c -f raced.calyx >out
        prints 4
    done
    ls -A >names
    ! grep -qx '\..*' names || false
}
