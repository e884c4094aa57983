// The lines that make a planned filter: for the command, and for other
// libraries.
import { general } from "../number.js";

// As `calyx plan` prints them.
export function commands(calyx, want, p) {
  const isUsual = p.kind === calyx.kinds[0];
  const room = want.bits ? `--bits ${want.bits}` : `--memory ${want.memory}`;
  const wanted = !want.keys ? `${room} -p ${general(want.rate)}`
    : want.memory ? `-n ${want.keys} ${room}`
    : `-n ${want.keys} -p ${general(want.rate)}`;
  const probes = want.probes ? ` --probes ${want.probes}` : "";
  const size = want.memory ? `.bits = ${p.bits}` : `.fpr = ${general(want.rate)}`;
  return {
    build: `calyx build ${wanted}${probes}${isUsual ? "" : " --kind " + p.kind} -o seen.calyx keys.txt`,
    reserve: calyx.can(p.kind, "add")
      ? `BF.RESERVE seen ${general(p.fpr)} ${p.keys} NONSCALING KIND ${p.kind}` : "",
    c: calyx.can(p.kind, "add") ? `calyx_filter *f;
calyx_options want = {.kind = "${p.kind}", .capacity = ${p.keys}, ${size}${
  want.probes ? `, .probes = ${want.probes}` : ""}};
if (calyx_new(&want, &f, NULL) != CALYX_OK) return 1;
calyx_add(f, "rose", 4, NULL);
calyx_has(f, "rose", 4);   // true, always
calyx_free(f);` : `calyx_builder *b;
calyx_filter *f;
calyx_builder_options want = {.filter = {.kind = "${p.kind}", ${size}}};
if (calyx_builder_new(&want, &b, NULL) != CALYX_OK) return 1;
calyx_builder_add(b, "rose", 4, NULL);   // all keys
if (calyx_builder_finish(b, &f, NULL) != CALYX_OK) return 1;
calyx_has(f, "rose", 4);                 // true, always
calyx_builder_free(b);
calyx_free(f);`,
  };
}

// The same filter by our bindings.
export function bindings(calyx, p) {
  const { kind, keys } = p, rate = general(p.fpr), adds = calyx.can(kind, "add");
  return {
    python: adds ? `from calyx import Filter
seen = Filter(${keys}, ${rate}, kind="${kind}")
seen.add("rose")
"rose" in seen   # True, always` : `from calyx import Builder
b = Builder(p=${rate}, kind="${kind}")
b.add("rose")   # all keys
seen = b.finish()
"rose" in seen  # True, always`,
    go: adds ? `seen, err := calyx.NewWith(calyx.Options{Kind: "${kind}", Capacity: ${keys}, Rate: ${rate}})
if err != nil { log.Fatal(err) }
seen.AddString("rose")
seen.ExistsString("rose") // true, always` : `b, err := calyx.NewBuilder(calyx.BuilderOptions{Options: calyx.Options{Kind: "${kind}", Rate: ${rate}}})
if err != nil { log.Fatal(err) }
b.AddStrings("rose") // all keys
seen, err := b.Finish()`,
    node: adds ? `import { Filter } from "calyx";
const seen = new Filter(${keys}, ${rate}, { kind: "${kind}" });
seen.add("rose");
seen.has("rose"); // true, always` : `import { Builder } from "calyx";
const b = new Builder(${rate}, { kind: "${kind}" });
b.add("rose"); // all keys
const seen = b.finish();`,
    sql: `.load build/calyx_sqlite
SELECT writefile('seen.calyx', calyx_build(id, ${rate}, '${kind}')) FROM ids;
SELECT calyx_has('seen.calyx', 'rose');`,
  };
}

// How each is to be had, in the folder of Calyx.
export const installs = {
  build: "make && sudo make install", reserve: "make && redis-server --loadmodule $PWD/build/calyx.so",
  c: "make && sudo make install && cc x.c $(pkg-config --cflags --libs calyx)", python: "pip install ./python",
  go: "sudo make install && go mod edit -require=calyx@v0.0.0 -replace=calyx=$PWD/go",
  node: "make npm && npm install ./build/npm/calyx-*.tgz", sql: "make",
};

// The same number of keys and rate; where a library wants m and k, Bloom's.
export function elsewhere({ keys }, rate) {
  const p = general(rate), bits = Math.ceil(keys * -Math.log(rate) / Math.LN2 ** 2);
  const k = Math.max(1, Math.round(bits / keys * Math.LN2));
  const grouped = String(keys).replace(/\B(?=(\d{3})+$)/g, "_");
  return [
    ["RedisBloom, valkey-bloom", `BF.RESERVE seen ${p} ${keys}`],
    ["Java, Guava", `BloomFilter.create(Funnels.stringFunnel(UTF_8), ${grouped}L, ${p})`],
    ["Java, Redisson", `redisson.getBloomFilter("seen").tryInit(${keys}L, ${p})`],
    ["Python, rbloom", `Bloom(${grouped}, ${p})`],
    ["Python, pybloom-live", `BloomFilter(capacity=${keys}, error_rate=${p})`],
    ["Go, bits-and-blooms/bloom", `bloom.NewWithEstimates(${keys}, ${p})`],
    ["Go, m and k", `bloom.New(${bits}, ${k})`],
    ["Rust, fastbloom", `BloomFilter::with_false_pos(${p}).expected_items(${grouped})`],
    ["RocksDB", `NewBloomFilterPolicy(${(bits / keys).toFixed(1)})`],
    ["ClickHouse", `INDEX seen key TYPE bloom_filter(${p})`],
  ];
}
