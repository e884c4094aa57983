# calyx convert, check, info and build with the layouts of other programs:
# files that their owners wrote, and the answers that they gave.

load common

owned="$BATS_TEST_DIRNAME/foreign"

# The items of foreign/README.md, all and those that were added.
items() {
    for n in $(seq 0 999); do echo "k-$n-ü€𝄞"; done >text
    for n in $(seq 0 10 999); do echo "k-$n-ü€𝄞"; done >text.members
    seq -500 499 >numbers
    seq -500 10 499 >numbers.members
}

files() {
    (cd "$owned" && ls *.filter | sed 's/\.filter$//' | grep -v lengths)
}

layout_of() {
    case $1 in
        bits-and-blooms*) echo bits-and-blooms ;;
        *) echo "${1%%-*}" ;;
    esac
}

items_of() {
    case $1 in
        *-int32 | *-int64 | *-utf16) echo "${1##*-}" ;;
        *) echo text ;;
    esac
}

list_of() {
    case $1 in
        *-int32 | *-int64) echo numbers ;;
        *) echo text ;;
    esac
}

@test "a filter that its owner wrote answers as its owner does, and goes back byte for byte" {
    items
    for name in $(files); do
        run_calyx convert --from $(layout_of $name) --items $(items_of $name) \
            -o $name.calyx "$owned/$name.filter"
        is_status 0
        quiet
        answers=${name%-little}
        "$CALYX" check -f $name.calyx $(list_of $name) |
            sed 's/^k-//; s/-ü.*//' | diff "$owned/${answers%-data}.yes" -
        "$CALYX" convert --to $(layout_of $name) $name.calyx |
            cmp - "$owned/$name.filter"
    done
}

@test "build --layout makes the file that its owner makes of the same keys" {
    items
    for name in guava-text guava-utf16 guava-int32 guava-int64 spark-1-text \
        spark-1-int64 bits-and-blooms dcso; do
        run_calyx build --layout $(layout_of $name) --items $(items_of $name) \
            -n 100 -p 0.1 -o $name.calyx $(list_of $name).members
        is_status 0
        quiet
        "$CALYX" convert --to $(layout_of $name) $name.calyx |
            cmp - "$owned/$name.filter"
    done
}

@test "bits-and-blooms hashes items of every length as its owner does" {
    "$CALYX" convert --from bits-and-blooms -o f "$owned/bits-and-blooms-lengths.filter"
    for n in $(seq 0 40); do printf "%${n}s\n" "" | tr ' ' x; done >lengths
    [ "$("$CALYX" check -c -f f lengths)" -eq 41 ]
    for n in $(seq 0 400); do printf "%${n}s\n" "" | tr ' ' y; done >others
    [ "$("$CALYX" check -c -f f others)" -le 1 ] # "" is in both
}

@test "build --layout counts the keys if -n does not say how many" {
    seq 5000 >keys
    for layout in redisbloom valkey-bloom guava spark bits-and-blooms dcso redisson bits; do
        run_calyx build --layout $layout -p 0.01 -o $layout keys
        is_status 0
        "$CALYX" build --layout $layout -n 5000 -o again keys
        cmp $layout again
        rm again
        [ "$("$CALYX" check -c -f $layout keys)" -eq 5000 ]
        seq 100001 110000 | "$CALYX" check -c -f $layout >absent || true
        [ "$(cat absent)" -lt 200 ] # 100 are expected
        "$CALYX" info --json $layout | jq -e ".[0].layout == \"$layout\" and
            .[0].rate < 0.011 and .[0].bits > 40000"
    done
    run_calyx build --layout guava -o no <keys
    fails_with "standard input can be read only once; give the number of its keys with -n"
    run_calyx build --layout guava -n 5000 -o piped <keys
    is_status 0
    cmp piped guava
}

@test "a filter of another program is queried beside filters of Calyx" {
    seq 1 100 | "$CALYX" build -o own
    seq 101 200 | "$CALYX" build --layout dcso -n 100 -p 1e-9 -o other
    seq 1 300 >keys
    [ "$("$CALYX" check -f own -f other keys | head -200 | tail -1)" = 200 ]
    [ "$("$CALYX" check -f other -f own keys | head -200 | tail -1)" = 200 ]
    run_calyx check -H -f other -f own <(seq 150 150)
    prints other:150
    [ "$("$CALYX" check -c -f own --except other keys)" -ge 100 ]
    run_calyx check -f other --allow <(seq 102 200) keys
    prints 101
    run_calyx check --json-stats - -q -f other keys
    complains '"expected_rate"'
    "$CALYX" check -c -f - keys <other >count
    [ "$(cat count)" = 100 ]
}

@test "a filter of another program may be compressed" {
    needs gzip
    seq 101 200 | "$CALYX" build --layout dcso -n 100 -p 1e-9 -o other
    seq 1 300 >keys
    gzip other
    [ "$("$CALYX" check -c -f other.gz keys)" = 100 ]
}

@test "lines that are no items of the filter are errors" {
    "$CALYX" convert --from guava --items int64 -o f "$owned/guava-int64.filter"
    for line in abc "" 1.5 " 10" +10 9223372036854775808 -; do
        echo "$line" >lines
        run_calyx check -f f lines
        fails_with "the items of the filter are int64, and '$line' is not a whole number"
    done
    "$CALYX" convert --from guava --items int32 -o g "$owned/guava-int32.filter"
    run_calyx check -f g <(echo 2147483648)
    fails_with "is not a whole number from -2147483648 to 2147483647"
    (seq 5000; echo; seq 9; echo rose) >lines
    run_calyx check -f g lines
    fails_with "lines:5001: the items of the filter are int32, and '' is not"
    printf 'a,7\n"b\nc",8\n"d",rose\n' >lines # the third begins in line 4
    run_calyx check -f g --csv -k 2 lines
    fails_with "lines:4: the items of the filter are int32, and 'rose' is not"
    run_calyx build --layout guava --items int32 -n 10 -o made lines
    fails_with "lines:1: the items of the filter are int32, and 'a,7' is not"
    [ ! -e made ]
    "$CALYX" convert --from guava --items utf16 -o h "$owned/guava-utf16.filter"
    for bytes in '\xff' '\xc0\x80' '\xed\xa0\x80' '\xf4\x90\x80\x80' '\xe2\x82'; do
        printf "$bytes\n" >lines
        run_calyx check -f h lines
        fails_with "is not text in UTF-8"
    done
}

@test "without its keys no filter becomes one of another layout" {
    seq 10 | "$CALYX" build -o own
    seq 10 | "$CALYX" build --layout guava -n 10 -o g
    run_calyx convert --to guava -o no own
    fails_with "own: it is a filter of Calyx, which has other hashes than guava: without the keys it cannot become one; 'calyx build --layout guava -o FILTER LIST' makes one of them"
    run_calyx convert --to spark -o no g
    fails_with "g: it is a filter of guava, which has other hashes than spark"
    run_calyx convert --from guava -o no g
    fails_with "it is such a filter already"
    for form in parquet raw; do
        run_calyx convert --to $form -o no g
        fails_with "g: it is a filter of another program, which 'calyx check'"
    done
    [ ! -e no ]
}

@test "verbs that need a filter of Calyx say what reads one of another program" {
    seq 10 | "$CALYX" build --layout guava -n 10 -o g
    cp g copy
    for words in "add g /dev/null" "merge -o m g g" "freeze -o m g" \
        "compare g g"; do
        run_calyx $words
        fails_with "it is a filter of another program, which 'calyx check', 'calyx info', 'calyx verify', 'calyx convert --to' and 'calyx push --as' read"
    done
    cmp g copy
    run_calyx build -o m g
    fails_with "not a list of lines but a filter of another program"
}

# damaged LAYOUT BYTES... MESSAGE: a file with these bytes, in hexadecimal
damaged() {
    printf "$(printf '%s' "$2" | sed 's/[0-9a-f][0-9a-f]/\\x&/g')" >bad
    run_calyx convert --from $1 -o no bad
    fails_with "bad: it is not "
    complains "$3"
    [ ! -e no ]
}

@test "what a damaged file says is checked before it is used" {
    eight=0102030405060708
    damaged guava "" "its head has 6 bytes, and 0 are there"
    damaged guava 01050000 "its head has 6 bytes, and 4 are there"
    damaged guava 020500000001$eight "its first byte, the strategy, is 2; 0 and 1 are known"
    damaged guava 010000000001$eight "its head says that a key sets 0 bits; 1 to 4096 are possible"
    damaged guava 010500000000$eight "its head says that it has 0 words of bits"
    damaged guava 0105ffffffff$eight "its head says that it has -1 words of bits"
    damaged guava 01057fffffff$eight "has 2147483647 words of bits, which makes 17179869182 bytes in all, and 14 are there"
    damaged guava 010500000001${eight}00 "which makes 14 bytes in all, and 15 are there"
    damaged guava aced0005000000 "it is a serialized Java object"
    damaged spark 000000030000000500000001$eight "its first 4 bytes, the version, are 3; 1 and 2 are known"
    damaged spark 000000010000000500000002$eight "has 2 words of bits, which makes 28 bytes in all, and 20 are there"
    damaged spark 00000001ffffffff00000001$eight "a key sets 4294967295 bits; 1 to 4096 are possible"
    damaged spark 000000020000000500000000 "its head has 16 bytes, and 12 are there"
    head=00000000000000400000000000000005
    damaged bits-and-blooms ${head}000000000000003f$eight "has 64 bits in a set of 63, and 32 bytes are there"
    damaged bits-and-blooms ${head}0000000000000041$eight "has 64 bits in a set of 65, and 32 bytes are there"
    damaged bits-and-blooms 00000000000000000000000000000005$head "its head says that it has 0 bits"
    head=01000000000000000a00000000000000000000000000f03f
    damaged dcso ${head}05000000000000004100000000000000000000000000000000$eight "which makes 64 bytes in all, and"
    damaged dcso 02${head#01}0500000000000000400000000000000000000000000000$eight "its first byte, the version, is 2; 1 is known"
    damaged dcso ${head}0500000000000000ffffffffffffffff0000000000000000$eight "it has 18446744073709551615 bits; 1 to 2^48 are possible"
    damaged redisson "" "it does not begin with the lines of a config"
    damaged redisson 73697a650a38 "it does not begin with the lines of a config"
    damaged redisson 73697a650a380a0a00 "the field hashIterations of its config must be a whole number from 1 to 4096, not ''"
    damaged redisson 73697a650a380a73697a650a380a0a00 "the field size of its config must be there once, with a value of 1 to 39 characters"
    damaged redisson 73697a650a0a0a00 "the field size of its config must be there once"
    iterations=68617368497465726174696f6e730a370a
    damaged redisson 73697a650a390a${iterations}0aff "9 bits take 2 bytes, and 1 are there"
    damaged redisson 73697a650a370a${iterations}0aff "bit 7 is set, and the layout has 7 bits"
    damaged redisbloom 0102030405060708090a0b0c "it does not begin as the reply to DUMP"
    damaged redisbloom 0781000000000000000000000000000000000000000000 "its checksum is"
    damaged valkey-bloom 0102 "the bytes are no filter of valkey-bloom"
}

@test "a dump that is damaged, cut or longer is an error" {
    seq 1000 | "$CALYX" build --layout guava -n 1000 -o f
    size=$(wc -c <f)
    for at in 3 14 20 40 $((size / 2)) $((size - 3)); do
        cp f bad
        printf '\x5a' | dd of=bad bs=1 seek=$at conv=notrunc status=none
        run_calyx check -f bad <(echo 1)
        is_status 2
        head -c $at f >bad
        run_calyx check -f bad <(echo 1)
        is_status 2
    done
    (cat f; echo) >bad
    run_calyx info bad
    fails_with "bad: bytes follow after the filter"
    sed '1s/guava/gvava/' f >bad
    run_calyx info bad
    fails_with "bad: it is a dump of 'gvava', which is unknown"
    sed '1s/guava/guava int65/' f >bad
    run_calyx info bad
    fails_with "bad: its items are 'int65', which this calyx does not know"
}

@test "a DCSO filter with short cycles is warned of" {
    "$CALYX" build --layout dcso -n 1750351 -p 0.01 -o f /dev/null 2>err
    complains "its number of bits is a multiple of 2^18"
    "$CALYX" info f >out
    says "note      its number of bits is a multiple of 2^18"
    "$CALYX" convert --to dcso -o f.bloom f
    run_calyx convert --from dcso -o g f.bloom
    is_status 0
    complains "f.bloom: its number of bits is a multiple of 2^18"
    cmp f g
}

@test "--layout and --items go only where they have a meaning" {
    run_calyx build --items int64 -o no /dev/null
    fails_with "option --items goes with --layout only"
    for words in "--kind flat" "--hash murmur3" "--memory 1M" "--growth 2" \
        "--comment x" "--probes 3" --strict "--seed 1"; do
        run_calyx build --layout guava -n 1 $words -o no /dev/null
        fails_with "--layout guava says how the filter is made: only --keys, --rate and --items go with it"
    done
    run_calyx build --layout guava --shards 2 -o no.calyx /dev/null
    fails_with "--layout does not go with --shards or --all"
    run_calyx build --layout nothing -o no /dev/null
    fails_with "--layout: expected redisbloom, valkey-bloom, guava, spark, bits-and-blooms, dcso, redisson or bits, or a layout in one line, found 'nothing'"
    run_calyx convert --from raw --items int64 -o no /dev/null
    fails_with "option --items goes with --from and a layout of another program only"
    run_calyx convert --from guava -n 5 -o no /dev/null
    fails_with "options --offset, --keys and --rate go with --from parquet and --from raw only"
    run_calyx build --layout guava --items int16 -o no /dev/null
    fails_with "--items: expected text, utf16, int32 or int64, found 'int16'"
    [ ! -e no ]
}

@test "a layout has room for what its owner can count" {
    run_calyx build --layout guava -n 100G -o no /dev/null
    fails_with "this layout has room for 1.37439e+11 bits, and 100000000000 keys"
    run_calyx build --layout guava -n 1 -p 1e-300 -o no /dev/null
    fails_with "Guava has room for at most 255 bits of a key"
    [ ! -e no ]
}
