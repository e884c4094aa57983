# What 'add --new' prints and what it remembers, when a consumer dies, a disk is
# full or the process is killed.

load common

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
    seq 100000 >lines
}

make_all() {
    needs gzip
    "$CALYX" build -n 200000 -p 1e-8 -o line.calyx /dev/null
    "$CALYX" build -n 200000 -p 1e-8 --kind counting -o counts.calyx /dev/null
    "$CALYX" build -n 1000 -p 1e-8 --kind flat --growth 2 -o grows.calyx /dev/null
    "$CALYX" build -n 200000 -p 1e-8 -o packed.calyx.gz /dev/null
}
filters="line.calyx counts.calyx grows.calyx packed.calyx.gz"

# How many of the lines the filter has, printed by another run or not.
remembered() { "$CALYX" check -c -f "$1" lines || [ $? -eq 1 ]; }

# The bytes of the first $1 lines.
bytes_of() { head -n "$1" lines | wc -c; }

# In bytes: a batch, what a pipe holds, and what head reads.
batch=4096 pipe=65536 reads=32768

@test "a consumer that dies loses at most what was in the pipe" {
    make_all
    for filter in $filters; do
        set +e
        "$CALYX" add --new $filter lines 2>err | head -1 >first
        status=${PIPESTATUS[0]}
        set -e
        is_status 141
        quiet
        [ "$(cat first)" = 1 ]
        kept=$(remembered $filter)
        [ "$(bytes_of $kept)" -le $((pipe + reads)) ]
        # the next run prints all others, each once
        run_calyx add --new $filter lines
        is_status 0
        tail -n +$((kept + 1)) lines | cmp - out
    done
}

@test "what could not be written is not remembered" {
    make_all
    for filter in $filters; do
        status=0
        "$CALYX" add --new $filter lines 2>err >/dev/full || status=$?
        fails_with "standard output: cannot write it: No space left"
        [ "$(remembered $filter)" = 0 ]
        # a file that takes 16 KiB, and no more
        status=0
        (ulimit -f 16; exec "$CALYX" add --new $filter lines >cut 2>err) || status=$?
        [ $filter != line.calyx ] || {
            is_status 2
            # whole batches that were written, if any, are remembered
            [ "$(remembered $filter)" -le "$(wc -l <cut)" ]
        }
    done
}

@test "a line that a killed process printed passes again, unless it was remembered" {
    make_all
    for filter in $filters; do
        mkfifo pipe
        "$CALYX" add --new $filter lines >pipe 3>&- 5>&- &
        pid=$!
        exec 5<pipe
        read -r first <&5 # it writes, and will wait for room in the pipe
        kill -9 $pid
        wait $pid || true
        cat <&5 >rest
        exec 5<&-
        rm pipe
        kept=$(remembered $filter)
        printed=$((1 + $(wc -l <rest)))
        # at least once: nothing is remembered that was not written
        [ "$kept" -le $printed ]
        # in place, that is all but a batch; elsewhere nothing was saved
        [ $filter = line.calyx ] || [ "$kept" = 0 ]
        [ $filter != line.calyx ] || [ $((printed - kept)) -le $batch ]
        run_calyx add --new $filter lines
        is_status 0
        tail -n +$((kept + 1)) lines | cmp - out
    done
}

@test "--at-most-once remembers a line before it is printed" {
    make_all
    status=0
    "$CALYX" add --new --at-most-once line.calyx lines 2>err >/dev/full || status=$?
    is_status 2
    lost=$(remembered line.calyx)
    [ "$lost" -gt 0 ]
    [ "$(bytes_of $lost)" -le $batch ]
    set +e
    "$CALYX" add --new --at-most-once line.calyx lines 2>err | head -1 >first
    set -e
    kept=$(remembered line.calyx)
    [ "$kept" -gt "$lost" ]
    [ "$(bytes_of $kept)" -le $((2 * batch + pipe + reads)) ]
    run_calyx add --new --at-most-once line.calyx lines
    is_status 0
    tail -n +$((kept + 1)) lines | cmp - out
}

@test "a signal that asks to end lets a batch be finished: what was printed is remembered" {
    "$CALYX" build -n 3M -p 1e-6 -o empty.calyx /dev/null
    for round in {1..6}; do
        for order in "" --at-most-once; do
            cp empty.calyx f.calyx
            : >printed
            "$CALYX" add --new $order f.calyx <(seq 3000000) >printed 3>&- &
            pid=$!
            await [ -s printed ]
            kill -TERM $pid
            wait $pid || true
            # into a pipe
            mkfifo pipe
            "$CALYX" add --new $order f.calyx <(seq 3000001 6000000) >pipe 3>&- &
            pid=$!
            cat pipe >piped 3>&- &
            await [ -s piped ]
            kill -HUP $pid
            wait
            rm pipe
            run_calyx check -v -f f.calyx printed piped
            is_status 1
            prints
        done
    done
}

@test "--at-most-once is refused where lines are remembered only at the end" {
    make_all
    for filter in counts.calyx grows.calyx packed.calyx.gz; do
        cp $filter before
        run_calyx add --new --at-most-once $filter lines
        fails_with "$filter: --at-most-once requires a filter that is changed in place"
        prints
        "$CALYX" verify $filter
    done
    run_calyx add --at-most-once line.calyx lines
    fails_with "--at-most-once goes with --new"
}

@test "each new line is printed once, wherever batches and blocks end" {
    make_all
    # 300 000 lines, of which a third differ, in an order that is no order
    python3 -c '
number = 1
for _ in range(300000):
    number = number * 16807 % 2147483647
    print(number % 100000)
print("last", end="")' >many
    awk '!seen[$0]++' many >wanted
    for filter in $filters; do
        for words in "" "-j1"; do
            cp $filter copy.${filter#*.}
            run_calyx add --new $words copy.${filter#*.} many
            is_status 0
            cmp out wanted
            cp $filter copy.${filter#*.}
            "$CALYX" add --new $words copy.${filter#*.} <many | cmp - wanted
        done
    done
    "$CALYX" add --new --at-most-once line.calyx many | cmp - wanted
}

@test "lines longer than a batch pass, and are remembered" {
    make_all
    { echo short; head -c 300000 /dev/zero | tr '\0' x; echo; echo end; } >long
    for filter in $filters; do
        "$CALYX" add --new $filter long | cmp - long
        run_calyx add --new $filter long
        is_status 1
        prints
    done
}

@test "a strict filter prints as many lines as it remembers" {
    "$CALYX" build -n 1000 -p 1e-8 --strict -o strict.calyx /dev/null
    for order in "" --at-most-once; do
        cp strict.calyx full.calyx
        run_calyx add --new $order full.calyx lines
        fails_with "the filter is full, and was made to let no more in"
        head -1000 lines | cmp - out
        run_calyx check -c -f full.calyx lines
        prints 1000
    done
}
