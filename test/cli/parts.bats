# One filter from many machines: calyx hash, build --part, join; and --part of
# the exact verbs.

load common

# Three lists with lines in common, as three hosts have them.
make_lists() {
    seq 1 40000 >a.txt
    seq 30000 70000 >b.txt
    seq 1 3 70000 | sort -r >c.txt
}

hash_lists() { # PARTS [OPTION]...
    local parts=$1
    shift
    for host in a b c; do
        "$CALYX" hash --parts "$parts" -o $host "$@" $host.txt
    done
}

build_parts() { # PARTS [OPTION]...
    local parts=$1
    shift
    for i in $(seq "$parts"); do
        "$CALYX" build --part "$i/$parts" -o "$i.part" "$@" \
            {a,b,c}/"$i-of-$parts.hashes"
    done
}

# ---- The same file ----------------------------------------------------------

@test "hashed, built in parts and joined is the filter of one build" {
    make_lists
    for kind in line split; do
        "$CALYX" build --kind $kind -n 70000 -p 0.1% --comment "of lists" \
            -o whole [abc].txt
        for parts in 1 3 7; do
            hash_lists $parts --kind $kind
            build_parts $parts --kind $kind -n 70000 -p 0.1% --comment "of lists"
            run_calyx join -o joined *.part
            is_status 0
            quiet
            cmp joined whole
            rm -r a b c joined ./*.part
        done
        rm whole
    done
}

@test "a ribbon filter of parts is the filter of one build, with the number of keys that hash counts" {
    seq 400000 >a.txt
    seq 300000 600000 >b.txt
    seq 5 5 600000 >c.txt
    hash_lists 2
    keys=0
    for i in 1 2; do
        keys=$((keys + $("$CALYX" hash --count ?/$i-of-2.hashes)))
    done
    [ "$keys" -eq 600000 ]
    build_parts 2 --kind ribbon -n $keys -p 1%
    "$CALYX" join -o joined 2.part 1.part
    "$CALYX" build --kind ribbon -p 1% -o whole [abc].txt
    cmp joined whole
}

@test "a part can be built from lines, which it skips if they are of other parts" {
    make_lists
    for kind in line split ribbon; do
        "$CALYX" build --kind $kind -n 70000 -o whole [abc].txt
        for i in 1 2 3; do
            "$CALYX" build --kind $kind --part $i/3 -n 70000 -o $i.part [abc].txt
        done
        "$CALYX" join -o joined *.part
        cmp joined whole
        rm joined whole ./*.part
    done
}

@test "parts without keys, and more parts than blocks, are joined alike" {
    printf 'rose\niris\n' >two.txt
    for kind in line split ribbon; do
        "$CALYX" build --kind $kind -n 2 -o whole two.txt
        for i in 1 2 3 4 5; do
            "$CALYX" build --kind $kind --part $i/5 -n 2 -o $i.part two.txt
        done
        "$CALYX" join -o joined *.part
        cmp joined whole
        rm joined whole ./*.part
    done
    "$CALYX" build -n 9 -o whole /dev/null
    "$CALYX" build --part 1/1 -n 9 -o 1.part /dev/null
    "$CALYX" join -o joined 1.part
    cmp joined whole
}

@test "the options for keys travel with the hashes" {
    for host in a b c; do
        seq 20000 | awk -v h=$host '{ print h $1 ",X" $1 }' | tr '\n' '\0' \
            >$host.txt
    done
    options=(-z -t , -k 2 -i)
    "$CALYX" build -n 20000 "${options[@]}" -o whole [abc].txt
    hash_lists 2 "${options[@]}"
    build_parts 2 -n 20000
    "$CALYX" join -o joined *.part
    cmp joined whole
    printf 'z,x5\0' | "$CALYX" check -f joined >out
    run_calyx build --part 1/2 -n 20000 -k 1 -o other {a,b,c}/1-of-2.hashes
    fails_with "a/1-of-2.hashes was hashed with -z"
    complains "come too late"
    "$CALYX" hash --parts 2 -o d a.txt --text
    run_calyx build --part 1/2 -n 20000 -o other {a,d}/1-of-2.hashes
    fails_with "and d/1-of-2.hashes with no options for keys"
}

@test "a secret key is needed to hash and to build, and not to join" {
    make_lists
    printf '0123456789abcdef' >key
    printf 'fedcba9876543210' >other
    "$CALYX" build -n 70000 --key-file key -o whole [abc].txt
    hash_lists 2 --key-file key
    build_parts 2 -n 70000 --key-file key
    "$CALYX" join -o joined *.part
    cmp joined whole
    run_calyx build --part 1/2 -n 70000 --key-file other -o x a/1-of-2.hashes
    fails_with "a/1-of-2.hashes: its hashes were made with another secret key"
    run_calyx build --part 1/2 -n 70000 -o x a/1-of-2.hashes
    fails_with "its hashes are of siphash, and the filter is to have xxh3"
}

@test "the same parts come from any number of threads, and from packed input" {
    needs zstd
    make_lists
    "$CALYX" hash -j 1 --parts 2 -o one a.txt
    zstd -q a.txt
    "$CALYX" hash -j 4 --parts 2 -o four a.txt.zst
    cmp one/1-of-2.hashes four/1-of-2.hashes
    cmp one/2-of-2.hashes four/2-of-2.hashes
}

# ---- What does not fit ------------------------------------------------------

@test "join names the part that is missing, double or of another filter" {
    make_lists
    for i in 1 2 3; do
        "$CALYX" build --part $i/3 -n 70000 -o $i.part a.txt
    done
    run_calyx join -o f 1.part 3.part
    fails_with "calyx join: part 2 of 3 is missing"
    run_calyx join -o f 1.part 2.part 2.part 3.part
    fails_with "calyx join: 2.part and 2.part are both part 2 of 3"
    "$CALYX" build --part 2/3 -n 70001 -o larger a.txt
    run_calyx join -o f 1.part larger 3.part
    fails_with "1.part and larger are parts of two filters: they differ in number of keys"
    "$CALYX" build --part 2/3 -n 70000 -i -o folded a.txt
    run_calyx join -o f 1.part folded 3.part
    fails_with "they differ in comment or properties"
    [ ! -e f ]
}

@test "join refuses damaged parts, and what is no part" {
    make_lists
    for i in 1 2; do
        "$CALYX" build --part $i/2 -n 70000 -o $i.part a.txt
    done
    cp 2.part good
    printf X | dd of=2.part bs=1 seek=20000 conv=notrunc status=none
    run_calyx join -o f 1.part 2.part
    fails_with "calyx join: 2.part: damaged: the bytes from"
    head -c 20000 good >2.part
    run_calyx join -o f 1.part 2.part
    fails_with "2.part: damaged: it has 20000 bytes"
    run_calyx join -o f 1.part a.txt
    fails_with "a.txt: not a part of a calyx filter"
    [ ! -e f ]
    "$CALYX" join -o f good 1.part
    run_calyx join -o f good 1.part
    fails_with "f: exists already; --force replaces it"
    "$CALYX" join --force -o f good 1.part
}

@test "build --part refuses hashes of another part, hash or seed, and damaged ones" {
    make_lists
    hash_lists 2 --seed 5
    run_calyx build --part 2/2 -n 70000 --seed 5 -o x a/1-of-2.hashes
    fails_with "a/1-of-2.hashes: its hashes are of part 1 of 2, not of part 2 of 2"
    run_calyx build --part 1/3 -n 70000 --seed 5 -o x a/1-of-2.hashes
    fails_with "not of part 1 of 3"
    run_calyx build --part 1/2 -n 70000 -o x a/1-of-2.hashes
    fails_with "its hashes have the seed 5, and the filter is to have 0"
    run_calyx build --part 1/2 -n 70000 --hash murmur3 --seed 5 -o x a/1-of-2.hashes
    fails_with "its hashes are of xxh3, and the filter is to have murmur3"
    run_calyx build --part 1/2 -n 70000 --seed 5 -o x a/1-of-2.hashes b.txt
    fails_with "1 of the 2 files are files of hashes"
    size=$(stat -c %s a/1-of-2.hashes)
    for at in 17 30 70 100 5000 $((size - 4)); do
        cp a/1-of-2.hashes bad.hashes
        printf '\377' | dd of=bad.hashes bs=1 seek=$at conv=notrunc status=none
        run_calyx build --part 1/2 -n 70000 --seed 5 -o x bad.hashes
        fails_with "bad.hashes: damaged: "
    done
    for bytes in 20 70 5000 $((size - 10)); do
        head -c $bytes a/1-of-2.hashes >bad.hashes
        run_calyx build --part 1/2 -n 70000 --seed 5 -o x bad.hashes
        fails_with "bad.hashes: damaged: it ends in its middle"
    done
    # The first chunk again, in place of the second: each has its own checksum.
    chunk=$((64 + $(od -An -tu4 -j56 -N4 a/1-of-2.hashes) + 8))
    bytes=$((8 + 8 * 8192 + 8))
    cp a/1-of-2.hashes bad.hashes
    tail -c +$((chunk + 1)) a/1-of-2.hashes | head -c $bytes |
        dd of=bad.hashes bs=1M oflag=seek_bytes seek=$((chunk + bytes)) conv=notrunc status=none
    run_calyx build --part 1/2 -n 70000 --seed 5 -o x bad.hashes
    fails_with "its hashes do not match their checksum"
    cp a/1-of-2.hashes bad.hashes
    printf '\001\040\000\000' | dd of=bad.hashes bs=1 seek=$chunk conv=notrunc status=none
    run_calyx build --part 1/2 -n 70000 --seed 5 -o x bad.hashes
    fails_with "a chunk claims too many hashes"
    (cat a/1-of-2.hashes; echo) >bad.hashes
    run_calyx build --part 1/2 -n 70000 --seed 5 -o x bad.hashes
    fails_with "bytes after its end"
    [ ! -e x ]
}

@test "build --part refuses kinds with several places for a key, and sizes that parts cannot agree on" {
    seq 10 >ten
    kinds=$(kinds_that ".can_be_made_of_parts | not")
    for kind in $kinds; do
        run_calyx build --part 1/2 -n 10 --kind $kind -o x ten
        fails_with "filters of kind $kind cannot be made of parts"
    done
    run_calyx build --part 1/2 -o x ten
    fails_with "--part needs --keys"
    run_calyx build --part 1/2 -n 10 --growth 2 -o x ten
    is_status 2
    run_calyx build --part 1/2 -n 10 --strict -o x ten
    fails_with "fixed size"
    run_calyx build --part 1/2 -n 10 ten
    fails_with "name it by -o"
    for part in 0/2 3/2 2 1/ /2 1/65537 a/b 1/2/3 -1/2; do
        run_calyx build --part=$part -n 10 -o x ten
        fails_with "--part: expected a part such as 3/16"
    done
    [ ! -e x ]
}

@test "a filter that is too small for files of hashes says so" {
    seq 100 >a.txt
    "$CALYX" hash --parts 4 -o a a.txt
    run_calyx build --part 1/4 -n 100 -o x a/1-of-4.hashes
    fails_with "too small for files of hashes of 4 parts: use fewer parts, or build from lines"
}

@test "parts and files of hashes are not taken for filters or lists" {
    seq 100 >a.txt
    "$CALYX" hash --parts 1 -o a a.txt
    "$CALYX" build --part 1/1 -n 100 -o 1.part a.txt
    run_calyx check -f 1.part a.txt
    fails_with "1.part: a part of a calyx filter, and no whole one: 'calyx join"
    run_calyx info a/1-of-1.hashes
    fails_with "a file of hashes, and no calyx filter"
    run_calyx build -o x a/1-of-1.hashes
    fails_with "not a list of lines but a file of hashes, for 'calyx build --part'"
    run_calyx build -o x 1.part
    fails_with "not a list of lines but a part of a calyx filter, for 'calyx join'"
}

@test "hash wants a number of parts and a folder, and replaces nothing unasked" {
    seq 100 >a.txt
    for words in "a.txt" "--parts 2 a.txt" "-o h a.txt" "--parts 2 --shards 2 -o h a.txt"; do
        run_calyx hash $words
        fails_with "missing --parts N or --shards N, or -o FOLDER"
    done
    for parts in 0 1025 x; do
        run_calyx hash --parts $parts -o h a.txt
        fails_with "from 1 to 1024"
    done
    "$CALYX" hash --parts 2 -o h a.txt
    run_calyx hash --parts 2 -o h a.txt
    fails_with "h/1-of-2.hashes: exists already"
    "$CALYX" hash --parts 2 --force -o h a.txt
    run_calyx hash --parts 2 -o a.txt a.txt
    fails_with "a.txt: not a folder"
    run_calyx hash --count a.txt
    fails_with "not a file of hashes"
    "$CALYX" hash --parts 2 --seed 1 -o other a.txt
    run_calyx hash --count h/1-of-2.hashes other/1-of-2.hashes
    fails_with "were hashed in different ways"
}

@test "a build of a part that is killed leaves nothing, and is run again" {
    mkfifo slow
    "$CALYX" build --part 1/2 -n 1000 -o 1.part slow &
    pid=$!
    exec 8>slow
    seq 1000 >&8
    kill -9 $pid
    wait $pid || true
    exec 8>&-
    [ "$(ls)" = slow ]
    seq 1000 >a.txt
    for i in 1 2; do
        "$CALYX" build --part $i/2 -n 1000 -o $i.part a.txt
    done
    "$CALYX" join -o joined 1.part 2.part
    "$CALYX" build -n 1000 -o whole a.txt
    cmp joined whole
}

@test "a full disk is reported, and leaves no file of hashes, part or filter" {
    seq 1000 >a.txt
    [ -c /dev/full ]
    ln -s /dev/full h.1
    run_calyx build --part 1/1 -n 1000 -o h.1 a.txt
    is_status 2
    "$CALYX" build --part 1/1 -n 1000 -o 1.part a.txt
    run_calyx join -o h.1 1.part
    is_status 2
    run_calyx join -o /dev/full 1.part
    is_status 2
    run_calyx hash --parts 2 -o /dev/full a.txt
    is_status 2
    # a file may have at most 1 kB here
    mkdir old
    for folder in new old; do
        run bash -c "ulimit -f 1; '$CALYX' hash --parts 2 -o $folder a.txt"
        [ "$status" -eq 2 ]
        [[ $output == *"cannot write it: File too large"* ]]
    done
    [ ! -e new ]
    [ -z "$(ls -A old)" ]
}

# ---- Exact verbs ------------------------------------------------------------

@test "the parts of common, minus and dedup are their whole result" {
    make_lists
    for verb in "common a.txt b.txt c.txt" "common --at-least 2 -c a.txt b.txt c.txt" \
        "minus a.txt c.txt" "dedup a.txt b.txt"; do
        "$CALYX" $verb >whole
        for i in 1 2 3; do
            "$CALYX" $verb --part $i/3 >part.$i
            [ -s part.$i ]
        done
        sort whole >sorted
        sort part.? | cmp - sorted
    done
}

@test "common puts the parts of a result into the order of the first file" {
    make_lists
    sort -R --random-source=<(yes) a.txt >first
    "$CALYX" common first b.txt c.txt >common
    "$CALYX" minus first c.txt >minus
    "$CALYX" dedup first >dedup
    for i in 1 2 3; do
        "$CALYX" common --part $i/3 first b.txt c.txt >common.$i
        "$CALYX" minus --part $i/3 first c.txt >minus.$i
        "$CALYX" dedup --part $i/3 first >dedup.$i
    done
    for verb in common minus dedup; do
        cat $verb.? | "$CALYX" common first - | cmp - $verb
    done
}

@test "parts of lines go by the key, and errors have the number of the line" {
    seq 3000 | awk '{ print "A" $1 "," $1 }' >a.csv
    seq 3000 | awk '{ print "a" 3001 - $1 ",x" }' >b.csv
    "$CALYX" common -t , -k 1 -i a.csv b.csv >whole
    for i in 1 2; do
        "$CALYX" common -t , -k 1 -i --part $i/2 a.csv b.csv
    done | sort >parts
    sort whole | cmp - parts
    [ "$(wc -l <parts)" -eq 3000 ]
    (seq 2000 | sed 's/$/,x/'; echo short) >short.csv
    run_calyx dedup --part 1/2 -t , -k 2 short.csv
    fails_with "short.csv:2001: missing field 2"
}

@test "a last line without an end is in its part" {
    printf 'rose\niris\nlily' >a
    cp a b
    for i in 1 2 3 4; do
        "$CALYX" common --part $i/4 a b || true
    done | sort >all
    printf 'iris\nlily\nrose\n' | cmp - all
}

# ---- Shards -----------------------------------------------------------------

@test "one shard alone, of lines or of hashes cut by shard, is the filter of a build of all" {
    make_lists
    for kind in line line2 ribbon; do
        options=(--kind $kind --shards 3 -n 70000 -i)
        "$CALYX" build "${options[@]}" -o whole.calyx [abc].txt
        hash_lists 3 --kind $kind -i
        for host in a b c; do
            "$CALYX" hash --kind $kind --shards 3 -i -o $host-shards $host.txt
        done
        for i in 1 2 3; do
            "$CALYX" build "${options[@]}" --part $i/3 -o lines.calyx [abc].txt
            cmp lines.$((i - 1))-of-3.calyx whole.$((i - 1))-of-3.calyx
            "$CALYX" build --kind $kind --shards 3 -n 70000 --part $i/3 \
                -o hashes.calyx ?-shards/$i-of-3.hashes
            cmp hashes.$((i - 1))-of-3.calyx whole.$((i - 1))-of-3.calyx
        done
        run_calyx build "${options[@]}" --part 1/3 -o x.calyx a/1-of-3.hashes
        fails_with "its hashes are cut by range, not by shard"
        run_calyx build --kind line --part 1/3 -n 70000 -o x a-shards/1-of-3.hashes
        fails_with "its hashes are cut by shard, not by range"
        rm -r -- *.calyx a b c ?-shards
    done
    run_calyx build --shards 3 -n 70000 --part 1/2 -o x.calyx a.txt
    fails_with "expected the same N"
    keys=0
    "$CALYX" hash --shards 3 -o a a.txt
    for i in 1 2 3; do
        keys=$((keys + $("$CALYX" hash --count a/$i-of-3.hashes)))
    done
    [ "$keys" -eq 40000 ]
}

@test "a part is built from a pipe of lines, and no byte of it is lost" {
    seq 5000 >a.txt
    mkfifo pipe
    cat a.txt >pipe &
    "$CALYX" build --part 1/1 -n 5000 -o 1.part pipe
    "$CALYX" build --part 1/1 -n 5000 -o 2.part - <a.txt
    cmp 1.part 2.part
    "$CALYX" join -o joined 1.part
    [ "$("$CALYX" check -c -f joined a.txt)" -eq 5000 ]
}

@test "the reader that was written from doc/FORMAT.md refuses parts, and reads what is joined" {
    seq 2000 >a.txt
    "$CALYX" hash --parts 1 -o hashes a.txt
    for i in 1 2; do
        "$CALYX" build --kind ribbon --part $i/2 -n 2000 -o $i.part a.txt
    done
    "$CALYX" join -o joined [12].part
    run python3 "$root/examples/read_filter.py" joined 7 1999
    [ "$status" -eq 0 ]
    [ "$output" = $'7\n1999' ]
    run python3 "$root/examples/read_filter.py" 1.part 7
    [ "$status" -ne 0 ]
    [[ $output == *"a part file: join all parts first"* ]]
    run python3 "$root/examples/read_filter.py" hashes/1-of-1.hashes 7
    [ "$status" -ne 0 ]
    [[ $output == *"a file of hashes"* ]]
}

@test "lines that lack their key are left out of parts, and numbers of lines stay" {
    (seq 3000 | sed 's/$/,x/'; echo short; seq 3001 6000 | sed 's/$/,y/') >a.csv
    for i in 1 2 3; do
        "$CALYX" dedup --missing=skip --part $i/3 -t , -k 1-2 a.csv
    done | sort -n >all
    grep -v short a.csv | cmp - all
    run_calyx dedup --part 2/3 -t , -k 1-2 a.csv
    fails_with "a.csv:3001: missing field 2"
}

@test "plan says what a part takes, and that is what it takes" {
    run_calyx plan -n 1e12 -p 1% --parts 1024
    is_status 0
    says "each takes 1.21 GB of memory"
    seq 200000 >a.txt
    "$CALYX" hash --parts 4 -o h a.txt
    "$CALYX" build --part 2/4 -n 200000 -o 2.part h/2-of-4.hashes
    "$CALYX" plan -n 200000 --parts 4 --json >plan
    memory=$(jq .parts.memory_bytes plan)
    part=$(stat -c %s 2.part)
    [ "$part" -ge "$memory" ]
    [ "$part" -lt $((memory + 5000)) ] # and two heads
    planned=$(jq .parts.hash_bytes plan)
    hashes=$(stat -c %s h/2-of-4.hashes)
    [ "$hashes" -gt $((planned * 98 / 100)) ]
    [ "$hashes" -lt $((planned * 102 / 100)) ]
    run_calyx plan -n 1e6 --kind flat --parts 3
    fails_with "filters of kind flat cannot be made of parts"
    for parts in 0 65537 x; do
        run_calyx plan -n 1e6 --parts $parts
        fails_with "from 1 to 65536"
    done
}

@test "plan counts the bytes that each phase reads and writes, and measures the phases" {
    for kind in line split ribbon; do
        seq 1000001 1300000 >a.txt
        "$CALYX" plan -n 300000 --kind $kind --key-bytes 7 --parts 3 --nodes 3 \
            --network 1G --calibrate -T . --json >plan
        "$CALYX" hash --kind $kind --parts 3 -o h a.txt
        for i in 1 2 3; do
            "$CALYX" build --kind $kind --part $i/3 -n 300000 -o $i.part h/$i-of-3.hashes
        done
        "$CALYX" join -o f ?.part
        [ "$(jq .parts.input_bytes plan)" -eq "$(stat -c %s a.txt)" ]
        near "$(jq .parts.hashes_written plan)" "$(cat h/* | wc -c)"
        near "$(jq .parts.hashes_moved plan)" $(($(cat h/* | wc -c) * 2 / 3))
        near "$(jq .parts.parts_written plan)" "$(cat ?.part | wc -c)"
        jq -e '.parts | .calibrated and .hash_seconds > 0 and .build_seconds > 0
            and .join_seconds > 0 and .move_seconds > 0' plan
        [ "$(find . -name 'calyx-plan-*' | wc -l)" -eq 0 ]
        rm -r h f ./*.part
    done
}

# near A B: within 3 percent
near() { [ $(($1 * 100)) -gt $(($2 * 97)) ] && [ $(($1 * 100)) -lt $(($2 * 103)) ]; }

@test "parts are chosen by the memory of the nodes, and what cannot be is said before" {
    cluster="--parts auto --nodes 64 --node-cores 16"
    run_calyx plan -n 1e12 -p 1% $cluster --node-memory 64G --disk 2T --network 10G
    is_status 0
    says "In 1024 parts"
    says "64 nodes, 16 parts at a time on each"
    # The least multiple of all cores whose parts fit.
    "$CALYX" plan -n 1e12 -p 1% --parts auto --nodes 64 --node-memory 64G --json >plan
    jq -e '.parts.parts == 64' plan
    "$CALYX" plan -n 1e12 -p 1% --parts auto --nodes 64 --node-memory 16G --json >plan
    jq -e '.parts.parts == 128' plan
    jq -e '.parts.task_memory_bytes * .parts.parts_at_once <= 0.8 * 16e9' plan
    "$CALYX" plan -n 1e5 --parts auto --nodes 64 --json >plan
    jq -e '.parts.parts == 30' plan # more would be too small for files of hashes
    # The most parts that a plan allows can be built from files of hashes.
    seq 100 >a.txt
    for kind in line split ribbon; do
        most=$("$CALYX" plan -n 1e6 --kind $kind --parts auto --json | jq .parts.most_parts)
        "$CALYX" hash --kind $kind --parts "$most" -o h-$kind a.txt
        for i in 1 2 3 $((most / 2)) $most; do
            "$CALYX" build --kind $kind --part $i/$most -n 1e6 -o part --force \
                h-$kind/$i-of-$most.hashes
        done
    done
    run_calyx plan -n 1e12 -p 1% $cluster --node-memory 16G
    fails_with "2048 parts are needed, and 'calyx hash' makes at most 1024"
    run_calyx plan -n 1e12 $cluster --node-memory 100M
    fails_with "a node with 100 MB of memory cannot build 16 parts at a time"
    run_calyx plan -n 1e12 $cluster --node-memory 64G --disk 1T
    fails_with "a node has 1.00 TB of disk, and needs"
    run bash -c "ulimit -n 256; '$CALYX' plan -n 1e12 $cluster --node-memory 64G"
    [ "$status" -eq 2 ]
    [[ $output == *"opens a file for each of 1024 parts, and may open 256 here"* ]]
    run_calyx plan -n 1e6 --parts auto --nodes 0
    fails_with "--nodes: expected a number from 1 to 65536"
    run_calyx plan -n 1e6 --kind flat --parts auto
    fails_with "filters of kind flat cannot be made of parts"
    run_calyx plan -n 1e6 --parts 4 --calibrate -T /missing
    fails_with "/missing"
}

@test "the golden part files and hashes are written and read as ever" {
    golden=$root/test/golden/parts
    seq 500 >a.txt
    for kind in line ribbon; do
        options=(--kind $kind --comment golden -i -n 500)
        for i in 1 2; do
            "$CALYX" build "${options[@]}" --part $i/2 -o $kind.$i a.txt
            cmp $kind.$i "$golden/$kind.$i.part"
        done
        "$CALYX" join -o $kind.joined "$golden/$kind".?.part
        "$CALYX" build "${options[@]}" -o $kind.whole a.txt
        cmp $kind.joined $kind.whole
    done
    "$CALYX" hash --parts 1 -i -o . a.txt
    cmp 1-of-1.hashes "$golden/1-of-1.hashes"
    "$CALYX" build --part 1/1 -n 500 --comment golden -o 1.part "$golden/1-of-1.hashes"
    "$CALYX" join -o joined 1.part
    cmp joined line.whole
}
