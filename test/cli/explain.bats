# calyx explain: what a lookup of a key tests.

load common

@test "the bits of a key, and which of them are set" {
    flowers
    run_calyx explain -f flowers.calyx rose
    is_status 0
    quiet
    grep -Eq '^rose$' out
    grep -Eq '^  answer    maybe$' out
    grep -Eq '^  hash      0x[0-9a-f]{16}, by xxh3$' out
    grep -Eq '^  block     0 of 1$' out
    grep -Eq '^  bits      ([0-9]+ set, )+[0-9]+ set$' out
    run_calyx explain -f flowers.calyx tulip
    is_status 1
    grep -Eq '^  answer    no$' out
    grep -q ' not set' out
    run_calyx explain -f flowers.calyx tulip rose
    is_status 0
    [ "$(grep -c '^  answer ' out)" = 2 ]
}

# By doc/FORMAT.md alone.
@test "the bits of a flat filter are given by the format's formula" {
    seq 100 | "$CALYX" build -n 100 --bits 1000 --probes 7 -o book.calyx
    for key in 5 100 hello; do
        run_calyx explain -f book.calyx --json $key
        jq -r '.[0] | .hash, ([.tests[].bit] | join(" "))' out >seen
        /usr/bin/python3 -c '
hash, bits = open("seen").read().split("\n")[:2]
x, want = int(hash, 16), []
for i in range(7):
    want.append(x * 1000 >> 64)
    x = (x * 6364136223846793005 + 1442695040888963407) % 2**64
assert [int(bit) for bit in bits.split()] == want, (bits, want)'
    done
}

@test "every kind is explained, in words and as JSON, as check answers" {
    seq 1000 >keys
    kinds=$(kinds_that true)
    for kind in $kinds; do
        "$CALYX" build -p 5% --kind $kind -o f.calyx --force keys
        for key in 7 1000 nope 1017 1018 1019; do
            status=1
            ! echo "$key" | "$CALYX" check -q -f f.calyx || status=0
            run_calyx explain -f f.calyx $key
            is_status $status
            grep -Eq '^  (bits|code|sums) ' out
            run_calyx explain --json -f f.calyx $key
            is_status $status
            jq -e --arg kind $kind --argjson status $status '.[0] | .kind == $kind and
                (.tests | length > 0) and .found == ($status == 0)' out
        done
    done
}

@test "a filter that grew is explained part by part" {
    seq 5000 | "$CALYX" build -n 1000 --growth 2 -o grown.calyx
    run_calyx explain -f grown.calyx 4999
    is_status 0
    says "in part 0 of 3"
    says "in part 2 of 3"
}

@test "a key is changed as when the filter was built, and may be any bytes" {
    printf 'x;Rose\n' | "$CALYX" build -i --trim -t ';' -k 2 -o roses.calyx
    run_calyx explain -f roses.calyx " ROSE "
    is_status 0
    flowers
    run_calyx explain -f flowers.calyx ""
    is_status 1
    run_calyx explain -f flowers.calyx $'rose\nrose'
    is_status 1
}

@test "a key on the allow list is not in the filter, whatever its bits" {
    flowers
    "$CALYX" build --all -o all.calyx
    "$CALYX" allow all.calyx <<<rose
    run_calyx explain -f all.calyx rose
    is_status 1
    says "answer    no: it is on the allow list"
}

@test "what is missing or damaged is an error" {
    flowers
    run_calyx explain rose
    fails_with "missing -f FILTER: calyx explain -f FILTER KEY..."
    run_calyx explain -f flowers.calyx
    is_status 2
    run_calyx explain -f none.calyx rose
    fails_with "none.calyx"
    printf X | dd of=flowers.calyx bs=1 seek=4100 conv=notrunc status=none
    run_calyx explain -f flowers.calyx rose
    is_status 2
    "$CALYX" build --all -o all.calyx
    status=0
    "$CALYX" explain -f all.calyx rose >/dev/full 2>err || status=$?
    is_status 2
}
