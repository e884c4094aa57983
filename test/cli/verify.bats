# calyx verify: checksums, no key lost, and the promised rate.

load common

make() {
    seq 20000 >list
    "$CALYX" build -n 20000 -o f list
}

@test "a sound filter passes, alone and against its list" {
    make
    run_calyx verify f
    is_status 0
    quiet
    says "checksums   right"
    run_calyx verify f --against list
    is_status 0
    quiet
    says "keys        20 000, none missing"
    says "of 1 000 000 pass"
    says "1 % promised"
}

@test "several lists, standard input, packed filters and options for keys" {
    needs gzip
    seq 1000 | sed 's/$/,x/' >a
    seq 1001 2000 | sed 's/$/,y/' >b
    "$CALYX" build --csv -k 1 -o f.gz a b
    run_calyx verify f.gz --csv -k 1 --against a --against b
    is_status 0
    says "keys        2 000, none missing"
    run_calyx verify f.gz --csv -k 1 --against - <b
    is_status 0
    says "keys        1 000, none missing"
    zcat f.gz | "$CALYX" verify - | grep -q right
}

@test "missing keys are named, up to ten, and are trouble" {
    make
    seq 19991 20100 >other
    run_calyx verify f --against list --against other
    is_status 2
    says "missing     other:"
    [ "$(grep -c 'missing     other' out)" -eq 10 ]
    complains "keys of the list are not in it"
}

@test "a rate over the promise is trouble, with what to blame" {
    seq 30000 >list
    "$CALYX" build -n 20000 -o f list 2>/dev/null
    run_calyx verify f --against list
    is_status 2
    says "none missing"
    complains "it holds more keys than it was made for"
}

@test "a rate that only chance explains is no trouble" {
    # At capacity about half of all runs see more pass than was promised, and
    # 10 000 absent keys resolve nothing finer than that.
    make
    run_calyx verify f --against list --absent 10000
    is_status 0
    says "of 10 000 pass"
}

@test "damage, an open change and a cut are found" {
    needs gzip
    make
    size=$(stat -c %s f)
    cp f damaged
    printf '\377\377\377\377' |
        dd of=damaged bs=1 seek=5000 conv=notrunc status=none
    run_calyx verify damaged
    fails_with "damaged: "
    head -c $((size - 1)) f >cut
    run_calyx verify cut
    fails_with "cut: damaged: it should be $size bytes long"
    cp "$root/test/golden/line-open.calyx" open
    gzip -k open damaged
    for file in open open.gz; do
        run_calyx verify $file
        fails_with "$file: it was changed in place and not closed since"
    done
    run_calyx verify damaged.gz
    fails_with "damaged.gz: damaged"
}

@test "verify wants one file" {
    run_calyx verify
    fails_with "calyx verify [--against LIST]"
    run_calyx verify a b
    fails_with "unexpected operand 'b'"
    make
    run_calyx verify f --against nothing
    fails_with "nothing: cannot open it"
    run_calyx verify f --absent many
    fails_with "--absent: expected a whole number"
}
