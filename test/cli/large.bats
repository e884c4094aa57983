# A large filter costs what is used of it, not its size.

# bats file_tags=full

load common

# 5 GB where there is time for it. Of zeros, which a disk need not hold.
if [ -n "${CALYX_LONG:-}" ]; then size=5G; else size=300M; fi

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 2
    ! is_sanitized || return 0
    "$CALYX" build --memory $size -p 1% -o large.calyx /dev/null
    fallocate --dig-holes large.calyx
}

setup() {
    ! is_sanitized || skip "a sanitizer takes memory of its own"
    cd "$BATS_FILE_TMPDIR" || return 2
}

# touches VERB...: at most 32 MiB of large.calyx, in whatever way
touches_little() {
    "$root/test/cli/touched.py" large.calyx "$CALYX" "$@" >out 2>err
    while read -r what bytes; do
        case $what in read | written | memory) [ "$bytes" -lt $((32 << 20)) ] || {
            cat out >&2
            return 1
        } ;; esac
    done <out
}

@test "adding a line to a large filter touches less than 32 MiB" {
    for words in "" --new; do
        echo "line $words" | touches_little add $words large.calyx
        run_calyx check -c -f large.calyx <<<"line $words"
        prints 1
    done
    printf 'a\nb\nc\n' | touches_little add --json-stats figures large.calyx
    jq -e '.fresh == 3 and .expected_rate < 1e-6' figures
    run_calyx verify large.calyx
    is_status 0
}

@test "asking a large filter for a few lines touches less than 32 MiB" {
    "$CALYX" add large.calyx <<<rose
    for words in "-c" "-vc" "-H"; do
        printf 'rose\nmoss\niris\n' | touches_little check $words -f large.calyx
    done
}
