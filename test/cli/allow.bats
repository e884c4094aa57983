# The allow list of a filter: calyx allow, and what other verbs make of it.

load common

# prints LINE...: exactly these, in this order
prints() {
    printf '%s\n' "$@" | diff - out
}

# flowers.calyx says yes to nearly everything: it has room for 1 key, and 300.
setup_file() {
    cd "$BATS_FILE_TMPDIR"
    seq 300 >flowers
    calyx=${CALYX:-$BATS_TEST_DIRNAME/../../build/calyx}
    "$calyx" build --strict -n 300 -p 60% -o flowers.calyx flowers
    seq 301 2000 | "$calyx" check -f flowers.calyx >wrong
    [ "$(wc -l <wrong)" -gt 300 ]
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
    cp "$BATS_FILE_TMPDIR"/* .
    first=$(head -1 wrong)
}

@test "allow puts false positives on the list, and check answers no" {
    run_calyx allow flowers.calyx wrong
    is_status 0
    run_calyx check -c -f flowers.calyx wrong
    is_status 1
    prints 0
    run_calyx check -c -f flowers.calyx flowers
    prints 300
    run_calyx check -v -f flowers.calyx wrong
    diff wrong out
    run_calyx check -c -f flowers.calyx -f flowers.calyx -H wrong
    prints flowers.calyx:0 flowers.calyx:0
    run_calyx verify flowers.calyx
    is_status 0
    run_calyx allow flowers.calyx wrong
    is_status 1
    run_calyx allow --stats flowers.calyx wrong
    complains "allowed        $(wc -l <wrong)"
}

@test "allow reads a pipe from check" {
    "$CALYX" check -f flowers.calyx wrong | "$CALYX" allow flowers.calyx
    run_calyx check -q -f flowers.calyx wrong
    is_status 1
}

@test "allow --list prints the keys in order, and --remove takes them off" {
    printf '%s\n' tulip rose aster rose '' | "$CALYX" allow flowers.calyx
    run_calyx allow --list flowers.calyx
    is_status 0
    prints '' aster rose tulip
    echo rose | "$CALYX" allow --remove flowers.calyx
    run_calyx allow --list flowers.calyx
    prints '' aster tulip
    echo rose >rose
    run_calyx allow --remove flowers.calyx rose
    is_status 1
    printf '%s\n' tulip aster '' | "$CALYX" allow --remove flowers.calyx
    run_calyx allow --list flowers.calyx
    is_status 1
    cmp flowers.calyx "$BATS_FILE_TMPDIR/flowers.calyx"
    run_calyx allow --list flowers.calyx wrong
    fails_with "--list takes the filter alone"
}

@test "info shows the number of allowed keys" {
    run_calyx info flowers.calyx
    ! grep -q allowed out
    "$CALYX" allow flowers.calyx wrong
    run_calyx info flowers.calyx
    says "allowed   $(wc -l <wrong) keys are known not to be in it"
    run_calyx info --json flowers.calyx
    says "\"allowed\": $(wc -l <wrong)"
}

@test "an added key leaves the list" {
    "$CALYX" allow flowers.calyx wrong
    echo "$first" | "$CALYX" add flowers.calyx
    run_calyx check -f flowers.calyx wrong
    prints "$first"
    run_calyx allow --list flowers.calyx
    ! grep -qx "$first" out
}

@test "add --new prints an allowed key once, since it is new" {
    "$CALYX" allow flowers.calyx wrong
    printf '%s\n' 1 "$first" 2 "$first" >some
    run_calyx add --new flowers.calyx some
    prints "$first"
    run_calyx add --new flowers.calyx some
    is_status 1
    run_calyx add --new --at-most-once flowers.calyx some
    fails_with "has an allow list"
}

@test "build --allow stores the list, without keys that are among the input" {
    printf '%s\n' 7 "$first" 9 >list
    for options in "-n 300" "" "--kind ribbon" "--kind counting -n 300"; do
        rm -f made.calyx
        "$CALYX" build $options -p 50% --allow list -o made.calyx flowers
        run_calyx allow --list made.calyx
        prints "$first"
        run_calyx check -c -f made.calyx flowers
        prints 300
        echo "$first" >one
        run_calyx check -f made.calyx one
        is_status 1
    done
    "$CALYX" build --shards 3 -p 50% --allow list -o s.calyx flowers
    for i in 0 1 2; do "$CALYX" allow --list s.$i-of-3.calyx || true; done >out
    prints "$first"
    "$CALYX" build --all --allow list -o all.calyx
    printf '%s\n' 6 7 8 >some
    run_calyx check -f all.calyx some
    prints 6 8
}

@test "build --allow wants a whole filter of calyx" {
    run_calyx build --part 1/2 -n 300 --allow wrong -o p flowers
    fails_with "use 'calyx allow' when the parts are joined"
    run_calyx build --layout redisbloom -n 300 --allow wrong -o p flowers
    fails_with "their files have no room for a list"
}

@test "allow obeys the key options of the filter" {
    printf '%s\n' a:rose b:iris | "$CALYX" build -k 2 -t : -p 1e-6 -o k.calyx
    echo x:iris | "$CALYX" allow k.calyx
    run_calyx allow --list k.calyx
    prints iris
    echo y:iris >some
    run_calyx check -f k.calyx some
    is_status 1
}

@test "merge keeps the keys that no filter has" {
    printf '%s\n' lily | "$CALYX" build -n 100 -o a.calyx
    printf '%s\n' rose | "$CALYX" build -n 100 -o b.calyx
    printf '%s\n' rose moss | "$CALYX" allow a.calyx
    printf '%s\n' lily fern | "$CALYX" allow b.calyx
    "$CALYX" merge -o both.calyx a.calyx b.calyx
    run_calyx allow --list both.calyx
    prints fern moss
    printf '%s\n' rose lily >flowers
    run_calyx check -f both.calyx flowers
    prints rose lily
}

@test "a list that is too long leaves the filter as it was" {
    seq 100000 >many
    run_calyx allow flowers.calyx many
    fails_with "an allow list has at most 262144 bytes"
    cmp flowers.calyx "$BATS_FILE_TMPDIR/flowers.calyx"
}

@test "a damaged list is an error" {
    "$CALYX" allow flowers.calyx wrong
    printf X | dd of=flowers.calyx bs=1 seek=4100 conv=notrunc status=none
    for words in "check -f flowers.calyx wrong" "info flowers.calyx" \
        "verify flowers.calyx" "allow --list flowers.calyx"; do
        run_calyx $words
        fails_with "the allow list does not match its checksum"
    done
}

@test "convert says that raw bits have no list" {
    "$CALYX" allow flowers.calyx wrong
    run_calyx convert --to raw -o raw flowers.calyx
    is_status 0
    complains "the form has no room for the allow list"
}

@test "a reader that was written from the format alone knows the list" {
    "$CALYX" allow flowers.calyx wrong
    status=0
    python3 "$root/examples/read_filter.py" flowers.calyx <wrong >out || status=$?
    is_status 1
    python3 "$root/examples/read_filter.py" flowers.calyx 1 300 "$first" >out
    prints 1 300
}

@test "verify --against says that members are on the allow list" {
    seq 1000 >members
    "$CALYX" build -p 1e-8 -o f.calyx members
    seq 3 | "$CALYX" allow f.calyx
    run_calyx verify --absent 1000 --against members f.calyx
    fails_with "f.calyx: it does not find 3 keys of the list, 3 of them because they are on its allow list; 'calyx allow --remove' takes keys off it"
    seq 3 | "$CALYX" allow --remove f.calyx
    run_calyx verify --absent 1000 --against members f.calyx
    is_status 0
}
