# Layouts in one line: the filters of three articles by their own bits, as
# layout_model.py computes them, and answers that agree bit by bit.

load common

model="$BATS_TEST_DIRNAME/layout_model.py"

# Members, and the keys that are looked up.
keys() {
    seq 100 | sed 's/^/member/' >members
    { cat members && seq 5000 && printf 'héllo wörld %s\n' $(seq 1000) && echo; } >keys
}

# as_program PROGRAM LAYOUT: the same bits, and the same answers
as_program() {
    python3 "$model" $1 members $1.bits keys >wanted
    [ "$(wc -l <wanted)" -ge 100 ]
    run_calyx build --layout "$2" -o $1.built members
    is_status 0
    "$CALYX" convert --to "$2" $1.built | cmp - $1.bits
    "$CALYX" convert --to bits $1.built | cmp - $1.bits
    run_calyx convert --from "$2" -o $1.calyx $1.bits
    is_status 0
    cmp $1.calyx $1.built
    "$CALYX" convert --layout "$2" $1.bits | cmp - $1.built
    "$CALYX" check -f $1.calyx keys | cmp - wanted
    "$CALYX" check --layout "$2" -f $1.bits keys | cmp - wanted
    "$CALYX" check --layout "$2" -f - keys <$1.bits | cmp - wanted
}

@test "article 002: SimpleBloomFilter, with Python's hash and with FNV-1a, has the same bits" {
    keys
    as_program simple 'python double 7 mod 1000'
    as_program advised 'fnv1a double 7 mod 1000'
    printf '%s\n' hello world bloom filter >members
    printf '%s\n' hello foo >keys
    python3 "$model" simple members four.bits keys >wanted
    run_calyx check --layout 'python double 7 mod 1000' -f four.bits keys
    prints hello
    [ "$("$CALYX" info --json --layout 'python double 7 mod 1000' four.bits |
        jq '.[0].fill * 1000')" = 28 ]
}

@test "article 003: the crawler's mmh3 filter of 5,000,000 bits has the same bits" {
    keys
    as_program crawler 'murmur3-32 seeds 41..47 mod 5000000 msb'
    as_program unsigned 'murmur3-32 unsigned seeds 41..47 mod 5000000'
    ! cmp -s crawler.bits unsigned.bits
}

@test "article 004: the filter in Go, with a byte for each bit, has the same bits" {
    keys
    as_program go 'murmur3-64 seeds 0..2 mask 1024 byte'
    python3 "$model" numbers own.bits # its own test: 1 2 3 4 5 7, hu and Jemmy
    layout='murmur3-64 seeds 0..2 mask 1024 byte'
    run_calyx check --layout "$layout" --items int64 -f own.bits <(printf '%s\n' 3 5 6)
    prints 3 5
    run_calyx check --layout "$layout" -f own.bits <(printf '%s\n' Jemmy jemmy hu)
    prints Jemmy hu
}

@test "the filter of many tutorials in Java, with seven factors, has the same bits" {
    keys
    as_program java 'bkdr seeds 5,7,11,13,31,37,61 mask 65536'
}

@test "verify says that the second hash depends on the first, and how many pass" {
    keys
    "$CALYX" build --layout 'fnv1a double 7 mod 1000' -o f members 2>err
    complains "the second hash depends on the first"
    run_calyx verify f --against members
    fails_with "f: the second hash depends on the first: 2.64 % of absent keys pass, the formula says 0.821 %"
    says "layout      bits, fnv1a unsigned double 7 xor 0xffffffff mod 1000 lsb"
    says "keys        100, none missing"
    says "formula     0.821 % for 100 keys"
    says "checksums   right"
    run_calyx info f
    says "note      the second hash depends on the first"
    # the same rule with a prime number of bits, and another rule
    for layout in 'fnv1a double 7 mod 1009' 'murmur3-32 double 7 seeds 1,2 mod 1000' \
        'murmur3-32 seeds 1..7 mod 1000' 'murmur3-128 double 7 mod 1009'; do
        "$CALYX" build --layout "$layout" -o g --force members
        run_calyx verify g --against members
        is_status 0
        quiet
    done
}

@test "the example of OTHERS.md is true" {
    sed -n '/^## A layout in one line/,/^## What is not/p' "$root/doc/OTHERS.md" |
        sed -n '/^    \$ seq/,/^$/s/^    //p' >example
    [ "$(grep -c '^\$' example)" = 3 ]
    grep '^\$' example | sed 's/^. //' >commands
    PATH="$(dirname "$CALYX"):$PATH"
    bash commands 2>&1 | grep '^calyx' | diff - <(grep -v '^\$' example)
}

@test "verify finds hashes that depend on each other without knowing why" {
    seq 1000 | sed 's/^/member/' >members
    "$CALYX" build --layout 'bkdr double 7 seeds 31,31 mod 10007' -o f members 2>err
    complains "a seed is there twice"
    "$CALYX" build --layout 'fnv1a double 7 xor 0xfffffffffffffffe mod 10007' -o g members
    run_calyx verify g --against members
    fails_with "g: the positions of a key depend on each other: "
    says "formula     0.817 % for 1 000 keys"
}

@test "verify looks up a list, and says what a layout may have wrong" {
    keys
    python3 "$model" crawler members bits keys >wanted
    run_calyx verify --layout 'murmur3-32 seeds 41..47 mod 5000000 msb' \
        --absent 1000 --against members bits
    is_status 0
    says "none missing"
    for wrong in 'murmur3-32 unsigned seeds 41..47 mod 5000000 msb' \
        'murmur3-32 seeds 40..46 mod 5000000 msb' 'murmur3-32 seeds 41..47 mod 5000000'; do
        run_calyx verify --layout "$wrong" --absent 1000 --against members bits
        fails_with "100 keys of the list are not in it; are the layout, --items"
    done
}

@test "verify measures filters of other programs, too" {
    seq 2000 >members
    for layout in redisbloom valkey-bloom guava spark bits-and-blooms dcso redisson bits; do
        "$CALYX" build --layout $layout -p 1% -n 2000 -o f --force members
        run_calyx verify f --against members
        is_status 0
        says "absent keys"
        says "none missing"
    done
    "$CALYX" build --layout dcso -p 1% -n 1000 -o g members
    run_calyx verify g --against members
    fails_with "it holds more keys than it was made for"
    run_calyx verify g --against <(seq 2001 2100)
    fails_with "keys of the list are not in it"
}

@test "bits that do not fit the layout are errors that say how" {
    head -c 125 /dev/zero >bits
    layout='fnv1a double 7 mod 1000'
    for verb in "check -f" info verify; do
        head -c 124 /dev/zero >short
        run_calyx $verb short --layout "$layout"
        fails_with "short: it is not bits of the layout that was given: 1000 bits take 125 bytes, and 124 are there; if its owner leaves out zeros at the end, 'truncate -s 125 FILE' adds them"
        run_calyx $verb <(cat bits short) --layout "$layout"
        fails_with "1000 bits take 125 bytes, and 249 are there"
    done </dev/null
    { head -c 124 /dev/zero && printf '\x80'; } >last
    run_calyx info last --layout 'fnv1a double 7 mod 999'
    fails_with "bit 999 is set, and the layout has 999 bits: their number or their order is another one"
    run_calyx info last --layout 'fnv1a double 7 mod 125 byte'
    fails_with "in a layout of one byte for a bit each byte is 0 or 1, and byte 124 is 128"
    run_calyx info bits --layout 'fnv1a double 7 mod 281474976710656'
    fails_with "take 35184372088832 bytes, and 125 are there"
    run_calyx convert --from bits -o no bits
    fails_with "bits alone do not say their layout"
    [ ! -e no ]
}

@test "a line that is wrong names its wrong word, in every verb" {
    : >bits
    for words in "build -o no --layout" "check -f bits --layout" "info bits --layout" \
        "verify bits --layout" "convert -o no bits --from" "convert -o no bits --to" \
        "pull -o no redis://localhost:1/x --as" "push bits redis://localhost:1/x --as"; do
        run_calyx $words 'murmur3-32 seeds 41..47 mod -5'
        fails_with "in the layout 'mod' takes a whole number from 1 to 281474976710656, not '-5'"
        run_calyx $words 'murmur3-32 seed 41..47 mod 5'
        fails_with "in the layout: expected 'seeds' or 'double', found 'seed'"
    done
    [ ! -e no ]
}

@test "a line says how large its filter is" {
    for words in "-n 5" "-p 1%"; do
        run_calyx build --layout 'fnv1a double 7 mod 1009' $words -o no /dev/null
        fails_with "says how large the filter is: --keys and --rate do not go with it"
    done
    seq 5 | "$CALYX" build --layout 'fnv1a double 7 mod 1009' -o piped
    "$CALYX" build --layout 'fnv1a double 7 mod 1009' -o file <(seq 5)
    cmp piped file
    [ ! -e no ]
}

@test "a filter goes back by its own line only" {
    seq 5 | "$CALYX" build --layout 'fnv1a double 7 mod 1009' -o f
    run_calyx convert --to 'fnv1a unsigned double 7 mod 1009 lsb' -o bits f
    is_status 0
    [ "$(wc -c <bits)" -eq 127 ]
    run_calyx convert --to 'fnv1a double 6 mod 1009' -o no f
    fails_with "it is a filter of bits, which has other hashes than fnv1a unsigned double 6 xor 0xffffffff mod 1009 lsb"
    run_calyx convert --to guava -o no f
    fails_with "it is a filter of bits"
    "$CALYX" build --layout guava -n 5 -o g /dev/null
    run_calyx convert --to 'fnv1a double 6 mod 1009' -o no g
    fails_with "it is a filter of guava, which has other hashes"
    [ ! -e no ]
}

@test "--layout leaves alone filters that say what they are" {
    seq 10 | "$CALYX" build -o own
    seq 11 20 | "$CALYX" build --layout dcso -n 10 -p 1e-9 -o other
    seq 21 30 | "$CALYX" build --layout 'fnv1a double 20 mod 100003' -o f
    "$CALYX" convert --to bits -o bits f
    seq 100 | "$CALYX" check -H --layout 'fnv1a double 20 mod 100003' -f own -f other -f bits >out
    [ "$(head -30 out | cut -d: -f1 | uniq -c | tr -s ' \n' ' ')" = " 10 own 10 other 10 bits " ]
    run_calyx check --items int64 -f own /dev/null
    fails_with "option --items goes with --layout only"
    run_calyx check --layout guava -f http://localhost:1/x /dev/null
    fails_with "--layout goes with files and --server; download it"
}

@test "more than 2^32 bits are 64-bit throughout" {
    layout='murmur3-64 seeds 0..6 mod 5000000000 msb'
    seq 1000 >members
    "$CALYX" build --layout "$layout" -o f.zst members
    run_calyx check -c -f f.zst members
    prints 1000
    run_calyx check -c -f f.zst <(seq 1001 3000)
    prints 0
    [ "$("$CALYX" info --json f.zst | jq '.[0] | .bits, .probes' | xargs)" = "5000000000 7" ]
}
