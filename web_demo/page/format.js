// Numbers for people.

const UNITS = [
  [1e9, " G"],
  [1e6, " M"],
  [1e3, " k"],
];

export function count(number) {
  if (typeof number !== "number") return String(number);
  const [scale, unit] = UNITS.find(([least]) => number >= least) ?? [1, ""];
  return scale === 1 ? String(number) : `${significant(number / scale)}${unit}`;
}

export function bytes(number) {
  if (number < 1024) return `${number} B`;
  return number < 1024 ** 2 ? `${significant(number / 1024)} KB` : `${significant(number / 1024 ** 2)} MB`;
}

/** Milliseconds, as microseconds where they are few. */
export function duration(ms) {
  if (ms < 1) return `${significant(ms * 1000)} µs`;
  return ms < 1000 ? `${significant(ms)} ms` : `${significant(ms / 1000)} s`;
}

/** A time that was measured, and whether the machine did other things meanwhile. */
export const time = (ms, isBusy) => `${isBusy ? "≈ " : ""}${duration(ms)}`;

export const ratio = (value) => `${value < 10 ? value.toFixed(2) : significant(value)} ×`;

/** Three digits. */
export function significant(value) {
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString("en", { maximumFractionDigits: Math.min(digits, 6) });
}

export const percent = (share) => `${share < 0.1 ? (100 * share).toFixed(1) : Math.round(100 * share)}%`;

export const difference = (value) => (value === 0 ? "0" : value.toExponential(1));
export const shape = (sizes) => `[${sizes.map((size) => size ?? "?").join(", ")}]`;
