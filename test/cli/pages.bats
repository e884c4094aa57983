# The manual pages: one for calyx, one for each verb, without a complaint of
# those who read roff.

load common

@test "every page is clean roff" {
    "$CALYX" help --man >calyx.1
    for verb in $(sed -n 's/^  *ROW(\([a-z]*\)).*/\1/p' "$root/tool/main.c"); do
        "$CALYX" help --man "$verb" >"calyx-$verb.1"
    done
    [ "$(ls ./*.1 | wc -l)" -gt 10 ]
    for page in ./*.1 "$root/doc/calyx.3"; do
        LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" >text 2>err
        quiet
        for title in NAME SYNOPSIS DESCRIPTION; do
            grep -q "^$title" text
        done
    done
}

@test "a page that is not clean would be found" {
    printf '.TH X 1\n.SH NAME\nx \\- y\n.nosuch request\n' >x.1
    LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l x.1 >text 2>err
    complains "macro 'nosuch' not defined"
}

@test "the build leaves the pages of this command" {
    folder=$(dirname "$CALYX")/man
    "$CALYX" help --man | cmp - "$folder/calyx.1"
    "$CALYX" help --man plan | cmp - "$folder/calyx-plan.1"
    ls "$root"/tool/*/verb_*.c | sed 's/.*verb_\(.*\).c$/calyx-\1.1/' >wanted
    echo calyx.1 >>wanted
    ls "$folder" | sort | diff - <(sort wanted)
}
