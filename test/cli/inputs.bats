# What is given as a list or as a filter is looked at: a filter is never taken
# for text, nor is anything packed; and a list that changes is noticed.

load common

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
    flowers
}

# read_list FILE VERB: a verb that reads lists, with this list.
read_list() {
    local file=$1
    cp flowers.calyx into.calyx
    echo moss >moss
    case $2 in
    build) run_calyx build --force -o made.calyx $file ;;
    build-n) run_calyx build --force -n 10 -o made.calyx $file ;;
    add) run_calyx add into.calyx $file ;;
    check) run_calyx check -f flowers.calyx $file ;;
    allow) run_calyx check -f flowers.calyx --allow $file moss ;;
    common) run_calyx common moss $file ;;
    minus) run_calyx minus $file moss ;;
    minus-2) run_calyx minus moss $file ;;
    dedup) run_calyx dedup $file ;;
    verify) run_calyx verify --against $file flowers.calyx ;;
    esac
}
verbs="build build-n add check allow common minus dedup verify"

@test "no verb takes a filter for a list, packed or not, whatever its name" {
    needs gzip zstd
    mkdir f
    cp flowers.calyx f/plain
    cp flowers.calyx f/named.calyx
    gzip -c flowers.calyx >f/gzip
    zstd -qc flowers.calyx >f/zstd
    for file in f/*; do
        for verb in $verbs; do
            read_list $file $verb
            fails_with "$file: not a list of lines but a calyx filter"
            [ ! -e made.calyx ]
            ! grep -q CLX out || false
        done
    done
    run_calyx dedup <flowers.calyx
    fails_with "standard input: not a list of lines but a calyx filter"
    run_calyx minus moss <(cat flowers.calyx) # a pipe can't be looked at before
    fails_with "not a list of lines but a calyx filter"
}

@test "minus knows a filter by its bytes, packed or with another name" {
    needs gzip zstd
    printf '%s\n' rose moss >list
    cp flowers.calyx renamed
    gzip -c flowers.calyx >flowers.calyx.gz
    zstd -qc flowers.calyx >flowers.calyx.zst
    for filter in flowers.calyx renamed flowers.calyx.gz flowers.calyx.zst; do
        run_calyx minus list $filter
        is_status 0
        prints moss
        complains "$filter is a filter"
    done
}

@test "minus does not take a damaged filter for a list" {
    echo rose >list
    { printf x; tail -c +2 flowers.calyx; } >bad.calyx
    run_calyx minus list bad.calyx
    fails_with "bad.calyx: damaged: its first 8 bytes are not the first bytes of a filter"
}

# name, its first bytes, what it is, what helps
packings="
xz \xfd7zXZ\0\0\4|xz data|xz -dc
bzip2 BZh91AY&SY\2|bzip2 data|bzip2 -dc
bzip2-empty BZh9\x17rE8P\x90\0|bzip2 data|bzip2 -dc
lz4 \4\"M\x18d@|lz4 data|lz4 -dc
zip PK\3\4\24\0|a zip archive|unzip -p
7z 7z\xbc\xaf'\x1c\0\4|a 7z archive|7z x -so
compress \x1f\x9d\x90|compress data|gzip -dc
utf-16le \xff\xfer\0o\0|UTF-16 text|iconv -f UTF-16 -t UTF-8
utf-16be \xfe\xff\0r\0o|UTF-16 text|iconv -f UTF-16 -t UTF-8
utf-32le \xff\xfe\0\0r\0\0\0|UTF-32 text|iconv -f UTF-32 -t UTF-8
utf-32be \0\0\xfe\xff\0\0\0r|UTF-32 text|iconv -f UTF-32 -t UTF-8
utf-16-of-nothing \xff\xfe|UTF-16 text|iconv -f UTF-16 -t UTF-8
"

@test "what is packed in other ways, and UTF-16, are refused with the command that helps" {
    while IFS='|' read -r first is helps; do
        [ -n "$first" ] || continue
        file=${first%% *}
        printf "${first#* }" >$file
        for verb in build add check dedup minus-2; do
            read_list $file $verb
            fails_with "$file: not a list of lines but $is; pipe it through '$helps'"
        done
        run_calyx dedup --text $file
        is_status 0
        quiet
        [ "$(head -c $(stat -c %s $file) out | cmp - $file && echo same)" = same ]
        run_calyx info $file
        fails_with "$file: not a calyx filter, but $is; pipe it through '$helps'"
    done <<<"$packings"
}

@test "gzip within gzip is not taken for lines" {
    needs gzip
    echo rose | gzip | gzip >twice
    run_calyx dedup twice
    fails_with "twice: not a list of lines but gzip data, packed twice; pipe it through 'gzip -dc'"
}

@test "a filter whose first bytes are damaged is not taken for a list" {
    needs gzip
    for first in '\0\0\0\0\0\0\0\0' nonsense '\x89CLX\n\n\x1a\n' '\xff\xfe'; do
        cp flowers.calyx bad
        printf "$first" | dd of=bad conv=notrunc status=none
        gzip -c bad >bad.gz
        is="not a list of lines but a calyx filter with damaged first bytes"
        for file in bad bad.gz; do
            for verb in build add check dedup; do
                read_list $file $verb
                fails_with "$file: $is"
            done
        done
        run_calyx dedup <bad
        fails_with "standard input: $is"
        run_calyx verify bad
        fails_with "damaged: its first 8 bytes are not the first bytes of a filter"
        run_calyx dedup --text bad
        is_status 0
    done
}

@test "what only begins like a magic number is a list" {
    for text in BZh BZh9 'BZh91AY&S' 7z PK 7zip '' P; do
        printf "$text" >list
        run_calyx dedup list
        is_status 0
        quiet
        [ "$(cat out)" = "$text" ]
    done
}

@test "lines that come slowly are answered at once, whatever they begin with" {
    mkfifo lines answers
    "$CALYX" check -f flowers.calyx <lines >answers 3>&- 5>&- 6>&- &
    pid=$!
    exec 5>lines 6<answers
    echo rose >&5
    read -r -t 60 answer <&6
    [ "$answer" = rose ]
    exec 5>&-
    wait $pid
}

@test "a byte order mark of UTF-8 is no part of the first key, unless it is meant" {
    needs gzip
    printf '\xef\xbb\xbfrose\nmoss\n' >marked
    gzip -c marked >marked.gz
    for file in marked marked.gz; do
        run_calyx check -f flowers.calyx $file
        prints rose
        run_calyx check -f flowers.calyx $file $file
        prints rose rose
    done
    # in three pieces: each is written when the one before was read
    python3 -c '
import fcntl, os, termios, time
for piece in b"\xef", b"\xbb", b"\xbfrose\n":
    os.write(1, piece)
    while fcntl.ioctl(1, termios.FIONREAD, bytes(4)) != bytes(4):
        time.sleep(0.001)' | "$CALYX" check -c -f flowers.calyx >out
    prints 1
    printf '\xef\xbb\xbf"rose",1\n' | "$CALYX" check -c --csv -k 1 -f flowers.calyx >out
    prints 1
    run_calyx check --text -f flowers.calyx marked
    is_status 1
    prints
}

@test "a file that is no filter is not taken for a list" {
    needs gzip
    seq 100 >list
    gzip -k list
    for file in list list.gz; do
        for verb in info verify freeze; do
            run_calyx $verb $file
            fails_with "$file: not a calyx filter: it looks like text; 'calyx build -o FILTER LIST' makes a filter of lines"
        done
        echo 1 | { run_calyx add $file; is_status 2; }
        complains "$file: not a calyx filter: it looks like text"
        run_calyx check -f $file list
        fails_with "$file: not a calyx filter: it looks like text"
    done
    run_calyx check -f - list <list
    fails_with "standard input: not a calyx filter: it looks like text"
}

# ---- Lists that change ---------------------------------------------------------

# stops_at CALL NUMBER FILE COMMAND...: run it in the background, and stop it at
# the call of this number on the file; wait until it has stopped. Then
# `goes_on` lets it end.
stops_at() {
    local call=$1 number=$2 file=$3
    shift 3
    rm -f trace
    traced -e trace=$call -P $file -P "$PWD/$file" \
        --inject=$call:signal=STOP:when=$number "$@" >out 2>err 3>&- &
    tracer=$!
    until grep -qs "stopped by SIGSTOP" trace; do
        kill -0 $tracer # or it has ended without a stop
        sleep 0.02
    done
}

goes_on() {
    status=0
    kill -CONT "$(awk '/stopped by SIGSTOP/ { print $1; exit }' trace)"
    wait $tracer || status=$?
    sed -i '/^strace: Requested path/d' err
}

@test "build, add and check notice a list that shrinks while it is read" {
    seq 3000000 >whole
    for words in "build -n 5M -o new.calyx" "build --memory 5M -p 1% -o new.calyx" \
        "add into.calyx" "check -f flowers.calyx" "dedup -o new.calyx"; do
        cp whole big
        "$CALYX" build --force -n 5M -o into.calyx </dev/null
        stops_at read 5 big "$CALYX" $words -j1 big
        truncate -s 4096 big
        goes_on
        fails_with "big: shrank from 22888896 to 4096 bytes while it was read"
        [ ! -e new.calyx ]
    done
    run_calyx verify into.calyx # what add has done is sound
    is_status 0
}

@test "add says that lines before the change were added" {
    seq 3000000 >big
    "$CALYX" build --force -n 5M -o into.calyx </dev/null
    stops_at read 5 big "$CALYX" add into.calyx -j1 big
    truncate -s 4096 big
    goes_on
    fails_with "bytes while it was read; the lines before that were added"
    seq 1000 | "$CALYX" check -c -f into.calyx >out
    prints 1000
}

@test "a list that is written over while it is read is noticed, packed or not" {
    needs gzip
    seq 3000000 >whole
    gzip -c whole >whole.gz
    for file in whole whole.gz; do
        cp $file big
        stops_at read 5 big "$CALYX" check -c -f flowers.calyx -j1 big
        cat $file >big # truncated, and written again with the same size
        goes_on
        fails_with "big: changed while it was read"
    done
}

@test "a list that only grows while it is read is read to its end" {
    seq 3000000 >big
    stops_at read 5 big "$CALYX" check -c -f flowers.calyx -j1 big
    echo rose >>big
    goes_on
    is_status 0
    quiet
    prints 1
}

@test "a list that is replaced by another is read as it was" {
    seq 3000000 >big
    echo rose >>big
    stops_at read 5 big "$CALYX" check -c -f flowers.calyx -j1 big
    echo moss >other
    mv other big
    goes_on
    is_status 0
    quiet
    prints 1
}

@test "build that reads its lists twice must find the same" {
    # equal lines, enough that the guess is wrong
    yes "a line that comes again and again" | head -n 500000 >whole
    # one look, 256 samples, the first reading, the second
    for change in "truncate -s 4096 big" "cp --remove-destination whole big" \
        "cp whole big"; do
        cp whole big
        stops_at openat 259 big "$CALYX" build -j1 -o new.calyx big
        $change
        goes_on
        is_status 2
        grep -qE 'big: (shrank from 17000000 to 4096 bytes|changed) while it was read' err
        [ ! -e new.calyx ]
    done
    cp whole big
    stops_at openat 259 big "$CALYX" build -j1 -o new.calyx big
    echo rose >>big # growing is all right
    goes_on
    is_status 0
    echo rose | "$CALYX" check -q -f new.calyx
}

@test "a file that lines are printed to is not read" {
    seq 3000 >a.txt
    cp a.txt z.txt
    : >out.txt
    "$CALYX" build --kind bucket -p 1e-6 -o f.calyx a.txt
    status=0
    (ulimit -f 1000; "$CALYX" check -f f.calyx a.txt out.txt z.txt >out.txt 2>err) || status=$?
    fails_with "out.txt: input file is also the output"
    [ "$(wc -l <out.txt)" -eq 6000 ] # the others are read
    cp a.txt g
    for words in "check -f f.calyx" dedup "minus - a.txt" "add f.calyx --new" "remove f.calyx --absent"; do
        status=0
        (ulimit -f 1000; "$CALYX" $words <g >>g 2>err) || status=$?
        fails_with "standard input: input file is also the output"
        cmp g a.txt
    done
    for words in "dedup a.txt out.txt" "minus a.txt out.txt" "common a.txt out.txt"; do
        status=0
        (ulimit -f 1000; "$CALYX" $words >out.txt 2>err) || status=$?
        fails_with "out.txt: input file is also the output"
        [ ! -s out.txt ]
    done
    # at its end it is empty; names of files and a device are no harm
    { cat >/dev/null; "$CALYX" check -f f.calyx - z.txt; } <g >>g
    cmp <(cat a.txt a.txt) g
    "$CALYX" check -l -f f.calyx a.txt out.txt >out.txt
    diff out.txt <(echo a.txt)
    "$CALYX" check -f f.calyx /dev/null </dev/null >/dev/null || [ $? -eq 1 ]
    "$CALYX" dedup a.txt -o a.txt --force
    cmp a.txt z.txt
}

@test "a part of a file on standard input is read as it is" {
    seq 1000 >list
    { head -c 1000 >/dev/null; "$CALYX" check -vc -f flowers.calyx; } <list >out
    [ "$(cat out)" -lt 1000 ]
}

@test "--files0-from names files of any bytes, after the files of the command line" {
    printf 'a\n' >one
    printf 'b\n' >$'t\nwo'
    printf 'a\nc\n' >three
    printf 't\nwo\0three' >names
    run_calyx dedup one --files0-from=names
    prints a b c
    printf 'one\0three\0' | "$CALYX" common --files0-from - >out
    prints a
    run_calyx build -p 1e-8 -o f.calyx --files0-from names one
    run_calyx add f.calyx --new --files0-from names
    is_status 1
    find . -name 't*' -print0 | "$CALYX" check -c -f f.calyx --files0-from - >out
    prints 3
}

@test "--files0-from refuses a list without names, empty names and itself" {
    : >none
    run_calyx dedup --files0-from none <<<x
    fails_with "none: expected names of files, found none"
    printf 'a\nb\n' >lines
    run_calyx dedup --files0-from lines
    fails_with "lines: found lines, expected names that end in a byte 0"
    printf 'a\0\0b\0' >gap
    run_calyx dedup --files0-from gap
    fails_with "gap:2: the name of a file is empty"
    printf 'x\0-\0' >list
    run_calyx dedup --files0-from - <list
    fails_with "standard input:2: - is standard input, which has the names"
    run_calyx dedup --files0-from missing
    fails_with "missing: cannot open it"
    run_calyx minus --files0-from list <<<y
    fails_with "x"
    printf 'x\0' >list
    run_calyx common --files0-from list
    fails_with "missing operand: expected 2 or more, found 1"
}
