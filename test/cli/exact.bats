# calyx common, minus and dedup: exact, in order, in the memory they are given.

load common

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
}

# The answers, by tools that hold everything in memory.
dedup_by_awk() { awk '!seen[$0]++' "$@"; }
common_by_awk() { # of all files
    awk -v n=$# 'FNR == 1 { f++ }
        !(($0, f) in had) { had[$0, f]; in_files[$0]++ }
        !($0 in first) { first[$0]; order[++k] = $0 }
        END { for (i = 1; i <= k; i++)
                  if (in_files[order[i]] == n) print order[i] }' "$@"
}

# lists N MOST FILE...: N numbers below MOST in each, some of them in words of
# a length of their own
lists() {
    local n=$1 most=$2 file seed=1
    shift 2
    for file; do
        awk -v n="$n" -v most="$most" -v seed=$((seed++)) 'BEGIN {
            srand(seed)
            for (i = 0; i < n; i++) {
                x = int(rand() * most)
                if (x % 7 == 0) print ""
                else if (x % 7 == 1) printf "%0" 1 + x % 300 "d\n", x
                else print "https://example.org/one/prefix/for/all/" x
            }
        }' >"$file"
    done
}

# exactly BUDGET FILE...: all verbs agree with awk on these files
exactly() {
    local first
    export CALYX_TEST_BUDGET=$1
    shift
    first=$1
    run_calyx dedup "$@"
    is_status 0
    quiet
    dedup_by_awk "$@" | cmp - out
    "$CALYX" dedup -c "$@" | sort >out
    cat "$@" | sort | uniq -c | sed 's/^ *\([0-9]*\) /\1\t/' | sort | cmp - out
    "$CALYX" dedup -d "$@" | sort >out
    cat "$@" | sort | uniq -d | cmp - out
    "$CALYX" dedup -u "$@" | sort >out
    cat "$@" | sort | uniq -u | cmp - out
    "$CALYX" dedup --force --dups again "$@" >out
    awk 'seen[$0]++' "$@" | cmp - again
    [ $# -gt 1 ] || return 0
    "$CALYX" common "$@" >out || [ $? -eq 1 ]
    common_by_awk "$@" | cmp - out
    shift
    "$CALYX" minus "$first" "$@" >out || [ $? -eq 1 ]
    cat "$@" | awk 'NR == FNR { other[$0]; next } !($0 in other)' - "$first" |
        cmp - out
    "$CALYX" minus -u "$first" "$@" >out || [ $? -eq 1 ]
    cat "$@" | awk 'NR == FNR { other[$0]; next } !($0 in other) && !s[$0]++' - "$first" |
        cmp - out
    unset CALYX_TEST_BUDGET
}

# spills FILE...: it was too much for the memory
spills() {
    run_calyx "$@" --json-stats figures
    [ "$(jq .spilled_bytes figures)" -gt 0 ]
    [ "$(jq .partitions figures)" -gt 1 ]
}

@test "common: lines of all files, each once, in the order of the first" {
    printf '%s\n' rose iris rose lily '' moss >a
    printf '%s\n' moss moss '' rose fern >b
    run_calyx common a b
    is_status 0
    prints rose '' moss
    run_calyx common b a
    prints moss '' rose
    run_calyx common --count --at-least 1 a b
    prints $'2\trose' $'1\tiris' $'1\tlily' $'2\t' $'2\tmoss' $'1\tfern'
    echo nothing >c
    run_calyx common a b c
    is_status 1
    prints
}

@test "common: at least K of the files" {
    printf '%s\n' rose iris >a
    printf '%s\n' iris lily lily >b
    printf '%s\n' lily rose iris fern >c
    : >d
    run_calyx common --at-least 2 -c a b c d
    prints $'2\trose' $'3\tiris' $'2\tlily'
    run_calyx common --at-least 3 a b c d
    prints iris
    run_calyx common --at-least 5 a b c d
    fails_with "--at-least: expected a number from 1 to 4, the number of files, found 5"
    run_calyx common --at-least 0 a b c d
    fails_with "--at-least: expected at least 1, found '0'"
}

@test "minus: lines of the first in no other, as often as they are there" {
    printf '%s\n' rose moss rose '' iris moss >a
    printf '%s\n' iris '' >b
    echo fern >c
    run_calyx minus a b c
    is_status 0
    prints rose moss rose moss
    run_calyx minus --unique a b c
    prints rose moss
    run_calyx minus b a
    is_status 1
    prints
    run_calyx minus a
    fails_with "missing operand: expected 2 or more, found 1"
}

@test "minus: a filter may stand for a list, and that is said" {
    flowers
    printf '%s\n' rose moss fern lily >a
    echo fern >b
    run_calyx minus a flowers.calyx b
    is_status 0
    prints moss
    complains "flowers.calyx is a filter: about"
    complains "of the lines that it does not have are dropped, too"
}

@test "dedup: first lines in order; counts, duplicates and the rest apart" {
    printf '%s\n' rose iris rose '' lily '' rose >a
    run_calyx dedup a
    is_status 0
    prints rose iris '' lily
    run_calyx dedup -c <a
    prints $'3\trose' $'1\tiris' $'2\t' $'1\tlily'
    run_calyx dedup --only-dups a
    prints rose ''
    run_calyx dedup --only-unique a
    prints iris lily
    run_calyx dedup --dups again -o once a
    [ "$(cat again)" = "$(printf 'rose\n\nrose')" ]
    [ "$(cat once)" = "$(printf 'rose\niris\n\nlily')" ]
    run_calyx dedup a -o once
    fails_with "once: exists already; --force replaces it"
    run_calyx dedup -u -d a
    is_status 2
    printf 'last' | "$CALYX" dedup >out
    prints last
    : >empty
    run_calyx dedup empty empty
    is_status 0
    prints
}

@test "fields, case, NUL, CSV and packed files are as elsewhere" {
    needs gzip zstd
    printf 'a,1\nb,1\nA,2\n' >x
    printf 'c,2\n' | gzip >y.gz
    run_calyx common -t, -k2 x y.gz
    prints A,2
    run_calyx minus -t, -k2 x y.gz
    prints a,1 b,1
    run_calyx dedup -i -t, -k1 x
    prints a,1 b,1
    run_calyx dedup -t, -k2 -c x
    prints $'2\ta,1' $'1\tA,2'
    printf '"a\nb",1\n"c",2\n' >lines.csv
    printf 'c,3\n' >more.csv
    run_calyx minus --csv -k1 lines.csv more.csv
    prints '"a' 'b",1'
    printf 'a\0b\0a\0' | "$CALYX" dedup -z | tr '\0' '\n' >out
    prints a b
    printf 'a\r\na\nb\r\n' | "$CALYX" dedup --crlf -c >out
    prints $'2\ta\r' $'1\tb\r'
    # a made key must not be printed for an empty line
    printf '\nx\n\n' | CALYX_TEST_BUDGET=100 "$CALYX" dedup -c -k1,1 >out
    prints $'2\t' $'1\tx'
    run_calyx dedup -k2 -t, x more.csv y.gz /dev/null -o packed.zst
    [ "$(zstd -dcq packed.zst | wc -l)" = 3 ]
    run_calyx common -k 9 x y.gz
    fails_with "y.gz:1: missing field 9: found 1 field"
}

@test "exact on random lists, with memory for all or for little" {
    lists 20000 15000 a b c
    for budget in 100000000 1000000 100000; do
        exactly $budget a b
    done
    exactly 200000 a b c
    CALYX_TEST_BUDGET=200000 spills dedup a b c
    CALYX_TEST_BUDGET=200000 spills common a b c
    CALYX_TEST_BUDGET=200000 spills minus a b c
}

@test "exact on twenty files, some empty" {
    names=$(seq -f 'list%g' 19)
    lists 300 60 $names
    : >none
    exactly 50000 $names
    exactly 20000 list1 none list2
    "$CALYX" common --at-least 19 $names none >out
    common_by_awk $names | cmp - out
}

# bats test_tags=full
@test "exact when all lines are equal, all different, long, or nearly the same" {
    n=100000
    ! is_sanitized || n=30000
    yes same | head -n $n >equal
    seq $n >different
    awk 'BEGIN { srand(3); for (i = 0; i < 60; i++) {
        line = ""; n = int(rand() * 30)
        while (n--) line = line sprintf("%04000d", 0)
        print line i % 20 } }' >long
    awk 'BEGIN { p = sprintf("%0500d", 0)
        for (i = 0; i < 4000; i++) print p (i * 7919) % 3000 }' >prefix
    exactly 100000 equal different
    exactly 100000 long prefix long
    exactly 1000 long long
    exactly 300000 prefix equal
    exactly 1000000 different equal different
}

@test "exact with a hash that has three values" {
    export CALYX_TEST_POOR_HASH=3
    lists 2000 1500 a b
    for budget in 10000000 60000 10000; do
        exactly $budget a b
    done
    unset CALYX_TEST_POOR_HASH
}

@test "the last lines of a file are compared, whichever thread finds their hashes" {
    # 28 lines, all duplicates, share the last word of marks
    { seq 300000; seq 60; } >numbers
    CALYX_TEST_BUDGET=500000 run_calyx dedup -j 8 numbers
    is_status 0
    seq 300000 | cmp - out
}

# bats test_tags=full
@test "a model agrees on random lines, options, budgets, threads and poor hashes" {
    cases=150
    ! is_sanitized || cases=40
    /usr/bin/python3 "$BATS_TEST_DIRNAME/exact_model.py" "$CALYX" 1 $cases
}

@test "one pass: of equal lines in neighbouring blocks the first is printed" {
    # a line is there again some thousand lines later, which is a few blocks
    awk 'BEGIN { srand(5); for (i = 0; i < 300000; i++)
        print "https://example.org/" int(i / 3) + int(rand() * 40000) }' >a
    awk 'BEGIN { srand(6); for (i = 0; i < 200000; i++)
        print "https://example.org/" int(i / 2) + int(rand() * 30000) }' >b
    awk '!seen[$0]++' a >first
    awk 'NR == FNR { b[$0] = 1; next } b[$0] && !seen[$0]++' b a >both
    awk 'NR == FNR { b[$0] = 1; next } !b[$0] && !seen[$0]++' b a >rest
    # the last line of many blocks is the first of the next, which is read before it
    seq 500000 >once
    sed p once >twice
    export CALYX_TEST_BUDGET=100000000
    for threads in 4 4 8 8; do "$CALYX" dedup -j $threads twice | cmp - once; done
    gzip -k a
    for threads in 1 4 8; do
        for input in a a.gz -; do
            cat a | "$CALYX" dedup -j $threads --json-stats figures $input |
                cmp - first
            jq -e '.passes == 1 and .candidates < .lines' figures
            cat a | "$CALYX" common -j $threads $input b | cmp - both
            cat a | "$CALYX" minus -u -j $threads $input b | cmp - rest
        done
    done
}

@test "one pass: a pipe that outgrows the memory goes on in the engine" {
    lists 20000 1000000 a b
    lists 40000 900 few
    cat b few a >c
    dedup_by_awk c >once
    common_by_awk c b >both
    awk 'NR == FNR { b[$0]; next } !($0 in b)' b c >rest
    awk 'NR == FNR { b[$0]; next } !($0 in b)' c b >none
    gzip -k b
    for budget in 100000 200000 700000 1500000 3000000 6000000; do
        export CALYX_TEST_BUDGET=$budget
        cat c | "$CALYX" dedup -j 2 | cmp - once
        cat b few | "$CALYX" dedup -j 3 - a | cmp - once
        cat c | "$CALYX" common -j 1 - b.gz | cmp - both
        cat b | "$CALYX" common -j 2 c - | cmp - both
        cat c | "$CALYX" minus -j 2 - b.gz | cmp - rest
        cat c | "$CALYX" minus -j 3 b.gz - | cmp - none
        cat c | CALYX_TEST_POOR_HASH=3000 "$CALYX" dedup -j 2 | cmp - once
    done
}

@test "one pass: no line is lost where a block ends with the memory for the text" {
    needs gzip
    seq -f '%063.0f' 50000 >lines # 64 bytes each
    gzip -k lines
    head -n 40000 lines | tail -n 100 >late
    # half of the budget is for the text: 2^21 + 1 bytes
    for budget in 4194304 4194306; do
        export CALYX_TEST_BUDGET=$budget
        run_calyx dedup -j 1 lines.gz
        is_status 0
        cmp lines out
        run_calyx minus -j 1 late lines.gz
        is_status 1
        prints
        run_calyx common -j 1 lines.gz late
        is_status 0
        cmp late out
    done
}

@test "one pass: a file that cannot be opened after a pipe that outgrows the memory is an error" {
    seq 20000 >many
    echo last >after
    # One hash for all lines is slow: so the files after the pipe are opened
    # before the pipe is read again.
    export CALYX_TEST_POOR_HASH=1 CALYX_TEST_BUDGET=200000
    run_calyx dedup -j 4 <(cat many) absent after
    fails_with "absent: cannot open it"
}

@test "one pass: lines of a pipe are printed as they come" {
    mkfifo lines
    "$CALYX" dedup lines >out 3>&- &
    exec 5>lines
    printf 'one\none\ntwo\n' >&5
    for _ in $(seq 600); do
        [[ $(<out) == *two* ]] && break
        sleep 0.1
    done
    printf 'one\ntwo\n' | cmp - out
    echo three >&5
    exec 5>&-
    wait
    printf 'one\ntwo\nthree\n' | cmp - out
}

@test "one pass: a mark of UTF-8, empty files and a last line without its end" {
    export CALYX_TEST_BUDGET=10000000
    printf '\357\273\277one\ntwo\nno end' >a
    printf 'no end\none\n\nno' >b
    : >none
    printf '\n' >newline
    "$CALYX" dedup --json-stats figures a none b newline a >out
    printf 'one\ntwo\nno end\n\nno\n' | cmp - out
    jq -e '.passes == 1' figures
    "$CALYX" common b a >out
    printf 'no end\none\n' | cmp - out
    "$CALYX" minus b newline a >out
    printf 'no\n' | cmp - out
    printf 'one\0two\0one' >a
    printf 'two\0one\0' >b
    "$CALYX" dedup -z a b | cmp - <(printf 'one\0two\0')
}

@test "one pass: many more lines than estimated are printed once, all the same" {
    seq -f '%01000.0f' 1200 >start
    { cat start; seq 600000; seq 1000; } >many
    export CALYX_TEST_BUDGET=100000000
    "$CALYX" dedup --json-stats figures many | cmp - <(cat start; seq 600000)
    jq -e '.passes == 1' figures
    CALYX_TEST_BUDGET=8000000 "$CALYX" dedup --json-stats figures many |
        cmp - <(cat start; seq 600000)
    jq -e '.passes == 3' figures
    "$CALYX" minus -u many start | cmp - <(seq 600000)
    "$CALYX" common many many | cmp - <(cat start; seq 600000)
    "$CALYX" dedup -o new many
    cmp new <(cat start; seq 600000)
}

@test "one pass: a file that is cut meanwhile is trouble" {
    seq 1000000 >a
    mkfifo lines
    status=0
    CALYX_TEST_BUDGET=100000000 "$CALYX" dedup a >lines 2>err 3>&- 5>&- &
    pid=$!
    exec 5<lines
    head -c 100 <&5 >/dev/null # it prints, and waits for a reader
    truncate -s 1000 a
    cat <&5 >/dev/null
    exec 5<&-
    wait $pid || status=$?
    is_status 2
    [[ $(<err) == *"a: "*"shrank from"* || $(<err) == *"a: "*"its bytes are gone"* ]]
}

@test "one pass: a file that changes behind its reader is trouble" {
    seq 600000 >a
    seq 500000 600000 >b # read first
    touch -d yesterday b
    status=0
    { CALYX_TEST_BUDGET=100000000 "$CALYX" minus a b 2>err || echo "exit $?"; } |
        { read -r _; printf 7 | dd of=b conv=notrunc status=none; cat; } >out
    [[ $(tail -n1 out) == "exit 2" ]]
    [[ $(<err) == *"b: changed while it was read"* ]]
}

# interrupted CHANGE VERB...: run it; it prints, and waits for a reader, who first
# changes the file. What it printed is left in the file `out`.
interrupted() {
    local change=$1
    shift
    { "$CALYX" "$@" 2>err || echo "exit $?"; } | { IFS= read -r first; eval "$change"; echo "$first"; cat; } >out
}

@test "of a file that grows meanwhile the bytes are read that it had at the start" {
    seq 300000 >b
    # in memory; for hashes first; for hashes first and in several passes; in temporary files
    for budget in 100000000 3000000 1000000; do
        for options in "" "-c -k 1"; do
            { seq 200000; seq 100000; printf '200001'; } >a # a last line without its end
            CALYX_TEST_BUDGET=$budget interrupted 'seq 400000 >>a' dedup $options a
            sed -i 's/^.\t//' out
            cmp out <(seq 200001)
        done
        { seq 200000; printf '200001'; } >a
        CALYX_TEST_BUDGET=$budget interrupted 'seq 400000 >>a' common a b
        cmp out <(seq 200001)
        { seq 200000; printf '200001'; } >a
        seq 300000 500000 >c
        CALYX_TEST_BUDGET=$budget interrupted 'seq 400000 >>a; seq 200000 >>c' minus a c
        cmp out <(seq 200001)
    done
    : >a # one that is empty stays so
    run_calyx dedup a
    prints
}

@test "a file that grows meanwhile, and whose first bytes change, is trouble" {
    { seq 200000; seq 100000; } >start
    # 160000 becomes 770000. Two passes; and with spilled keys, which a third pass prints
    for budget in 3000000 300000; do
        cp start a
        CALYX_TEST_BUDGET=$budget interrupted \
            'printf 77 | dd of=a bs=1 seek=1008888 conv=notrunc status=none; echo more >>a' \
            dedup -j1 --json-stats figures a
        [[ $(tail -n1 out) == "exit 2" ]]
        [[ $(<err) == *"a: changed while it was read"* ]]
    done
}

@test "a file of /proc, which says that it has no bytes, is read" {
    "$CALYX" dedup /proc/version | cmp - /proc/version
    "$CALYX" common /proc/version /proc/version | cmp - /proc/version
}

@test "pipes are read once, and give what files give" {
    lists 20000 9000 a b
    export CALYX_TEST_BUDGET=300000
    for verb in common minus dedup "dedup -c"; do
        "$CALYX" $verb a b >wanted
        "$CALYX" $verb <(cat a) <(cat b) | cmp - wanted
        cat b | "$CALYX" $verb a - | cmp - wanted
        "$CALYX" $verb -j1 a b | cmp - wanted
    done
    run_calyx common - - </dev/null
    fails_with "standard input is named 2 times; it can be read once"
    # a pipe under another name is the same pipe; a file is opened anew
    run_calyx common /dev/stdin - < <(cat a)
    fails_with "standard input is named 2 times; it can be read once"
    "$CALYX" common /dev/stdin a /dev/stdin <a | cmp - <("$CALYX" dedup a)
}

@test "a stream is printed as it comes" {
    mkfifo lines
    "$CALYX" dedup <lines >out 3>&- 5>&- &
    exec 5>lines
    printf 'rose\nrose\n' >&5
    await test -s out
    prints rose
    echo iris >&5
    exec 5>&-
    wait
    prints rose iris
}

# within MEM-KIB WORDS...: memory stays at most 32 MiB above; and all that is
# mapped, the program itself included, within ADDRESSES KiB, if they are set
within() {
    local most=$(($1 + 32768))
    shift
    python3 - $most "$CALYX" "$@" <<'PYTHON'
import os, resource, subprocess, sys

def limit():
    if most := int(os.environ.get("ADDRESSES", 0)) << 10:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

status = subprocess.run(sys.argv[2:], preexec_fn=limit).returncode
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(f"status {status}, {peak} KiB at most", file=sys.stderr)
sys.exit(status not in (0, 1) or peak > int(sys.argv[1]))
PYTHON
}

# bats test_tags=full
@test "memory stays within the cap, with input many times as large" {
    ! is_sanitized || skip "not with a sanitizer"
    set -o pipefail
    seq -f 'https://www.example.org/some/list/of/pages/%.0f' 1 2850000 >all
    head -n 1500000 all >a
    tail -n +1350000 all >b
    export ADDRESSES=81920
    within 15625 common -S 16M a b | cmp - <(tail -n +1350000 a)
    within 15625 common -S 16M --at-least 1 a b | cmp - all
    within 15625 minus -S 16M a b | cmp - <(head -n 1349999 a)
    within 15625 dedup -S 16M a b | cmp - all
    mkfifo numbers
    seq 3000000 >numbers &
    within 15625 dedup -c -S 16M numbers | cmp - <(seq -f $'1\t%.0f' 3000000)
    unset ADDRESSES
    head -c 5000000 /dev/zero | tr '\0' '\n' >short
    within 15625 dedup -S 16M short | cmp - <(echo)
}

# bats test_tags=full
@test "memory stays within the cap, with input fifty times as large" {
    ! is_sanitized || skip "not with a sanitizer"
    [ -n "$CALYX_LONG" ] || skip "only with CALYX_LONG"
    python3 - <<'PYTHON'
tail = "/" + 60 * "x" + "\n"
for name, first in ("a", 1000000), ("b", 4900000):
    with open(name, "w") as out:
        for at in range(first, first + 4100000, 100000):
            out.write("".join(f"https://www.example.org/pages/{i}{tail}"
                              for i in range(at, at + 100000)))
PYTHON
    [ $(($(stat -c %s a) + $(stat -c %s b))) -ge 800000000 ]
    set -o pipefail
    export ADDRESSES=81920
    within 15625 common -S 16M a b | cmp - <(tail -n 200000 a)
    within 15625 minus -S 16M a b | cmp - <(head -n 3900000 a)
    within 15625 dedup -S 16M a b | cmp - <(cat a; tail -n +200001 b)
    cat a b | (ulimit -v 81920; "$CALYX" dedup -S 16M) |
        cmp - <(cat a; tail -n +200001 b)
}

# bats test_tags=full
@test "ulimit -v lowers the budget, and threads start nevertheless" {
    if is_sanitized; then skip "its shadow memory needs more addresses"; fi
    seq 500000 >a
    sed 's/^/1\t/' a >counted
    limited() { (ulimit -v "$1"; shift; "$CALYX" "$@"); }
    limited 60000 dedup -j2 a | cmp - a
    limited 60000 dedup -j2 <a | cmp - a
    limited 60000 dedup -j2 -c a | cmp - counted
    limited 150000 dedup -j16 -c a | cmp - counted
    # a pipe that outgrows the memory for it: its addresses are released
    seq 3000000 >many
    for most in 70000 80000 120000; do
        { cat many; seq 2000000; } | (ulimit -d $most; "$CALYX" dedup) | cmp - many
    done
    status=0
    limited 30000 dedup -j64 a >out 2>err || status=$?
    is_status 2
    [ "$(wc -l <err)" = 1 ] # of 64 threads
    grep -q -e '-[jS] ' err
}

# bats test_tags=full
@test "lines that are shorter than the first megabyte of them" {
    # marks would take more than there is
    { seq -f '%0500.0f' 3000; yes '' | head -n 6000000; seq 3000; } >short
    { seq -f '%0500.0f' 3000; echo; seq 3000; } >wanted
    export CALYX_TEST_BUDGET=2000000
    "$CALYX" dedup short | cmp - wanted
    unset CALYX_TEST_BUDGET
    ! is_sanitized || return 0
    set -o pipefail
    within 15625 dedup -S 16M short | cmp - wanted
}

@test "approximate answers say what they lose, and lose no more" {
    seq 100000 >a
    seq 50001 150000 >b
    run_calyx dedup --approx a b
    is_status 0
    complains "approximate: up to 1 % of the distinct lines are mistaken for duplicates, and lost"
    complains "distinct lines were lost"
    [ "$(wc -l <out)" -le 150000 ] && [ "$(wc -l <out)" -gt 148000 ]
    run_calyx common --approx=0.1% a b
    complains "approximate: up to 0.1 % of the lines that are not common are printed"
    seq 50001 100000 | comm -23 <(seq 50001 100000 | sort) <(sort out) >lost
    [ ! -s lost ]
    [ "$(wc -l <out)" -lt 50100 ]
    run_calyx minus --approx=1/1000 a b
    complains "are lost"
    comm -23 <(sort out) <(seq 50000 | sort) >wrong
    [ ! -s wrong ]
    [ "$(wc -l <out)" -gt 49900 ]
    run_calyx common --approx=2 a b
    fails_with "--approx: expected a rate"
    run_calyx dedup --approx -c a
    is_status 2
    seq 1000000 | CALYX_TEST_BUDGET=1000000 "$CALYX" dedup --approx=1e-5 >/dev/null 2>err || status=$?
    [ "$status" = 2 ]
    complains "the filter would take more than --memory allows"
}

# false_lines: the lines of `out` that are not in `right`
false_lines() {
    comm -13 <(sort right) <(sort out) | wc -l
}

@test "common --approx of three files says what all filters may let through" {
    seq 1 2 100000 >a
    seq 1 3 100000 >b
    seq 1 5 100000 >c
    seq 1 30 100000 >right
    run_calyx common --approx=10% a b c
    is_status 0
    said=$(sed -n 's/.*about \(.*\) of the lines printed are not common, or fewer/\1/p' err | tr -d ' ')
    [ "$(false_lines)" -gt 1000 ]
    [ "$(false_lines)" -le "$said" ]
}

@test "--approx makes a filter of what -S gives, and says the rate that follows" {
    seq 300000 >a
    seq 285001 585000 >b
    seq 285001 300000 >right
    export CALYX_TEST_BUDGET=240000 # 6.4 bits a line
    run_calyx common --approx a b --dry-run --json-stats plan
    says "filter         240 kB"
    says "rate           4."
    run_calyx common --approx=5% a b --json-stats figures
    is_status 0
    complains "approximate: up to 5 % of the lines that are not common are printed"
    jq -e '.filter_bytes <= 240000' figures
    comm -23 <(sort right) <(sort out) >lost
    [ ! -s lost ]
    [ "$(false_lines)" -lt 14250 ] # 5 % of 285000; 4.9 % are expected, 116 are 1 %
    [ "$(false_lines)" -gt 12500 ]
    run_calyx common --approx=1% a b
    fails_with "a filter of about 301"
    complains "in 240 kB of memory has a rate of 4."
    for words in "common a b" "minus a b" "dedup a b" "minus a b b"; do
        # shellcheck disable=SC2086
        run_calyx ${words/ / --approx } --dry-run --json-stats plan
        # shellcheck disable=SC2086
        run_calyx ${words/ / --approx } --json-stats figures
        is_status 0
        jq -e --slurpfile plan plan '.filter_bytes == $plan[0].filter_bytes' figures
    done
    run_calyx common --approx --dry-run --assume 2x20000
    says "rate           1 %"
    CALYX_TEST_BUDGET=1000 run_calyx common --approx a b
    fails_with "allow more with --approx=RATE, or more memory with -S"
}

@test "--approx has a filter of the smallest file, wherever that stands" {
    seq 1 3 300000 >large
    seq 1 2 20000 >small
    seq 1 6 20000 >both
    for files in "large small" "small large" "large small large" "small large large" \
        "large large small"; do
        # shellcheck disable=SC2086
        run_calyx common --approx=0.1% $files --json-stats figures
        is_status 0
        cp both right
        comm -23 <(sort right) <(sort out) >lost
        [ ! -s lost ]
        [ "$(false_lines)" -lt 200 ]
        jq -e '.filter_bytes < 30000' figures
    done
    run_calyx minus --approx=0.1% small large --json-stats figures
    seq 1 2 20000 | comm -23 <(seq 1 2 20000 | sort) <(sort both) >right
    [ "$(false_lines)" = 0 ]
    [ "$(wc -l <out)" -gt $(($(wc -l <right) - 30)) ]
    jq -e '.filter_bytes < 30000' figures
}

@test "--approx says so when there are more lines than the first megabyte suggests" {
    awk 'BEGIN { for (i = 0; i < 1100; i++) printf "%01000d\n", i }' >a
    seq 400000 >>a
    run_calyx dedup --approx a
    is_status 0
    complains "the rate became "
    complains "there are more lines than the first megabyte of each file suggests"
}

@test "--dry-run prints a plan and does nothing" {
    seq 1000000 >a
    run_calyx dedup --dry-run -S 16M -o new a
    is_status 0
    says "input          about 1 000 000 lines, 6.89 MB"
    says "               likely         worst"
    says "passes         2              "
    says "spilled        none           "
    says "time, about    "
    says "free space     "
    [ ! -e new ]
    run_calyx dedup --dry-run -S 16M -c a
    says "passes         1              1"
    says "temporary      "
    run_calyx dedup --dry-run - </dev/null
    says "a pipe, of unknown size"
    run_calyx dedup --dry-run --approx a
    is_status 0
    says "passes         1"
    says "filter         1.3"
    says "rate           1 %"
    run_calyx common --dry-run --approx a <(echo)
    says "a pipe, of unknown size"
    run_calyx minus --dry-run --approx=0.1% a a
    says "input          about 2 "
}

@test "--dry-run takes samples of fields of files over 4 GB" {
    seq 1000 | sed 's/$/\tx/' >wide
    truncate -s 5G wide
    run_calyx dedup --dry-run -k 2 wide
    is_status 0
    says "passes"
    rm wide
}

@test "--dry-run --assume plans for files that do not exist" {
    run_calyx common -S 4G --dry-run --assume 5G,64 first second
    is_status 0
    says "input          about 10 000 000 000 lines, 640 GB"
    says "candidates     1 000 000 000  10 000 000 000"
    says "read           1."
    says "temporary      7"
    run_calyx dedup --dry-run --assume 1000 first
    says "input          about 1 000 lines, 64.0 kB"
    run_calyx dedup --assume 1000 first
    fails_with "option --assume goes with --dry-run only"
    for wrong in 0 5,0 x 5, 1e19,1e6 0x5 ax5 5,64x5 70000x5 1x 1x1x1; do
        run_calyx dedup --dry-run --assume $wrong first
        fails_with "--assume: expected a number of lines, or LINES,BYTES, or FILESxLINES,BYTES, such as 3x5G,64; found '$wrong'"
    done
}

@test "--dry-run --assume knows how many files there are, and names none" {
    run_calyx common -S 4G --dry-run --assume 5G,64 one two three
    grep -v "free space" out >named
    for assumed in 3x5G,64 "5G,64 --assume 2x5G,64"; do
        # shellcheck disable=SC2086
        run_calyx common -S 4G --dry-run --assume $assumed
        is_status 0
        grep -v "free space" out | cmp - named
    done
    says "temporary      97" # two files: 79
    run_calyx dedup --dry-run --assume 1000
    says "input          about 1 000 lines, 64.0 kB"
    run_calyx minus --dry-run --assume 1000 --assume 500,100
    says "input          about 1 500 lines, 114 kB"
    run_calyx common --dry-run --assume 1000
    fails_with "missing operand: expected 2 or more, found 1"
    run_calyx common --dry-run --assume 3x1000 one two three
    fails_with "option --assume stands for several files: name none, not '"
    run_calyx common --assume 3x1000
    fails_with "option --assume goes with --dry-run only"
}

# keeps_plan WORDS...: passes, bytes read, bytes spilled and the temporary files
# at once are within 20 % of the plan
keeps_plan() {
    "$CALYX" "$@" --dry-run --json-stats plan >/dev/null
    "$CALYX" "$@" --force --json-stats figures >out || [ $? -eq 1 ]
    jq -n --slurpfile plan plan --slurpfile ran figures --arg words "$*" '
        ["passes", "read_bytes", "spilled_bytes", "temporary_bytes"] |
        map({name: ., plan: $plan[0][.], ran: $ran[0][.]}) |
        map(select((.plan - .ran | fabs) > .ran / 5)) |
        if . == [] then empty else error("\($words): \(.)") end'
}

# bats test_tags=full
@test "the plan is within 20 % of the run: spilling or not, hot keys, long lines, few or many duplicates" {
    needs gzip
    ! is_sanitized || skip "not with a sanitizer"
    seq -f 'https://www.example.org/some/list/%.0f' 300000 >unique
    seq -f 'https://www.example.org/some/list/%.0f' 270001 570000 >next
    awk 'BEGIN { srand(1); for (i = 0; i < 300000; i++)
        print "https://www.example.org/some/list/" int(rand() * 200000) }' >many
    awk 'BEGIN { srand(2); for (i = 0; i < 300000; i++)
        print rand() < .7 ? "hot" int(rand() * 20) : "https://www.example.org/cold/" i }' >hot
    awk 'BEGIN { srand(3); for (i = 0; i < 7000; i++)
        printf "%01500d%d\n", 0, int(rand() * 5000) }' >long
    gzip -k unique
    export CALYX_TEST_BUDGET=5000000
    for file in unique many hot long; do
        keeps_plan dedup $file
        keeps_plan dedup -c $file
    done
    keeps_plan dedup -d many
    keeps_plan dedup --dups again many
    keeps_plan dedup unique.gz
    keeps_plan dedup -t / -k 3 unique
    keeps_plan common unique next
    keeps_plan common many unique
    keeps_plan common unique unique
    keeps_plan common --at-least 1 unique next
    keeps_plan minus unique next
    keeps_plan minus -u many next
    export CALYX_TEST_BUDGET=100000000
    keeps_plan dedup many
    keeps_plan common unique next
    keeps_plan minus unique many
}

# some_common STEP FILE...: 90000 lines in each, one of STEP in all
some_common() {
    local step=$1 file i=0
    shift
    for file; do
        awk -v i=$((++i)) -v step="$step" 'BEGIN { for (k = 0; k < 90000; k++)
            printf "https://example.org/one/prefix/for/all/%d/%017d\n",
                k % step ? i : 0, k * 7919 }' >"$file"
    done
}

@test "common of three and more files writes what two of them do" {
    local two
    some_common 20 f1 f2 f3 f4
    export CALYX_TEST_BUDGET=700000
    "$CALYX" common f1 f2 --json-stats figures >out
    two=$(jq .temporary_bytes figures)
    [ "$two" -gt 0 ]
    for files in "f1 f2 f3" "f1 f2 f3 f4"; do
        # shellcheck disable=SC2086
        keeps_plan common $files
        # shellcheck disable=SC2086
        common_by_awk $files | cmp - out
        jq -e ".temporary_bytes <= 1.5 * $two" figures
        jq -e '.read_bytes < 2 * .bytes and .lines % 90000 == 0' figures
    done
}

@test "common of three files whose common keys do not fit: more passes, or spills" {
    export CALYX_TEST_BUDGET=300000
    some_common 15 f1 f2 f3
    "$CALYX" common f1 f2 f3 --json-stats figures >out
    common_by_awk f1 f2 f3 | cmp - out
    jq -e '.passes > 2 and .partitions > 1' figures
    some_common 2 f1 f2 f3
    "$CALYX" common f1 f2 f3 --json-stats figures >out
    common_by_awk f1 f2 f3 | cmp - out
    jq -e '.passes == 3 and .partitions > 20' figures
}

@test "too little space for the likely temporary files is refused, unless forced" {
    seq 300000 >a
    export CALYX_TEST_BUDGET=1000000 CALYX_TEST_SPACE=100000
    run_calyx dedup -c a
    fails_with "of temporary files are likely, and"
    complains "has 100 kB left; -T names another folder, -S gives more memory, --force begins all the same"
    run_calyx dedup -c --dry-run a
    is_status 0
    says ": too little, even for the likely case"
    run_calyx dedup -c --force a
    is_status 0
    [ "$(wc -l <out)" = 300000 ]
    CALYX_TEST_SPACE=100000000 run_calyx dedup -c a
    is_status 0
}

@test "--stats prints lines, candidates and what was spilled" {
    seq 200000 >a
    seq 190001 400000 >b
    CALYX_TEST_BUDGET=2000000 run_calyx common --stats --json-stats figures a b
    complains "lines          410 000"
    complains "common         10 000"
    jq -e '.lines == 410000 and .common == 10000 and .passes == 2 and
        .candidates >= 20000 and .candidates < 40000 and
        .false_candidates == .distinct - .common' figures
    run_calyx dedup --json-stats figures a b
    jq -e '.lines == 410000 and .distinct == 400000 and .duplicates == 10000 and
        .spilled_bytes == 0 and .partitions == 1' figures
}

@test "options that make no sense are refused" {
    echo a >a
    run_calyx dedup -S 1M a
    fails_with "--memory: expected at least 16M, found 1000000 bytes"
    run_calyx dedup -T nowhere a
    fails_with "nowhere: cannot use it for temporary files: No such file"
    run_calyx dedup -T a a
    fails_with "a: found a file, expected a folder for temporary files"
    run_calyx common a missing
    fails_with "missing: cannot open it: No such file"
}

@test "no room for temporary files: trouble, and no partial result" {
    seq 300000 >a
    mkdir temporary
    # a file may have at most 64 kB here
    run bash -c "ulimit -f 64; CALYX_TEST_BUDGET=1000000 '$CALYX' common --at-least 1 -T temporary -o new a a"
    [ "$status" -eq 2 ]
    [[ $output == *"temporary: cannot write temporary files"*"File too large"* ]]
    [ ! -e new ]
    [ -z "$(ls -A temporary)" ]
    [ "$(ls -A)" = "$(printf 'a\ntemporary')" ]
}

@test "a file that shrinks or changes while it is read is trouble" {
    needs gzip
    seq 1000000 >a
    mkfifo b
    "$CALYX" common a b -o new 2>err 3>&- 5>&- &
    pid=$!
    exec 5>b
    seq 100000 >&5 # more than a pipe holds: then it reads b, after a
    truncate -s 1000 a
    exec 5>&-
    status=0
    wait $pid || status=$?
    fails_with "a: shrank from 6888896 to 1000 bytes while it was read"
    [ ! -e new ]
    { seq 100000 | gzip | head -c 100000; } >cut.gz
    run_calyx dedup -o new cut.gz
    fails_with "cut.gz: damaged"
    [ ! -e new ]
    run_calyx dedup -o new .
    fails_with ".: cannot read it: Is a directory"
    [ ! -e new ]
}

@test "signals leave nothing behind, not even SIGKILL" {
    mkdir temporary
    seq 1000000 >a
    for signal in INT TERM KILL; do
        rm -f lines
        mkfifo lines
        CALYX_TEST_BUDGET=1000000 env --default-signal=INT \
            "$CALYX" dedup -T temporary -o new <lines 3>&- 5>&- &
        pid=$!
        exec 5>lines
        cat a >&5 # more than a pipe holds: then it is at work
        kill -$signal $pid
        status=0
        wait $pid || status=$?
        exec 5>&-
        [ $status -eq $((128 + $(kill -l $signal))) ]
        [ ! -e new ]
        [ -z "$(ls -A temporary)" ]
        [ "$(ls -A)" = "$(printf '%s\n' a lines temporary)" ]
    done
}
