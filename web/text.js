// The words of the page. English that never changes stands in index.html, by
// the key in data-t (or data-ta, for an attribute); the rest is here. {x} is
// filled in. A test wants every key in both languages.
import { get, set } from "./state.js";

export const en = {
  "need.two": "Give two of keys, rate and memory, such as 10M keys and 1%.",
  "bad.keys": "Keys: a whole number from 1 to 2^40 is wanted, such as 5000, 10M or 1e9, not “{x}”.",
  "bad.rate": "Rate: a number between 0 and 1 is wanted, such as 1%, 0.001 or 1 in 1000, not “{x}”.",
  "bad.memory": "Memory: a size from 1 byte to 2 TiB is wanted, such as 64 MiB, 10M or 1.5G, not “{x}”.",
  "bad.time": "Time: a number with ns, us, ms or s is wanted, such as 80us, not “{x}”.",
  "bad.share": "Share: a number from 0 to 1 is wanted, such as 20% or 0.2, not “{x}”.",
  "bad.keybytes": "Bytes of a key: a whole number from 1 to 1000000 is wanted, not “{x}”.",
  "bad.try": "Keys: a whole number from 1000 to 20M is wanted here, not “{x}”.",
  "not.so": "Not so: {x}",
  "can.remove": "remove", "can.merge": "merge", "can.grow": "grow", "can.share": "add from many threads",
  "table": "hash table", "list": "sorted list", "exact": "exact",
  "table.note": "half full; keys of {x} bytes", "list.note": "add only by making it anew; keys of {x} bytes",
  "third": "follows: {x}",
  "copied": "Copied",
  "bound": "information bound",
  "axis.bits": "bits a key", "axis.rate": "rate", "axis.fill": "keys, in parts of its capacity",
  "axis.guess": "keys, in parts of the guess", "axis.time": "mean time", "axis.keys": "keys", "axis.ns": "nanoseconds a key",
  "fixed": "fixed size", "growing": "growing", "right": "made for the right number",
  "grow.note": "The growing filter was really filled here, with {x} keys for a guess of {y}.",
  "grow.cannot": "No growing filter for this: {x}",
  "sum.bits": "Chart: the rate of each kind falls as bits a key rise. At 10 bits a key: {x}.",
  "sum.fill": "Chart: the rate of each kind as it fills to four times its capacity. At twice the capacity: {x}.",
  "sum.grow": "Chart: rate of a filter of fixed size and of one that grows. At 16 times the guess: {x}.",
  "sum.memory": "Chart: bits a key of a filter of fixed size and of one that grows. At 16 times the guess: {x}.",
  "sum.store": "Chart: mean time of a look-up rises with the rate. {x}",
  "store.alone": "store alone", "store.worth": "worth paying for: {x}",
  "store.never": "No filter pays here: it would save less than its own time.",
  "store.any": "The filter makes look-ups {x} times as fast. Any rate will do: false positives never take 1 % of the time.",
  "store.best": "The filter makes look-ups {x} times as fast. The rate worth paying for is {y}: there false positives take 1 % of the time, and a lower rate can save no more than that. It takes {z}.",
  "store.below": "It pays at rates below {x}.",
  "see.none": "Type a word first.", "see.long": "A word of at most 200 characters is wanted here.",
  "see.full": "These are 300 steps already: start over.",
  "see.about.flat": "flat: the textbook filter. 256 bits; each word has 4 probes anywhere.",
  "see.about.line": "line: two lines of 512 bits, here in 16 rows of 32. Rows that are 8 apart belong together; of the 8 such pairs in one line, a word takes 3 and has one bit in each: one access to memory.",
  "see.about.counting": "counting: a line whose bits count how many words set them, so that words can be removed. A counter that has come to 15 never leaves it.",
  "see.where": "word {x} of {y}, step {z} of {n}", "see.start": "Nothing was done yet.",
  "see.hash": "its hash is", "see.noblock": "all bits are open to every word.", "see.block": "the high bits of the hash pick line {x}.",
  "see.probe": "probe {x} is bit {y}, which is {z}.", "see.one": "1", "see.zero": "0",
  "see.no": "Certainly not in the filter: bit {x} is 0.", "see.maybe": "Maybe in the filter: all its bits are 1. It was added.",
  "see.false": "Maybe, says the filter; but it was never added. A false positive: other words lit all its bits.",
  "see.added": "added: its bits are 1 now.", "see.again": "added, but all its bits were 1 before.",
  "see.saturated": "added. A counter has come to 15, and stays there: it no longer knows how many it stands for.",
  "see.removed": "removed: its counters went down by 1.", "see.notthere": "was not there to remove: bit {x} is 0. Nothing changed.",
  "see.wrong": "removed, though it was never added: it was a false positive, and other words may be lost now.",
  "see.finding": "Looking…", "see.empty": "Add a word first: an empty filter has no false positives.",
  "see.notfound": "None among {x} words. Add more words, then there will be.",
  "see.bits": "{x} of {y} bits are set", "see.nobody": "a word that was removed", "see.nowords": "none",
  "try.keys": "keys added", "try.expected": "rate expected", "try.measured": "rate measured", "try.of": "({x} of {y} strangers passed)",
  "try.lost": "keys not found again", "try.memory": "memory", "try.add": "to add a key", "try.ask": "to ask for one",
  "sum.try": "Chart: the rate measured is {x}, and {y} is expected, with {z} keys.", "sum.time": "Chart: adding takes {x} nanoseconds a key, asking {y}.",
  "inspect.reading": "Reading {x}…", "inspect.good": "{x} is whole: every checksum is right.",
  "inspect.open": "{x} was changed in place and not closed since: its keys are there, but its checksums cannot vouch for them.",
  "inspect.damaged": "{x} is not a filter, or damaged:", "inspect.many": "Only the first {x} lines were asked.",
  "inspect.map.note": "{x} pieces, from {y} to {z} full. The greener, the fuller; a good filter is evenly half full at capacity.",
  "inspect.maybe": "maybe", "inspect.not": "certainly not",
  "damage.head": "The header: {x}", "damage.read": "It cannot be read: {x}", "damage.more": "And more.",
  "damage.size": "The size: the header promises {x} bytes, the file has {y}.",
  "damage.slots": "The slots: neither of the two is valid, so the state of the rest is unknown.",
  "damage.tables": "The table of checksums does not match its own checksum.",
  "damage.range": "Body: bytes {x} to {y} do not match their checksum, or have bits behind the last block.",
  "damage.gap": "Bytes {x} to {y} lie between sections and should be 0.",
  "section.header": "header", "section.body": "body {x}", "section.tables": "checksums", "section.slot": "slot {x}",
  "sum.good": "right", "sum.bad": "wrong", "sum.missing": "not there", "sum.open": "not vouched for", "sum.unused": "does not count",
  "fact.kind": "kind", "fact.keys": "keys", "fact.capacity": "capacity", "fact.distinct": "distinct keys", "fact.about": "about {x}, judged by the bits",
  "fact.rate": "rate now", "fact.rate_promised": "rate promised", "fact.bytes": "size", "fact.bits": "bits", "fact.fill": "fill", "fact.probes": "probes",
  "fact.parts": "parts", "fact.growth": "growth", "fact.fixed": "fixed size", "fact.strict": "strict", "fact.yes": "yes", "fact.no": "no",
  "fact.hash": "hash", "fact.seed": "seed", "fact.comment": "comment",
  "wasm.failed": "The library could not be loaded: {x}",
};

const zh = {
  "skip": "跳到正文", "tagline": "近似集合，每个键只占几个比特。这里运行的就是这个库本身。",
  "theme": "配色", "theme.auto": "跟随系统", "theme.light": "浅色", "theme.dark": "深色", "parts": "页面各部分",
  "tab.plan": "规划", "tab.see": "看", "tab.try": "试", "tab.inspect": "检查",
  "plan.title": "一个过滤器要用多少？", "plan.intro": "三项中给出任意两项，第三项随之得出：各种过滤器并列，旁边是精确的做法。",
  "keys": "键的数量", "keys.hint": "例如 5000、10M 或 1e9", "rate": "误判率", "rate.hint": "例如 1%、0.001 或 1 in 1000",
  "memory": "内存", "memory.hint": "例如 64 MiB、10M 或 1.5G", "kinds.caption": "各种类并列", "kind": "种类", "bits": "每键比特",
  "probes": "探测数", "rate.short": "误判率", "can": "能做什么",
  "run.title": "照此运行", "run.shell": "在命令行", "run.server": "在服务器里", "run.c": "在 C 里", "copy": "复制",
  "chart.bits": "误判率与每键比特", "chart.bits.note": "没有过滤器能低于信息下界。",
  "chart.fill": "超出容量之后", "chart.fill.note": "不会出错，只是误判率上升。",
  "chart.grow": "键数估错时：误判率", "chart.grow.note": "会增长的过滤器守住承诺，固定大小的守不住。",
  "chart.cost": "键数估错时：内存", "chart.cost.note": "增长多花一些比特，但少于估得过高。",
  "store.title": "放在慢速存储之前", "store.intro": "一次查询要花过滤器的时间；键确实存在，或陌生键被误放行时，再加上存储的时间。",
  "store.time": "存储耗时", "store.time.hint": "例如 80us 或 1ms", "store.filter": "过滤器耗时", "store.filter.hint": "例如 100ns",
  "store.present": "确实存在的键所占比例", "store.present.hint": "例如 20%", "store.bytes": "精确表中一个键占", "store.bytes.hint": "字节，例如 8",
  "store.mean": "平均耗时", "store.second": "每秒次数", "chart.store": "查询的平均耗时与误判率",
  "see.title": "逐个比特看过滤器", "see.intro": "输入一个词，添加它或查询它，看它的哈希、所在的块和各个探测位。",
  "see.word": "词", "see.ask": "查询", "see.add": "添加", "see.remove": "删除", "see.many": "添加 15 次", "see.find": "找一个误判", "see.clear": "重新开始",
  "see.first": "上一个词", "see.back": "后退一步", "see.next": "前进一步", "see.last": "下一个词",
  "see.bit": "比特", "see.is": "值", "see.lit": "由谁点亮", "see.words": "过滤器里的词",
  "try.title": "就在这里，一百万个键", "try.intro": "过滤器分步填充。每一步之后用从未添加过的键来问它，数出被放行的有多少。",
  "try.hint": "最多 20M", "try.run": "运行", "try.stop": "停止", "try.progress": "进度",
  "try.chart.rate": "误判率：实测与预期", "try.chart.time": "每键耗时",
  "inspect.title": "这个文件里有什么？", "inspect.intro": "把 .calyx 文件拖到这里，或选择一个。文件不会离开你的电脑：无论多大，页面都分段读取。",
  "inspect.file": "过滤器文件", "inspect.drop": "或拖到这里", "inspect.map": "主体各处的填充", "inspect.parts": "各部分", "inspect.keys": "键", "inspect.capacity": "容量", "inspect.fill": "填充",
  "inspect.sections": "文件各段", "inspect.section": "段", "inspect.at": "起始字节", "inspect.bytes": "字节数", "inspect.sum": "校验和",
  "inspect.ask": "用键来问它", "inspect.ask.keys": "键，每行一个", "inspect.key": "键", "inspect.answer": "回答",
  "inspect.secret": "它用密钥建成（哈希 siphash），这里只能显示，不能查询：密钥不该告诉任何网页。请用 calyx check --key-file 查询。",
  "footer": "Calyx 是 MIT 许可的自由软件。你输入或拖入的一切都不会离开本页。",

  "need.two": "请给出键数、误判率、内存中的两项，例如 10M 个键和 1%。",
  "bad.keys": "键数：应为 1 到 2^40 的整数，例如 5000、10M 或 1e9，而不是“{x}”。",
  "bad.rate": "误判率：应在 0 与 1 之间，例如 1%、0.001 或 1 in 1000，而不是“{x}”。",
  "bad.memory": "内存：应为 1 字节到 2 TiB，例如 64 MiB、10M 或 1.5G，而不是“{x}”。",
  "bad.time": "时间：应为带 ns、us、ms 或 s 的数，例如 80us，而不是“{x}”。",
  "bad.share": "比例：应为 0 到 1 的数，例如 20% 或 0.2，而不是“{x}”。",
  "bad.keybytes": "键的字节数：应为 1 到 1000000 的整数，而不是“{x}”。",
  "bad.try": "键数：这里应为 1000 到 20M 的整数，而不是“{x}”。",
  "not.so": "做不到。库的英文说明：{x}",
  "can.remove": "删除", "can.merge": "合并", "can.grow": "增长", "can.share": "多线程添加",
  "table": "哈希表", "list": "有序列表", "exact": "精确",
  "table.note": "半满；每键 {x} 字节", "list.note": "添加就要重建；每键 {x} 字节",
  "third": "得出：{x}", "copied": "已复制", "bound": "信息下界",
  "axis.bits": "每键比特", "axis.rate": "误判率", "axis.fill": "键数（容量的倍数）", "axis.guess": "键数（估计的倍数）", "axis.time": "平均耗时", "axis.keys": "键数", "axis.ns": "每键纳秒",
  "fixed": "固定大小", "growing": "会增长", "right": "按正确键数建造",
  "grow.note": "会增长的过滤器是在这里真正填充的：估计 {y} 个键，填入 {x} 个。",
  "grow.cannot": "这种情况没有会增长的过滤器。库的英文说明：{x}",
  "sum.bits": "图：每键比特越多，各种类的误判率越低。每键 10 比特时：{x}。",
  "sum.fill": "图：填充到容量四倍时各种类的误判率。容量两倍时：{x}。",
  "sum.grow": "图：固定大小与会增长的过滤器的误判率。估计的 16 倍时：{x}。",
  "sum.memory": "图：固定大小与会增长的过滤器的每键比特。估计的 16 倍时：{x}。",
  "sum.store": "图：误判率越高，查询的平均耗时越长。{x}",
  "store.alone": "只有存储", "store.worth": "值得的误判率：{x}",
  "store.never": "这里用过滤器不划算：省下的还不及它自己的耗时。",
  "store.any": "过滤器使查询快到 {x} 倍。任何误判率都行：误判从不占到 1 % 的时间。",
  "store.best": "过滤器使查询快到 {x} 倍。值得的误判率是 {y}：此时误判占 1 % 的时间，再低也省不了更多。它占 {z}。",
  "store.below": "误判率低于 {x} 时划算。",
  "see.none": "请先输入一个词。", "see.long": "这里的词最多 200 个字符。", "see.full": "已经有 300 步了，请重新开始。",
  "see.about.flat": "flat：教科书里的过滤器。256 个比特，每个词有 4 个探测位，位置不限。",
  "see.about.line": "line：两个缓存行，每行 512 个比特，这里画成 16 排，每排 32 个。相隔 8 排的两排为一对；一个词在同一缓存行的 8 对中取 3 对，每对一个比特：只访问一次内存。",
  "see.about.counting": "counting：每个比特还数有多少词设置了它，因此可以删除。计数到 15 就停在那里。",
  "see.where": "第 {x} 个词，共 {y} 个；第 {z} 步，共 {n} 步", "see.start": "还没有做任何事。",
  "see.hash": "它的哈希是", "see.noblock": "所有比特对每个词都开放。", "see.block": "哈希的高位选出第 {x} 行。",
  "see.probe": "第 {x} 个探测位是比特 {y}，值为 {z}。", "see.one": "1", "see.zero": "0",
  "see.no": "一定不在过滤器里：比特 {x} 是 0。", "see.maybe": "可能在过滤器里：它的比特都是 1。它确实被添加过。",
  "see.false": "过滤器说可能在，但它从未被添加。这是误判：别的词点亮了它的所有比特。",
  "see.added": "已添加：它的比特现在是 1。", "see.again": "已添加，但它的比特之前就都是 1。",
  "see.saturated": "已添加。有计数器到了 15，从此停住：它不再知道自己代表多少。",
  "see.removed": "已删除：它的计数器各减 1。", "see.notthere": "本来就不在：比特 {x} 是 0。什么也没变。",
  "see.wrong": "删除了，但它从未被添加：它是误判，别的词可能因此丢失。",
  "see.finding": "正在找……", "see.empty": "请先添加一个词：空过滤器没有误判。",
  "see.notfound": "{x} 个词里没有。多添加一些词就会有。",
  "see.bits": "{y} 个比特中有 {x} 个为 1", "see.nobody": "一个已删除的词", "see.nowords": "没有",
  "try.keys": "已添加的键", "try.expected": "预期误判率", "try.measured": "实测误判率", "try.of": "（{y} 个陌生键中放行 {x} 个）",
  "try.lost": "找不回来的键", "try.memory": "内存", "try.add": "添加一个键", "try.ask": "查询一个键",
  "sum.try": "图：{z} 个键时实测误判率 {x}，预期 {y}。", "sum.time": "图：每键添加 {x} 纳秒，查询 {y} 纳秒。",
  "inspect.reading": "正在读取 {x}……", "inspect.good": "{x} 完好：所有校验和都正确。",
  "inspect.open": "{x} 被就地修改后没有关闭：键都在，但校验和无法作证。",
  "inspect.damaged": "{x} 不是过滤器，或已损坏：", "inspect.many": "只查询了前 {x} 行。",
  "inspect.map.note": "{x} 块，填充从 {y} 到 {z}。颜色越绿越满；好的过滤器在容量处均匀地半满。",
  "inspect.maybe": "可能在", "inspect.not": "一定不在",
  "damage.head": "头部不对。库的英文说明：{x}", "damage.read": "无法读取。浏览器的说明：{x}", "damage.more": "还有更多。",
  "damage.size": "大小：头部说有 {x} 字节，文件有 {y} 字节。", "damage.slots": "槽位：两个都无效，其余部分的状态无从知道。",
  "damage.tables": "校验和表与它自己的校验和不符。", "damage.range": "主体：字节 {x} 到 {y} 与校验和不符，或最后一块之后还有比特被设置。",
  "damage.gap": "字节 {x} 到 {y} 在各段之间，应为 0。",
  "section.header": "头部", "section.body": "主体 {x}", "section.tables": "校验和", "section.slot": "槽位 {x}",
  "sum.good": "正确", "sum.bad": "错误", "sum.missing": "不存在", "sum.open": "无法作证", "sum.unused": "不计",
  "fact.kind": "种类", "fact.keys": "键", "fact.capacity": "容量", "fact.distinct": "不同的键", "fact.about": "约 {x} 个，由比特推断",
  "fact.rate": "当前误判率", "fact.rate_promised": "承诺的误判率", "fact.bytes": "大小", "fact.bits": "比特", "fact.fill": "填充", "fact.probes": "探测数",
  "fact.parts": "部分数", "fact.growth": "增长", "fact.fixed": "固定大小", "fact.strict": "严格", "fact.yes": "是", "fact.no": "否",
  "fact.hash": "哈希", "fact.seed": "种子", "fact.comment": "注释",
  "wasm.failed": "无法加载库。浏览器的说明：{x}",
};

const english = { ...en }; // and what index.html says

const asked = get("lang") ||
  (navigator.languages ?? [navigator.language]).find((l) => /^(zh|en)/i.test(l));
export let language = /^zh/i.test(asked ?? "") ? "zh" : "en";

const attributeOf = (element) => element.dataset.ta.split(" ");

for (const element of document.querySelectorAll("[data-t]"))
  english[element.dataset.t] ??= element.textContent;
for (const element of document.querySelectorAll("[data-ta]")) {
  const [name, key] = attributeOf(element);
  english[key] ??= element.getAttribute(name);
}

export function t(key, values = {}) {
  const text = (language === "zh" ? zh : english)[key];
  if (text === undefined) console.error(`no text for ${key} in ${language}`);
  return (text ?? key).replace(/\{(\w)\}/g, (_, name) => values[name] ?? "");
}

// Keys that one language has and the other lacks.
export function missing() {
  return [
    ...Object.keys(english).filter((key) => !zh[key]).map((key) => "zh: " + key),
    ...Object.keys(zh).filter((key) => !english[key]).map((key) => "en: " + key),
  ];
}

export function translate() {
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  for (const element of document.querySelectorAll("[data-t]"))
    element.textContent = t(element.dataset.t);
  for (const element of document.querySelectorAll("[data-ta]")) {
    const [name, key] = attributeOf(element);
    element.setAttribute(name, t(key));
  }
  const other = document.getElementById("language");
  other.textContent = language === "zh" ? "English" : "中文";
  other.lang = language === "zh" ? "en" : "zh";
  other.setAttribute("aria-label",
    language === "zh" ? "English: switch to English" : "中文：切换到中文");
}

export function speak(to) {
  language = to;
  set("lang", to);
  translate();
}
