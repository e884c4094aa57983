# Filters that are mapped, and what others do to their files meanwhile.

load common

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
    seq 100000 | "$CALYX" build -p 1e-6 -o numbers.calyx
    cp numbers.calyx good
}

# answers WORDS...: run it with `numbers.calyx` open, as one answer shows; then
# $change the file, ask for more, and wait for the end.
answers() {
    mkfifo lines replies
    "$CALYX" "$@" <lines >replies 2>err 3>&- 5>&- 6>&- &
    local pid=$!
    exec 5>lines 6<replies
    echo one more >&5
    read -r -t 60 reply <&6
    [ "$reply" = "one more" ]
    $change
    # whatever is read next is gone
    seq 1000 2>/dev/null >&5 || :
    exec 5>&-
    cat <&6 >out
    status=0
    wait $pid || status=$?
    exec 6<&-
    rm lines replies
}

@test "a filter that is cut while it is used is trouble with its name, not a signal" {
    change="truncate -s 0 numbers.calyx"
    for words in "check -v -f" "add --new"; do
        cp good numbers.calyx
        answers $words numbers.calyx
        fails_with "$PWD/numbers.calyx: its bytes are gone: while it was used another program cut it"
        [ "$(wc -l <err)" -eq 1 ]
    done
}

@test "a bus error leaves no half-written output" {
    mkfifo lines
    "$CALYX" minus lines numbers.calyx -o out.txt.gz 2>err 3>&- 5>&- &
    pid=$!
    exec 5>lines # minus opens its output first, and then this
    truncate -s 0 numbers.calyx
    seq 1000 2>/dev/null >&5 || :
    exec 5>&-
    status=0
    wait $pid || status=$?
    fails_with "numbers.calyx: its bytes are gone"
    [ "$(ls -A)" = "$(printf '%s\n' err good lines numbers.calyx)" ]
}

@test "a SIGBUS that somebody sends ends it as it always did" {
    mkfifo lines
    "$CALYX" check -f numbers.calyx <lines 2>err 3>&- 5>&- &
    pid=$!
    exec 5>lines
    until grep -qs numbers.calyx /proc/$pid/maps; do sleep 0.02; done
    kill -BUS $pid
    status=0
    wait $pid || status=$?
    exec 5>&-
    [ $status -eq 135 ]
}

# ---- Holes ----------------------------------------------------------------------

@test "add reserves the blocks of a sparse file before it writes" {
    "$CALYX" build -n 1M -o empty.calyx </dev/null
    cp --sparse=always empty.calyx sparse.calyx
    size=$(stat -c %s sparse.calyx)
    [ $((512 * $(stat -c %b sparse.calyx))) -lt $((size / 2)) ]
    echo one | "$CALYX" add sparse.calyx
    [ $((512 * $(stat -c %b sparse.calyx))) -ge $size ]
    [ "$(stat -c %s sparse.calyx)" -eq $size ]
}

@test "add to a sparse file on a full disk changes nothing" {
    "$CALYX" build -n 1M -o empty.calyx </dev/null
    cp --sparse=always empty.calyx sparse.calyx
    status=0
    echo one | traced -e trace=fallocate --inject=fallocate:error=ENOSPC \
        "$CALYX" add sparse.calyx 2>err || status=$?
    fails_with "sparse.calyx: cannot reserve the blocks that it lacks, as a sparse file; nothing was added: No space left on device"
    cmp empty.calyx sparse.calyx
    # where a file system can't reserve blocks, it goes on
    echo one | traced -e trace=fallocate --inject=fallocate:error=EOPNOTSUPP \
        "$CALYX" add sparse.calyx
    echo one | "$CALYX" check -q -f sparse.calyx
}
