// Reading plan files, as runtime/webrnn/plan/file.py does: the header, the metadata and sizes.

// Written by web_demo/packaging/plan_constants.py:
export const MAGIC = 0x4e4e5257;
const VERSIONS = [3, 5];
export const STORED_VERSIONS = [4, 6]; // of files with half floats
export const HEADER = [
  "magic", "version", "words", "symbols", "sizes", "buffers", "slots", "tensors", "externals", "moves", "code_words",
  "data_offset", "data_bytes", "meta_offset", "meta_bytes",
];
export const SIZE_WORDS = 3;
const SIZE_KINDS = ["number", "symbol", "sum", "product", "quotient", "late"];
export const BUFFER_WORDS = 4; // kind, element type, row of the table of sizes, place
const EXTERNAL = 2; // a kind of buffer
const WRITABLE = 1 << 30; // in the place of an external
const ITEM_BYTES = [4, 8, 1, 4, 2, 2, 8, 1, 1, 2, 2, 4, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
const MOST_AXES = 32; // of an input or output
/** What the VM returns, by number; for {} stands a limit. */
export const ERRORS = [
  "", "the header is damaged", "a table is damaged", "an instruction is damaged", "a size is negative or too large",
  "a tensor reaches outside its buffer", "an instruction's operands do not fit each other", "loops are nested too deep",
  "an instruction writes to memory that it must not", "the memory is too small", "an index is out of range",
  "a loop did not end within its limit", "more steps than its operands have elements",
  "the loop did not end within {} steps", "the loops of one run did not end within {} steps together",
  "the run did not end within {} seconds", "more memory is needed", "a size came out negative or too large",
  "sizes that came out while running do not fit", "integer division by zero",
  "the plan needs the full module of kernels, and this is a smaller one",
  "the plan needs a build whose multiply-adds are not fused, and those of this one are",
];
const RAISED = () => ({ 10: ShapeError, 11: ModelError, 12: ShapeError, 17: ShapeError, 18: ShapeError, 19: ModelError });
const LIMITS = { 13: "loopSteps", 14: "runSteps", 15: "seconds" };
/** What the VM returns when a run needs more memory. */
export const GROW = 16;
/** And what it returns for a plan with something that only full modules have, or only unfused ones. */
const NEEDS_FULL = 20;
const NEEDS_UNFUSED = 21;
/** The number of an instruction, the first number of casts in versions 1 and 2, and what these are now. */
export const EXPRESSION = 6;
export const FIRST_CAST = 71;
export const CASTS = [88, 90, 89, 87, 90, 89, 87, 88, 89, 87, 88, 90];
// and so far.

const CHUNK = 4096; // letters that are decoded at a time
const SIZE_OF = {
  number: (a) => a,
  symbol: (a, b, found, symbols) => symbols[a],
  sum: (a, b, found) => found[a] + found[b],
  product: (a, b, found) => found[a] * found[b],
  quotient: (a, b, found) => Math.floor(found[a] / b),
  late: () => NaN, // what the program sets while it runs, and NaN is all that depends on it
};
const SIZES = SIZE_KINDS.map((kind) => SIZE_OF[kind]);
const TYPES = {
  f32: { type: "float32", Array: Float32Array },
  i32: { type: "int32", Array: Int32Array },
  i64: { type: "int64", Array: BigInt64Array },
  bool: { type: "bool", Array: Uint8Array },
  f16: { type: "float16", Array: globalThis.Float16Array ?? Uint16Array }, // the bits where JavaScript lacks the type
  bf16: { type: "bfloat16", Array: Uint16Array }, // the bits
  f64: { type: "float64", Array: Float64Array },
  u8: { type: "uint8", Array: Uint8Array },
  i8: { type: "int8", Array: Int8Array },
  u16: { type: "uint16", Array: Uint16Array },
  i16: { type: "int16", Array: Int16Array },
  u32: { type: "uint32", Array: Uint32Array },
  u64: { type: "uint64", Array: BigUint64Array },
};
// Types of at most a byte: the bits, a byte for each element
for (const name of ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f6e2m3", "f6e3m2", "f4e2m1"]) {
  TYPES[name] = { type: name.replace("f", "float"), Array: Uint8Array };
}
for (const bits of [2, 4]) {
  TYPES[`u${bits}`] = { type: `uint${bits}`, Array: Uint8Array };
  TYPES[`i${bits}`] = { type: `int${bits}`, Array: Uint8Array };
}

/** Base of the errors of a plan; `node` names the part of the model, where that is known. */
export class WebrnnError extends Error {
  constructor(message, node) {
    super(node ? `node '${node}': ${message}` : message);
    this.node = node;
  }
}
/** A plan is malformed, of another version, failed verification, or needs more memory than there is. */
export class PlanError extends WebrnnError {}
/** An input, or a value inside the model, has the wrong type or size. */
export class ShapeError extends WebrnnError {}
/** The model does what it must not, such as looping without end. */
export class ModelError extends WebrnnError {}
/** A stream cannot be called now: it was disposed of, or a getter of what is given to it calls it. */
export class StreamError extends WebrnnError {}
/** A run would take more than `limits` allow; `limit` is the name of the one that it reached. */
export class LimitError extends ModelError {
  constructor(message, node, limit) {
    super(message, node);
    this.limit = limit;
  }
}

/** By name; minifiers leave these names as they are, but not those of classes. */
export const ERROR_KINDS = { LimitError, ModelError, PlanError, ShapeError, StreamError, WebrnnError };
for (const name of Object.keys(ERROR_KINDS)) ERROR_KINDS[name].prototype.name = name;

/** Which module, {variant, isFull}, runs a plan that another one has refused with this error; raises it if none does. By its
 * text, since the error may come from another thread. */
export function otherModule({ variant, isFull }, error) {
  if (error.message === ERRORS[NEEDS_FULL] && !isFull) return { variant, isFull: true };
  if (error.message === ERRORS[NEEDS_UNFUSED] && variant === "relaxed") return { variant: "simd", isFull };
  throw error;
}

const MOST = 0x7fffffff;
const DAMAGED = "the metadata are damaged";

export const within = (number, low, high) => Number.isInteger(number) && number >= low && number <= high;

/** The tables that a host reads. The VM checks what it needs itself. */
export class PlanFile {
  #externalRows; // [external, row of the table of sizes, bytes of an element] of each buffer that is an external
  #written = new Set(); // externals that the program writes

  constructor(bytes) {
    if (bytes.length < 4 * HEADER.length) throw new PlanError("the file is shorter than the header of a plan");
    const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const word = (i) => words.getInt32(4 * i, true);
    const header = Object.fromEntries(HEADER.map((name, i) => [name, word(i)]));
    if (header.magic !== MAGIC) throw new PlanError("this is not a plan file");
    if (!VERSIONS.includes(header.version)) {
      const most = STORED_VERSIONS.at(-1);
      const advice = header.version > most ? "update webrnn" : "the file is damaged";
      throw new PlanError(`the plan is of version ${header.version}, this webrnn reads versions 1 to ${most}: ${advice}`);
    }
    let at = HEADER.length;
    const table = (name, width) => {
      const rows = header[name];
      if (!within(rows, 0, ((bytes.length >>> 2) - at) / width)) {
        throw new PlanError(`the table of ${name} does not fit into the file`);
      }
      const first = at;
      at += rows * width;
      return Array.from({ length: rows }, (_, row) =>
        Array.from({ length: width }, (_, column) => word(first + row * width + column)));
    };
    this.rows = table("sizes", SIZE_WORDS);
    this.isLate = lateRows(this.rows);
    this.externals = header.externals;
    this.#externalRows = this.#readExternals(table("buffers", BUFFER_WORDS));
    const meta = readMeta(bytes, header.meta_offset, header.meta_bytes);
    this.symbols = meta.symbols;
    this.inputs = meta.inputs.map((row) => this.#port(row));
    this.outputs = meta.outputs.map((row) => this.#port(row));
    this.#checkExternals();
    this.nodes = meta.nodes;
    this.states = this.#states(meta.states ?? [], bytes, header);
    this.pool = meta.pool ?? null; // {inputs, outputs}: axes that count streams; pool.js checks them
    this.timing = this.#timing(meta.timing ?? null);
    this.about = meta.about ?? {};
    if (!isObject(this.about)) throw new PlanError(DAMAGED);
    if (this.symbols.length !== header.symbols) throw new PlanError("the plan does not name its symbols");
  }

  #port(row) {
    const { name, dtype, shape, sizes, external, over } = row ?? {};
    if (typeof name !== "string") throw new PlanError(DAMAGED);
    const fits =
      typeof dtype === "string" && Object.hasOwn(TYPES, dtype) && Array.isArray(shape) && Array.isArray(sizes) &&
      sizes.length === shape.length && shape.length <= MOST_AXES &&
      sizes.every((size, axis) => within(size, 0, this.rows.length - 1) && isShown(shape[axis], this.rows[size])) &&
      within(external, 0, this.externals - 1) &&
      (over === undefined || (within(over?.[0], 0, this.externals - 1) && within(over[1], 0, this.rows.length - 1)));
    if (!fits) throw new PlanError(`the metadata of '${name}' are damaged`);
    return { name, shape, sizes, external, over, isLate: sizes.some((size) => this.isLate[size]), ...TYPES[dtype] };
  }

  #readExternals(buffers) {
    const found = [];
    for (const [kind, dtype, size, place] of buffers) {
      if (kind !== EXTERNAL) continue;
      const external = place & ~WRITABLE;
      const isKnown = within(dtype, 0, ITEM_BYTES.length - 1) && within(size, 0, this.rows.length - 1);
      if (!isKnown || !within(external, 0, this.externals - 1)) throw new PlanError(ERRORS[2]);
      if (place & WRITABLE) this.#written.add(external);
      found.push([external, size, ITEM_BYTES[dtype]]);
    }
    return found;
  }

  /** Raises unless the memory of an input is the input's alone, which the program does not write, and its sizes are known.
   * Outputs may share memory: an output that is listed twice does. */
  #checkExternals() {
    const { inputs, outputs } = this;
    // An output has one, and perhaps one that it is copied from.
    if (this.externals > inputs.length + 2 * outputs.length) throw new PlanError(ERRORS[1]);
    if (new Set(inputs.map(({ name }) => name)).size < inputs.length) throw new PlanError("two inputs have the same name");
    const named = new Map();
    const key = ({ type, shape, sizes, external }) => JSON.stringify([type, shape, sizes, external]);
    for (const port of outputs) {
      if (!named.has(port.name)) named.set(port.name, key(port));
      else if (named.get(port.name) !== key(port)) throw new PlanError("two outputs have the same name");
    }
    const used = new Set(outputs.map(({ external }) => external));
    for (const { name, external, isLate } of inputs) {
      if (this.#written.has(external)) throw new PlanError(`the input '${name}' is written`);
      if (isLate) throw new PlanError(`the metadata of '${name}' are damaged`);
      if (used.has(external)) throw new PlanError(`the memory of the input '${name}' is not its own`);
      used.add(external);
    }
  }

  /** The name of the size that counts the streams of a pool. */
  get streams() {
    const name = this.inputs[0]?.shape[this.pool?.inputs?.[0]];
    return typeof name === "string" ? name : null;
  }

  /** The externals whose size is known only while the program runs. */
  get lateExternals() {
    const late = this.#externalRows.filter(([, size]) => this.isLate[size]);
    return [...new Set(late.map(([external]) => external))];
  }

  /** How large each external has to be for the program, but for what is late: what plan_external_bytes says, for all of them
   * at once. */
  externalBytes(sizes) {
    const needed = Array(this.externals).fill(0);
    for (const [external, size, bytes] of this.#externalRows) {
      needed[external] = Math.max(needed[external], sizes[size] * bytes || 0);
    }
    return needed;
  }

  /** Which input takes which output: {input, output, start}; `start` is what it is before the first step, or null. */
  #states(rows, bytes, header) {
    if (!Array.isArray(rows)) throw new PlanError(DAMAGED);
    const [inputs, outputs] = [this.inputs, this.outputs].map((ports) => new Map(ports.map((port) => [port.name, port])));
    let left = bytes.length; // each has values of its own
    const states = rows.map((row) => {
      const { input: to, output: from, start: given } = row ?? {};
      const [input, output] = [inputs.get(to), outputs.get(from)];
      const pair = `the metadata carry '${shown(from)}' to '${shown(to)}', which`;
      if (!input || !output) throw new PlanError(`${pair} the plan does not have`);
      if (input.type !== output.type || input.shape.length !== output.shape.length) {
        throw new PlanError(`${pair} is of another kind`);
      }
      const start = given === undefined ? null : readStart(given, input, bytes, header, left);
      left -= start?.data.byteLength ?? 0;
      return { input: input.name, output: output.name, start };
    });
    for (const key of ["input", "output"]) {
      if (new Set(states.map((state) => state[key])).size < states.length) {
        throw new PlanError("the metadata carry a state twice");
      }
    }
    return states;
  }

  /** How the frames of a stream relate to those of the whole run, as in runtime/webrnn/ir/timing.py, or null. */
  #timing(row) {
    if (row === null) return null;
    const { stride, inputs, outputs, position, end, rest = 0 } = row;
    const states = (key) => this.states.map((state) => state[key]);
    const areTimed = (rows, ports, carried, fits) =>
      Array.isArray(rows) && new Set(rows.map((each) => each?.name)).size === rows.length &&
      rows.every((each) => {
        const port = ports.find(({ name }) => name === each?.name && !carried.includes(name));
        return port && within(each.axis, 0, port.shape.length - 1) && fits(each);
      });
    const isOutput = ({ rate, delay, extra }) =>
      within(rate, 1, MOST) && within(delay, 0, MOST) && within(extra, -delay, MOST);
    const counters = this.inputs.filter(({ type, shape }) => type === "int64" && shape.length === 1 && (shape[0] === 1 || this.pool));
    const isCounter = (wanted) => states("input").includes(wanted) && counters.some(({ name }) => name === wanted);
    const fits =
      within(stride, 1, MOST) && within(rest, 0, MOST) && areTimed(inputs, this.inputs, states("input"), () => true) && inputs.length &&
      areTimed(outputs, this.outputs, states("output"), isOutput) && typeof position === "string" && position !== end &&
      (end === null || isCounter(end)) && ((end === null && outputs.every(({ delay }) => !delay)) || isCounter(position));
    if (!fits) throw new PlanError("the metadata of time are damaged");
    const most = (least, number) => Math.max(least, ...outputs.map(number));
    const delay = most(0, (output) => Math.ceil((output.delay * stride) / output.rate));
    const flushStrides = most(rest, (output) => Math.ceil((output.delay + output.extra) / output.rate));
    return { stride, inputs, outputs, position, end, delay, flushStrides };
  }

  /** All sizes for given symbols. They are exact wherever plan_bind accepts them. */
  sizes(symbols) {
    const found = [];
    for (const [kind, a, b] of this.rows) found.push(SIZES[kind](a, b, found, symbols));
    return found;
  }

  /** The error for a number that the VM returned, found at a word of the code, in a run with these limits. */
  error(number, word, limits) {
    const node = word === undefined ? undefined : this.nodes.findLast(([at]) => at <= word)?.[1];
    const text = ERRORS[number] ?? `error ${number}`;
    const limit = LIMITS[number];
    if (limit) return new LimitError(`${text.replace("{}", limits[limit])}: limits: { ${limit} } allow more`, node, limit);
    return new (RAISED()[number] ?? PlanError)(text, node);
  }
}

/** Of each row of the table of sizes: whether it is set while the program runs, or depends on one that is. */
function lateRows(rows) {
  const found = [];
  const has = { sum: 2, product: 2, quotient: 1 }; // operands
  for (const [kind, ...operands] of rows) {
    const name = SIZE_KINDS[kind];
    found.push(name === "late" || operands.slice(0, has[name] ?? 0).some((row) => found[row] === true));
  }
  return found;
}

/** Whether the metadata show a row of the table of sizes as it is: a number, or a text where it is open. */
const isShown = (size, [kind, number]) => (kind === 0 ? size === number : typeof size === "string");

/** A value of the metadata, or of a caller, in a message; objects may have no text. */
export const shown = (value) => (["string", "number"].includes(typeof value) ? `${value}` : typeof value);

/** {data, shape}: values of a state, of at most `most` bytes; an axis of one element is repeated. */
function readStart(row, port, bytes, header, most) {
  const { shape, offset } = row ?? {};
  const fits =
    Array.isArray(shape) && shape.length === port.shape.length &&
    shape.every((size, axis) => within(size, 0, 0x7fffffff) && (size === 1 || size === port.shape[axis]));
  const length = fits ? shape.reduce((a, b) => a * b, 1) * port.Array.BYTES_PER_ELEMENT : 0;
  const [first, room] = [header.data_offset, header.data_bytes];
  if (!fits || length > most || !within(offset, 0, room - length) || !within(first, 0, bytes.length - room)) {
    throw new PlanError(`the metadata of '${port.name}' are damaged`);
  }
  const data = new port.Array(bytes.slice(first + offset, first + offset + length).buffer);
  return { data: port.type === "bool" ? data.map((element) => (element ? 1 : 0)) : data, shape };
}

const isObject = (part) => typeof part === "object" && part !== null && !Array.isArray(part);

export function readMeta(bytes, start, length) {
  if (start < 0 || length < 0 || start + length > bytes.length) {
    throw new PlanError("the metadata do not fit into the file");
  }
  try {
    const meta = JSON.parse(textOf(bytes.subarray(start, start + length)));
    const isNode = (row) => Array.isArray(row) && row.length === 2 && Number.isInteger(row[0]) && typeof row[1] === "string";
    const isWhole =
      ["symbols", "inputs", "outputs", "nodes"].every((key) => Array.isArray(meta[key])) && meta.nodes.every(isNode);
    if (isWhole && meta.symbols.every((name) => typeof name === "string")) return meta;
  } catch {
    // said below: no text, no JSON, nested too deep, or longer than a text can be
  }
  throw new PlanError(DAMAGED);
}

/** The text of bytes in UTF-8; raises if they are none. An AudioWorklet has no TextDecoder. */
function textOf(bytes) {
  const parts = [];
  for (let i = 0; i < bytes.length; i += CHUNK) parts.push(String.fromCharCode(...bytes.subarray(i, i + CHUNK)));
  const text = parts.join("");
  const escaped = (letter) => `%${letter.charCodeAt(0).toString(16).padStart(2, "0")}`;
  return /[\x80-\xff]/.test(text) ? decodeURIComponent(text.replace(/[%\x80-\xff]/g, escaped)) : text;
}
