# The key in a line: ends, case, fields, CSV.

load common

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
    flowers
}

@test "the last line needs no newline" {
    printf 'moss\nrose' >garden
    run_calyx check -f flowers.calyx garden
    prints rose
    printf 'a\nb' | "$CALYX" build -p 1e-8 -o ab.calyx
    printf 'b\n' | "$CALYX" check -c -f ab.calyx >out
    prints 1
}

@test "an empty line is a key; no line is none" {
    printf '\n' | "$CALYX" build -p 1e-8 -o empty.calyx --json-stats figures
    grep -q '"lines": 1,' figures
    run_calyx check -c -f empty.calyx <<<''
    prints 1
    "$CALYX" build -o none.calyx --json-stats figures /dev/null
    grep -q '"lines": 0,' figures
}

@test "NUL bytes are bytes, and with -z or -0 ends" {
    printf 'a\0b\nrose\n' >bytes
    "$CALYX" build -p 1e-8 -o bytes.calyx bytes
    run_calyx check -f bytes.calyx bytes
    cmp out bytes
    printf 'a\n' | "$CALYX" check -q -f bytes.calyx && false
    for option in -z -0; do
        printf 'moss\0rose\0new\nline\0' | "$CALYX" check $option -f flowers.calyx >out
        printf 'rose\0' | cmp - out
    done
}

@test "--crlf takes the carriage return for a part of the end" {
    printf 'rose\r\niris\nlily\rx\n' >dos
    run_calyx check -f flowers.calyx dos
    prints iris
    run_calyx check --crlf -f flowers.calyx dos
    printf 'rose\r\niris\n' | cmp - out
}

@test "-i looks at the key in lower case and prints it as it is" {
    printf '%s\n' ROSE Rose rosE moss >garden
    echo rOse | "$CALYX" build -i -p 1e-8 -o folded.calyx
    run_calyx check -i -f folded.calyx garden
    prints ROSE Rose rosE
    printf 'ÉTÉ\n' | "$CALYX" build -i -p 1e-8 -o upper.calyx
    printf 'ÉtÉ\n' | "$CALYX" check -ic -f upper.calyx >out
    prints 1
}

@test "-k and -t choose fields, the whole line is printed" {
    printf '1\trose\tred\n2\tmoss\tgreen\n' >tabs
    run_calyx check -k 2 -f flowers.calyx tabs
    printf '1\trose\tred\n' | cmp - out
    printf '1:rose:red\n' >colons
    run_calyx check -t : -k2 -f flowers.calyx colons
    prints 1:rose:red
    run_calyx check -t: -k-2 -f flowers.calyx colons
    prints 1:rose:red
}

@test "composite keys cannot collide" {
    printf 'ab,c\n' | "$CALYX" build -p 1e-8 -t, -k1,2 -o pair.calyx
    printf 'ab,c\n' | "$CALYX" check -c -t, -k1,2 -f pair.calyx >out
    prints 1
    printf '%s\n' a,bc abc, ,abc c,ab | "$CALYX" check -t, -k1,2 -f pair.calyx && false
    printf 'x,ab,c\n' | "$CALYX" check -c -t, -k2- -f pair.calyx >out
    prints 1
    printf 'x,ab,c,y\n' | "$CALYX" check -c -t, -k2-3 -f pair.calyx >out
    prints 1
}

@test "a line without the field is an error that names it" {
    printf 'a\tb\nc\n' >short
    run_calyx build -k 2 -o no.calyx short
    fails_with "calyx build: short:2: missing field 2: found 1 field"
    run_calyx check -k -3 -f flowers.calyx short
    fails_with "calyx check: short:1: missing field -3: found 2 fields"
    # and beyond the first block, the line is still right
    { yes "$(printf 'a\tb')" | head -300000; echo c; } >long
    run_calyx build -k 2 -o no.calyx long
    fails_with "calyx build: long:300001: missing field 2"
}

@test "what comes before an error is still printed" {
    printf 'rose\t1\nmoss\n' >garden
    run_calyx check -k 1-2 -f flowers.calyx garden
    is_status 2
    printf 'x\trose\ny\n' >garden
    run_calyx check -k 2 -f flowers.calyx garden
    is_status 2
    printf 'x\trose\n' | cmp - out
}

@test "fields and separators that make no sense are refused" {
    for fields in 0 2x 1,, ,x 1-- '"a' '"\q"' '"a"b'; do
        run_calyx check --fields=$fields -f flowers.calyx /dev/null
        fails_with "--fields: expected numbers from 1"
        complains "found '$fields'"
    done
    run_calyx check -k1 -t '\q' -f flowers.calyx /dev/null
    fails_with "--separator: expected 1 to 16 bytes"
    complains "found '\q'"
}

@test "--csv knows quotes, in a field and around newlines" {
    printf 'id,name\n1,"rose"\n2,"a ""b"", c"\n3,"two\nlines"\n' >t.csv
    run_calyx check --csv -k 2 -f flowers.calyx t.csv
    prints '1,"rose"'
    "$CALYX" build --csv -k 2 -p 1e-8 -o names.calyx t.csv
    printf 'a "b", c\n' | "$CALYX" check --whole-line -c -f names.calyx >out
    prints 1
    printf 'two\nlines\0' | "$CALYX" check -z -c -f names.calyx >out
    prints 1
    run_calyx check --csv -k 2 -n -f names.calyx t.csv
    prints '1:id,name' '2:1,"rose"' '3:2,"a ""b"", c"' '4:3,"two' 'lines"'
    printf '"rose";x\r\n' | "$CALYX" check --csv -t ';' -k 1 -f flowers.calyx >out
    printf '"rose";x\r\n' | cmp - out
}

@test "bad CSV is an error with its line" {
    printf 'a,b\nc,"d\ne,f\n' >open.csv
    run_calyx check --csv -k 2 -f flowers.calyx open.csv
    fails_with "open.csv:2: the quotes around field 2 are never closed"
    printf '"two\nlines",x\n"a"b,c\n' >after.csv
    run_calyx check --csv -k 1 -f flowers.calyx after.csv
    fails_with "after.csv:3: after the closing quote of field 1 expected a separator or the end of the line, found 'b'"
}

@test "CSV records are whole wherever blocks end" {
    python3 -c '
for i in range(60000):
    print(f"{i},\"line one of {i}\nand, \"\"two\"\"\",x")' >long.csv
    "$CALYX" build --csv -k 2 -p 1e-6 -o long.calyx --json-stats figures long.csv
    grep -q '"lines": 60000,' figures
    run_calyx check --csv -k 2 -c -f long.calyx long.csv
    prints 60000
}

@test "a range of fields that runs backwards is no key" {
    for range in 3-2 -1--2 1,3-2; do
        run_calyx build -k $range -o no.calyx </dev/null
        fails_with "--fields: expected numbers from 1"
    done
    run_calyx build -k 2--2 -o no.calyx < <(printf 'a\tb\tc\nd\te\n')
    fails_with "standard input:2: missing fields 2 to -2: found 2 fields"
}
