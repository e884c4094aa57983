// The lines that make a planned filter: the command's own, and those of other
// libraries.
import { general } from "../number.js";

// As `calyx plan` prints them.
export function commands(calyx, want, p) {
  const isUsual = p.kind === calyx.kinds[0];
  const wanted = !want.keys ? `--memory ${want.memory} -p ${general(want.rate)}`
    : want.memory ? `-n ${want.keys} --memory ${want.memory}`
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
