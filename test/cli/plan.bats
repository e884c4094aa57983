# calyx plan: the table, a store behind the filter, the picture, the commands.

load common

kinds() {
    "$CALYX" --version | sed -n 's/^kinds: //p' | tr -d ,
}

@test "keys and a rate: every kind, beside what is exact" {
    run_calyx plan -n 1e9 -p 1%
    is_status 0
    quiet
    says "1 000 000 000 keys, at a rate of 1 %"
    for kind in $(kinds); do
        grep -Eq "^$kind  .* [GM]B .*(merge|remove|be built once)" out
    done
    grep -q '^line  *1.24 GB  *9.93  *6  *1 % ' out
    grep -q '^counting .*remove, merge, grow$' out
    grep -q '^hash table  *16.0 GB  *128.00  *1.5  *exact' out
    grep -q '^sorted list  *8.00 GB  *64.00  *30  *exact' out
}

@test "the lines it prints make what it said" {
    run_calyx plan -n 5000 -p 1% --json
    bytes=$(jq '.kinds[0].bytes' out)
    run_calyx plan -n 5000 -p 1%
    seq 5000 >keys.txt
    line=$(sed -n 's/^  calyx //p' out)
    "$CALYX" $line
    "$CALYX" info --json seen.calyx | jq -e ".[0].bytes == $bytes"
    says "BF.RESERVE seen 0.01 5000 NONSCALING"
}

@test "the lines say the kind and the memory that were requested" {
    run_calyx plan -n 5000 --memory 10K --kind counting
    is_status 0
    says "calyx build -n 5000 --memory 10000 --kind counting -o"
    grep -q '^  BF.RESERVE seen [0-9.e-]* 5000 NONSCALING KIND counting$' out
    run_calyx plan -p 0.1% --memory 10K --kind line
    is_status 0
    says "calyx build --memory 10000 -p 0.001 -o seen.calyx"
}

@test "memory below the smallest filter of a kind is refused with that size" {
    for kind in $(kinds); do
        run_calyx plan -n 1M --memory 1 --kind "$kind"
        is_status 2
        grep -Eq "$kind filter(s have at least [0-9]+ bits, not [0-8]| takes [0-9]+ bytes, not 1|)$" err
    done
}

@test "keys and memory give the rate; nothing takes more than was given" {
    run_calyx plan -n 100k --memory 100KiB --json
    is_status 0
    jq -e '[.kinds[] | select(.possible) |
        .bytes <= 102400 and .keys == 100000] | length > 5 and all' out
    jq -e '.kinds[0].rate > 0.015 and .kinds[0].rate < 0.03' out
    run_calyx plan -n 100k --memory 100KiB
    says "100 000 keys in 102 kB"
}

@test "m, n and k give the textbook's rate, (1 - exp(-kn/m))^k" {
    for k in 1 4 8 16; do
        run_calyx plan -n 1e8 --bits 1.6e9 --probes $k --kind flat --json
        is_status 0
        jq -e --argjson k $k '.kinds[] | select(.kind == "flat") |
            .probes == $k and .bytes == 200000000 and
            (.rate / pow(1 - (-$k / 16 | exp); $k) - 1 | fabs) < 0.01' out
        jq -e --arg said "--probes $k" '.build | contains($said)' out
    done
}

@test "1000 bits, 7 probes and 100 keys give 0.82 %, as the book says" {
    run_calyx plan -n 100 --bits 1000 --probes 7
    is_status 0
    says "100 keys in 1 000 bits"
    grep -q '^flat  *128 bytes  *10.24  *7  *0.827 % ' out
    says "calyx build -n 100 --bits 1000 --probes 7 --kind flat -o seen.calyx"
    seq 100 >keys.txt
    "$CALYX" $(sed -n 's/^  calyx //p' out)
    run_calyx info --json seen.calyx
    jq -e '.[0] | .bits == 1000 and .probes == 7 and (.rate_promised * 1e5 | round) == 827' out
    # the kind need not be named; line makes use of as many bits as 512 divides
    "$CALYX" build -n 100 --bits 1000 --probes 7 -o same.calyx keys.txt
    cmp same.calyx seen.calyx
    run_calyx plan -n 1e6 --bits 1e7 --json
    jq -e '.chosen == "line"' out
}

# What plan says of a kind with these options, then what its line makes.
made_as_planned() {
    "$CALYX" plan -n 100 --kind "$@" --json >plan.json 2>err || return 0
    rm -f seen.calyx
    "$CALYX" $(jq -r '.build' plan.json | cut -d' ' -f2-)
    "$CALYX" info --json seen.calyx | jq -e --slurpfile plan plan.json '
        .[0] as $is | $plan[0] | .chosen as $chosen |
        .kinds[] | select(.kind == $chosen) |
        $is.kind == .kind and $is.bytes <= .bytes and $is.capacity == .keys and
        $is.probes == .probes and ($is.rate_promised / .rate - 1 | fabs) < 1e-4' >/dev/null || {
        echo "$*: $(jq -r .build plan.json)" >&2
        return 1
    }
    made=$((made + 1))
}

@test "for any size and kind, the line that plan prints makes what it says" {
    seq 100 >keys.txt
    made=0
    for kind in $(kinds); do
        for m in 600 1000 1031 2000 2047 2600 4096 10000; do
            made_as_planned $kind --bits $m
        done
        for bytes in 64 125 130 300 512 1000 4095; do
            made_as_planned $kind --memory $bytes
            jq -e --argjson most $bytes '[.kinds[] | select(.possible) |
                .bytes <= $most] | all' plan.json >/dev/null
        done
    done
    [ $made -ge 80 ]
}

@test "a table that has no room for the keys is not planned" {
    run_calyx plan -n 1e5 --bits 1e6
    is_status 0
    grep -q '^bucket  *not so: 1000000 bits of a bucket filter have no room for 100000 keys$' out
    seq 100000 >keys.txt
    run_calyx build -n 1e5 --bits 1e6 --kind bucket -o no.calyx keys.txt
    fails_with "have no room for 100000 keys"
}

@test "a kind that does not take the number of probes says so" {
    run_calyx plan -n 1000 -p 1% --probes 5
    is_status 0
    grep -q '^split  *not so: .*8 to 8 probes' out
    run_calyx plan -n 1000 -p 1% --probes 5 --kind split
    is_status 2
    run_calyx plan -n 1000 -p 1% --probes 1e10
    fails_with "option --probes: 10000000000 is too large"
    run_calyx plan -n 1000 --bits 8000 --memory 1000
    fails_with "--bits and --memory are both given"
}

@test "what else would hold the keys, and how many times the memory" {
    run_calyx plan -n 1e6 -p 1% --json
    jq -e '.hash_map_32.bytes == 16000000 and .hash_map_64.bytes == 24000000' out
    jq -e '.tree_set.bytes == 32000000 and .tree_set.probes == 20' out
    # a bit array with one hash: n / -ln(1 - p) bits
    jq -e '.bit_array.bits_a_key > 99 and .bit_array.bits_a_key < 100' out
    run_calyx plan -n 1e6 -p 1%
    grep -q '^hash map, 64  *24.0 MB .* 19.3 x line; chained' out
}

@test "false positives cost P T1 more than a hash table" {
    run_calyx plan -n 1e6 -p 1% --store-time 1ms --present 20%
    says "dT = P T1 = 0.8 % x 1 ms = 8 us longer"
    run_calyx plan -n 1e6 -p 1% --store-time 1ms --present 20% --json
    jq -e '.store | (.mean_seconds_with_filter - .mean_seconds_with_hash_table -
        .false_positive_seconds | fabs) < 1e-9' out
    jq -e '.store.memory_of_hash_table_over_filter > 12' out
}

@test "a rate and memory give the keys" {
    run_calyx plan -p 1% --memory 1M --json
    is_status 0
    jq -e '.kinds[0].keys > 800000 and .kinds[0].keys < 810000' out
    jq -e '.hash_table.keys == 62500 and .sorted_list.keys == 125000' out
    run_calyx plan -p 1% --memory 1M
    says "1.00 MB, at a rate of 1 %"
    grep -q '^sorted list  *125 000 ' out
}

@test "one of keys and memory alone is planned at 1 %" {
    for goal in "-n 1000" "--memory 1M"; do
        run_calyx plan $goal --json
        is_status 0
        cp out alone
        run_calyx plan $goal -p 1% --json
        cmp out alone
    done
}

@test "a kind that cannot keep the rate says so, and another is chosen" {
    run_calyx plan -n 1000 -p 1e-9
    is_status 0
    grep -q '^line  *not so: line filters keep rates down to 1e-08' out
    says "--kind line2"
    run_calyx plan -n 1000 -p 1e-9 --json
    jq -e '(.kinds[0] | .possible == false and (.why_not | length > 0)) and
        .chosen == "line2"' out
    run_calyx plan -n 1000 -p 1e-9 --kind line
    fails_with "line filters keep rates down to"
    run_calyx plan -n 1000 -p 1e-17
    fails_with "no kind will do"
}

@test "a store behind the filter: mean times, and the rate worth paying for" {
    run_calyx plan -n 1e6 -p 1% --store-time 1ms --present 20% --json
    is_status 0
    # 100 ns + (0.2 + 0.8 * 0.01) ms; 1 % of (100 ns + 0.2 ms), over 0.8 ms
    jq -e '.store | (.mean_seconds_store_alone == 0.001) and
        (.mean_seconds_with_filter - 0.0002081 | fabs) < 1e-8 and
        (.mean_seconds_with_hash_table - 0.0002001 | fabs) < 1e-12 and
        (.rate_worth_paying_for - 0.00250125 | fabs) < 1e-9 and
        (.pays_below_rate - 0.999875 | fabs) < 1e-9' out
    run_calyx plan -n 1e6 -p 1% --store-time 1ms --present 20%
    says "store alone"
    says "208 us"
    says "4.81 times as fast"
    says "The rate worth paying for is 0.25 %"
}

@test "a store that is as fast as the filter, or always asked in vain" {
    run_calyx plan -n 1e6 --store-time 100ns --filter-time 100ns --present 0
    is_status 0
    says "No filter pays here"
    run_calyx plan -n 1e6 --store-time 1ms --present 1
    is_status 0
    says "No filter pays here"
    run_calyx plan -n 1e6 --store-time 1ms --present 99.5%
    is_status 0
    says "Any rate will do"
}

@test "--key-bytes is what a key takes where it is exact" {
    run_calyx plan -n 1000 --key-bytes 20 --json
    jq -e '.hash_table.bytes == 40000 and .sorted_list.bytes == 20000' out
    run_calyx plan -n 1000 --key-bytes 0
    fails_with "--key-bytes: expected a size"
}

@test "JSON is valid, with and without a store" {
    run_calyx plan -n 1e6 --json
    python3 -m json.tool out >/dev/null
    jq -e 'has("store") | not' out
    jq -e '.build | startswith("calyx build -n 1000000")' out
    jq -e '[.kinds[].kind] == $ARGS.positional' --args $(kinds) <out
}

@test "each kind of the picture has a style and a colour of its own" {
    run_calyx plan -n 1e6 -p 1% --plot all.svg
    is_status 0
    styles=$(grep -o 'class="curve k[0-9]*"' all.svg | sort -u | wc -l)
    [ "$styles" = "$(kinds | wc -w)" ]
    for style in $(grep -o 'curve k[0-9]*' all.svg | sort -u | grep -o 'k[0-9]*$'); do
        grep -q "\.$style { stroke: #" all.svg
    done
}

@test "the picture is whole: three panels, every kind, axes, light and dark" {
    run_calyx plan -n 1e9 -p 1% --plot plot.svg
    is_status 0
    python3 - $(kinds) <<'END'
import sys
import xml.etree.ElementTree as tree
svg = "{http://www.w3.org/2000/svg}"
root = tree.parse("plot.svg").getroot()
texts = ["".join(t.itertext()) for t in root.iter(svg + "text")]
for wanted in ("bits a key", "rate: share of absent keys that pass", "1 %",
               "10-6", "100 %", "k=2", "at capacity: 1 %",
               "keys in it, as a share of its capacity"):
    assert wanted in texts, (wanted, texts)
for kind in sys.argv[1:]:
    assert any(t.startswith(kind + ", k=") for t in texts), kind
curves = [p for p in root.iter(svg + "polyline")]
kinds = len(sys.argv) - 1
bold = [p for p in curves if "curve" in p.get("class")]
assert len(bold) == 2 * kinds, len(bold)
for p in bold:
    points = [tuple(map(float, xy.split(","))) for xy in p.get("points").split()]
    assert len(points) > 100
    heights = [y for _, y in points]
    # more bits, a lower rate (further down); more keys, a higher one
    falls = points[0][0] < 600
    # a body of whole blocks makes the first of them uneven
    steps = sum((b < a - 0.11) if falls else (b > a + 0.11)
                for a, b in zip(heights, heights[1:]))
    assert steps == 0, (p.get("class"), falls, steps)
# the third panel: a U, with its lowest point marked
dots = [(float(c.get("cx")), float(c.get("cy")), float(c.get("r")))
        for c in root.iter(svg + "circle")]
assert len(dots) > 10
lowest = max(dots, key=lambda dot: dot[1])
assert [dot for dot in dots if dot[2] > 3] == [lowest]
assert dots[0][1] < lowest[1] > dots[-1][1]
assert any(t.startswith("best: k=6, ") for t in texts), texts
assert "prefers-color-scheme: dark" in open("plot.svg").read()
END
}

@test "the picture replaces a file only with --force" {
    echo mine >plot.svg
    run_calyx plan -n 1e6 --plot plot.svg
    fails_with "plot.svg: exists already; --force replaces it"
    [ "$(cat plot.svg)" = mine ]
    run_calyx plan -n 1e6 --plot plot.svg --force
    is_status 0
    grep -q '</svg>' plot.svg
    run_calyx plan -n 1e6 --plot -
    fails_with "--plot: expected the name of a file"
}

@test "wrong options are reported" {
    run_calyx plan
    fails_with "missing --keys, --memory or --bits"
    run_calyx plan -p 1%
    fails_with "missing --keys, --memory or --bits"
    run_calyx plan -n 1 -p 1% --memory 1M
    fails_with "any two of them decide the third"
    run_calyx plan -n 1000 --kind lien
    fails_with "there is no kind 'lien'; did you mean 'line'?"
    run_calyx plan -n many
    fails_with "--keys: expected a whole number"
    run_calyx plan -n 10 -p 2
    fails_with "--rate: expected a rate"
    run_calyx plan -n 10 --store-time 5
    fails_with "--store-time: expected a time"
    run_calyx plan -n 10 --present 2
    fails_with "--present: expected a share"
    run_calyx plan -n 2e12
    fails_with "at most 2^40 keys"
    run_calyx plan -n 10 --memory 3T
    fails_with "--memory: expected at most 2 TiB"
    run_calyx plan -n 10 more
    fails_with "unexpected operand 'more'"
}

@test "plan does not recommend a filter that says yes to nearly everything" {
    run_calyx plan -n 10M --memory 1K
    is_status 0
    says "It says yes to 100 % of absent keys, and is of no use"
    ! grep -q "BF.RESERVE\|calyx build" out || false
}
