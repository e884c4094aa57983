// Numbers as people write them, to and fro. As in the calyx command, 10M is ten
// million and 10Mi is 10 * 2^20. People on a page also write spaces, "64 MiB",
// "10 million", "2^20", "1 in 1000", "1‰", 100万 and 千分之一. What cannot be
// read without guessing is NaN.
import { t } from "./text/text.js";

const LONGEST = 60; // characters; nobody types a number longer than this

// Full-width letters become plain ones; spaces, _ and ' only group digits.
function tidy(text) {
  return text.length > LONGEST ? "" : text.normalize("NFKC").replace(/[\s_'’]+/g, "");
}

// "1,000,000" and "1.000.000" are grouped; "0,5" has a decimal comma.
function digits(text) {
  const [, mantissa, exponent] = text.match(/^([\d.,]*\d[\d.,]*)(e[+-]?\d+)?$/i) ?? [];
  if (mantissa === undefined) return NaN;
  const plain =
    /^[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/.test(mantissa) ? mantissa.replaceAll(",", "")
    : /^[1-9]\d{0,2}(\.\d{3}){2,}(,\d+)?$/.test(mantissa)
      ? mantissa.replaceAll(".", "").replace(",", ".")
    : /^\d+,\d+$/.test(mantissa) ? mantissa.replace(",", ".")
    : mantissa;
  return /^(\d+\.?\d*|\.\d+)$/.test(plain) ? Number(plain + (exponent ?? "")) : NaN;
}

const letters = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12, ki: 2 ** 10, mi: 2 ** 20,
  gi: 2 ** 30, ti: 2 ** 40 };
const counts = { ...letters, thousand: 1e3, million: 1e6, mn: 1e6, billion: 1e9, bn: 1e9,
  b: 1e9, trillion: 1e12, 千: 1e3, 万: 1e4, 百万: 1e6, 千万: 1e7, 亿: 1e8, 十亿: 1e9,
  万亿: 1e12 };
const sizes = Object.fromEntries(Object.entries(letters).flatMap(([letter, factor]) => [
  [letter, factor], [letter + "b", factor], [letter + "byte", factor],
  [letter + "bytes", factor], [letter + "字节", factor],
  ...["bit", "bits", "比特", "位"].map((unit) => [letter + unit, factor / 8])]));
for (const [name, factor] of [["kilo", 1e3], ["mega", 1e6], ["giga", 1e9], ["tera", 1e12]])
  for (const unit of ["byte", "bytes"]) sizes[name + unit] = factor;

function scaled(text, units) {
  const [, base, exponent, unit] =
    text.match(/^([\d.,]+(?:e[+-]?\d+)?)(?:\^(\d+))?([^\d.,^]*)$/i) ?? [];
  const factor = unit === undefined ? undefined
    : Object.hasOwn(units, unit.toLowerCase()) ? units[unit.toLowerCase()] : undefined;
  if (factor === undefined) return NaN;
  // Is 1.000 one, or a thousand? It depends on whom one asks.
  if (!unit && exponent === undefined && /^[1-9]\d{0,2}\.\d{3}$/.test(base)) return NaN;
  return digits(base) ** (exponent === undefined ? 1 : Number(exponent)) * factor;
}

function whole(number) {
  const near = Math.round(number); // 1.1M is 1100000.0000000001
  return Number.isSafeInteger(near) && near > 0 &&
    Math.abs(number - near) < 1e-12 * near ? near : NaN;
}

export const countFrom = (text) => whole(scaled(tidy(text), counts));

// In bytes; bits are rounded up to whole bytes.
export function sizeFrom(text) {
  const plain = tidy(text), size = scaled(plain, sizes);
  return whole(/bit|比特|位/i.test(plain) ? Math.ceil(size) : size);
}

// The number of bits, where they are what was written; else 0.
export function bitsFrom(text) {
  const plain = tidy(text);
  return /bit|比特|位/i.test(plain) ? whole(8 * scaled(plain, sizes)) || 0 : 0;
}

export const isBinary = (text) => /[kmgt]i/i.test(text);

const numerals = "零一二三四五六七八九";
const shares = { 百: 100, 千: 1e3, 万: 1e4, 十万: 1e5, 百万: 1e6, 千万: 1e7, 亿: 1e8 };

export function rateFrom(text) {
  const plain = tidy(text).replace(/per(cent|mille)$/i, (_, each) =>
    (each.toLowerCase() === "cent" ? "%" : "‰"));
  const [, below, above] = plain.match(/^(.+)分之(.+)$/) ?? [];
  if (below !== undefined) { // 千分之一 is 1 of 1000
    const part = numerals.includes(above) ? numerals.indexOf(above) : digits(above);
    return finite(part / (Object.hasOwn(shares, below) ? shares[below] : scaled(below, counts)));
  }
  const ratio = plain.match(/^([^a-z:/]+)(?:in|outof|:|\/)(.+)$/i);
  if (ratio) return finite(digits(ratio[1]) / scaled(ratio[2], counts));
  const unit = { "%": 100, "‰": 1000 }[plain.at(-1)];
  return finite(unit ? digits(plain.slice(0, -1)) / unit : digits(plain));
}

const finite = (number) => (Number.isFinite(number) ? number : NaN);

const seconds = { ns: 1e-9, us: 1e-6, µs: 1e-6, μs: 1e-6, ms: 1e-3, s: 1, 纳秒: 1e-9,
  微秒: 1e-6, 毫秒: 1e-3, 秒: 1 };

export function timeFrom(text) {
  const [, number, unit] = tidy(text).match(/^([\d.,]+(?:e[+-]?\d+)?)([a-zµμ纳微毫秒]+)$/i) ?? [];
  return finite(digits(number ?? "") * seconds[unit?.toLowerCase()]);
}

// ---- To text ----

// As printf's %g.
export function general(x, places = 6) {
  if (x === 0) return "0";
  const [mantissa, exponent] = x.toExponential(places - 1).split("e");
  const power = Number(exponent);
  const trim = (s) => (s.includes(".") ? s.replace(/\.?0+$/, "") : s);
  if (power < -4 || power >= places)
    return trim(mantissa) + "e" + (power < 0 ? "-" : "+") +
      String(Math.abs(power)).padStart(2, "0");
  return trim(x.toFixed(Math.max(0, places - 1 - power)));
}

export function countText(n) {
  return String(Math.trunc(n)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

// A number of any size, with this number of digits that matter and no exponent.
export function shortText(x, places = 3) {
  return Math.abs(x) >= 10 ** places ? countText(Math.round(x)) : general(x, places);
}

export function sizeText(bytes, binary = false) {
  const units = binary ? ["", "KiB", "MiB", "GiB", "TiB", "PiB"]
    : ["", "kB", "MB", "GB", "TB", "PB"];
  const step = binary ? 1024 : 1000;
  let size = bytes, unit = 0;
  for (; size >= step - 0.5 && unit < 5; unit++) size /= step;
  const places = unit === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return `${size.toFixed(places)}\u00a0${unit ? units[unit] : t("bytes")}`;
}

export function rateText(rate) {
  if (!(rate >= 0)) return "?";
  if (rate >= 1e-4 || rate <= 0) {
    const text = general(100 * rate, 3);
    return `${text === "100" && rate < 1 ? general(Math.min(100 * rate, 99.9999), 6) : text}\u00a0%`;
  }
  const within = 1 / rate;
  if (!(within < 1e15)) return t("one.in", { x: general(within, 3) });
  const step = 10 ** (Math.floor(Math.log10(within)) - 2);
  return t("one.in", { x: countText(Math.round(within / step) * step) });
}

export function timeText(time) {
  const units = ["s", "ms", "µs", "ns"];
  let unit = 0;
  for (; unit < 3 && time < 0.9995; unit++) time *= 1000;
  return `${general(time, 3)}\u00a0${units[unit]}`;
}
