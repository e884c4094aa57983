# Input and output: packed, long, slow, ended early; progress and figures.

load common

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
    flowers
}

@test "gzip and zstd are unpacked by magic, from files, pipes and standard input" {
    needs gzip zstd
    seq 200000 >numbers
    echo rose >>numbers
    gzip -k numbers
    zstd -q numbers
    for file in numbers numbers.gz numbers.zst; do
        cp $file input
        run_calyx check -n -f flowers.calyx input
        prints 200001:rose
        run_calyx check -n -f flowers.calyx <input
        prints 200001:rose
        cat input | "$CALYX" check -n -f flowers.calyx >out
        prints 200001:rose
    done
    run_calyx check -c -f flowers.calyx numbers numbers.gz numbers.zst
    prints 3
}

@test "packed files may have several members" {
    needs gzip zstd
    { echo moss | gzip; echo rose | gzip; } >two.gz
    { echo moss | zstd; echo rose | zstd; } >two.zst
    run_calyx check -f flowers.calyx two.gz two.zst
    prints rose rose
}

@test "zeros after gzip data are padding, and other bytes are trouble" {
    needs gzip
    { echo moss; echo rose; } | gzip >one.gz
    { cat one.gz one.gz; head -c 300000 /dev/zero; } >padded.gz
    run_calyx check -f flowers.calyx padded.gz
    prints rose rose
    is_status 0
    quiet
    { cat padded.gz; echo garbage; } >mixed.gz
    { cat one.gz; echo garbage; } >garbage.gz
    for file in mixed.gz garbage.gz; do
        run_calyx check -f flowers.calyx $file
        fails_with "$file: damaged: after the packed data are bytes that are neither gzip data nor zeros"
        [ "$(head -1 out)" = rose ]
    done
}

@test "packed data that is damaged or cut is trouble, after what was sound" {
    needs gzip zstd
    seq 1000000 | gzip >whole.gz
    seq 1000000 | zstd -q >whole.zst
    for end in gz zst; do
        head -c 200000 whole.$end >cut.$end
        run_calyx check -v -f flowers.calyx cut.$end
        fails_with "cut.$end: damaged: the packed data ends in its middle"
        [ "$(head -1 out)" = 1 ]
        { head -c 200000 whole.$end; echo garbage; tail -c +210000 whole.$end; } >bad.$end
        run_calyx check -vc -f flowers.calyx bad.$end
        fails_with "bad.$end: damaged: this is not sound"
    done
}

# bats test_tags=full
@test "a line may be a gigabyte long, and have lines around it" {
    local long=1G
    ! is_sanitized || long=100M # far more than a block has, too
    { echo rose; head -c $long /dev/zero | tr '\0' x; printf 'y\niris\n'; } |
        "$CALYX" check -n -f flowers.calyx >out
    prints 1:rose 3:iris
    head -c 100M /dev/zero | "$CALYX" build -p 1e-8 -o long.calyx
    head -c 100M /dev/zero | "$CALYX" check -c -f long.calyx >out
    prints 1
    { head -c 100M /dev/zero; printf x; } | "$CALYX" check -q -f long.calyx && false
    true
}

@test "a closed pipe ends it in silence" {
    seq 10000000 >numbers
    set +e
    "$CALYX" check -v -f flowers.calyx numbers 2>err | head -1 >out
    status=${PIPESTATUS[0]}
    set -e
    [ $status -eq 141 ]
    quiet
    prints 1
}

@test "a signal leaves no partial file, and the old one" {
    needs gzip
    cp flowers.calyx old
    for out in flowers.calyx new.calyx flowers.calyx.gz; do
        for signal in INT TERM; do
            mkfifo lines
            env --default-signal=INT "$CALYX" build --force -o $out <lines 3>&- 5>&- &
            pid=$!
            exec 5>lines
            seq 20000 >&5 # more than a pipe holds: then it is at work
            kill -$signal $pid
            status=0
            wait $pid || status=$?
            exec 5>&-
            rm lines
            [ $status -eq $((128 + $(kill -l $signal))) ]
        done
    done
    cmp flowers.calyx old
    [ "$(ls -A)" = "$(printf 'flowers.calyx\nold')" ]
}

@test "a full disk leaves no file" {
    needs gzip
    # a file may have at most 4 kB here
    for name in a.calyx a.calyx.gz; do
        run bash -c "ulimit -f 4; seq 100000 | '$CALYX' build -o $name"
        [ "$status" -eq 2 ]
        [[ $output == *"$name: cannot write it: File too large"* ]]
    done
    [ "$(ls -A)" = flowers.calyx ]
}

# slow_lines FILE: 1000 lines, and one more once that file mentions them
slow_lines() {
    seq 1000
    await grep -q "1 000 lines" "$1"
    echo rose
}

@test "progress is shown when asked for, never in a pipe" {
    for option in --progress ""; do # both at once, as they have to wait
        slow_lines err--progress |
            "$CALYX" check $option -f flowers.calyx >out$option 2>err$option 3>&- &
    done
    wait
    quiet
    grep -q "1 000 lines" err--progress
    cmp out out--progress
}

@test "on a terminal progress is shown, unless it is not wanted" {
    for option in "" --no-progress; do
        slow_lines shown | python3 -c '
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.dup2(9, 0)
    os.execv(sys.argv[1], sys.argv[1:])
try:
    while chunk := os.read(terminal, 4096):
        os.write(1, chunk)
except OSError:
    pass
os.waitpid(pid, 0)' "$CALYX" check -f flowers.calyx $option 9<&0 >shown$option 3>&- &
    done
    wait
    grep -q rose shown
    grep -q rose shown--no-progress
    grep -q "1 000 lines" shown
    ! grep -q "1 000 lines" shown--no-progress || false
}

@test "progress of regular files shows the share and the time left" {
    local share='[0-9]+ %, [0-9 ]+ lines, .*B/s, [0-9]+:[0-9]{2} left'
    seq 3000000 >numbers
    mkfifo slow
    "$CALYX" check -v --progress -j1 -f flowers.calyx numbers numbers >slow 2>err 3>&- 5>&- &
    { head -c 30000000; await grep -qE "$share" err; cat; } <slow >/dev/null
    wait
    grep -qE "$share" err
}

@test "SIGUSR1 prints one line" {
    mkfifo lines
    "$CALYX" check -f flowers.calyx <lines >out 2>err 3>&- 5>&- &
    pid=$!
    exec 5>lines
    { seq 999; echo rose; } >&5
    await grep -q rose out # then it has read all of them
    kill -USR1 $pid
    await test -s err
    exec 5>&-
    wait $pid
    grep -qE '^calyx check: 1 000 lines, .*B/s$' err
    [ "$(wc -l <err)" = 1 ]
}

@test "--stats and --json-stats print the same" {
    printf 'rose\nmoss\n' >garden
    run_calyx check --stats --json-stats figures -f flowers.calyx garden
    is_status 0
    complains "lines          2"
    complains "bytes          10"
    complains "selected       1"
    complains "seconds        "
    complains "expected rate  "
    python3 -c '
import json
f = json.load(open("figures"))
assert f["verb"] == "check" and f["lines"] == 2 and f["bytes"] == 10, f
assert f["keys"] == 2 and f["selected"] == 1 and f["seconds"] >= 0, f
assert 0 < f["expected_rate"] < 1e-6, f'
    run_calyx build --json-stats figures -o new.calyx garden
    python3 -c '
import json
f = json.load(open("figures"))
assert f["verb"] == "build" and f["lines"] == 2 and f["fresh"] == 2, f'
    run_calyx add flowers.calyx --json-stats figures garden
    python3 -c '
import json
f = json.load(open("figures"))
assert f["verb"] == "add" and f["keys"] == 2 and f["fresh"] == 1, f'
}

@test "results can be written to a full device only with trouble" {
    run bash -c 'seq 10 | "$CALYX" check -v -f flowers.calyx >/dev/full'
    [ "$status" -eq 2 ]
    [[ $output == *"standard output: cannot write it: No space left"* ]]
}

@test "progress never goes back, though files are read several times" {
    seq 3000000 >numbers
    mkfifo slow
    trap '' USR1 # until it waits for signals itself
    "$CALYX" dedup -j1 -S 16M numbers >slow 2>err 3>&- 5>&- &
    pid=$!
    { await grep -q "%" err; cat; } <slow >out 3>&- &
    while kill -USR1 $pid 2>/dev/null; do sleep 0.005; done
    wait
    cmp out numbers
    grep -oE '^calyx dedup: +[0-9]+ %' err | grep -oE '[0-9]+' >shares
    [ -s shares ]
    sort -nc shares
}
