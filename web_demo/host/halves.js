// Half floats in plan files, as runtime/webrnn/plan/halves.py writes them: a header of four words, a table of stretches, and
// the bytes of the plan in stretches, each of so many bytes as they are and so many half floats.

import { MAGIC, PlanError, STORED_VERSIONS } from "./plan_file.js";

const HEAD = 16; // bytes
const ROW = 8;

const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** How long the plan in a file is; 0 if the file is the plan itself. Raises if its stretches are damaged. */
export function storedLength(file) {
  const words = viewOf(file);
  const word = (at) => words.getInt32(at, true);
  if (file.length < HEAD || word(0) !== MAGIC || !STORED_VERSIONS.includes(word(4))) return 0;
  const [length, rows] = [word(8), word(12)];
  const start = HEAD + ROW * rows;
  if (rows < 0 || start > file.length) throw new PlanError("the table of stretches does not fit into the file");
  let [bytes, halves] = [0, 0];
  for (let at = HEAD; at < start; at += ROW) {
    if (word(at) < 0 || word(at + 4) < 0) bytes = NaN;
    bytes += word(at);
    halves += word(at + 4);
  }
  if (bytes + 2 * halves !== file.length - start || bytes + 4 * halves !== length) {
    throw new PlanError("the stretches of the file are damaged");
  }
  return length;
}

const EXPONENT = 0x7c00;
const SHIFT = 112 << 23; // between the exponents of both

/** Zero, a subnormal number, infinity or NaN. Not by bits: an audio thread takes subnormal floats for zeros. */
function oddFloat(half) {
  const fraction = half & 0x3ff;
  let size = fraction * 2 ** -24;
  if (half & EXPONENT) size = fraction ? NaN : Infinity;
  return half & 0x8000 ? -size : size;
}

/** Writes the plan of a file to bytes that are as many as `storedLength` says. */
export function widen(file, plan) {
  const [from, to] = [viewOf(file), viewOf(plan)];
  const rows = from.getInt32(12, true);
  let [read, written] = [HEAD + ROW * rows, 0];
  for (let row = 0; row < rows; row++) {
    const bytes = from.getInt32(HEAD + ROW * row, true);
    const halves = from.getInt32(HEAD + ROW * row + 4, true);
    plan.set(file.subarray(read, read + bytes), written);
    [read, written] = [read + bytes, written + bytes];
    for (let i = 0; i < halves; i++, read += 2, written += 4) {
      const half = from.getUint16(read, true);
      const exponent = half & EXPONENT;
      if (!exponent || exponent === EXPONENT) to.setFloat32(written, oddFloat(half), true);
      else to.setInt32(written, ((half & 0x8000) << 16) | (((half & 0x7fff) << 13) + SHIFT), true);
    }
  }
}
