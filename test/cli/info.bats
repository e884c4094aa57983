# calyx info: for people, and as JSON.

load common

@test "info prints kind, keys, rates, size, bits and hash" {
    seq 900 | "$CALYX" build -n 1000 -p 1% --seed 7 --comment "to 900" -o f
    run_calyx info f
    is_status 0
    quiet
    says "kind      line"
    says " of 1 000"
    says "1 % promised"
    says "bits a key at capacity"
    says "probes a key"
    says "hash      xxh3, seed 7"
    says "comment   to 900"
    ! grep -q note out
}

@test "info prints growth, strictness, secret keys and filters too full" {
    seq 5000 | "$CALYX" build -n 1000 --growth 2 -o grown
    seq 10 | "$CALYX" build -n 1000 --strict -o strict
    seq 5000 | "$CALYX" build -n 1000 -o full 2>/dev/null
    head -c 16 /dev/zero >key
    seq 10 | "$CALYX" build -n 1000 --key-file key -o keyed
    run_calyx info grown strict full --key-file key keyed
    is_status 0
    says "grows by 2: 3 parts so far"
    says "strict: no key past its capacity"
    says "it holds more keys than it was made for"
    says "hash      siphash, with a secret key"
}

@test "info says what a filter of few keys, of one false positive and of all keys holds" {
    printf '%s\n' hello world bloom filter |
        "$CALYX" build --bits 1000 --probes 7 --kind flat -o four.calyx
    run_calyx info four.calyx
    says "keys      4 of 4"
    says "distinct  about 4, judged by the bits"
    "$CALYX" build --all -o all.calyx
    run_calyx info all.calyx
    says "keys      all there are: every bit is set"
    says "rate      100 % now"
    ! grep -Eq 'distinct|note' out
    "$CALYX" allow all.calyx <<<rose
    run_calyx info all.calyx
    says "allowed   1 key is known not to be in it"
    "$CALYX" allow all.calyx <<<iris
    run_calyx info all.calyx
    says "allowed   2 keys are known not to be in it"
}

@test "info --json is valid, one object for each file, in order" {
    seq 10 | "$CALYX" build -n 100 -o a
    seq 20 | "$CALYX" build --kind counting -n 200 -o b
    run_calyx info --json a b
    is_status 0
    python3 -m json.tool out >/dev/null
    [ "$(jq -r '.[] | "\(.file) \(.kind) \(.keys) \(.capacity)"' out)" = \
        "a line 10 100
b counting 20 200" ]
    [ "$(jq -r '.[0] | keys | length' out)" -eq 19 ]
}

@test "JSON stays valid whatever is in a comment" {
    printf 'x\n' | "$CALYX" build -n 10 -o f \
        --comment $'quote " back \\ tab \t new\nline, h\xc3\xa9, bad \xff\xc0\xaf'
    run_calyx info --json f
    is_status 0
    python3 -c '
import json
text = json.load(open("out", encoding="utf-8"))[0]["comment"]
assert text == "quote \" back \\ tab \t new\nline, h\u00e9, bad \ufffd\ufffd\ufffd", text'
    run_calyx info f
    [ "$(wc -l <out)" -eq 9 ] # nothing in it breaks a line
}

@test "info reads from a pipe, gzip and zstd" {
    needs gzip zstd
    seq 10 | "$CALYX" build -n 100 -o f
    gzip -k f
    zstd -q f
    "$CALYX" info f | tail -n +2 >wanted
    for file in f.gz f.zst; do
        "$CALYX" info $file | tail -n +2 | cmp - wanted
    done
    cat f | "$CALYX" info - | tail -n +2 | cmp - wanted
}

@test "info fails for what is missing, not a filter, or keyed otherwise" {
    run_calyx info
    fails_with "missing operand: expected 1 or more, found 0: calyx info [--json] FILE..."
    run_calyx info nothing
    fails_with "calyx info: nothing: cannot open it: No such file"
    echo "no filter" >text
    run_calyx info text
    fails_with "text"
    complains "not a calyx filter"
    head -c 16 /dev/zero >key
    seq 10 | "$CALYX" build -n 1000 --key-file key -o keyed
    run_calyx info keyed
    fails_with "key"
}
