# Filters by URL: check -f https://host/ids.calyx
load common

# ---- Servers ------------------------------------------------------------------

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 2
    : "${CALYX:=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)/build/calyx}"
    mkdir www
    openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem 2>/dev/null
    seq 1 20000 | "$CALYX" build -p 0.1% -o www/line.calyx
    start_odd_server
    start_nginx
}

teardown_file() {
    kill "$(cat "$BATS_FILE_TMPDIR/odd.pid")" "$(cat "$BATS_FILE_TMPDIR/nginx.pid")"
}

start_odd_server() {
    : >requests
    python3 "$BATS_TEST_DIRNAME/odd_server.py" www requests >odd.port 3>&- &
    echo $! >odd.pid
    for _ in $(seq 600); do [ -s odd.port ] && return; sleep 0.1; done
    return 1
}

# nginx cannot choose a free port by itself: try some.
start_nginx() {
    for _ in 1 2 3 4 5; do
        python3 -c 'import socket
for _ in 1, 2:
    s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])' >ports
        { read -r plain; read -r tls; } <ports
        write_nginx_conf >nginx.conf
        nginx -p "$PWD" -c nginx.conf 2>nginx.err 3>&- && break
    done
    echo "http://localhost:$plain" >plain.url
    echo "https://localhost:$tls" >tls.url
    for _ in $(seq 600); do [ -s nginx.pid ] && return; sleep 0.1; done
    return 1
}

write_nginx_conf() {
    cat <<EOF
user $(id -un);
pid nginx.pid;
error_log nginx.err;
events { worker_connections 1024; }
http {
    log_format counts '\$uri \$status \$server_protocol \$connection \$body_bytes_sent \$bytes_sent';
    access_log access.log counts;
    client_body_temp_path tmp_body; proxy_temp_path tmp_proxy; fastcgi_temp_path tmp_fastcgi;
    uwsgi_temp_path tmp_uwsgi; scgi_temp_path tmp_scgi;
    server { listen 127.0.0.1:$plain; root www; }
    server {
        listen 127.0.0.1:$tls ssl http2; root www;
        ssl_certificate cert.pem; ssl_certificate_key key.pem;
        location /single/ { alias www/; max_ranges 1; }
        location = /downgrade { return 302 http://localhost:$plain/line.calyx; }
        location /private/ { alias www/; auth_basic calyx; auth_basic_user_file users; }
    }
}
EOF
    echo "rose:{PLAIN}thorn" >users
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
    needs_curl
    www=$BATS_FILE_TMPDIR/www
    odd=http://127.0.0.1:$(cat "$BATS_FILE_TMPDIR/odd.port")
    plain=$(cat "$BATS_FILE_TMPDIR/plain.url")
    tls=$(cat "$BATS_FILE_TMPDIR/tls.url")
    export CALYX_TLS_CA=$BATS_FILE_TMPDIR/cert.pem
    seq 19990 20020 >lines
}

# Skip for a calyx that was built without libcurl, where that is meant.
needs_curl() {
    [ -n "${CALYX_SPARE:-}" ] || return 0
    run_calyx check -f http://localhost/x.calyx /dev/null
    complains "this calyx was built without libcurl" || return 0
    is_status 2
    skip "built without libcurl"
}

# refuses MODE TEXT: fails with that, and no line on standard output
refuses() {
    run_calyx check -f "$odd/$1/line.calyx" lines
    fails_with "$2" && prints || { echo "mode $1" >&2; return 1; }
}

# all_refuse MODE TEXT ...: each of them so, at the same time, as most of it is waiting
all_refuse() {
    local pids=() pid
    for (( ; $#; )); do
        mkdir "$1"
        (cd "$1" && cp ../lines . && refuses "$1" "$2") 3>&- &
        pids+=($!)
        shift 2
    done
    for pid in "${pids[@]}"; do wait $pid || return 1; done
}

# requests_of PATH: how many the odd server got
requests_of() { grep -c "^/$1 " "$BATS_FILE_TMPDIR/requests"; }

# answers URL OPTION...: as the file does
answers() {
    local url=$1 file
    shift
    file=$www/${url##*/}
    run_calyx check -f "$url" "$@"
    quiet
    local said=$status
    mv out by_url
    run_calyx check -f "$file" "$@"
    [ "$said" -eq "$status" ]
    cmp by_url out
}

# Figures of nginx: lines of its log about a file. It writes them a moment after the
# answer: so await was_read FILE TIMES.
log_of() { grep "^/$1 " "$BATS_FILE_TMPDIR/access.log"; }
was_read() { [ "$(log_of "$1" | wc -l)" -ge "$2" ]; }

# ---- libcurl -------------------------------------------------------------------

@test "libcurl is loaded for a URL alone, and what cannot be loaded is said" {
    mkdir broken
    : >broken/libcurl.so.4
    export LD_LIBRARY_PATH=$PWD/broken
    run_calyx check -f "$www/line.calyx" -c lines
    quiet
    run_calyx check -f "$plain/line.calyx" lines
    fails_with "line.calyx: filters by URL need libcurl: "
    complains "broken/libcurl.so.4"
    prints
}

# ---- Answers -------------------------------------------------------------------

@test "every kind that knows its places answers by URL as the file does" {
    seq 1 3000 >keys
    seq 2900 6000 >ask
    kinds=$(kinds_that true)
    for kind in $kinds; do
        "$CALYX" build --kind $kind -p 1% -o "$www/$kind-k.calyx" keys
        run_calyx check -f "$plain/$kind-k.calyx" /dev/null
        if [ "$status" -eq 2 ]; then
            complains "a lookup in a $kind filter learns what to read only while it reads; download the file"
            continue
        fi
        answers "$plain/$kind-k.calyx" ask
        answers "$plain/$kind-k.calyx" -v -n ask
        answers "$plain/$kind-k.calyx" --verify -c ask
        echo $kind >>did
    done
    [ "$(wc -l <did)" -ge 6 ]
}

@test "a grown filter by URL answers from all its parts" {
    # with a long comment and many options the header has over 4096 bytes
    seq 1 9000 | "$CALYX" build -n 1 --growth 1.25 -p 1% --comment "$(seq -s ' ' 250)" \
        -k "1$(printf ',1%.0s' $(seq 1400))" -o "$www/long.calyx"
    [ "$(od -A n -t u4 -j 32 -N 4 "$www/long.calyx")" -gt 4096 ]
    seq 1 7 12000 >ask
    answers "$plain/long.calyx" ask
    seq 1 20000 | "$CALYX" build -n 100 --growth 2 -p 1% -o "$www/grown.calyx"
    seq 1 7 25000 >ask
    answers "$tls/grown.calyx" ask
    echo 3 >one
    answers "$tls/grown.calyx" one
}

@test "a filter by URL obeys its allow list, and a damaged list is an error" {
    seq 1 3000 | "$CALYX" build -p 50% -o "$www/listed.calyx"
    seq 3001 6000 | "$CALYX" check -f "$www/listed.calyx" >wrong
    "$CALYX" allow "$www/listed.calyx" wrong
    answers "$plain/listed.calyx" -c wrong
    prints 0
    seq 2900 6000 >ask
    answers "$plain/listed.calyx" ask
    answers "$plain/listed.calyx" --verify -v ask
    printf X | dd of="$www/listed.calyx" bs=1 seek=5000 conv=notrunc status=none
    run_calyx check -f "$plain/listed.calyx" ask
    fails_with "the allow list does not match its checksum"
    prints
}

@test "filters by URL and from files mix, and lines keep their order" {
    seq 20001 20010 | "$CALYX" build -p 1e-6 -o more.calyx
    run_calyx check -H -f more.calyx -f "$plain/line.calyx" -f "$tls/line.calyx" lines
    is_status 0
    cp out mixed
    ln -sf "$www/line.calyx" a.calyx
    ln -sf "$www/line.calyx" b.calyx
    "$CALYX" check -H -f more.calyx -f a.calyx -f b.calyx lines |
        sed "s|^a.calyx|$plain/line.calyx|; s|^b.calyx|$tls/line.calyx|" >wanted
    cmp mixed wanted
}

@test "more lines than one block come out as from the file, and bytes are not read twice" {
    seq 1 3 300000 >many
    answers "$tls/line.calyx" many
    size=$(stat -c %s "$www/line.calyx")
    run_calyx check -c --json-stats figures -f "$plain/line.calyx" many
    is_status 0
    jq -e ".http_bytes < 3 * $size + 40000" figures
}

@test "lookups in more ranges than fit into memory answer as the file does" {
    seq 1 1000 | "$CALYX" build -n 45e6 -p 1% -o "$www/huge.calyx" # over 32 MiB
    seq 1 3000 >ask
    answers "$plain/huge.calyx" --verify ask
    rm "$www/huge.calyx"
}

@test "an exact filter is as exact by URL" {
    seq 40000 >all
    seq 3 50 40000 >in
    "$CALYX" build --exact --universe all -o "$www/exact.calyx" in
    answers "$plain/exact.calyx" all
    run_calyx check -f "$tls/exact.calyx" all
    cmp in out
}

@test "no line, no request for bits; -q and -m stop as with a file" {
    run_calyx check --json-stats figures -f "$plain/line.calyx" /dev/null
    is_status 1
    jq -e '.http_requests == 2' figures
    run_calyx check -q -f "$plain/line.calyx" lines
    is_status 0
    answers "$plain/line.calyx" -m 3 lines
    run_calyx check -f "$plain/line.calyx" <(echo absent)
    is_status 1
    prints
}

@test "the options for keys come with a filter by URL" {
    printf 'a:Rose\nb:Iris\n' | "$CALYX" build -k 2 -t : -i -p 1e-6 -o "$www/fields.calyx"
    run_calyx check -f "$plain/fields.calyx" <(printf 'x:ROSE\ny:lily\n')
    is_status 0
    prints x:ROSE
    quiet
}

@test "a filter by URL with a secret key wants that key" {
    printf '%s' sixteen-bytes-16 >key
    printf '%s' other-bytes---16 >other
    "$CALYX" build --key-file key -p 1e-6 -o "$www/keyed.calyx" lines
    run_calyx check --key-file key -f "$tls/keyed.calyx" lines
    is_status 0
    cmp out lines
    run_calyx check --key-file other -f "$tls/keyed.calyx" lines
    fails_with "it was made with another secret key"
    run_calyx check -f "$tls/keyed.calyx" lines
    fails_with "it was made with a secret key; give the key to open it"
}

@test "info by URL shows what the header says, from a few kB" {
    "$CALYX" build -p 1% -k 1 -t : --comment "a note" -o "$www/noted.calyx" <(seq 100000)
    run_calyx info --json "$tls/noted.calyx"
    is_status 0
    await was_read noted.calyx 2
    log_of noted.calyx | awk '{ bytes += $5 } END { exit !(NR == 2 && bytes < 6000) }'
    "$CALYX" info --json "$www/noted.calyx" >whole
    for file in whole out; do
        jq '.[0] | del(.file, .distinct, .rate, .fill)' $file >$file.known
    done
    cmp whole.known out.known
    jq -e '.[0] | has("rate") or has("fill") or has("distinct") | not' out
    run_calyx info "$tls/noted.calyx" "$www/noted.calyx" "$plain/noted.calyx"
    is_status 0
    says "comment   a note"
    [ "$(grep -c '^  rate      1 % promised$' out)" = 2 ]
}

@test "verify by URL reads all of it, and finds damage wherever verify does" {
    seq 1 300000 | "$CALYX" build -n 1000 --growth 2 -p 1% -o good.calyx
    size=$(stat -c %s good.calyx)
    for at in none 4096 200000 $((size / 2)) $((size - 2000)) $((size - 1)); do
        cp good.calyx "$www/flipped.calyx"
        [ $at = none ] || flip "$www/flipped.calyx" $at
        run_calyx verify "$www/flipped.calyx"
        wanted=$status
        run_calyx verify "$plain/flipped.calyx"
        is_status $wanted
        [ $wanted = 0 ] || complains "damaged"
    done
    [ $wanted = 2 ]
    run_calyx verify "$plain/flipped.calyx" --against lines
    fails_with "--against: expected a file"
    cp "$root/test/golden/line-open.calyx" "$www"
    for place in "$www" "$plain"; do
        run_calyx verify "$place/line-open.calyx"
        fails_with "line-open.calyx: "
    done
}

# flip FILE AT: one bit of the byte there
flip() {
    python3 - "$1" "$2" <<'EOF'
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2]))
    byte = f.read(1)[0]
    f.seek(int(sys.argv[2]))
    f.write(bytes([byte ^ 4]))
EOF
}

# ---- How much is read ---------------------------------------------------------

# ask_1000 URL-OF-SERVER FILE: of a filter of 10 MB, by a link with a round trip of
# 20 ms. Leaves nginx's log of it in the file log, bytes on the link in counts.
ask_1000() {
    seq 1 1000 | "$CALYX" build -n 8e6 -p 1% -o "$www/${2#single/}"
    touch -d "1 hour ago" "$www/${2#single/}"
    seq 501 1500 >ask
    python3 "$BATS_TEST_DIRNAME/slow_link.py" "${1##*:}" 10 counts >link.port 3>&- &
    link=$!
    await test -s link.port
    answers "${1%:*}:$(cat link.port)/$2" ask
    await test -s counts
    kill $link
    cat counts
    log_of "$2" >log
}

# log_has REQUESTS CONNECTIONS PROTOCOL: no more than these, and only ranges
log_has() {
    awk -v most="$1" -v connections="$2" -v protocol="$3" '
        { from[$4] } $3 != protocol { odd++ } $2 != 206 { whole++ }
        END { print NR, length(from), odd + 0, whole + 0
              exit !(NR <= most && length(from) <= connections && !odd && whole <= 1) }' log
}

@test "1,000 keys take 40 requests and 200 kB on a link of 20 ms" {
    ask_1000 "$plain" ten_megabytes.calyx
    log_has 40 34 HTTP/1.1
    awk '{ exit !($2 <= 200000) }' counts
    run_calyx check -c --json-stats figures -f "$plain/ten_megabytes.calyx" ask
    jq -e '.http_bytes <= 90000 and .http_requests <= 40' figures
}

@test "1,000 keys by HTTP/2 use two connections, and 240 kB with TLS" {
    ask_1000 "$tls" ten_by_tls.calyx
    log_has 40 2 HTTP/2.0
    awk '{ exit !($2 <= 240000) }' counts
}

@test "a server that takes one range at a time gets one request for each" {
    ask_1000 "$tls" single/ten_alone.calyx
    log_has 1005 2 HTTP/2.0
    [ "$(wc -l <log)" -gt 900 ]
}

@test "a server with HTTP/1.1 gets 64 requests at a time" {
    seq 1 1000 | "$CALYX" build -n 8e6 -p 1% -o "$www/wide.calyx"
    seq 1 400 >ask
    run_calyx check -c --json-stats figures -f "$odd/right/wide.calyx" ask
    # one for the header, three for the slots: both at once are refused
    n=$(($(jq .http_requests figures) - 4))
    [ $n -gt 300 ]
    # that is ceil(n / 64) round trips for the bits, or no answer at all
    run_calyx check -c -f "$odd/together/wide.calyx?64-$n" ask
    is_status 0
    prints 400
}

@test "places that are near each other are read by one request" {
    seq 1 100 | "$CALYX" build -p 1% -o "$www/tiny.calyx"
    touch -d "1 hour ago" "$www/tiny.calyx" # the slots of a new one are read twice
    run_calyx check -c --json-stats figures -f "$plain/tiny.calyx" lines
    jq -e '.http_requests <= 4' figures
}

# ---- Damage -------------------------------------------------------------------

# damage FILE: another body byte of each line of 64 bytes
damage() {
    python3 - "$1" <<'EOF'
import struct, sys
with open(sys.argv[1], "r+b") as f:
    content = bytearray(f.read())
    body, size = struct.unpack_from("<QQ", content, 128 + 40) # of the first part
    for at in range(body, body + size, 64):
        content[at] ^= 0xff
    f.seek(0)
    f.write(content)
EOF
}

@test "--verify finds damage in the bits of a filter by URL" {
    seq 1 100000 | "$CALYX" build -p 1% -o "$www/bad.calyx"
    damage "$www/bad.calyx"
    echo 7 >one
    run_calyx check --verify -f "$tls/bad.calyx" one
    fails_with "do not match their checksum"
    prints
    run_calyx check --verify -f "$www/bad.calyx" one
    fails_with "do not match their checksum"
}

@test "damage is found without --verify where whole ranges were read" {
    seq 1 1000 | "$CALYX" build -p 1% -o "$www/small.calyx"
    seq 1 1000 >ask
    answers "$plain/small.calyx" ask
    damage "$www/small.calyx"
    run_calyx check -f "$plain/small.calyx" ask
    fails_with "do not match their checksum"
    prints
}

@test "a header, a size or slots that are damaged are refused" {
    cp "$www/line.calyx" whole
    size=$(stat -c %s whole)
    head -c $((size - 64)) whole >"$www/cut.calyx"
    run_calyx check -f "$plain/cut.calyx" lines
    fails_with "damaged: it has $((size - 64)) bytes, and its header says $size"
    (head -c 100 whole; printf X; tail -c +102 whole) >"$www/header.calyx"
    run_calyx check -f "$plain/header.calyx" lines
    fails_with "damaged"
    (head -c $((size - 1024)) whole; head -c 1024 /dev/zero) >"$www/slots.calyx"
    run_calyx check -f "$plain/slots.calyx" lines
    fails_with "neither of its slots is sound"
    echo "no filter" >"$www/text.calyx"
    run_calyx check -f "$plain/text.calyx" lines
    fails_with "not a calyx filter"
    : >"$www/nothing.calyx"
    run_calyx check -f "$plain/nothing.calyx" lines
    is_status 2
}

# replaced SERVER DATE DATE FILE: these are the times of the file and of the next
replaced() {
    server=$1 file=$4
    seq 1 1000 | "$CALYX" build -p 1% -o "$www/$file"
    seq 5001 6000 | "$CALYX" build -p 1% --force -o next.calyx
    touch -d "$2" "$www/$file"
    touch -d "$3" next.calyx
    rm -f feed
    mkfifo feed
    "$CALYX" check -f "$server/$file" feed >out 2>err 3>&- &
    pid=$!
    # its header and slots are read before any line
    await was_read "$file" 2
    mv next.calyx "$www/$file"
    timeout 300 sh -c 'seq 1 1000 >feed' # waits until it is opened to be read
    status=0
    wait $pid || status=$?
    fails_with "the file has changed on the server while it was queried"
    prints
}

@test "a file that is replaced while it is queried is an error, not a no" {
    for server in $plain $tls; do
        replaced $server "1 hour ago" "1 minute ago" "old-${server%%:*}.calyx"
    done
}

@test "a file that is replaced within a second, with the same size, is noticed" {
    # nginx's ETag is the same then; the time is a bit ahead for slow machines
    soon=$(date -d "5 minutes")
    replaced $plain "$soon" "$soon" new.calyx
}

@test "a file that is replaced between its header and its slots has changed, and is not damaged" {
    for comment in one two; do
        "$CALYX" build -p 1% --comment $comment --force -o $comment.calyx lines
    done
    cp one.calyx "$www/swapped.calyx"
    cp two.calyx "$www/swapped.calyx.next"
    run_calyx check -f "$odd/swapped/swapped.calyx" lines
    fails_with "the file has changed on the server while it was queried"
}

@test "a URL of a compressed filter, and one where a file is wanted, are refused with advice" {
    for packer in gzip zstd; do
        $packer -qc "$www/line.calyx" >"$www/packed.calyx"
        run_calyx check -f "$plain/packed.calyx" lines
        fails_with "packed.calyx: it is compressed, so that parts of it cannot be read; unpack it on the server, or download"
    done
    for verb in add remove "add --create" "merge -o new $www/line.calyx"; do
        run_calyx $verb "$plain/line.calyx" </dev/null
        fails_with "$plain/line.calyx: this verb takes files, not URLs; download it, or query it with 'calyx check -f URL'"
    done
    [ ! -e new ]
}

# ---- Servers that answer otherwise ---------------------------------------------

@test "a server without ranges is refused" {
    refuses whole "the server does not send ranges of it: to a request for some bytes it answers with all (200 instead of 206)"
    refuses later-whole "the server does not send ranges of it"
}

@test "an answer that is not the range asked for is refused" {
    for when in "" later-; do
        refuses ${when}other-range "the server sent another range than bytes"
        refuses ${when}no-range "the server sent another range than bytes"
        refuses ${when}unknown-size "the server does not say how many bytes the file has (Content-Range with a *)"
        refuses ${when}long-line "a line of the answer's header is too long for libcurl"
        refuses ${when}endless-number "the server sent another range than bytes"
        refuses ${when}short "bytes that it announced"
        refuses ${when}empty "the server sent 0 of the"
        refuses ${when}long "more than the"
        refuses ${when}huge "more than the"
        refuses ${when}gzip "the server sends it compressed (Content-Encoding)"
        refuses ${when}status-418 "the server answers with status 418"
    done
    refuses other-size "damaged: it has"
    refuses later-other-size "the file has changed on the server"
}

@test "several ranges in one answer are taken if they are all there, in any order" {
    seq 1 100 | "$CALYX" build -n 1e6 -p 1% -o "$www/sparse.calyx"
    seq 1 200 >ask
    for mode in several several-joined several-backwards; do
        answers "$odd/$mode/sparse.calyx" ask
        [ "$(grep -c "^/$mode/" "$BATS_FILE_TMPDIR/requests")" -lt 15 ]
    done
}

@test "of an answer with several ranges that is not sound, each range is requested again" {
    for mode in missing cut short shifted garbage endless as-one gzip forbidden; do
        answers "$odd/several-$mode/line.calyx" lines
        # The first bytes, then each slot and some lines.
        [ "$(grep -c "^/several-$mode/.*=[0-9-]*$" "$BATS_FILE_TMPDIR/requests")" -gt 3 ]
    done
    refuses several-other-size "the file has changed on the server"
    refuses several-other-etag "the file has changed on the server"
}

@test "a change is noticed by ETag, by date, and by servers that ignore If-Match" {
    refuses later-other-etag "the file has changed on the server while it was queried"
    refuses other-date "the file has changed on the server while it was queried"
    refuses no-validator "the server sends neither ETag nor Last-Modified"
    refuses long-etag "its ETag or Last-Modified has over 511 bytes"
    answers "$odd/by-date/line.calyx" lines
    answers "$odd/weak-etag/line.calyx" lines
}

@test "a request that fails for a moment is sent again, four times at most" {
    answers "$odd/status-503-twice/line.calyx" lines
    answers "$odd/cut-twice/line.calyx" lines
    all_refuse status-503 "the server answers with status 503; tried 4 times" \
        several-503 "the server answers with status 503; tried 4 times" \
        later-status-500 "the server answers with status 500; tried 4 times" \
        cut "tried 4 times"
    [ "$(requests_of status-503/line.calyx)" = 4 ]
}

@test "a server that asks for a pause gets it, up to the timeout" {
    answers "$odd/come-back/line.calyx" lines
    refuses come-tomorrow "the server answers with status 503, and asks to be queried again in 86400 seconds; CALYX_HTTP_TIMEOUT, the longest time to wait, is 30 s"
    [ "$(requests_of come-tomorrow/line.calyx)" = 1 ]
}

@test "a server that goes silent or fails is given up after as many requests for 3,000 keys as for 300" {
    seq 1 1000 | "$CALYX" build -n 8e6 -p 1% -o "$www/quiet.calyx"
    seq 1 3000 >ask
    CALYX_HTTP_TIMEOUT=1s run_calyx check -f "$odd/silent-bits/quiet.calyx" ask
    fails_with "silent-bits/quiet.calyx: waited "
    complains " s for bytes "
    complains ", and the server sent 0 bytes; tried 2 times; CALYX_HTTP_TIMEOUT, which is 1 s, sets"
    prints
    # 4 until the bits, then 64 connections twice
    [ "$(requests_of silent-bits/quiet.calyx)" -le 132 ]
    run_calyx check -f "$odd/busy-bits/quiet.calyx" ask
    fails_with "the server answers with status 500; tried 4 times"
    # 256 requests at a time, four times
    [ "$(requests_of busy-bits/quiet.calyx)" -le 1028 ]
}

@test "a server that is silent is queried once more, by another connection" {
    python3 "$BATS_TEST_DIRNAME/slow_link.py" "${tls##*:}" 0 counts 5000 >link.port 3>&- &
    link=$!
    await test -s link.port
    CALYX_HTTP_TIMEOUT=4s answers "${tls%:*}:$(cat link.port)/line.calyx" lines
    kill $link
}

@test "a server that is silent, out of reach or without the file is named" {
    CALYX_HTTP_TIMEOUT=1s all_refuse silent "the server sent 0 bytes; tried 2 times" \
        drip " bytes; tried 2 times" later-drip " bytes; tried 2 times"
    CALYX_HTTP_TIMEOUT=0 refuses silent "CALYX_HTTP_TIMEOUT: expected a time from 1s on, such as 10s or 5min, found '0'"
    run_calyx check -f "$plain/none.calyx" lines
    fails_with "$plain/none.calyx: there is no such file on the server (404)"
    run_calyx check -f http://127.0.0.1:1/x.calyx lines
    fails_with "http://127.0.0.1:1/x.calyx: "
    run_calyx check -f http://no.such.host.invalid/x.calyx lines
    fails_with "no.such.host.invalid"
}

@test "redirects are followed, but not for ever, and not away from TLS" {
    answers "$odd/redirect/line.calyx" lines
    [ "$(grep -c '^/redirect/' "$BATS_FILE_TMPDIR/requests")" = 1 ]
    refuses loop "redirects"
    refuses endless_redirect "beside those requested"
    run_calyx check -f "$tls/downgrade" lines
    fails_with "http"
    prints
}

@test "a server that no authority vouches for is refused" {
    unset CALYX_TLS_CA
    run_calyx check -f "$tls/line.calyx" lines
    fails_with "CALYX_TLS_CA names a file or folder of the authorities to trust"
    prints
}

@test "a password in the URL is sent and never shown" {
    answers "${tls/:\/\//://rose:thorn@}/private/line.calyx" lines
    run_calyx check -f "${tls/:\/\//://rose:nettle@}/private/line.calyx" lines
    fails_with "the server refuses to send it (401)"
    ! grep -q nettle err
}

@test "--except wants a file" {
    run_calyx check -f "$www/line.calyx" --except "$plain/line.calyx" lines
    fails_with "--except: expected a file, found a URL"
}
