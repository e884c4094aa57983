# calyx convert: Parquet's form and the raw one, read here by a program that
# shares no line with the command.

load common

reader() {
    PYTHONPATH="$root/examples" python3 "$BATS_TEST_DIRNAME/forms.py" "$@"
}

@test "Parquet's form is what its specification says" {
    seq 1000 >keys
    "$CALYX" build --kind split --memory 2KiB -n 1000 -o f keys
    run_calyx convert --to parquet -o f.bloom f
    is_status 0
    quiet
    reader parquet f.bloom 2048 keys
    [ "$(head -c 16 f.bloom | od -An -tx1 | tr -d ' \n')" = \
        1580201c1c00001c1c00001c1c000000 ]
}

@test "a filter comes back from Parquet's form with every key" {
    seq 1000 >keys
    "$CALYX" build --kind split -n 1000 -o f keys
    "$CALYX" convert --to parquet -o f.bloom f 2>/dev/null
    run_calyx convert --from parquet -n 1000 -o back f.bloom
    is_status 0
    quiet
    [ "$("$CALYX" check -c -f back keys)" -eq 1000 ]
    "$CALYX" info --json f back | jq -e '.[0].bits == .[1].bits and
        .[0].hash == .[1].hash and .[1].capacity == 1000 and
        .[1].keys > 900 and .[1].keys < 1100'
    "$CALYX" convert --to parquet f 2>/dev/null | cmp - f.bloom
}

@test "--offset finds a filter in the middle of a file" {
    seq 100 >keys
    "$CALYX" build --kind split --memory 1KiB -n 100 keys |
        "$CALYX" convert --to parquet - >f.bloom
    (printf 'PAR1 and more'; cat f.bloom; echo after) >whole
    run_calyx convert --from parquet --offset 13 -p 1/1000 -o back whole
    is_status 0
    [ "$("$CALYX" check -c -f back keys)" -eq 100 ]
    "$CALYX" info --json back | jq -e '.[0].rate_promised == 0.001'
    (cat f.bloom; echo after) >start
    run_calyx convert --from parquet -o no start
    fails_with "start: bytes follow after the filter; with --offset"
    run_calyx convert --from parquet --offset 0 -o first start
    is_status 0
    run_calyx convert --from parquet --offset 13000 -o no whole
    fails_with "whole: the file, before the offset, ends too early"
}

@test "a size that Arrow would not read is reported" {
    seq 1000 | "$CALYX" build --kind split -n 1000 -o f
    run_calyx convert --to parquet -o f.bloom f
    is_status 0
    complains "Arrow and some other readers want a power of two"
}

@test "Parquet wants split, xxh64 and seed 0" {
    seq 100 | "$CALYX" build -n 100 -o line
    run_calyx convert --to parquet -o no line
    fails_with "line: Parquet requires kind split, hash xxh64 and seed 0"
    seq 100 | "$CALYX" build --kind split --seed 3 -n 100 -o seeded
    run_calyx convert --to parquet -o no seeded
    fails_with "this is split, xxh64 and 3"
    [ ! -e no ]
}

@test "the raw form is as documented, for every kind, there and back" {
    seq 3000 >keys
    kinds=$(kinds_that "$plain_bits") # the others have no raw form: change.bats, static.bats
    for kind in $kinds; do
        "$CALYX" build --kind $kind --seed 9 -n 3000 -o $kind keys
        run_calyx convert --to raw -o $kind.raw $kind
        is_status 0
        quiet
        reader raw $kind.raw $kind keys
        run_calyx convert --from raw -n 3000 -o back $kind.raw --force
        is_status 0
        [ "$("$CALYX" check -c -f back keys)" -eq 3000 ]
        "$CALYX" convert --to raw back | cmp - $kind.raw
    done
}

@test "a secret key is in no raw file, and wanted back" {
    head -c 16 /dev/zero >key
    seq 100 | "$CALYX" build -n 100 --key-file key -o f
    "$CALYX" convert --to raw --key-file key -o f.raw f
    run_calyx convert --from raw -o back f.raw
    fails_with "siphash needs a key"
    "$CALYX" convert --from raw --key-file key -o back f.raw
    [ "$(seq 100 | "$CALYX" check -c --key-file key -f back)" -eq 100 ]
}

@test "filters that grew or count are refused" {
    seq 5000 | "$CALYX" build -n 100 --growth 2 -o grown
    run_calyx convert --to raw -o no grown
    fails_with "grown: it has grown to"
    seq 100 | "$CALYX" build --kind counting -n 100 -o counting
    run_calyx convert --to raw -o no counting
    fails_with "'calyx freeze' makes a filter without"
    [ ! -e no ]
}

# broken NAME BYTES TEXT: a file of these bytes (for printf) is refused so
broken() {
    printf "$2" >broken
    run_calyx convert --from "$1" -o no broken
    fails_with "broken: "
    complains "$3"
    [ ! -e no ]
}

@test "every broken Parquet header is refused in words" {
    unions='\034\034\0\0\034\034\0\0\034\034\0\0\0'
    broken parquet '' "ends too early"
    broken parquet '\025\100' "ends too early"
    broken parquet "\025\100$unions" "promises 32 bytes of bits, and 0 are"
    broken parquet "\025\101$unions" "a multiple of 32 bytes, not -33"
    broken parquet "\025\002$unions" "a multiple of 32 bytes, not 1"
    broken parquet "\025\0$unions" "a multiple of 32 bytes, not 0"
    broken parquet '\025\100\034\054\0\0' "its algorithm is not BLOCK"
    broken parquet '\025\100\034\034\0\0\034\054\0\0' "its hash is not XXHASH"
    broken parquet '\025\100\034\034\0\0\034\034\0\0\034\054\0\0' \
        "its compression is not UNCOMPRESSED"
    broken parquet '\025\100\034\034\0\0\0' "it lacks a field"
    broken parquet '\145\100' "it has a field that is unknown"
    broken parquet '\025\377\377\377\377\377\377\377\377\377\377' \
        "a number in it has no end"
    broken parquet "\025\360\377\377\377\017$unions" \
        "a multiple of 32 bytes, not 2147483640"
    head -c 33 /dev/zero >bits
    (printf "\025\100$unions"; cat bits) >broken
    run_calyx convert --from parquet -o no broken
    fails_with "bytes follow after the filter"
}

@test "every broken raw header is refused in words" {
    broken raw '' "the header of a raw filter ends too early"
    broken raw "$(printf 'x%.0s' $(seq 200))" "the first line is not"
    pad=$(printf 'x%.0s' $(seq 128))
    # What was written before the first release, when lines had other bits.
    broken raw "calyx raw 1\nkind=line\nhash=xxh3\nseed=0\nprobes=6\nbits=512\n$pad" \
        "the first line is not 'calyx raw 2'"
    broken raw "calyx raw 2\nkind=none\n$pad" "it has kind=none"
    broken raw "calyx raw 2\nhash=xxh3\n$pad" "the line 'kind=...' is missing"
    broken raw "calyx raw 2\nkind=line\nhash=md5\n$pad" "it has hash=md5"
    broken raw "calyx raw 2\nkind=line\nhash=xxh3\nseed=-1\n$pad" \
        "seed must be a whole number, not '-1'"
    broken raw "calyx raw 2\nkind=line\nhash=xxh3\nseed=18446744073709551616\n$pad" \
        "seed must be a whole number, not '18446744073709551616'"
    all="calyx raw 2\nkind=line\nhash=xxh3\nseed=0\n"
    broken raw "${all}probes=0\nbits=512\n$pad" "0 probes and 512 bits"
    broken raw "${all}probes=6\nbits=99999999999999999999999\n$pad" \
        "bits must be a whole number"
    broken raw "${all}probes=6\nbits=18446744073709551615\n$pad" "promises"
    lines=$(printf '\\n%.0s' $(seq 70)) # up to byte 128; 64 bytes follow
    broken raw "${all}probes=99\nbits=512\n$lines${pad:64}" \
        "line filters take 1 to 16 probes"
}

@test "convert wants one direction, and a form that it knows" {
    seq 10 | "$CALYX" build -n 10 -o f
    run_calyx convert -o no f
    fails_with "missing --to FORM or --from FORM"
    run_calyx convert --to raw --from raw -o no f
    fails_with "missing --to FORM or --from FORM"
    run_calyx convert --to avro -o no f
    fails_with "--to: expected parquet, raw, redisbloom, valkey-bloom, guava, spark, bits-and-blooms, dcso, redisson or bits, or a layout in one line, found 'avro'"
    run_calyx convert --to raw -p 1% -o no f
    fails_with "options --offset, --keys and --rate go with --from parquet and --from raw only"
    run_calyx convert --from raw -p 1% -n 10 -o no f
    fails_with "only one of --keys and --rate"
    run_calyx convert --to raw -o f f
    fails_with "f: exists already; --force replaces it"
    [ ! -e no ]
}

@test "a whole Parquet file is refused with the option that helps" {
    printf 'PAR1 and columns' >p.parquet
    run_calyx convert --from parquet -o out.calyx p.parquet
    fails_with "p.parquet: not the header of a Bloom filter in Parquet"
    complains "--offset says where the filter is: the bloom_filter_offset of its column"
}
