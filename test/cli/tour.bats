# The tour of `make run`, and the part of it that doc/COMMAND.md shows.

load common

@test "the tour runs through, and shows each command before its output" {
    "$root/dev/tour" "$CALYX" >out 2>err
    quiet
    grep -A1 -Fx '$ calyx check -c -f seen.calyx seen.txt' out |
        tail -1 | grep -qx 1000000
    says '$ calyx build'
    says '$ calyx info seen.calyx'
    says '$ calyx plan'
    says "none missing"
}

@test "what doc/COMMAND.md shows of the tour is what the tour says" {
    "$root/dev/tour" "$CALYX" >out
    awk '/^<!-- tour/ { on = 1; next } on && /^```/ { if (seen++) exit; next }
        on && seen' "$root/doc/COMMAND.md" >shown
    [ "$(grep -c '^\$ ' shown)" -ge 5 ]
    grep -v '^$' shown | while IFS= read -r line; do
        grep -qxF -- "$line" out || { echo "not in the tour: $line"; false; }
    done
}

@test "the tour ends at the first command that fails" {
    printf '#!/bin/sh\nexit 2\n' >calyx
    chmod +x calyx
    run "$root/dev/tour" ./calyx
    [ "$status" -eq 1 ]
    [[ $output == *"the command above failed"* ]]
}
