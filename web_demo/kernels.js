// Hosts a standalone build of the kernels in a page, a worker or Node.
//
//   const kernels = await Kernels.load(new URL("./", import.meta.url));
//   const x = kernels.buffer([0, 1]), y = kernels.empty(2);
//   kernels.call.exp(x, y, 2);
//   y.array; // Float32Array [1, 2.718...]

import { chooseVariant, fetchBytes, imports } from "./instance.js";

const PAGE = 65536;
const ALIGNMENT = 64;
const INITIAL_PAGES = 16; // at least what the modules ask for; allocations grow it

export async function fetchJson(url) {
  const text = new TextDecoder().decode(await fetchBytes(url));
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${url.pathname} is not valid JSON: ${error.message}`);
  }
}

/** A typed array in linear memory. Keep the Buffer, not its `array`, across calls that allocate: growing detaches views. */
class Buffer {
  #view;

  constructor(owner, address, length, Type) {
    Object.assign(this, { owner, address, length, Type });
  }

  get array() {
    const memory = this.owner.memory.buffer;
    if (this.#view?.buffer !== memory) this.#view = new this.Type(memory, this.address, this.length);
    return this.#view;
  }

  /** A buffer over `length` elements from element `start` on. */
  part(start, length) {
    if (!(start >= 0 && length >= 0 && start + length <= this.length)) {
      throw new RangeError(`elements ${start} to ${start + length} are outside a buffer of ${this.length}`);
    }
    return new Buffer(this.owner, this.address + start * this.Type.BYTES_PER_ELEMENT, length, this.Type);
  }
}

export class Kernels {
  #top;

  /** Loads kernels.json and wasm_<variant>.wasm from a folder; without a variant, the fastest that runs here. */
  static async load(baseUrl, wanted) {
    const variant = chooseVariant(wanted);
    const file = `wasm_${variant}.wasm`;
    const [manifest, bytes] = await Promise.all([
      fetchJson(new URL("kernels.json", baseUrl)),
      fetchBytes(new URL(file, baseUrl)),
    ]);
    const memory = new WebAssembly.Memory({ initial: INITIAL_PAGES });
    try {
      const { instance } = await WebAssembly.instantiate(bytes, imports(memory));
      return new Kernels(variant, memory, instance.exports, manifest.kernels);
    } catch (error) {
      throw new Error(`${file} is not a module of kernels that can run here: ${error.message}`, { cause: error });
    }
  }

  constructor(variant, memory, exports, rows) {
    this.variant = variant;
    this.memory = memory;
    this.#top = exports.__heap_base.value;
    /** The kernels by name. Pointers are Buffers or null. */
    this.call = Object.fromEntries(rows.map((row) => [row.name, this.#caller(row, exports[row.symbol])]));
  }

  /** A new buffer of zeros; it lives as long as this object. */
  empty(length, Type = Float32Array) {
    const address = Math.ceil(this.#top / ALIGNMENT) * ALIGNMENT;
    const end = address + length * Type.BYTES_PER_ELEMENT;
    const missing = Math.ceil(end / PAGE) - this.memory.buffer.byteLength / PAGE;
    try {
      if (missing > 0) this.memory.grow(missing);
    } catch (error) {
      throw new RangeError(`${end - address} more bytes do not fit into WebAssembly memory`, { cause: error });
    }
    this.#top = end;
    return new Buffer(this, address, length, Type);
  }

  /** A new buffer with a copy of `values`. */
  buffer(values, Type = Float32Array) {
    const buffer = this.empty(values.length, Type);
    buffer.array.set(values);
    return buffer;
  }

  #caller({ name, symbol, parameters }, run) {
    if (!run) throw new Error(`${symbol} is in kernels.json, but not in the module`);
    const convert = parameters.map(([type, parameter]) => this.#converter(type, `${name}: ${parameter}`));
    return (...values) => {
      if (values.length !== convert.length) {
        throw new TypeError(`${name} takes ${convert.length} arguments, not ${values.length}`);
      }
      return run(...values.map((value, i) => convert[i](value)));
    };
  }

  // WebAssembly itself would take undefined for 0, and the address of another module's buffer for one of its own.
  #converter(type, label) {
    const checked = (test, expected) => (value) => {
      if (!test(value)) throw new TypeError(`${label} must be ${expected}, not ${value}`);
      return value;
    };
    if (type === "i32") return checked(Number.isInteger, "an integer");
    if (type === "f32") return checked((value) => typeof value === "number", "a number");
    const own = checked((value) => value === null || value?.owner === this, "null or a buffer of these kernels");
    return (value) => own(value)?.address ?? 0;
  }
}
