# calyx check: which lines are printed, how, and the exit status.

load common

setup() {
    cd "$BATS_TEST_TMPDIR" || return 2
    flowers
    printf '%s\n' tulip iris weed rose rose moss >garden
}

@test "lines in the filter are printed in their order" {
    run_calyx check -f flowers.calyx garden
    is_status 0
    prints iris rose rose
}

@test "-v prints the lines that are not in the filter" {
    run_calyx check -v -f flowers.calyx garden
    is_status 0
    prints tulip weed moss
}

@test "nothing selected is exit status 1, trouble is 2" {
    run_calyx check -f flowers.calyx <<<moss
    is_status 1
    prints
    run_calyx check -f flowers.calyx nowhere
    fails_with "nowhere: cannot open it"
    run_calyx check -f nowhere.calyx garden
    fails_with "nowhere.calyx: cannot open it"
    run_calyx check -f garden garden
    fails_with "garden: "
    run_calyx check garden
    fails_with "missing -f FILTER: calyx check -f FILTER"
    run_calyx check garden -f
    fails_with "missing value: --filter FILTER"
}

@test "after a file that cannot be read the others are read" {
    needs gzip
    head -c 20 <(gzip -c garden) >cut.gz
    mkdir folder
    for jobs in 1 4; do
        run_calyx check -j $jobs -n -f flowers.calyx garden nowhere garden
        is_status 2
        [ "$(wc -l <err)" -eq 1 ]
        complains "calyx check: nowhere: cannot open it: No such file"
        prints garden:2:iris garden:4:rose garden:5:rose \
            garden:2:iris garden:4:rose garden:5:rose
        run_calyx check -j $jobs -c -f flowers.calyx folder cut.gz garden '' -
        is_status 2
        [ "$(wc -l <err)" -eq 3 ]
        complains "folder: cannot read it: Is a directory"
        complains "cut.gz: damaged: the packed data ends in its middle"
        complains "'': cannot open it"
        prints 3
    done </dev/null
    run_calyx check -f flowers.calyx nowhere <(echo moss)
    is_status 2
    prints
    # as with grep
    run_calyx check -q -f flowers.calyx nowhere garden
    is_status 0
    complains "nowhere: cannot open it"
    run_calyx check -f flowers.calyx --allow nowhere garden
    is_status 2
    prints
}

@test "standard input is read without a file, and for -" {
    run_calyx check -f flowers.calyx <garden
    prints iris rose rose
    run_calyx check -f flowers.calyx garden - <garden
    prints iris rose rose iris rose rose
}

@test "standard input cannot be read twice" {
    run_calyx check -f - <flowers.calyx
    fails_with "standard input is to be read as more than one"
    run_calyx check -f flowers.calyx --allow - - <garden
    is_status 2
}

@test "-c counts" {
    run_calyx check -c -f flowers.calyx garden
    is_status 0
    prints 3
    run_calyx check -vc -f flowers.calyx <<<rose
    is_status 1
    prints 0
}

@test "-n numbers lines, and names the file if there are several" {
    run_calyx check -n -f flowers.calyx garden
    prints 2:iris 4:rose 5:rose
    run_calyx check -n -f flowers.calyx garden garden
    prints garden:2:iris garden:4:rose garden:5:rose \
        garden:2:iris garden:4:rose garden:5:rose
}

@test "-n is right beyond the first block" {
    { seq 1000000; echo rose; } >long
    run_calyx check -n -f flowers.calyx long
    prints 1000001:rose
}

@test "-q prints nothing; its status is the answer" {
    run_calyx check -q -f flowers.calyx garden
    is_status 0
    prints
    run_calyx check -q -f flowers.calyx <<<moss
    is_status 1
    # it stops at the first, so what follows does no harm
    run_calyx check -q -f flowers.calyx garden nowhere
    is_status 0
}

@test "-m N stops after N lines" {
    run_calyx check -m 2 -f flowers.calyx garden
    is_status 0
    prints iris rose
    run_calyx check -m2 -v -f flowers.calyx garden
    prints tulip weed
    run_calyx check -m 2 -c -f flowers.calyx garden
    prints 2
    run_calyx check -m 0 -c -f flowers.calyx garden
    is_status 1
    prints 0
    run_calyx check -m 0 -f flowers.calyx garden
    is_status 1
    prints
    run_calyx check -m 2 -n -f flowers.calyx garden garden
    prints garden:2:iris garden:4:rose
}

@test "several filters: any will do, and -H names which" {
    printf '%s\n' weed rose | "$CALYX" build -p 1e-8 --seed 7 -o weeds.calyx
    run_calyx check -f flowers.calyx -f weeds.calyx garden
    is_status 0
    prints iris weed rose rose
    run_calyx check -H -f flowers.calyx -f weeds.calyx garden
    prints flowers.calyx:iris weeds.calyx:weed flowers.calyx:rose \
        weeds.calyx:rose flowers.calyx:rose weeds.calyx:rose
    run_calyx check -Hn -f weeds.calyx garden
    prints weeds.calyx:3:weed weeds.calyx:4:rose weeds.calyx:5:rose
    run_calyx check -Hc -f flowers.calyx -f weeds.calyx garden
    prints flowers.calyx:3 weeds.calyx:3
    run_calyx check -v -f flowers.calyx -f weeds.calyx garden
    prints tulip moss
    run_calyx check -Hc -m 2 -f flowers.calyx garden
    fails_with "--max-count does not go with --count and --filter-name"
}

@test "more than 64 filters are too many" {
    run_calyx check $(printf -- '-f flowers.calyx %.0s' $(seq 65)) garden
    fails_with "at most 64 filters can be queried at once, not 65"
    run_calyx check -c $(printf -- '-f flowers.calyx %.0s' $(seq 64)) garden
    prints 3
}

@test "--allow takes back what is on a list, exactly" {
    echo rose >fine
    run_calyx check --allow fine -f flowers.calyx garden
    prints iris
    run_calyx check -v --allow fine -f flowers.calyx garden
    prints tulip weed rose rose moss
    seq 5000 >many
    run_calyx check --allow many --allow fine -c -f flowers.calyx garden
    prints 1
    "$CALYX" build -o many.calyx many
    run_calyx check --allow many -c -f many.calyx many
    is_status 1
    prints 0
}

@test "--except takes back what another filter has" {
    printf '%s\n' iris tulip | "$CALYX" build -p 1e-8 -o good.calyx
    run_calyx check --except good.calyx -f flowers.calyx garden
    prints rose rose
}

@test "a damaged or cut filter is trouble" {
    head -c 3000 flowers.calyx >cut.calyx
    run_calyx check -f cut.calyx garden
    fails_with "cut.calyx: "
    : >empty.calyx
    run_calyx check -f empty.calyx garden
    fails_with "empty.calyx: "
}

@test "-l and -L print the names of files with and without a selected line" {
    printf 'moss\nrose\nrose\n' >some
    printf 'moss\n' >none
    : >empty
    printf 'iris\n' >all
    run_calyx check -f flowers.calyx -l some none empty all
    is_status 0
    prints some all
    run_calyx check -f flowers.calyx -L some none empty all
    is_status 0 # as with grep: a line was selected
    prints none empty
    run_calyx check -f flowers.calyx -lv some none empty all
    prints some none
    run_calyx check -f flowers.calyx -l none empty
    is_status 1
    prints
    run_calyx check -f flowers.calyx -L missing none
    is_status 2
    prints none
    run_calyx check -zf flowers.calyx -L none empty
    printf 'none\0empty\0' | cmp - out
    run_calyx check -f flowers.calyx -l <some
    prints "standard input"
    run_calyx check -f flowers.calyx -lq none
    is_status 1
    prints
    for option in -L -c -m1 -H; do
        run_calyx check -f flowers.calyx -l $option some
        fails_with "print only names"
    done
    yes moss | head -300000 >long
    echo rose >>long
    cat long long >longer
    run_calyx check -f flowers.calyx -l longer none long
    prints longer long
    run_calyx check -j3 -f flowers.calyx -L longer none long empty
    prints none empty
}

@test "--file-name says where lines and counts are from" {
    printf 'moss\nrose\nrose\n' >some
    : >empty
    run_calyx check -f flowers.calyx --file-name some
    prints some:rose some:rose
    run_calyx check -f flowers.calyx -n --file-name some
    prints some:2:rose some:3:rose
    run_calyx check -f flowers.calyx -c --file-name some empty missing some
    is_status 2
    prints some:2 empty:0 some:2
    run_calyx check -f flowers.calyx -c some empty some
    prints 4
}

@test "check takes long options of grep" {
    run_calyx check -f flowers.calyx --invert-match --line-buffered <<<$'moss\nrose'
    prints moss
    run_calyx check -f flowers.calyx --inve <<<$'moss\nrose'
    prints moss
}
