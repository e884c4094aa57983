# The number of keys, after a process that added some was killed.

load common

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
}

# killed FILTER FROM TO: add the numbers from FROM to TO, and die by SIGKILL. What
# is printed at most once was added before.
killed() {
    rm -f fresh
    mkfifo lines
    "$CALYX" add --new --at-most-once $1 <lines >fresh 2>/dev/null 3>&- 5>&- &
    local pid=$!
    exec 5>lines
    seq $2 $3 >&5
    await grep -qx $3 fresh
    kill -9 $pid
    wait $pid || true
    exec 5>&-
    rm lines
}

keys_in() { "$CALYX" info --json $1 | jq '.[0].keys'; }

@test "after kills the number of keys is judged by the bits" {
    kinds=$(kinds_that "$plain_bits")
    for kind in $kinds; do
        "$CALYX" build -n 10000 --kind $kind -o $kind.calyx /dev/null
        for from in 1 6001 12001 18001; do
            killed $kind.calyx $from $((from + 5999))
        done
        # false positives are not counted: some 4 % of 24 000
        keys=$(keys_in $kind.calyx)
        [ $keys -gt 20000 ] && [ $keys -lt 26000 ]
        run_calyx info $kind.calyx
        says "it holds more keys than it was made for"
        run_calyx add $kind.calyx <<<more
        is_status 0
        complains "$kind.calyx: holds about"
        complains "but was planned for 10 000"
        keys=$(keys_in $kind.calyx)
        [ $keys -gt 20000 ] && [ $keys -lt 26000 ]
    done
}

@test "after kills a strict filter is full all the same" {
    "$CALYX" build -n 10000 --strict -o strict.calyx /dev/null
    killed strict.calyx 1 6000
    [ "$(keys_in strict.calyx)" -gt 5500 ]
    killed strict.calyx 6001 9800
    run_calyx add strict.calyx <(seq 20000 21000)
    fails_with "the filter is full, and was made to let no more in"
    run_calyx add strict.calyx <<<one
    is_status 2
}

@test "without a kill the number of keys is the one that was counted" {
    "$CALYX" build -n 10000 -p 1e-8 -o line.calyx <(seq 100)
    seq 101 150 | "$CALYX" add line.calyx
    [ "$(keys_in line.calyx)" = 150 ]
}
