// Reading plan files, as runtime/webrnn/plan/file.py does: the header, the metadata and sizes.

const MAGIC = 0x4e4e5257;
const VERSION = 1;
const HEADER = [
  "magic", "version", "words", "symbols", "sizes", "buffers", "slots", "tensors", "externals", "moves", "code_words",
  "data_offset", "data_bytes", "meta_offset", "meta_bytes",
];
const SIZE_WORDS = 3;
const SIZES = [
  (a) => a,
  (a, b, found, symbols) => symbols[a],
  (a, b, found) => found[a] + found[b],
  (a, b, found) => found[a] * found[b],
  (a, b, found) => Math.floor(found[a] / b),
];
const TYPES = {
  f32: { type: "float32", Array: Float32Array },
  i32: { type: "int32", Array: Int32Array },
  i64: { type: "int64", Array: BigInt64Array },
  u8: { type: "bool", Array: Uint8Array },
};

/** What the VM returns, by number. */
export const ERRORS = [
  "", "the header is damaged", "a table is damaged", "an instruction is damaged", "a size is negative or too large",
  "a tensor reaches outside its buffer", "an instruction's operands do not fit each other", "loops are nested too deep",
  "an instruction writes to memory that it must not", "the memory is too small", "an index is out of range",
  "a loop did not end within its limit", "more steps than its operands have elements",
];

/** Base of the errors of a plan; `node` names the part of the model, where that is known. */
export class WebrnnError extends Error {
  constructor(message, node) {
    super(node ? `node '${node}': ${message}` : message);
    this.name = this.constructor.name;
    this.node = node;
  }
}
/** A plan is malformed, of another version, or failed verification. */
export class PlanError extends WebrnnError {}
/** An input, or a value inside the model, has the wrong type or size. */
export class ShapeError extends WebrnnError {}
/** The model does what it must not, such as looping without end. */
export class ModelError extends WebrnnError {}

const CLASSES = { 10: ShapeError, 11: ModelError, 12: ShapeError };

export const within = (number, low, high) => Number.isInteger(number) && number >= low && number <= high;

/** The tables that a host reads. The VM checks what it needs itself. */
export class PlanFile {
  constructor(bytes) {
    if (bytes.length < 4 * HEADER.length) throw new PlanError("the file is shorter than the header of a plan");
    const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const word = (i) => words.getInt32(4 * i, true);
    const header = Object.fromEntries(HEADER.map((name, i) => [name, word(i)]));
    if (header.magic !== MAGIC) throw new PlanError("this is not a plan file");
    if (header.version !== VERSION) {
      throw new PlanError(`the plan is of version ${header.version}, this webrnn reads version ${VERSION}`);
    }
    if (!within(header.sizes, 0, ((bytes.length >> 2) - HEADER.length) / SIZE_WORDS)) {
      throw new PlanError("the table of sizes does not fit into the file");
    }
    this.rows = Array.from({ length: header.sizes }, (_, row) => {
      const at = HEADER.length + SIZE_WORDS * row;
      return [word(at), word(at + 1), word(at + 2)];
    });
    this.externals = header.externals;
    const meta = readMeta(bytes, header.meta_offset, header.meta_bytes);
    this.symbols = meta.symbols;
    this.inputs = meta.inputs.map((row) => this.#port(row));
    this.outputs = meta.outputs.map((row) => this.#port(row));
    this.nodes = meta.nodes;
    if (this.symbols.length !== header.symbols) throw new PlanError("the plan does not name its symbols");
    // An output has one, the number of steps that it took, and perhaps one that it is copied from.
    if (this.externals > this.inputs.length + 3 * this.outputs.length) throw new PlanError(ERRORS[1]);
  }

  #port(row) {
    const { name, dtype, shape, sizes, external, taken = -1 } = row ?? {};
    const fits =
      typeof name === "string" && Object.hasOwn(TYPES, dtype) && Array.isArray(shape) && Array.isArray(sizes) &&
      sizes.length === shape.length && sizes.every((size) => within(size, 0, this.rows.length - 1)) &&
      shape.every((size) => typeof size === "string" || Number.isInteger(size)) &&
      within(external, 0, this.externals - 1) && within(taken, -1, this.externals - 1);
    if (!fits) throw new PlanError(`the metadata of '${name}' are damaged`);
    return { name, shape, sizes, external, taken, ...TYPES[dtype] };
  }

  /** All sizes for given symbols. They are exact wherever plan_bind accepts them. */
  sizes(symbols) {
    const found = [];
    for (const [kind, a, b] of this.rows) found.push(SIZES[kind](a, b, found, symbols));
    return found;
  }

  /** The error for a number that the VM returned, found at a word of the code. */
  error(number, word) {
    const node = word === undefined ? undefined : this.nodes.findLast(([at]) => at <= word)?.[1];
    return new (CLASSES[number] ?? PlanError)(ERRORS[number] ?? `error ${number}`, node);
  }
}

function readMeta(bytes, start, length) {
  if (start < 0 || length < 0 || start + length > bytes.length) {
    throw new PlanError("the metadata do not fit into the file");
  }
  let text = ""; // it is ASCII, and an AudioWorklet has no TextDecoder
  for (let i = start; i < start + length; i++) text += String.fromCharCode(bytes[i]);
  try {
    const meta = JSON.parse(text);
    if (["symbols", "inputs", "outputs", "nodes"].every((key) => Array.isArray(meta[key]))) {
      if (meta.nodes.every(Array.isArray)) return meta;
    }
  } catch {
    // said below
  }
  throw new PlanError("the metadata are damaged");
}
