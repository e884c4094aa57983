# Files that are written: whole or not at all, on the disk before they have their
# name, and with no more access than the files that they replace.

load common

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
    seq 1000 >list
}

teardown() {
    [ -z "${shared:-}" ] || rm -r $shared
}

# Lines through the command's own way, a packed filter, and a filter that the
# library saves.
results="dedup:result.txt build:result.calyx.gz build:result.calyx"

# The names of the system calls in the trace.
calls() { grep -oE '^[0-9]+ +\w+' trace | awk '{ print $2 }'; }

@test "results are synced before they have their name, and their folder after" {
    needs gzip
    for result in $results; do
        for force in "" --force; do
            traced -e trace=fsync,linkat,rename \
                "$CALYX" ${result%:*} -j1 $force -o ${result#*:} list
            [ "$(calls | uniq | tr '\n' ' ')" = \
                "fsync linkat ${force:+rename }fsync " ]
        done
    done
}

@test "an error of closing a result is an error, and leaves no file" {
    needs gzip
    for result in $results; do
        traced -e trace=close,fsync "$CALYX" ${result%:*} -j1 -o ${result#*:} list
        rm ${result#*:}
        # the first close after the first fsync
        number=$(calls | awk '/close/ { n++ } /fsync/ { print n + 1; exit }')
        status=0
        traced -e trace=close --inject=close:error=EIO:when=$number \
            "$CALYX" ${result%:*} -j1 -o ${result#*:} list 2>err || status=$?
        fails_with "${result#*:}: cannot close it: Input/output error"
        [ ! -e ${result#*:} ]
    done
}

# Blocks while it reads `lines`, with its result open. Sets pid.
begin() {
    mkfifo lines
    "$CALYX" "$@" lines 2>err 3>&- 5>&- &
    pid=$!
    exec 5>lines
    echo one >&5
    until ls -l /proc/$pid/fd | grep -q " $PWD/[#.]"; do
        kill -0 $pid
        sleep 0.02
    done
}

end() {
    exec 5>&-
    status=0
    wait $pid || status=$?
    rm lines
}

@test "kill -9 leaves nothing behind" {
    needs gzip
    for file in result.txt result.txt.gz; do
        for old in "" old; do
            rm -f result.txt result.txt.gz
            [ -z "$old" ] || echo old >$file
            begin dedup --force -o $file
            kill -9 $pid
            end 2>/dev/null
            [ $status -eq 137 ]
            [ "$(ls -A)" = "$(printf '%s\n' err list $([ -z "$old" ] || echo $file))" ]
        done
    done
}

# The call that would make a nameless file fails, as on some file systems.
without_nameless_files() {
    traced -e trace=openat "$CALYX" "$@"
    number=$(grep -oE '^[0-9]+ +openat.*' trace | awk '/O_TMPFILE/ { print NR; exit }')
    rm result.*
    traced -e trace=openat --inject=openat:error=EOPNOTSUPP:when=$number "$CALYX" "$@"
    grep -q INJECTED trace
}

@test "without nameless files results are written under another name first" {
    needs gzip
    for result in $results; do
        without_nameless_files ${result%:*} -j1 -o ${result#*:} list
        [ "$(ls -A)" = "$(printf '%s\n' list ${result#*:} trace)" ]
        cp ${result#*:} first
        "$CALYX" ${result%:*} -j1 --force -o ${result#*:} list
        cmp first ${result#*:}
        rm first ${result#*:}
    done
}

@test "what is in the way of the new file's name is not touched" {
    echo old >result.txt
    begin dedup --force -o result.txt
    echo mine >.result.txt.$pid.0.new
    ln -s victim .result.txt.$pid.1.new
    end
    is_status 0
    [ "$(cat result.txt)" = one ]
    [ "$(cat .result.txt.$pid.0.new)" = mine ]
    [ ! -e victim ]
}

@test "a file that came to be meanwhile is not replaced without --force" {
    begin dedup -o result.txt
    echo mine >result.txt
    end
    fails_with "result.txt: it has come to exist meanwhile; --force replaces it"
    [ "$(cat result.txt)" = mine ]
    rm result.txt
    begin dedup --force -o result.txt
    echo mine >result.txt
    end
    is_status 0
    [ "$(cat result.txt)" = one ]
}

@test "two results can't have one name" {
    for force in "" --force; do
        run_calyx dedup $force -o x --dups ./x list
        fails_with "./x: two results are to be written to this file"
        [ -z "$force" ] || grep -qx old x
        echo old >x
    done
}

@test "a leftover of a killed run is named" {
    # one of the next process, which is gone
    sh -c 'touch .result.txt.$$.new .result.txt.$$.3.new .result.txt.$$.3x.new'
    run_calyx dedup -o result.txt list
    is_status 0
    [ "$(grep -c 'is what a killed run left of result.txt; it can be removed' err)" -eq 2 ]
}

@test "a replaced result keeps its owner, group and permissions" {
    needs gzip
    for result in $results; do
        file=${result#*:}
        touch $file
        chmod 640 $file
        [ "$(id -u)" -ne 0 ] || chown 12345:12346 $file # only root can
        before=$(stat -c '%u %g %a' $file)
        "$CALYX" ${result%:*} --force -o $file list
        [ "$(stat -c '%u %g %a' $file)" = "$before" ]
    done
}

@test "another group gets no more than others had" {
    [ "$(id -u)" -eq 0 ] || skip "only root can make files of others"
    needs gzip
    shared=$(mktemp -d) # where another user may come
    chown 65534:65534 $shared
    cp "$CALYX" $shared/calyx
    cp list $shared
    cd $shared
    for result in $results; do
        file=${result#*:}
        for modes in "660 600" "664 644" "646 646"; do
            rm -f $file
            touch $file
            chown 12345:12346 $file
            chmod ${modes% *} $file
            setpriv --reuid 65534 --regid 65534 --clear-groups \
                ./calyx ${result%:*} --force -o $file list
            [ "$(stat -c '%u %g %a' $file)" = "65534 65534 ${modes#* }" ]
        done
    done
}

# ---- Temporary files --------------------------------------------------------------

# cut_while CALL NUMBER COMMAND...: cut all nameless files of the process to half
# their size at its NUMBER-th system call CALL.
cut_while() {
    rm -f trace
    traced -e trace=$1 --inject=$1:signal=STOP:when=$2 "${@:3}" >out 2>err 3>&- &
    tracer=$!
    until grep -qs "stopped by SIGSTOP" trace; do
        kill -0 $tracer
        sleep 0.02
    done
    pid=$(awk '/stopped by SIGSTOP/ { print $1; exit }' trace)
    for fd in /proc/$pid/fd/*; do
        [[ $(readlink $fd) == "$PWD/temporary/"* ]] || continue
        size=$(stat -Lc %s $fd)
        [ $size -gt 0 ] || continue
        truncate -s $((size / 2)) $fd
    done
    kill -CONT $pid
    status=0
    wait $tracer || status=$?
}

@test "a temporary file that is cut is noticed" {
    mkdir temporary
    export TMPDIR=$PWD/temporary
    seq 300000 >many
    # the first that is not of the loader reads a temporary file
    traced -e trace=pread64 "$CALYX" --version >out
    first=$(($(grep -c pread64 trace) + 1))
    CALYX_TEST_BUDGET=1000000 cut_while pread64 $first "$CALYX" dedup -j1 -o new.txt <(cat many)
    fails_with "temporary: a temporary file lost its end while it was used"
    [ ! -e new.txt ]
    cut_while pread64 $first "$CALYX" build -S 1M -j1 -o new.calyx <(cat many)
    fails_with "temporary: cannot read hashes back from a temporary file"
    [ ! -e new.calyx ]
}
