# Fields: headers and column names, separators, white space, JSON, lines that
# lack a field.

load common

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
    printf 'id,email\n1,a@x\n2,b@x\n3,a@x\n' >a.csv
    printf 'email,id\nb@x,9\nc@x,8\n' >b.csv
}

@test "--header: the first line of each file is no key, and is printed once" {
    run_calyx dedup --csv --header -k 2 a.csv a.csv
    prints id,email 1,a@x 2,b@x
    quiet
    run_calyx common --csv --header -k 1 a.csv a.csv
    prints id,email 1,a@x 2,b@x 3,a@x
    run_calyx minus --csv --header -k 1 a.csv a.csv
    is_status 1
    prints id,email
    "$CALYX" build -p 1e-8 --csv --header -k 2 -o f.calyx --json-stats figures a.csv
    grep -q '"lines": 3,' figures
    run_calyx check --csv -k 2 -f f.calyx a.csv
    prints 1,a@x 2,b@x 3,a@x
    complains 'f.calyx was built with --header --csv -k 2'
    run_calyx dedup --header a.csv <a.csv
    prints id,email 1,a@x 2,b@x 3,a@x
    run_calyx dedup --header <a.csv
    prints id,email 1,a@x 2,b@x 3,a@x
}

@test "-k takes names of columns, wherever a file has them" {
    run_calyx common --csv --header -k email a.csv b.csv
    prints id,email 2,b@x
    quiet
    run_calyx minus --csv --header -k email b.csv a.csv
    prints email,id c@x,8
    run_calyx common --csv --header -k id,email --at-least 1 a.csv b.csv
    prints id,email 1,a@x 2,b@x 3,a@x b@x,9 c@x,8
    complains "b.csv: its header is not the header of a.csv, which is printed"
    printf 'a b\tc,d\t7\n1\t2\t3\n1\t9\t3\n' >t.tsv
    run_calyx dedup --header -k 'a b,"c,d"' t.tsv
    [ "$(wc -l <out)" = 3 ]
    run_calyx dedup --header -k '"7"' t.tsv
    [ "$(wc -l <out)" = 2 ]
    printf '\xef\xbb\xbfid;"e\nmail"\r\n1;a\r\n2;a\r\n' >w.csv
    run_calyx dedup --csv -t ';' --header -k $'"e\nmail"' w.csv
    printf 'id;"e\nmail"\r\n1;a\r\n' | cmp - out
}

@test "a column that is not there, or twice, is an error that names file and line" {
    run_calyx dedup --csv --header -k mail a.csv
    fails_with "a.csv:1: missing column 'mail'; found 2 columns: id,email"
    printf 'x,x\n1,2\n' >twice.csv
    run_calyx build -o f.calyx --csv --header -k x a.csv twice.csv
    fails_with "a.csv:1: missing column 'x'"
    run_calyx build -o f.calyx --csv --header -k x twice.csv
    fails_with "twice.csv:1: column 'x' is in the header 2 times; give its number"
    printf '"id,email\n1,2\n' >open.csv
    run_calyx build -o f.calyx --csv --header open.csv
    fails_with "open.csv:1: the quotes around field 1 are never closed"
    run_calyx build -o f.calyx --csv -k email a.csv
    fails_with "--fields names a column: give --header, too"
    [ ! -e f.calyx ]
}

@test "column names travel with the filter" {
    "$CALYX" build -p 1e-8 --csv --header -k email -o f.calyx a.csv
    run_calyx check -n -f f.calyx b.csv
    prints email,id 2:b@x,9
    quiet
    run_calyx add f.calyx --new b.csv
    prints email,id c@x,8
    run_calyx add f.calyx --new b.csv
    is_status 1
    prints email,id
    run_calyx minus b.csv f.calyx
    prints email,id
    run_calyx verify --absent 1000 --against b.csv f.calyx
    is_status 0
    printf 'b@x\n' >list
    run_calyx check -f f.calyx list
    fails_with "list:1: missing column 'email'; found 1 column: b@x; the filter was built with"
}

@test "a header has line numbers, also in pipes, packed files and after NUL" {
    needs gzip
    printf '"i\nd",email\n1,a@x\n2\n' >c.csv
    gzip -k c.csv
    for file in c.csv c.csv.gz <(cat c.csv); do
        run_calyx dedup --csv --header -k email $file
        fails_with "$file:4: missing column 'email', field 2: found 1 field"
    done
    tr '\n' '\0' <a.csv | "$CALYX" dedup -z --csv --header -k email >out
    printf 'id,email\0001,a@x\0002,b@x\000' | cmp - out
    : >empty.csv
    run_calyx dedup --csv --header -k email empty.csv b.csv
    prints email,id b@x,9 c@x,8
    printf 'id,email' >only.csv
    run_calyx dedup --csv --header -k email only.csv a.csv
    prints id,email 1,a@x 2,b@x
    run_calyx dedup -c --csv --header -k email --dups again.csv a.csv
    prints $'count\tid,email' $'2\t1,a@x' $'1\t2,b@x'
    diff again.csv <(printf 'id,email\n3,a@x\n')
    run_calyx dedup --approx --csv --header -k email a.csv
    prints id,email 1,a@x 2,b@x
}

@test "--missing=skip leaves lines without the field out, and counts their numbers" {
    printf '1\tx\n2\n3\tx\n4\ty\n5\n' >ragged
    run_calyx dedup -k 2 ragged
    fails_with "ragged:2: missing field 2: found 1 field; --missing=skip leaves such lines out"
    run_calyx dedup -k 2 --missing=skip ragged
    prints $'1\tx' $'4\ty'
    "$CALYX" build -p 1e-8 -k 2 --missing skip -o f.calyx --json-stats figures ragged
    grep -q '"lines": 3,' figures
    run_calyx check -n -f f.calyx ragged
    fails_with "ragged:2: missing field 2"
    run_calyx check -n -f f.calyx --missing=skip ragged ragged
    prints $'ragged:1:1\tx' $'ragged:3:3\tx' $'ragged:4:4\ty' $'ragged:1:1\tx' $'ragged:3:3\tx' $'ragged:4:4\ty'
    run_calyx check -v -f f.calyx --missing=skip ragged
    is_status 1
    prints
    printf '1,x\n2\n"3"4\n' >wrong.csv
    run_calyx dedup --csv -k 2 --missing=skip wrong.csv
    fails_with "wrong.csv:3: after the closing quote of field 1"
    run_calyx dedup -k 2 --missing=perhaps ragged
    fails_with "--missing: expected skip, empty or error, found 'perhaps'"
}

@test "lines that are left out are counted, and all of them are an error" {
    printf '1\tx\n2\n3\n' >most
    run_calyx dedup -k 2 --missing=skip --stats most
    is_status 0
    complains "most: 2 of 3 lines were left out: 2 lack the key"
    complains "skipped missing 2"
    run_calyx dedup -k 2 --missing=skip most <(printf '4\ty\n')
    prints $'1\tx' $'4\ty'
    quiet # half of all
    printf '{"id":1}\n{"id":2}\n' >events
    printf '{"id":1}\n' | "$CALYX" build -p 1e-6 --kind bucket --jsonl id -o f.calyx
    cp f.calyx old.calyx
    for path in .id '$.id'; do
        run_calyx dedup --jsonl "$path" events
        fails_with "events:1: missing field '$path'; a path begins without '${path%id}': --jsonl id"
    done
    for verb in "build -o new" "dedup -o new" "minus -o new events" "common -o new events" \
        "hash --parts 2 -o new" "build --part 1/2 -n 10 -o new" "build --shards 2 -o new" \
        "build -n 10 --layout guava -o new" "check -f f.calyx" "check -c -f f.calyx" \
        "check -q -f f.calyx" "add f.calyx" "add --new f.calyx" "remove --absent f.calyx" \
        "allow f.calyx" "verify f.calyx --against" "dedup --approx" "minus --approx events" \
        "common --approx events"; do
        run_calyx $verb events --jsonl .id --missing=skip
        fails_with "no line has a key: of 2 lines 2 lack the key; a path begins without '.': --jsonl id"
        [[ $verb == verify* ]] || prints
        [ -z "$(ls -A | grep new)" ]
        cmp f.calyx old.calyx
    done
    : >nothing
    run_calyx dedup -k 2 --missing=skip nothing
    is_status 0
}

@test "--invalid=skip leaves broken lines out, and counts them" {
    printf '{"id":1}\n{"id":2\n{"id":[3]}\n{"id":"\\ud800"}\n{"id":4}\n{"x":5}\n{"id":6}\n{"id":1}\n' >log
    run_calyx dedup --jsonl id --missing=skip log
    fails_with "log:2: not JSON"
    run_calyx dedup --jsonl id --invalid=skip log
    fails_with "log:6: missing field 'id'"
    run_calyx dedup --jsonl id --invalid=skip --missing=skip --json-stats figures log
    prints '{"id":1}' '{"id":4}' '{"id":6}'
    quiet
    grep -q '"skipped_missing": 1, "skipped_invalid": 3,' figures
    "$CALYX" build -p 1e-8 --jsonl id --invalid=skip --missing=skip -o f.calyx log
    run_calyx check -n --invalid=skip --missing=skip -f f.calyx log
    prints '1:{"id":1}' '5:{"id":4}' '7:{"id":6}' '8:{"id":1}'
    printf '{\n{"id":1}\n' | {
        run_calyx add --new --jsonl id --invalid=skip f.calyx
        is_status 1
        prints
    }
    printf '[\n]\n' | { run_calyx dedup --jsonl id --invalid=skip; fails_with "no line has a key: of 2 lines 2 are broken"; }
    run_calyx dedup --invalid=perhaps log
    fails_with "--invalid: expected skip or error, found 'perhaps'"
}

@test "--invalid=skip and CSV: wrong quotes end at the next line end outside of quotes" {
    printf 'a,b\n1,"x"y\n2,z\n3,v\n' >one.csv
    run_calyx dedup --csv --header -k b --invalid=skip --json-stats figures one.csv
    prints a,b 2,z 3,v
    quiet
    grep -q '"skipped_invalid": 1,' figures
    printf '1,"x\n2,y\n3,"z"\n4,v\n5,v\n6,w\n7,u\n' >joined.csv # a quote that the third line closes
    run_calyx check -n --csv -k 2 --invalid=skip -f <("$CALYX" build -p 1e-8 -o - <(printf 'w\ny\n')) joined.csv
    prints 6:6,w
    run_calyx dedup --csv -k 2 --invalid=skip --json-stats figures joined.csv
    prints 4,v 6,w 7,u
    grep -q '"skipped_invalid": 3,' figures
    printf '1,"x\ny"\n2,"k\n3,""\n4,w' >open.csv # one that is never closed
    run_calyx dedup --csv -k 2 --invalid=skip --json-stats figures open.csv
    prints '1,"x' 'y"' '3,""' 4,w
    grep -q '"skipped_invalid": 1,' figures
    printf '"a,b\n1,2\n' >header.csv
    run_calyx dedup --csv --header -k b --invalid=skip header.csv
    fails_with "header.csv:1: the quotes around field 1 are never closed"
}

@test "--missing=empty takes the field for an empty one" {
    printf 'a\nb\t\nc\tx\n' >ragged
    run_calyx dedup -k 2 --missing=empty ragged
    prints a $'c\tx'
    run_calyx dedup -k 2-3 --missing=empty ragged
    prints a $'c\tx'
}

@test "remove --absent prints what was not there, without skipped lines" {
    printf 'x\ny\n' | "$CALYX" build -p 1e-8 --kind counting -o c.calyx
    printf '1\tx\n2\n3\tz\n' >ragged
    run_calyx remove --absent --missing=skip -k 2 c.calyx ragged
    is_status 0
    prints $'3\tz'
}

@test "-t takes several bytes, --blanks runs of spaces and tabs" {
    printf 'a::x\nb::x\nb:x\n' >two
    run_calyx dedup -t :: -k 2 --missing=skip two
    prints a::x
    printf 'a\x1fx\nb\x1fx\n' >odd
    run_calyx dedup -t '\x1f' -k 2 odd
    [ "$(wc -l <out)" = 1 ]
    printf ' a  x\nb\t x \n\n' >blank
    run_calyx dedup --blanks -k 2 --missing=skip blank
    prints ' a  x'
    run_calyx dedup --blanks -k 1 blank
    fails_with "blank:3: missing field 1: found 0 fields"
    for words in '-t \q' '-t 12345678901234567' '-t \x1' '--csv -t ::' '--blanks -t :' \
        '-t \n' '--jsonl a -k 1' '--jsonl a --csv' '--jsonl a --header'; do
        run_calyx dedup $words two
        is_status 2
    done
    run_calyx dedup -t '' two
    fails_with "--separator: expected 1 to 16 bytes"
}

@test "--trim removes white space at the ends of a key and of each field" {
    printf 'a b\n  a b\t\na  b\n' >list
    run_calyx dedup --trim list
    prints 'a b' 'a  b'
    printf 'x , y\nx,y\n" x ",y\n' >list.csv
    run_calyx dedup --trim --csv -k 1,2 list.csv
    prints 'x , y'
    printf ' rose \n' | "$CALYX" build -p 1e-8 --trim -o f.calyx
    run_calyx check --whole-line --trim -f f.calyx <<<rose
    prints rose
}

@test "--jsonl: the key is the value of a field, strings without escapes" {
    cat >j.jsonl <<'LINES'
{"user": {"id": "caf\u00e9"}, "n": 1}
{"n":1.0,"user":{"id":"café","x":[{"id":2}]}}
{"user": {"name": "z"}, "n": null}
LINES
    run_calyx dedup --jsonl user.id --missing=skip j.jsonl
    [ "$(wc -l <out)" = 1 ]
    run_calyx dedup --jsonl n --missing=empty j.jsonl
    [ "$(wc -l <out)" = 3 ]
    run_calyx dedup --jsonl n j.jsonl
    fails_with "j.jsonl:3: field 'n' is null"
    run_calyx dedup --jsonl user.id j.jsonl
    fails_with "j.jsonl:3: missing field 'user.id'"
    "$CALYX" build -p 1e-8 --jsonl user.id --missing=skip -o f.calyx j.jsonl
    run_calyx check --whole-line -f f.calyx <<<café
    prints café
    run_calyx check --missing=skip -c -f f.calyx j.jsonl
    prints 2
    run_calyx dedup --jsonl user.id --jsonl n --missing=skip j.jsonl
    [ "$(wc -l <out)" = 2 ]
    printf '{"a.b":1}\n{"a":{"b":1}}\n' >dots
    run_calyx dedup --jsonl 'a\.b' --missing=skip dots
    prints '{"a.b":1}'
}

@test "what is not JSON is an error with its line and byte" {
    while IFS='|' read -r line text; do
        printf '{"a":1}\n%s\n' "$line" >j
        run_calyx dedup --jsonl a j
        fails_with "j:2: $text"
    done <<'ROWS'
[1]|not JSON: at byte 1 expected an object, found '['
{"a":1,}|not JSON: at byte 8 expected the name of a field in quotes, found '}'
{"a":01}|not JSON: at byte 7 expected ',' or '}', found '1'
{"a":1.}|not JSON: at byte 8 expected a digit, found '}'
{"a":"x|not JSON: at byte 8 expected a closing quote, found the end of the line
{"a":"\x"}|not JSON: at byte 8 expected one of "\/bfnrtu after a backslash, found 'x'
{"a":nul}|not JSON: at byte 9 expected true, false or null, found '}'
{"a":1} {|not JSON: at byte 9 expected the end of the line, found '{'
{"a":"\ud800"}|field 'a' has half of a surrogate pair
{"a":{"b":1}}|field 'a' is not a string, a number, true or false: found an object
ROWS
    python3 -c 'print("{\"a\":" + "[" * 5000)' >deep
    run_calyx dedup --jsonl a deep
    fails_with "deep:1: at byte 1006 objects and arrays are nested more than 1000 deep"
}

@test "the keys of random lines are as in a model" {
    needs gzip
    python3 "$BATS_TEST_DIRNAME/key_model.py" "$CALYX" "$BATS_TEST_TMPDIR" 150 "fields" >out
    says "150 cases"
    ! grep -q ", 0 with" out || false
}

@test "skipped lines and headers are right wherever blocks end" {
    awk 'BEGIN { print "n\tkey"; for (i = 0; i < 60000; i++)
        print i % 7 ? i "\t" i % 5000 : i }' >big
    awk 'NR == 1 || NF == 2 && !seen[$2]++' big >wanted
    for jobs in 1 3; do
        run_calyx dedup -j $jobs --header -k key --missing=skip big
        cmp out wanted
        run_calyx dedup -j $jobs --header -k key --missing=skip - <big
        cmp out wanted
    done
    CALYX_TEST_BUDGET=100000 run_calyx dedup --header -k key --missing=skip big
    cmp out wanted
    run_calyx build -p 1e-8 --header -k key --missing=skip -o f.calyx big
    run_calyx check -n --missing=skip -f f.calyx big
    awk 'NR == 1 { print; next } NF == 2 { print NR ":" $0 }' big | cmp - out
}
