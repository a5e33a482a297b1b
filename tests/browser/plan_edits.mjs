// Plans that no exporter makes: with other metadata, or written word by word.

const META_OFFSET = 52;
const META_BYTES = 56;
const HEADER_WORDS = 15;
const MAX_RANK = 8;

/** The plan with what `edit(text)` makes of its metadata. */
export function withMetaText(plan, edit) {
  const head = new DataView(plan.slice().buffer);
  const [start, length] = [head.getInt32(META_OFFSET, true), head.getInt32(META_BYTES, true)];
  const text = edit(new TextDecoder().decode(plan.subarray(start, start + length)));
  const meta = typeof text === "string" ? new TextEncoder().encode(text) : text;
  head.setInt32(META_BYTES, meta.length, true);
  const bytes = new Uint8Array(start + meta.length);
  bytes.set(new Uint8Array(head.buffer, 0, start));
  bytes.set(meta, start);
  return bytes;
}

/** The same with the metadata as an object, which `edit(meta)` changes. */
export function withMeta(plan, edit) {
  return withMetaText(plan, (text) => {
    const meta = JSON.parse(text);
    edit(meta);
    return JSON.stringify(meta);
  });
}

/** The plan with words of the header changed: {index: number}. */
export function withHeader(plan, words) {
  const copy = plan.slice();
  const head = new DataView(copy.buffer);
  for (const [index, number] of Object.entries(words)) head.setInt32(4 * index, number, true);
  return copy;
}

/** The plan with a text, which need not be JSON, in the place of the part of the metadata at `path`. */
export function withPart(plan, path, text) {
  const mark = "@@";
  return withMetaText(plan, (before) => {
    const meta = JSON.parse(before);
    path.slice(0, -1).reduce((part, key) => part[key], meta)[path.at(-1)] = mark;
    return JSON.stringify(meta).replace(`"${mark}"`, () => text);
  });
}

/** A plan of these rows: sizes [kind, a, b], or numbers, the first of which are 0 and 1; buffers [kind, type, size, place];
 * tensors of one axis [buffer, type, size]. */
export function planOf({ sizes, buffers, tensors, code, externals, slots, meta }) {
  const rest = Array(MAX_RANK - 1).fill(0);
  const tables = [
    ...sizes.flatMap((size) => (Array.isArray(size) ? size : [0, size, 0])),
    ...buffers.flat(),
    ...tensors.flatMap(([buffer, type, size]) => [buffer, type, 1, 0, size, ...rest, 1, ...rest]),
    ...code,
  ];
  const words = HEADER_WORDS + tables.length;
  const data = Math.ceil((4 * words) / 64) * 64;
  const whole = { symbols: [], nodes: [], ...meta };
  const text = new TextEncoder().encode(JSON.stringify(whole));
  const header = [
    0x4e4e5257, 5, words, whole.symbols.length, sizes.length, buffers.length, slots, tensors.length, externals, 0, code.length,
    data, 0, data, text.length,
  ];
  const plan = new Uint8Array(data + text.length);
  plan.set(new Uint8Array(Int32Array.from([...header, ...tables]).buffer));
  plan.set(text, data);
  return plan;
}
