#!/usr/bin/env bats
# The extension of SQLite, in its shell.

: "${CALYX_SQLITE:=$BATS_TEST_DIRNAME/../../build/calyx_sqlite.so}"
: "${CALYX:=$BATS_TEST_DIRNAME/../../build/calyx}"

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
}

# sql [STATEMENTS]: with the extension loaded; from standard input without any.
sql() {
    sqlite3 -batch -bail -cmd ".load $CALYX_SQLITE" data.db "$@" 2>&1
}

# fails_with TEXT STATEMENT
fails_with() {
    run sql "$2"
    [ "$status" -ne 0 ] && grep -qF -- "$1" <<<"$output" || {
        printf 'wanted: %s\nbut: %s\n' "$1" "$output"
        return 1
    }
}

@test "integers, texts and blobs are found, and NULL is unknown" {
    sql "CREATE TABLE t(k);
         INSERT INTO t VALUES (1), (-5), (9223372036854775807), ('rose'), (''), (x'00ff'), (x'');
         CREATE TABLE f AS SELECT calyx_build(k) AS bits FROM t"
    [ "$(sql "SELECT count(*), sum(calyx_has(bits, k)) FROM t, f")" = "7|7" ]
    [ "$(sql "SELECT calyx_has(bits, 2), calyx_has(bits, 'tulip'), calyx_has(bits, NULL) IS NULL
              FROM f")" = "0|0|1" ]
}

@test "an integer is its 8 bytes in little-endian order, and not its digits" {
    [ "$(sql "WITH f AS (SELECT calyx_build(258) AS bits)
              SELECT calyx_has(bits, 258), calyx_has(bits, x'0201000000000000'),
                     calyx_has(bits, '258') FROM f")" = "1|1|0" ]
}

@test "no key is lost and others pass at the rate, in every kind" {
    kinds=$(sql "SELECT calyx_build(1, 0.1, 'none')" | sed -n 's/.*there are: //; s/,//gp')
    [ "$(wc -w <<<"$kinds")" -ge 6 ]
    for kind in $kinds; do
        found=$(sql "CREATE TEMP TABLE f AS
            SELECT calyx_build(value, 0.01, '$kind') AS bits FROM generate_series(1, 20000);
            SELECT count(*) FILTER (WHERE value <= 20000),
                   count(*) FILTER (WHERE value > 20000) BETWEEN 110 AND 310
            FROM f, generate_series(1, 40000) WHERE calyx_has(bits, value)")
        echo "$kind: $found" # 200 false ones of 20000; 8 times their deviation
        [ "$found" = "20000|1" ]
    done
}

@test "a filter of no rows has no keys" {
    sql "CREATE TABLE t(k)"
    [ "$(sql "SELECT calyx_has(calyx_build(k), 1), calyx_info(calyx_build(k)) ->> 'keys' FROM t")" \
        = "0|0" ]
    sql "INSERT INTO t VALUES (NULL)"
    [ "$(sql "SELECT calyx_has(calyx_build(k), 1) FROM t")" = 0 ]
}

@test "the same keys make the same blob in any order" {
    [ "$(sql "SELECT (SELECT calyx_build(value) FROM generate_series(1, 5000)) =
                     (SELECT calyx_build(5001 - value) FROM generate_series(1, 5000))")" = 1 ]
}

@test "groups have filters of their own" {
    [ "$(sql "WITH g AS (SELECT value % 3 AS part, calyx_build(value) AS bits
                         FROM generate_series(1, 300) GROUP BY 1)
              SELECT part, calyx_has(bits, 30), calyx_has(bits, 31) FROM g ORDER BY 1" | tr '\n' ' ')" \
        = "0|1|0 1|0|1 2|0|0 " ]
}

@test "blobs of one size that follow each other are not confused" {
    # SQLite reads them into the same memory.
    [ "$(sql "CREATE TABLE f AS SELECT value AS k, (SELECT calyx_build(f.value + 0 * g.value)
                  FROM generate_series(1, 1) AS g) AS bits FROM generate_series(1, 100) AS f;
              SELECT count(DISTINCT length(bits)), sum(calyx_has(bits, k)),
                     sum(calyx_has(bits, k + 1000)) < 3 FROM f")" = "1|100|1" ]
}

@test "a file of the command answers, and a blob that is written is a file" {
    printf '%s\n' rose iris | "$CALYX" build -n 100 -o flowers.calyx
    [ "$(sql "SELECT calyx_has('flowers.calyx', 'rose'), calyx_has('flowers.calyx', 'tulip')")" \
        = "1|0" ]
    sql "SELECT writefile('words.calyx', calyx_build(column1)) FROM (VALUES ('oak'), ('elm'))" >size
    [ "$(printf '%s\n' oak ash elm | "$CALYX" check -f words.calyx)" = "oak
elm" ]
    [ "$(sql "SELECT calyx_has(readfile('words.calyx'), 'elm')")" = 1 ]
}

@test "a file that was replaced answers from the next statement on" {
    echo rose | "$CALYX" build -n 100 -o ids.calyx
    echo iris | "$CALYX" build -n 100 -o next.calyx
    [ "$(sql <<'END'
SELECT calyx_has('ids.calyx', 'rose'), calyx_has('ids.calyx', 'iris');
.shell mv next.calyx ids.calyx
SELECT calyx_has('ids.calyx', 'rose'), calyx_has('ids.calyx', 'iris');
END
    )" = "1|0
0|1" ]
}

@test "a file that is gone is an error, though it was open" {
    echo rose | "$CALYX" build -n 100 -o ids.calyx
    run sql <<'END'
SELECT calyx_has('ids.calyx', 'rose');
.shell rm ids.calyx
SELECT calyx_has('ids.calyx', 'rose');
END
    [ "$status" -ne 0 ]
    grep -q "^1$" <<<"$output"
    grep -qF "ids.calyx: cannot look at it: No such file" <<<"$output"
}

@test "a statement opens a file once, and a connection holds few" {
    for i in $(seq 40); do echo "$i" | "$CALYX" build -n 10 -o "$i.calyx"; done
    strace -f -qq -e trace=openat -o calls sqlite3 -batch -cmd ".load $CALYX_SQLITE" data.db \
        "SELECT sum(calyx_has('1.calyx', value)) FROM generate_series(1, 1000)" >found
    [ "$(grep -c '/1.calyx"' calls)" = 1 ]
    # paths that are no constants, some of them again
    [ "$(sql "SELECT sum(calyx_has(value || '.calyx', value || '')) FROM generate_series(1, 40)
              UNION ALL
              SELECT sum(calyx_has((value % 5 + 1) || '.calyx', (value % 5 + 1) || ''))
              FROM generate_series(1, 100)" | tr '\n' ' ')" = "40 100 " ]
}

@test "calyx_info says what the command says" {
    seq 1000 | "$CALYX" build -n 1000 --comment 'of "1000"' -o ids.calyx
    "$CALYX" info --json ids.calyx | jq -S '.[0] | del(.file, .key_options) |
        .distinct |= (. * 1e6 | round) | .rate |= (. * 1e9 | round)' >wanted
    sql "SELECT calyx_info('ids.calyx')" |
        jq -S '.distinct |= (. * 1e6 | round) | .rate |= (. * 1e9 | round)' >found
    diff wanted found
    [ "$(sql "SELECT json_array(calyx_info('ids.calyx')) ->> '\$[0].keys' > 990")" = 1 ]
}

@test "a damaged file or blob is an error, not an answer" {
    seq 100000 | "$CALYX" build -o ids.calyx
    size=$(stat -c %s ids.calyx)
    printf '\377\377\377\377' | dd of=ids.calyx bs=1 seek=$((size / 2)) conv=notrunc status=none
    fails_with "damaged" "SELECT sum(calyx_has('ids.calyx', value || ''))
                          FROM generate_series(1, 100000)"
    fails_with "damaged" "SELECT calyx_info('ids.calyx')"
    fails_with "damaged" "SELECT calyx_has(readfile('ids.calyx'), 1)"
    fails_with "not a calyx filter" "SELECT calyx_has(zeroblob(5000), 1)"
    fails_with "not a calyx filter" "SELECT calyx_has(x'', 1)"
}

@test "wrong arguments are errors that say what was wanted" {
    fails_with "No such file" "SELECT calyx_has('none.calyx', 1)"
    fails_with "path of a file, or a blob" "SELECT calyx_has(NULL, 1)"
    fails_with "path of a file, or a blob" "SELECT calyx_info(5)"
    fails_with "no zero byte" "SELECT calyx_has('a' || char(0) || 'b', 1)"
    fails_with "not a real number" "SELECT calyx_has(calyx_build(1), 1.0)"
    fails_with "not a real number" "SELECT calyx_build(1.5)"
    fails_with "between 0 and 1" "SELECT calyx_build(1, 0)"
    fails_with "between 0 and 1" "SELECT calyx_build(1, 'many')"
    fails_with "differs from row to row" "SELECT calyx_build(value, value / 10.0)
                                          FROM generate_series(1, 3)"
    fails_with "no kind is named 'rosebush'" "SELECT calyx_build(1, 0.1, 'rosebush')"
    fails_with "wrong number of arguments" "SELECT calyx_has('x')"
}

@test "a file with a secret key is refused" {
    printf '%s' sixteen-bytes-16 >secret
    echo rose | "$CALYX" build -n 100 --key-file secret -o ids.calyx
    fails_with "secret key" "SELECT calyx_has('ids.calyx', 'rose')"
}

@test "views and triggers of a schema that is not trusted cannot read files" {
    echo rose | "$CALYX" build -n 100 -o ids.calyx
    sql "CREATE VIEW v AS SELECT calyx_has('ids.calyx', 'rose') AS is_in;
         CREATE VIEW b AS SELECT length(calyx_build(1)) AS size"
    [ "$(sql "SELECT is_in FROM v")" = 1 ]
    fails_with "unsafe use of calyx_has" "PRAGMA trusted_schema = OFF; SELECT is_in FROM v"
    [ "$(sql "PRAGMA trusted_schema = OFF; SELECT size > 0 FROM b")" = 1 ]
}

# show PAGE NUMBER: its first block of SQL prints the lines of its comments, NUMBER of them.
show() {
    awk '/^```sql/ { on = 1; next } on && /^```/ { exit } on' "$1" | grep -v '^\.load' >first.sql
    sql <first.sql >found
    sed -n 's/.*-- //p' first.sql >wanted
    [ "$(wc -l <wanted)" = "$2" ]
    diff wanted <(tail -n "$2" found)
}

@test "the first lines of this README, and of the README of the whole project, do what they say" {
    top=$BATS_TEST_DIRNAME/../..
    show "$top/integrations/sqlite/README.md" 3
    rm ids.calyx
    show "$top/README.md" 1
}
