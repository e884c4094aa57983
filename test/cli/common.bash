# What the tests of the command share. Each test runs in a folder of its own.

root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
: "${CALYX:=$root/build/calyx}"
export CALYX
export LC_ALL=C

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
}

# Run the command; what it writes goes to the files out and err. Standard input
# is left alone.
run_calyx() {
    status=0
    "$CALYX" "$@" >out 2>err || status=$?
}

is_status() {
    [ "$status" -eq "$1" ] || {
        echo "exit status $status instead of $1" >&2
        cat err >&2
        return 1
    }
}

# says TEXT: on standard output; complains TEXT: on standard error
says() {
    grep -qF -- "$1" out || {
        printf 'not said: %s\nbut:\n' "$1" >&2
        head -50 out >&2
        return 1
    }
}

complains() {
    grep -qF -- "$1" err || {
        printf 'not complained: %s\nbut:\n' "$1" >&2
        head -50 err >&2
        return 1
    }
}

# fails_with TEXT: exit status 2, and that on standard error
fails_with() {
    is_status 2 && complains "$1"
}

# quiet: nothing was complained of
quiet() {
    [ ! -s err ] || {
        echo "complained:" >&2
        cat err >&2
        return 1
    }
}

# await COMMAND...: until it succeeds. Nothing here takes five minutes, so what
# does hangs.
await() {
    for _ in $(seq 6000); do
        if "$@" 2>/dev/null; then return; fi
        sleep 0.05
    done
    echo "did not come true: $*" >&2
    return 1
}

# The lines of standard output are exactly these.
prints() {
    printf '%s\n' "$@" >wanted
    [ $# -gt 0 ] || : >wanted
    diff wanted out >&2
}

# Sanitizers take memory of their own, and time. Tests that ask have the tag `full`.
is_sanitized() { nm "$CALYX" 2>/dev/null | grep -qE '__(asan|tsan)_init'; }

# needs gzip zstd: skip the test for a calyx that was built without, where that
# is meant (dev/check-spare), if it says so, and before the work.
needs() {
    local packer end lack
    for packer in "$@"; do
        if lack=$(echo | $packer -c | "$CALYX" dedup 2>&1); then continue; fi
        echo "needs $packer: $lack" >&2
        [ -n "${CALYX_SPARE:-}" ] || return 1
        [[ $lack == *"this calyx was built without "*"; pipe it through '$packer -dc'" ]] ||
            return 1
        [ $packer = gzip ] && end=gz || end=zst
        run_calyx build -o lacking.$end nowhere
        is_status 2
        complains "lacking.$end: its name requires $packer, and this calyx was built without"
        skip "built without $packer"
    done
}

# kinds_that CONDITION: the names of the kinds of which `calyx plan --json` says so,
# such as .can_add; `true` for all. An error if there is none. Assign it before the
# loop: in `for kind in $(kinds_that ...)` an error would be a loop over nothing.
kinds_that() {
    "$CALYX" plan -n 1000 --json |
        jq -er "[.kinds[] | select($1) | .kind] | join(\" \") | select(. != \"\")"
}
plain_bits=".can_intersect and (.can_remove | not)" # nothing but bits that are only set

# A filter of some flowers, with a rate that no test will ever notice.
flowers() {
    printf '%s\n' rose iris lily | "$CALYX" build -p 1e-8 -o flowers.calyx
}

# strace, of a command that may be sanitized: leaks can't be looked for then.
traced() {
    ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" strace -f -qqq -o trace "$@"
}
