// Numbers as people write them, to and fro, as the calyx command does it: 10M
// is ten million, 10Mi is 10 * 2^20. People on a page also write spaces,
// "1 in 1000" and "64 MiB". What cannot be read is NaN.

const LONGEST = 60; // characters; nobody types a number longer than this
const powers = { k: 1, m: 2, g: 3, t: 4 };

function scaled(text, unit) {
  const match = text.match(
    /^(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)(?:([kmgt])(i?))?(b?)$/i);
  if (!match || (match[4] && !unit)) return NaN;
  const [, digits, letter, binary] = match;
  const power = letter ? powers[letter.toLowerCase()] : 0;
  return Number(digits) * (binary ? 1024 : 1000) ** power;
}

// Spaces and commas are for the eye.
function tidy(text) {
  return text.length > LONGEST ? "" : text.replace(/[\s,_']+/g, "");
}

function whole(text, unit) {
  const number = scaled(tidy(text), unit);
  const near = Math.round(number); // 1.1M is 1100000.0000000001
  return Number.isSafeInteger(near) && near > 0 &&
    Math.abs(number - near) < 1e-12 * near ? near : NaN;
}

export const countFrom = (text) => whole(text, false);
export const sizeFrom = (text) => whole(text, true);

export function rateFrom(text) {
  const plain = tidy(text).replace(/(\d)(?:in|分之|\/)(?=[\d.])/i, "$1/");
  const percent = plain.endsWith("%");
  const [above, below, more] = plain.replace(/%$/, "").split("/");
  if (more !== undefined || (percent && below !== undefined)) return NaN;
  const rate = below === undefined
    ? plainNumber(above) / (percent ? 100 : 1)
    : plainNumber(above) / scaled(below, false);
  return Number.isFinite(rate) ? rate : NaN;
}

function plainNumber(text) {
  return /^(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : NaN;
}

const seconds = { ns: 1e-9, us: 1e-6, µs: 1e-6, μs: 1e-6, ms: 1e-3, s: 1 };

export function timeFrom(text) {
  const match = tidy(text).match(/^(.*?)(ns|us|µs|μs|ms|s)$/i);
  if (!match) return NaN;
  const time = plainNumber(match[1]) * seconds[match[2].toLowerCase()];
  return Number.isFinite(time) ? time : NaN;
}

// ---- To text ----

// As printf's %g.
export function general(x, digits = 6) {
  if (x === 0) return "0";
  const [mantissa, exponent] = x.toExponential(digits - 1).split("e");
  const power = Number(exponent);
  const trim = (s) => (s.includes(".") ? s.replace(/\.?0+$/, "") : s);
  if (power < -4 || power >= digits)
    return trim(mantissa) + "e" + (power < 0 ? "-" : "+") +
      String(Math.abs(power)).padStart(2, "0");
  return trim(x.toFixed(Math.max(0, digits - 1 - power)));
}

export function countText(n) {
  return String(Math.trunc(n)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

export function sizeText(bytes) {
  const units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
  let size = bytes, unit = 0;
  for (; size >= 999.5 && unit < 5; unit++) size /= 1000;
  const places = unit === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return `${size.toFixed(places)}\u00a0${units[unit]}`;
}

export function rateText(rate) {
  if (!(rate >= 0)) return "?";
  if (rate >= 1e-4 || rate <= 0) return `${general(100 * rate, 3)}\u00a0%`;
  const within = 1 / rate;
  if (!(within < 1e15)) return `1 in ${general(within, 3)}`;
  const step = 10 ** (Math.floor(Math.log10(within)) - 2);
  return `1\u00a0in\u00a0${countText(Math.round(within / step) * step)}`;
}

export function timeText(time) {
  const units = ["s", "ms", "µs", "ns"];
  let unit = 0;
  for (; unit < 3 && time < 0.9995; unit++) time *= 1000;
  return `${general(time, 3)}\u00a0${units[unit]}`;
}
