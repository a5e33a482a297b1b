// Reading plan files, as runtime/webrnn/plan/file.py does: the header, the metadata and sizes.

const MAGIC = 0x4e4e5257;
const VERSION = 2;
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

const DAMAGED = "the metadata are damaged";
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
    this.states = this.#states(meta.states ?? [], bytes, header);
    this.about = meta.about ?? {};
    if (!isObject(this.about)) throw new PlanError(DAMAGED);
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

  /** Which input takes which output: {input, output, start}; `start` is what it is before the first step, or null. */
  #states(rows, bytes, header) {
    if (!Array.isArray(rows)) throw new PlanError(DAMAGED);
    for (const key of ["input", "output"]) {
      if (new Set(rows.map((row) => row?.[key])).size < rows.length) throw new PlanError("the metadata carry a state twice");
    }
    return rows.map((row) => {
      const input = this.inputs.find(({ name }) => name === row?.input);
      const output = this.outputs.find(({ name }) => name === row?.output);
      const pair = `the metadata carry '${row?.output}' to '${row?.input}', which`;
      if (!input || !output) throw new PlanError(`${pair} the plan does not have`);
      if (input.type !== output.type || input.shape.length !== output.shape.length || output.taken >= 0) {
        throw new PlanError(`${pair} is of another kind`);
      }
      const start = row.start === undefined ? null : readStart(row.start, input, bytes, header);
      return { input: input.name, output: output.name, start };
    });
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

/** {data, shape}: values of a state; an axis of one element is repeated. */
function readStart(row, port, bytes, header) {
  const { shape, offset } = row ?? {};
  const fits =
    Array.isArray(shape) && shape.length === port.shape.length &&
    shape.every((size, axis) => within(size, 0, 0x7fffffff) && (size === 1 || size === port.shape[axis]));
  const length = fits ? shape.reduce((a, b) => a * b, 1) * port.Array.BYTES_PER_ELEMENT : 0;
  const [first, room] = [header.data_offset, header.data_bytes];
  if (!fits || !within(offset, 0, room - length) || !within(first, 0, bytes.length - room)) {
    throw new PlanError(`the metadata of '${port.name}' are damaged`);
  }
  const data = new port.Array(bytes.slice(first + offset, first + offset + length).buffer);
  return { data: port.type === "bool" ? data.map((element) => (element ? 1 : 0)) : data, shape };
}

const isObject = (part) => typeof part === "object" && part !== null && !Array.isArray(part);

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
  throw new PlanError(DAMAGED);
}
