// Plans of versions 1 and 2 as plans of version 3, as runtime/webrnn/plan/first_versions.py makes them: a tensor had up to six
// axes, a bool was called u8, and each pair of element types had a cast of its own.

import { BUFFER_WORDS, CASTS, EXPRESSION, FIRST_CAST, HEADER, MAGIC, PlanError, SIZE_WORDS, readMeta } from "./plan_file.js";

const [TENSOR_HEAD, AXES, NEW_AXES, OPERATION] = [4, 6, 8, 7]; // words of a tensor before its axes, axes, words of an operation
const VERSION = 3;

/** The bytes of such a plan; null for any other file. Raises if its tables do not fit. */
export function broughtUp(file) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const word = (i) => view.getInt32(4 * i, true);
  if (file.length < 4 * HEADER.length || word(0) !== MAGIC || (word(1) !== 1 && word(1) !== 2)) return null;
  const header = HEADER.map((_, i) => word(i));
  const [, , count, , sizes, buffers, , tensors, , , codeWords, at, bytes, metaAt, metaBytes] = header;
  const first = HEADER.length + SIZE_WORDS * sizes + BUFFER_WORDS * buffers; // the first tensor
  const code = first + (TENSOR_HEAD + 2 * AXES) * tensors;
  const fits = [sizes, buffers, tensors, codeWords, bytes].every((number) => number >= 0) && code + codeWords === count;
  if (!fits || 4 * count > at || at + bytes > file.length) throw new PlanError("the tables do not fit into the file");
  const meta = metaOf(file, metaAt, metaBytes);
  const made = header.concat(Array.from({ length: first - HEADER.length }, (_, i) => word(HEADER.length + i)));
  for (let row = first; row < code; row += TENSOR_HEAD + 2 * AXES) {
    for (let i = 0; i < TENSOR_HEAD + AXES; i++) made.push(word(row + i));
    for (let i = AXES; i < NEW_AXES; i++) made.push(0);
    for (let i = TENSOR_HEAD + AXES; i < TENSOR_HEAD + 2 * AXES; i++) made.push(word(row + i));
    for (let i = AXES; i < NEW_AXES; i++) made.push(0);
  }
  const start = made.length;
  for (let i = code; i < count; i++) made.push(word(i));
  recast(made, start);
  const data = Math.ceil(made.length / 16) * 64;
  [made[1], made[2], made[11], made[13], made[14]] = [VERSION, made.length, data, data + bytes, meta.length];
  const plan = new Uint8Array(data + bytes + meta.length);
  const out = new DataView(plan.buffer);
  made.forEach((number, i) => out.setInt32(4 * i, number, true));
  plan.set(file.subarray(at, at + bytes), data);
  plan.set(meta, data + bytes);
  return plan;
}

/** Gives casts their numbers of now. Blocks of loops and branches follow their instruction, so all are in one row. */
function recast(words, start) {
  for (let at = start; at < words.length - 1; at += 2 + Math.max(words[at + 1], 0)) {
    const counts = words.slice(at + 2, at + 6); // inputs, outputs, constants, operations
    if (words[at] !== EXPRESSION || counts.some((count) => count < 0)) continue;
    const first = at + 6 + counts[0] + 2 * counts[1] + 3 * counts[2];
    const end = Math.min(first + OPERATION * counts[3], at + 2 + words[at + 1], words.length);
    for (let each = first; each < end; each += OPERATION) words[each] = CASTS[words[each] - FIRST_CAST] ?? words[each];
  }
}

/** The metadata with bool by its name of now; an audio thread has no TextEncoder. */
function metaOf(file, at, length) {
  const meta = readMeta(file, at, length);
  for (const port of [...meta.inputs, ...meta.outputs]) if (port?.dtype === "u8") port.dtype = "bool";
  const escaped = (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const text = JSON.stringify(meta).replace(/[^\0-\x7f]/g, escaped);
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}
