# Changes between files: diff and patch.

load common

@test "a patched file is the new one byte for byte, for every kind, and small if keys were added" {
    seq 20000 >old
    (cat old; seq 30001 30010) >new
    for kind in $(kinds_that true); do
        "$CALYX" build --kind "$kind" -n 21000 --force -o old.calyx old
        cp old.calyx new.calyx
        if "$CALYX" add new.calyx <(seq 30001 30010) 2>/dev/null; then
            small=1
        else
            small=0
            "$CALYX" build --kind "$kind" -n 21000 --force -o new.calyx new
        fi
        "$CALYX" diff --force -o change old.calyx new.calyx 2>/dev/null
        "$CALYX" patch --force -o made.calyx old.calyx change
        cmp new.calyx made.calyx
        [ $small = 0 ] || [ "$(stat -c %s change)" -le 2000 ]
        "$CALYX" diff --force -o back new.calyx old.calyx 2>/dev/null
        "$CALYX" patch --force -o made.calyx made.calyx back
        cmp old.calyx made.calyx
    done
}

@test "a filter that shrank or grew is made as well, and packed files are what is in them" {
    needs gzip
    seq 100 | "$CALYX" build -o small.calyx
    seq 90000 | "$CALYX" build -o large.calyx
    gzip -k small.calyx
    run_calyx diff -o up small.calyx.gz large.calyx
    complains "the change is no smaller"
    "$CALYX" diff -o down large.calyx small.calyx.gz
    "$CALYX" patch -o a.calyx small.calyx up
    cmp a.calyx large.calyx
    "$CALYX" patch -o b.calyx.gz large.calyx down
    zcat b.calyx.gz | cmp - small.calyx
    "$CALYX" diff -o none small.calyx small.calyx
    "$CALYX" patch -o c.calyx small.calyx none
    cmp c.calyx small.calyx
}

@test "another old file, and a change that is cut short or damaged, are errors, and make no file" {
    seq 1000 | "$CALYX" build -n 2000 -o old.calyx
    seq 1100 | "$CALYX" build -n 2000 -o new.calyx
    seq 900 | "$CALYX" build -n 2000 -o other.calyx
    "$CALYX" diff -o change old.calyx new.calyx
    run_calyx patch -o made other.calyx change
    fails_with "other.calyx: it is not the file that change is for"
    run_calyx patch -o made new.calyx change
    fails_with "it has the change of change already"
    run_calyx patch -o made old.calyx new.calyx
    fails_with "new.calyx: not a change"
    run_calyx patch -o made nowhere change
    fails_with "nowhere"
    run_calyx patch -o made change old.calyx
    fails_with "old.calyx: not a change"
    size=$(stat -c %s change)
    for n in 0 1 30 $((size / 2)) $((size - 1)); do
        head -c "$n" change >cut
        run_calyx patch -o made old.calyx cut
        fails_with cut
    done
    for at in 20 100 $((size - 10)); do
        cp change bad
        printf '\377\376' | dd of=bad bs=1 seek="$at" conv=notrunc 2>/dev/null
        run_calyx patch -o made old.calyx bad
        is_status 2
    done
    [ ! -e made ]
    run_calyx patch -o new.calyx old.calyx change
    fails_with "exists already"
    "$CALYX" patch --force -o old.calyx old.calyx change
    cmp old.calyx new.calyx
}

@test "standard input can be one of the two files" {
    seq 1000 | "$CALYX" build -n 2000 -o old.calyx
    seq 1100 | "$CALYX" build -n 2000 -o new.calyx
    "$CALYX" diff -o change - new.calyx <old.calyx
    "$CALYX" patch -o - old.calyx - <change | cmp - new.calyx
    run_calyx diff -o none - - <old.calyx
    fails_with "standard input is named 2 times"
    run_calyx patch -o none - - <old.calyx
    fails_with "standard input is named 2 times"
    [ ! -e none ]
}
