# calyx completion: each shell takes its script, and offers what there is.

load common

forms="bits bits-and-blooms dcso guava parquet raw redisbloom redisson spark valkey-bloom"

verbs() {
    sed -n 's/^  *ROW(\([a-z]*\)).*/\1/p' "$root/tool/main.c"
}

# offers WORD...: what bash would offer for the last word of this line
offers() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _calyx
    printf '%s\n' "${COMPREPLY[@]}" | sort | paste -sd ' '
}

@test "bash completes verbs" {
    source <("$CALYX" completion bash)
    [ "$(offers calyx ver)" = verify ]
    [ "$(offers calyx --v)" = --version ]
    [ "$(offers calyx '')" = "$( (verbs; echo --help; echo --version) |
        sort | paste -sd ' ')" ]
    [ "$(complete -p calyx)" = "complete -o default -F _calyx calyx" ]
}

@test "bash completes every option of every verb" {
    source <("$CALYX" completion bash)
    for verb in $(verbs); do
        "$CALYX" help "$verb" | grep -oE '^ {2,6}(-[a-zA-Z0], )?--[a-z0-9-]+' |
            grep -oE -- '--?[a-zA-Z0-9-]+' | sort -u >wanted
        offers calyx "$verb" - | tr ' ' '\n' | grep -vx -- --help >offered ||
            true
        diff wanted offered
    done
}

@test "bash completes values and operands" {
    source <("$CALYX" completion bash)
    [ "$(offers calyx convert --to '')" = "$forms" ]
    [ "$(offers calyx convert --to = p)" = parquet ]
    [ "$(offers calyx convert --to =)" = "$forms" ]
    [ "$(offers calyx build --kind fl)" = flat ]
    [ "$(offers calyx completion z)" = zsh ]
    [ "$(offers calyx help comp)" = "compare completion" ]
    [ -z "$(offers calyx build -o '')" ]  # files: bash does that itself
    [ -z "$(offers calyx build -n -)" ]   # a number: nothing to offer
}

@test "zsh and fish take their scripts" {
    "$CALYX" completion zsh >_calyx
    zsh -n _calyx
    zsh -fc 'autoload -U compinit; compinit -D -u; source ./_calyx;
        [ "$_comps[calyx]" = _calyx ]'
    "$CALYX" completion fish >calyx.fish
    fish --no-execute calyx.fish
    [ "$(HOME=$PWD fish -c 'source calyx.fish
        complete -C "calyx compl" | string split -f1 \t')" = completion ]
    [ "$(HOME=$PWD fish -c 'source calyx.fish
        complete -C "calyx convert --to " | string split -f1 \t' |
        sort | paste -sd ' ')" = "$forms" ]
}

@test "zsh offers options, with what they do" {
    "$CALYX" completion zsh >_calyx
    for verb in $(verbs); do
        grep -q "^    $verb)" _calyx
    done
    grep -qF -- "'*--to=''[Make this form of the filter FILE]:" _calyx
    grep -qF ":KIND:($("$CALYX" --version | sed -n 's/^kinds: //p' |
        tr -d ,))" _calyx
}

@test "another shell is refused" {
    run_calyx completion tcsh
    fails_with "unknown shell 'tcsh'; there are bash, zsh and fish"
    run_calyx completion
    fails_with "calyx completion bash|zsh|fish"
}
