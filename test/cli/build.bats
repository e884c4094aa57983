# calyx build: what is made, of what, and what is refused.

load common

expected() {
    sed -n "s/.*\"$1\": \([^,}]*\).*/\1/p" figures
}

@test "lines in, filter out, and every line is found again" {
    seq 100000 >numbers
    run_calyx build -o numbers.calyx numbers
    is_status 0
    quiet
    run_calyx check -f numbers.calyx -v numbers
    is_status 1
    prints
}

@test "without --keys the keys are counted: the rate holds, the size is near the best" {
    { seq 300000; seq 300000; } >numbers
    run_calyx build -p 1% -o counted.calyx --json-stats figures numbers
    is_status 0
    quiet
    run_calyx build -p 1% -n 300000 -o given.calyx numbers
    is_status 0
    counted=$(stat -c %s counted.calyx) given=$(stat -c %s given.calyx)
    [ "$counted" -eq "$given" ]
    # 300 000 absent keys at 1 % are 3000, give or take 55: six of those
    seq 1000001 1300000 | "$CALYX" check -c -f counted.calyx >out
    [ "$(cat out)" -le 3330 ]
}

@test "more keys than memory holds are counted by way of a file in TMPDIR" {
    mkdir spool
    TMPDIR=$PWD/spool run_calyx build -S 1M -o big.calyx --json-stats figures \
        <(seq 500000)
    is_status 0
    [ "$(expected lines)" = 500000 ]
    [ "$(expected fresh)" -ge 495000 ]
    [ -z "$(ls -A spool)" ]
    seq 500000 | "$CALYX" check -v -c -f big.calyx >out || [ $? -eq 1 ]
    prints 0
    TMPDIR=/nonexistent run_calyx build -S 1M -o other.calyx <(seq 500000)
    fails_with "/nonexistent: cannot make a temporary file for hashes"
    [ ! -e other.calyx ]
    run_calyx build -S 1M -T spool -o same.calyx <(seq 500000 | tac)
    is_status 0
    cmp big.calyx same.calyx
    [ -z "$(ls -A spool)" ]
}

@test "a named pipe is opened once: no line is lost" {
    mkfifo pipe
    traced "$CALYX" build -o f.calyx pipe 3>&- &
    seq 1000 >pipe
    wait $!
    [ "$(grep -c 'openat(.*"pipe"' trace)" = 1 ]
    [ "$(seq 1000 | "$CALYX" check -c -f f.calyx)" = 1000 ]
}

@test "kill -9 leaves no temporary file" {
    mkdir spool
    mkfifo pipe
    "$CALYX" build -S 1M -T spool -o f.calyx pipe 3>&- &
    pid=$!
    exec 7>pipe
    seq 500000 >&7 # more than memory holds; the pipe stays open
    until find /proc/$pid/fd -lname "$PWD/spool/*" | grep -q .; do
        kill -0 $pid
        sleep 0.02
    done
    kill -9 $pid
    wait $pid || true
    exec 7>&-
    [ -z "$(ls -A spool)" ]
    [ ! -e f.calyx ]
}

@test "a filter is the same whatever the order, the memory and the threads" {
    seq 300000 >numbers
    for kind in $("$CALYX" --version | sed -n 's/^kinds: *//p' | tr -d ,); do
        cat numbers | "$CALYX" build --kind "$kind" -j 1 -o a.calyx
        tac numbers | "$CALYX" build --kind "$kind" -j 3 -o b.calyx
        cat numbers | "$CALYX" build --kind "$kind" -j 2 -S 500K -o c.calyx
        cmp a.calyx b.calyx
        cmp a.calyx c.calyx
        rm ./*.calyx
    done
}

# Without room for hashes, nothing can be counted: so it was a guess.
guesses() {
    run_calyx build -S 64KiB -T /nonexistent --force -o guessed.calyx "$@"
    is_status 0
    quiet
}

# near FILTER KEYS: has it the size of one that was planned for them?
near() {
    "$CALYX" build -p 1% -n "$2" --force -o given.calyx /dev/null
    has=$(stat -c %s "$1") best=$(stat -c %s given.calyx)
    [ "$has" -ge "$best" ]
    [ "$has" -le $((best * 104 / 100)) ]
}

@test "the lines of large files are estimated from a sample, and nothing is stored" {
    seq 2500000 >numbers
    guesses --json-stats figures numbers
    [ "$(expected lines)" = 2500000 ]
    near guessed.calyx 2500000
    run_calyx check -v -c -f guessed.calyx numbers
    prints 0
    seq 3000001 3300000 | "$CALYX" check -c -f guessed.calyx >out
    [ "$(cat out)" -le 3330 ] # 1 % and six times its deviation

    split -n l/7 numbers part.
    : >part.empty
    guesses part.*
    near guessed.calyx 2500000
    tr '\n' '\0' <numbers >ended
    guesses -z ended
    near guessed.calyx 2500000
}

@test "a guess that was wrong is made good: lines that come twice" {
    { seq 1200000; seq 1300000; } >numbers
    run_calyx build -o some.calyx --json-stats figures numbers
    is_status 0
    quiet
    [ "$(expected lines)" = 2500000 ]
    near some.calyx 1300000
    run_calyx check -v -c -f some.calyx numbers
    prints 0
    "$CALYX" build -j 1 -o one.calyx numbers
    cmp one.calyx some.calyx
}

@test "lines of large files that come often are counted by a sketch, and nothing is stored" {
    for i in {1..9}; do seq 300000; done >numbers
    guesses numbers
    near guessed.calyx 300000
    run_calyx check -v -c -f guessed.calyx numbers
    prints 0
    mv guessed.calyx first.calyx
    for i in {1..9}; do seq 300000 -1 1; done >numbers # in another order
    guesses -j 1 numbers
    cmp -i 4096 -n 370000 guessed.calyx first.calyx # the bits are the same
    guesses --shards 4 numbers
    run_calyx info guessed.*-of-4.calyx
    is_status 0
}

@test "a guess that was wrong is made good: more lines than the sample shows" {
    # 256 times 100 000 bytes, of which the sample sees the first 8192
    awk 'BEGIN {
        for (i = 0; i < 256; i++) {
            for (j = 0; j < 20; j++) printf "%0499d\n", ++number
            for (j = 0; j < 9000; j++) printf "%09d\n", ++number
        }
    }' >lines
    run_calyx build -o some.calyx --json-stats figures lines
    is_status 0
    quiet
    run_calyx check -v -c -f some.calyx lines
    prints 0
    near some.calyx "$(wc -l <lines)"
}

@test "rates may be written in four ways" {
    for rate in 0.01 1% 1e-2 1/100; do
        seq 1000 | "$CALYX" build -n 1000 -p $rate >this
        [ ! -e first ] || cmp first this
        mv this first
    done
}

@test "what is not a rate is refused, with what was found" {
    for rate in 0 1 -1 2% 100% nan inf 0x1p-3 1/0 1/ abc 1%% ''; do
        run_calyx build -o no.calyx --rate="$rate" /dev/null
        case $rate in
        2%) is_status 0 && rm no.calyx ;;
        *)
            fails_with "--rate: expected a rate between 0 and 1"
            complains "found '$rate'"
            ;;
        esac
    done
}

@test "counts and sizes take suffixes" {
    "$CALYX" build -n 10000 /dev/null >plain
    for count in 10K 1e4 0.01M 10000; do
        "$CALYX" build -n $count /dev/null | cmp - plain
    done
    "$CALYX" build -n 1000 --memory 65536 /dev/null >plain
    for size in 64KiB 64Ki 65536B 65.536K; do
        "$CALYX" build -n 1000 --memory $size /dev/null | cmp - plain
    done
    for count in x 1.5 10Q 1e30 -5 10MB 99999999999999999999; do
        run_calyx build -o no.calyx --keys=$count /dev/null
        fails_with "--keys: expected a whole number below 2^63, such as 5000, 10M or 1e9, found '$count'"
    done
    run_calyx build -o no.calyx --memory 5X /dev/null
    fails_with "--memory: expected a size such as 10M, 64KiB or 1G, found '5X'"
}

@test "no kind exceeds --memory" {
    kinds=$(kinds_that .can_add)
    for kind in $kinds; do
        seq 4000 | "$CALYX" build --kind $kind --memory 64KiB -n 4000 \
            --json-stats figures >$kind.calyx
        [ "$(expected filter_bytes)" -le 65536 ]
        [ "$(expected filter_bytes)" -ge 64000 ]
    done
}

@test "--memory alone, and with --rate alone, make a filter" {
    seq 1000 >numbers
    run_calyx build --memory 8KiB -o alone.calyx numbers
    is_status 0
    run_calyx build --memory 8KiB -p 1% -o rate.calyx numbers
    is_status 0
    run_calyx build --memory 8KiB -p 1% -n 5 -o all.calyx numbers
    fails_with "--keys, --rate and --memory are all given"
}

@test "--bits is exact in kind flat, and says the same as --memory" {
    seq 50 >numbers
    for m in 8 100 1001 4095; do
        "$CALYX" build --bits $m -n 50 --kind flat numbers >flat.calyx
        "$CALYX" info --json flat.calyx | jq -e ".[0].bits == $m"
    done
    "$CALYX" build --memory 640 -n 50 --kind flat numbers >bytes.calyx
    "$CALYX" build --bits 5120 -n 50 --kind flat numbers | cmp - bytes.calyx
    run_calyx build --bits 5120 --memory 640 -o no.calyx numbers
    fails_with "--bits and --memory are both given; they say the same"
    run_calyx build --bits 5120 -p 1% -n 50 -o no.calyx numbers
    fails_with "--keys, --rate and --bits are all given"
    run_calyx build --bits 5120 --growth 2 -o no.calyx numbers
    fails_with "--growth goes with --keys and --rate, but not with --memory, --bits"
    run_calyx build --bits 100 --kind line -n 50 -o no.calyx numbers
    fails_with "line filters have at least 512 bits, not 100"
    run_calyx build --bits 1e15 -n 50 -o no.calyx numbers
    fails_with "bits must be at most 2^44"
    run_calyx build --bits 20 --shards 32 -n 50 -o no.calyx numbers
    fails_with "--memory or --bits is too little for 32 shards"
    "$CALYX" build --shards 2 --bits 2000 -n 50 --kind flat -o s.calyx numbers
    "$CALYX" info --json s.0-of-2.calyx | jq -e '.[0].bits == 1000'
    run_calyx add --create --bits 2000 -p 1% --kind flat new.calyx numbers
    is_status 0
    "$CALYX" info --json new.calyx | jq -e '.[0].bits == 2000'
}

@test "too many keys for --keys are reported" {
    seq 2000 >numbers
    run_calyx build -n 1000 -o full.calyx numbers
    is_status 0
    complains "full.calyx: holds about 2 0"
    complains "but was planned for 1 000: expect a rate of"
    # lines that repeat count, and do no harm
    for i in {1..5}; do seq 2000; done | "$CALYX" build --kind counting -o counting.calyx 2>err
    quiet
    run_calyx build -n 1000 --strict -o strict.calyx numbers
    fails_with "the filter is full at 1000 keys, and --strict lets no more in"
    [ ! -e strict.calyx ]
    run_calyx build -n 1000 --growth 2 -o grown.calyx numbers
    is_status 0
    quiet
    run_calyx build --growth 1 -o no.calyx numbers
    fails_with "--growth: expected a factor from 1.25 to 16, found '1'"
    for other in "--memory 1M" "--probes 3" --strict; do
        run_calyx build --growth 2 $other -o no.calyx numbers
        fails_with "--growth goes with --keys and --rate, but not with --memory, --bits"
    done
}

@test "kinds and probes can be chosen" {
    kinds=$(kinds_that true)
    for kind in $kinds; do
        seq 100 | "$CALYX" build --kind $kind -o $kind.calyx
        seq 100 | "$CALYX" check -v -f $kind.calyx >out || [ $? -eq 1 ]
        prints
    done
    run_calyx build --kind lien -o no.calyx /dev/null
    fails_with "lien"
    complains "there are: line"
    seq 100 >numbers
    run_calyx build --kind flat --memory 1000 --probes 8 -n 100 -o flat8.calyx numbers
    is_status 0
}

@test "the seed changes the filter; a random one does each time" {
    seq 100 >numbers
    for seed in 0 1 random random; do
        "$CALYX" build --seed $seed numbers | sha256sum
    done >sums
    [ "$(sort -u sums | wc -l)" = 4 ]
    for wrong in rose 18446744073709551616 -1; do
        run_calyx build --seed $wrong -o no.calyx numbers
        fails_with "--seed: expected a number or 'random', found '$wrong'"
    done
}

# A random seed has some 20 digits; who copies it must get the same one.
@test "a seed is taken to its last digit" {
    for seed in 1234567890123456789 18446744073709551615; do
        run_calyx build --seed $seed -n 5 -o $seed.calyx /dev/null
        is_status 0
        run_calyx info $seed.calyx
        says "seed $seed"
    done
}

@test "with a key file only its owner gets answers" {
    printf '0123456789abcdef0123456789abcdef\n' >key
    printf '\001\043\105\147\211\253\315\357\001\043\105\147\211\253\315\357' >raw
    printf 'fedcba9876543210fedcba9876543210' >wrong
    seq 100 >numbers
    run_calyx build --key-file key -o secret.calyx numbers
    is_status 0
    run_calyx check --key-file raw -c -f secret.calyx numbers
    is_status 0
    prints 100
    run_calyx check -c -f secret.calyx numbers
    is_status 2
    run_calyx check --key-file wrong -c -f secret.calyx numbers
    is_status 2
    printf short >short
    run_calyx build --key-file short -o no.calyx numbers
    fails_with "short: expected a key of 16 bytes or 32 hexadecimal digits, found 5 bytes"
    run_calyx build --key-file key --seed 1 -o no.calyx numbers
    fails_with "--seed and --key-file are both given"
}

@test "--all is the universal set: yes to every key" {
    kinds=$(kinds_that "$plain_bits")
    for kind in $kinds; do
        "$CALYX" build --all --kind $kind -o $kind.calyx
        [ "$(seq 1000 | "$CALYX" check -c -f $kind.calyx)" = 1000 ]
    done
    "$CALYX" verify line.calyx
    "$CALYX" info line.calyx | grep -q "512, 100 % set"
    run_calyx build --all --kind counting -o no.calyx
    fails_with "--all: expected a kind of plain bits, such as line, found counting"
    kinds=$(kinds_that ".can_intersect | not")
    for kind in $kinds; do
        run_calyx build --all --kind $kind -o no.calyx
        fails_with "--all: expected a kind of plain bits, such as line, found $kind"
    done
    run_calyx build --all -n 5 -o no.calyx
    fails_with "it takes no files, nor --keys"
    [ ! -e no.calyx ]
}

@test "a rate that line cannot keep picks the next kind that can" {
    seq 1000 >numbers
    "$CALYX" build -p 1e-10 -o low.calyx numbers
    "$CALYX" info low.calyx | grep -q "kind  *line2"
    [ "$("$CALYX" check -c -f low.calyx numbers)" = 1000 ]
    run_calyx build -p 1e-10 --kind line -o no.calyx numbers
    fails_with "line filters keep rates down to 1e-08, not 1e-10"
}

@test "--hash names the hash, and the filter remembers it" {
    seq 1000 >numbers
    for hash in xxh3 xxh64 murmur3 fnv1a; do
        "$CALYX" build --hash $hash -o $hash.calyx numbers
        "$CALYX" info $hash.calyx | grep -q "hash  *$hash"
        [ "$("$CALYX" check -c -f $hash.calyx numbers)" = "$(wc -l <numbers)" ]
    done
    ! cmp -s murmur3.calyx fnv1a.calyx
    run_calyx build --hash murmur -o no.calyx numbers
    fails_with "murmur3"
    run_calyx build --hash siphash -o no.calyx numbers
    fails_with "siphash needs a key of 16 bytes"
}

@test "an existing file is replaced only with --force" {
    echo precious >old.calyx
    run_calyx build -o old.calyx /dev/null
    fails_with "old.calyx: exists already; --force replaces it"
    [ "$(cat old.calyx)" = precious ]
    run_calyx build --force -o old.calyx /dev/null
    is_status 0
    run_calyx check -q -f old.calyx /dev/null
    is_status 1
}

@test "a comment is stored if it is not too long" {
    run_calyx build --comment "spring list" -o a.calyx /dev/null
    is_status 0
    grep -q "spring list" a.calyx
    # what looks like a password in a URL is hidden, and kept all the same
    run_calyx build --comment "of https://example.org/@me/list" -o c.calyx /dev/null
    is_status 0
    grep -q "of https://example.org/@me/list" c.calyx
    run_calyx build --comment "$(head -c 1001 /dev/zero | tr '\0' x)" -o b.calyx /dev/null
    fails_with "--comment: expected at most 1000 bytes, found 1001"
}

@test "what cannot be read or written is named" {
    run_calyx build -o a.calyx nowhere.txt
    fails_with "calyx build: nowhere.txt: cannot open it: No such file"
    [ ! -e a.calyx ]
    run_calyx build -o a.calyx .
    fails_with ".: cannot read it: Is a directory"
    run_calyx build -o nowhere/a.calyx /dev/null
    fails_with "nowhere/a.calyx: cannot make a file in its folder: No such file"
    [ -z "$(ls -A | grep -v -e out -e err)" ]
}

@test "a file may be called like a URL with a password, after ./ or /" {
    mkdir a: b:
    echo rose >a:/me:s3cr@b
    run_calyx build -o ./b://f@c ./a://me:s3cr@b
    is_status 0
    run_calyx check --filter=./b://f@c "$PWD/a://me:s3cr@b"
    is_status 0
    says rose
    mkdir deeper && cd deeper
    run_calyx check -f../b://f@c -v ../a://me:s3cr@b ./none://s3cr@x
    fails_with "./none://s3cr@x: cannot open it"
    cd ..
    run_calyx check -f b://f@c a://me:s3cr@b
    fails_with "b://***@c: cannot open it"
    run_calyx check -f./b://f@c a://me:s3cr@b
    fails_with "a://***@b: cannot open it"
}

@test "a packed filter is written by name, and read by magic" {
    needs gzip zstd
    seq 1000 >numbers
    for end in gz zst; do
        run_calyx build -o a.calyx.$end numbers
        is_status 0
        run_calyx check -c -f a.calyx.$end numbers
        is_status 0
        prints 1000
        cp a.calyx.$end disguised
        run_calyx check -c -f disguised numbers
        prints 1000
    done
    gzip -t a.calyx.gz
    zstd -tq a.calyx.zst
}

@test "a filter goes through pipes" {
    seq 1000 >numbers
    "$CALYX" build numbers | "$CALYX" check -c -f - numbers >out
    prints 1000
    mkfifo pipe
    "$CALYX" build numbers -o /dev/stdout >pipe 3>&- 5>&- &
    run_calyx check -c -f pipe numbers
    wait
    prints 1000
}

@test "numbers that cannot be meant are refused" {
    for option in --keys=0 --memory=0 --memory=1e30 --probes=0 \
        --probes=4294967297 --rate=0 --rate=1 --rate=nan --jobs=1000; do
        run_calyx build $option -o no.calyx /dev/null
        fails_with "${option%=*}: expected"
        [ ! -e no.calyx ]
    done
}

@test "an empty name is reported before the work" {
    run_calyx build -o "" /nowhere
    fails_with "the output has an empty name"
    run_calyx build ""
    fails_with "'': cannot open it"
}

# ---- Shards -----------------------------------------------------------------

@test "shards have all keys, each in one of them" {
    seq 20000 >keys
    run_calyx build --shards 8 -p 1e-8 -o ids.calyx keys
    is_status 0
    quiet
    [ "$(ls | grep -c '^ids\.[0-7]-of-8\.calyx$')" -eq 8 ]
    total=0
    for file in ids.*; do
        n=$("$CALYX" check -c -f "$file" keys)
        [ "$n" -gt 2200 ] && [ "$n" -lt 2800 ]
        total=$((total + n))
    done
    [ "$total" -eq 20000 ]
}

@test "a shard that gets far more than its share keeps its rate, or is reported" {
    seq 100000 >keys
    run_calyx build --shards 4 -p 1e-8 -o even.calyx keys
    quiet
    "$CALYX" check -f even.2-of-4.calyx keys >skewed
    run_calyx build --shards 4 -o skewed.calyx skewed
    is_status 0
    quiet
    run_calyx check -v -c -f skewed.2-of-4.calyx skewed
    prints 0
    run_calyx build --shards 4 --force -n 25000 -o skewed.calyx skewed
    is_status 0
    complains "skewed.2-of-4.calyx: holds about"
    [ "$(wc -l <err)" -eq 1 ]
}

@test "more shards than files may be open are built" {
    seq 30000 >keys
    (
        ulimit -S -n 64
        cat keys | "$CALYX" build --shards 100 -S 64KiB -o ids.calyx
    )
    total=0
    for file in ids.*; do
        total=$((total + $("$CALYX" info --json "$file" | jq '.[0].capacity')))
    done
    [ "$total" -eq 30000 ]
}

@test "shards are the same whatever the threads, and however lines come" {
    seq 300000 >keys
    "$CALYX" build --shards 3 -n 300000 -o a.calyx -j 1 keys
    "$CALYX" build --shards 3 -n 300000 -o b.calyx -j 7 <keys
    for i in 0 1 2; do
        cmp "a.$i-of-3.calyx" "b.$i-of-3.calyx"
    done
}

# bats test_tags=full
@test "shards that are counted keep their rate, in the memory of one filter" {
    # more than fit in memory; and more bytes than are too few for a guess
    seq 10000001 12000000 >keys
    ways="counted guessed"
    ! is_sanitized || ways=counted # the runs; the sizes are the same without it
    for way in $ways; do
        rm -f ids.*
        if [ $way = counted ]; then
            cat keys | "$CALYX" build -S 4M --shards 16 -p 1% -o ids.calyx
        else
            "$CALYX" build --shards 16 -p 1% -o ids.calyx keys
        fi
        keys=0
        for file in ids.*; do
            "$CALYX" info --json "$file" >json
            # a counted shard is as small as can be: its rate is at the promise
            jq -e '.[0] | .rate <= 1.02 * .rate_promised and .keys <= .capacity' json
            keys=$((keys + $(jq '.[0].keys' json)))
        done
        [ "$keys" -gt 1980000 ] && [ "$keys" -le 2000000 ]
    done
    ! is_sanitized || return 0
    "$CALYX" build -p 1% -o one.calyx keys
    shards=$(cat ids.* | wc -c)
    one=$(wc -c <one.calyx)
    [ $((shards * 100)) -lt $((one * 108)) ]
    "$CALYX" build --shards 4 --memory 400K -o m.calyx keys 2>/dev/null
    [ "$(cat m.* | wc -c)" -lt 440000 ]
}

@test "a name is wanted for shards, and none of them is replaced" {
    printf 'a\nb\n' >keys
    run_calyx build --shards 2 keys
    fails_with "--shards makes several files"
    "$CALYX" build --shards 2 -o ids.calyx keys
    run_calyx build --shards 2 -o ids.calyx keys
    fails_with "ids.0-of-2.calyx: exists already"
    run_calyx build --shards 2 --force -o ids.calyx keys
    is_status 0
    run_calyx build --shards 0 -o x.calyx keys
    fails_with "--shards: expected a number from 1 to 1024, found '0'"
}
