# calyx bench: finds the program that measures, and runs it.

load common

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
    mkdir here there
    cp "$CALYX" here/calyx
    printf '#!/bin/sh\necho "$(dirname "$0") $*"\nexit 3\n' >bench
    chmod +x bench
    CALYX=$PWD/here/calyx
}

@test "bench runs calyx-bench --quick beside the command, with its status" {
    cp bench here/calyx-bench
    cp bench there/calyx-bench
    PATH=$PWD/there:$PATH run_calyx bench
    is_status 3
    says "here --quick"
}

@test "bench runs calyx-bench from PATH if there is none beside" {
    cp bench there/calyx-bench
    PATH=$PWD/there:$PATH run_calyx bench
    is_status 3
    says "there --quick"
}

@test "bench passes what follows -- in place of --quick" {
    cp bench here/calyx-bench
    run_calyx bench -- --fpr 0.1 -n 5
    says "here --fpr 0.1 -n 5"
    ! grep -q quick out
}

@test "bench leaves signals as a program expects them" {
    printf '#!/bin/sh\ngrep -E "^Sig(Blk|Ign)" /proc/self/status\n' \
        >here/calyx-bench
    chmod +x here/calyx-bench
    grep -E '^Sig(Blk|Ign)' /proc/self/status >wanted
    run_calyx bench
    # signals 1 to 28; beyond are some that belong to the C library
    grep -oE '^Sig...|.{7}$' out | cmp - <(grep -oE '^Sig...|.{7}$' wanted)
}

@test "without the program bench says how to get it" {
    PATH=/nowhere run_calyx bench
    is_status 2
    complains "there is no calyx-bench beside this command or in PATH; 'make"
}

@test "a program that cannot be run is reported" {
    cp bench here/calyx-bench
    chmod -x here/calyx-bench
    run_calyx bench
    is_status 2
    complains "calyx-bench: cannot run it: Permission denied"
}
