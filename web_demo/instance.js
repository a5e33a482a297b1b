// The wasm module of the kernels: which variant runs here, where it comes from, and the memory that it works on.

const PAGE = 65536;
const INITIAL_PAGES = 16; // at least what the modules ask for; allocations grow it
const ALIGNMENT = 64;

// Bodies of functions () -> v128 that only an engine with the feature accepts.
const ZERO = [0x41, 0, 0xfd, 0x0f]; // i32.const 0, i8x16.splat
const FEATURES = {
  relaxed: [...ZERO, ...ZERO, ...ZERO, 0xfd, 0x85, 0x02], // f32x4.relaxed_madd
  simd: ZERO,
  scalar: null,
};

function supports(body) {
  if (!body) return true;
  const code = [1, body.length + 2, 0, ...body, 0x0b]; // one function, no locals, end
  const sections = [1, 5, 1, 0x60, 0, 1, 0x7b, 3, 2, 1, 0, 10, code.length, ...code];
  return WebAssembly.validate(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...sections]));
}

/** The variants that this engine can run, fastest first. */
export function supportedVariants() {
  return Object.keys(FEATURES).filter((variant) => supports(FEATURES[variant]));
}

/** `variant`, by default the fastest that runs here; raises if there is no such variant or it cannot run here. */
export function chooseVariant(variant = supportedVariants()[0]) {
  if (!Object.hasOwn(FEATURES, variant)) {
    throw new Error(`unknown variant ${variant}: expected one of ${Object.keys(FEATURES).join(", ")}`);
  }
  if (!supports(FEATURES[variant])) throw new Error(`this WebAssembly engine does not support the ${variant} variant`);
  return variant;
}

/** Bytes of a URL, as an ArrayBuffer or Uint8Array. Node's fetch does not read file: URLs. */
export async function fetchBytes(url) {
  try {
    if (url.protocol === "file:") return await (await import("node:fs/promises")).readFile(url);
    const response = await fetch(url);
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return await response.arrayBuffer();
  } catch (error) {
    throw new Error(`${url.pathname} could not be loaded: ${error.message}`, { cause: error });
  }
}

/** What a file holds: bytes are taken as they are, anything else is a URL. */
export async function bytesOf(source) {
  if (ArrayBuffer.isView(source) || source?.[Symbol.toStringTag] === "ArrayBuffer") return source;
  return fetchBytes(new URL(source, globalThis.location?.href ?? import.meta.url));
}

const compiled = new Map(); // variant -> promise of its module

/** The module of a variant: from beside this file, fetched once, or from `wasm`: a module, its bytes or its URL. */
export function compile(variant, wasm) {
  if (wasm instanceof WebAssembly.Module) return wasm;
  if (wasm) return compileBytes(bytesOf(wasm), "the given file");
  if (!compiled.has(variant)) {
    const file = `wasm_${variant}.wasm`;
    const module = compileBytes(fetchBytes(new URL(file, import.meta.url)), file);
    module.catch(() => compiled.delete(variant));
    compiled.set(variant, module);
  }
  return compiled.get(variant);
}

async function compileBytes(promise, file) {
  const bytes = await promise;
  try {
    return await WebAssembly.compile(bytes);
  } catch (error) {
    throw new Error(`${file} is not a module of kernels that can run here: ${error.message}`, { cause: error });
  }
}

/** An instance's linear memory. Blocks that were released are used again. */
export class Heap {
  memory = new WebAssembly.Memory({ initial: INITIAL_PAGES });
  /** How often it has grown: then all views are stale. */
  age = 0;
  #top = 0;
  #free = [];

  /** Where blocks begin. */
  start(address) {
    this.#top = address;
  }

  /** A new block: {address, bytes}. What it holds is not defined. */
  allocate(bytes) {
    const index = this.#free.findIndex((block) => block.bytes >= bytes && block.bytes <= 2 * bytes);
    if (index >= 0) return this.#free.splice(index, 1)[0];
    const address = (Math.ceil(this.#top / ALIGNMENT) * ALIGNMENT) >>> 0;
    const missing = Math.ceil((address + bytes) / PAGE) - this.memory.buffer.byteLength / PAGE;
    if (missing > 0) {
      try {
        this.memory.grow(missing);
      } catch (error) {
        throw new RangeError(`${bytes} more bytes do not fit into WebAssembly memory`, { cause: error });
      }
      this.age++;
    }
    this.#top = address + bytes;
    return { address, bytes };
  }

  /** The block, or another one in its place if it is too small. */
  enlarged(block, bytes) {
    if (block?.bytes >= bytes) return block;
    const larger = this.allocate(bytes);
    this.release(block);
    return larger;
  }

  release(block) {
    if (block) this.#free.push(block);
  }

  view(Type, address, length) {
    return new Type(this.memory.buffer, address, length);
  }
}
