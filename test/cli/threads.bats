# Any number of threads gives the same results in the same order. These tests
# also run under the thread sanitizer, which is slow, and sees a race at once.

load common

@test "build makes the same file with any number of threads" {
    seq 300000 >numbers
    "$CALYX" build -j 1 -n 300000 numbers | cat >one.calyx
    "$CALYX" build -j 1 -o counted.calyx numbers
    for jobs in 2 3 8; do
        "$CALYX" build -j $jobs -n 300000 numbers -o /dev/stdout | cmp - one.calyx
        "$CALYX" build -j $jobs --force -o many.calyx numbers
        cmp counted.calyx many.calyx
    done
}

# bats test_tags=full
@test "check prints the same lines in the same order" {
    local most=400000 ways=("" -v -n -c "-m 1000" "-H -n")
    if is_sanitized; then
        most=200000 # ten blocks of lines
        ways=("" "-m 1000") # which differ in what threads do
    fi
    seq 0 2 $most | "$CALYX" build -p 1e-6 -o even.calyx
    seq $most >numbers
    for options in "${ways[@]}"; do
        "$CALYX" check -j 1 $options -f even.calyx numbers numbers >one
        for jobs in 2 5 0; do
            "$CALYX" check -j $jobs $options -f even.calyx numbers numbers | cmp - one
        done
    done
}

@test "add --new lets the first of equal lines through, in order" {
    { seq 100000; seq 1 2 150000; seq 100000; } >numbers
    awk '!seen[$0]++' numbers >first
    for jobs in 1 2 5; do
        "$CALYX" build -n 200000 -p 1e-10 --kind flat --force -o seen.calyx /dev/null
        "$CALYX" add seen.calyx --new -j $jobs numbers | cmp - first
    done
}

@test "too many threads are refused" {
    run_calyx build -j 257 -o no.calyx /dev/null
    fails_with "--jobs: expected at most 256 threads, found 257"
}

# The same lines in many blocks, so that all threads meet them first; in memory,
# with marks, and with spills, which have threads of their own.
# bats test_tags=full
@test "the exact verbs: threads that start together agree on the hash" {
    seq -f 'https://www.example.org/%.0f' 9000 >one
    for _ in $(seq 12); do cat one; done >many
    local rounds=3
    ! is_sanitized || rounds=1
    for budget in 1000000000 5000000 500000 100000; do
        export CALYX_TEST_BUDGET=$budget
        for _ in $(seq $rounds); do
            "$CALYX" dedup -j 8 many | cmp - one
            "$CALYX" dedup -j 8 -c many | cmp - <(sed 's/^/12\t/' one)
            "$CALYX" common -j 8 many one | cmp - one
            ! "$CALYX" minus -j 8 many one
        done
    done
}
