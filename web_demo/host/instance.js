// The wasm module of the kernels: which variant runs here, and where it comes from.

import { fileUrl, notLoaded } from "./files.js";
import { broughtUp } from "./first_versions.js";
import { storedLength, widen } from "./halves.js";
import { PAGE, placeBytes, planIn } from "./heap.js";
import { WebrnnError } from "./plan_file.js";

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

// The core modules run most plans, those for training plans that learn; what they lack is in the full ones.
const CORE = {
  relaxed: () => new URL("./wasm_relaxed_core.wasm", import.meta.url),
  simd: () => new URL("./wasm_simd_core.wasm", import.meta.url),
  scalar: () => new URL("./wasm_scalar_core.wasm", import.meta.url),
};
const TRAINING = {
  relaxed: () => new URL("./wasm_relaxed_training.wasm", import.meta.url),
  simd: () => new URL("./wasm_simd_training.wasm", import.meta.url),
  scalar: () => new URL("./wasm_scalar_training.wasm", import.meta.url),
};
const FULL = {
  relaxed: () => new URL("./wasm_relaxed.wasm", import.meta.url),
  simd: () => new URL("./wasm_simd.wasm", import.meta.url),
  scalar: () => new URL("./wasm_scalar.wasm", import.meta.url),
};
const WASM_TYPE = "application/wasm";

/** A module of Node's; not by import, which bundlers would try to resolve. */
function nodeModule(name) {
  const found = globalThis.process?.getBuiltinModule?.(name);
  if (!found) throw new Error("files can be read in Node only, from versions 20.16 and 22.3 on");
  return found;
}

// Not by instanceof: an AudioWorklet has no URL.
const isPlace = (source) => typeof source === "string" || typeof source?.href === "string";

/** The URL that a string stands for: relative to the page or worker; in Node a path, relative to where it runs. */
function urlOf(source) {
  if (typeof source !== "string") return source;
  if (globalThis.location) return new URL(source, globalThis.location.href);
  return /^[a-z][a-z\d+.-]+:/i.test(source) ? new URL(source) : nodeModule("node:url").pathToFileURL(source);
}

/** Sums up what several downloads have loaded, for `report({loaded, total})`; `total` is null where it is not known. */
export class Progress {
  #report;
  #parts = [];

  constructor(report) {
    this.#report = report;
  }

  /** A download of `total` bytes; the returned function is called with the length of each piece. */
  add(total) {
    const part = { loaded: 0, total };
    this.#parts.push(part);
    return (bytes) => {
      part.loaded += bytes;
      const sum = (key) => this.#parts.reduce((so_far, each) => so_far + each[key], 0);
      const known = this.#parts.every((each) => each.total !== null);
      this.#report({ loaded: sum("loaded"), total: known ? sum("total") : null });
    };
  }
}

/** The response to a request for `url`, its body counted as it comes. */
async function request(url, progress) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  if (!progress || !response.body) return response;
  const { headers } = response;
  const isPlain = !headers.get("content-encoding") && headers.has("content-length"); // else it is of compressed bytes
  const count = progress.add(isPlain ? Number(headers.get("content-length")) : null);
  const counted = response.body.pipeThrough(
    new TransformStream({
      transform(piece, controller) {
        count(piece.byteLength);
        controller.enqueue(piece);
      },
    }),
  );
  return new Response(counted, { headers });
}

/** What `use(response)` makes of the response for a URL; a file is read in Node, whose fetch does not. */
async function load(url, progress, use) {
  try {
    if (url.protocol !== "file:") return await use(await request(url, progress));
    const bytes = await nodeModule("node:fs/promises").readFile(url);
    progress?.add(bytes.length)(bytes.length);
    return bytes;
  } catch (error) {
    if (error instanceof WebrnnError) throw error;
    throw new Error(notLoaded(url, error.cause?.message ?? error.message), { cause: error });
  }
}

/** What a file holds: bytes are taken as they are, those of a Blob, a File or a Response are read, else it is a URL. */
export async function bytesOf(source, progress) {
  if (ArrayBuffer.isView(source) || source?.[Symbol.toStringTag] === "ArrayBuffer") return source;
  if (typeof source?.arrayBuffer === "function") return source.arrayBuffer();
  if (!isPlace(source)) throw new TypeError(`a URL, bytes, a Blob or a Response is expected, not ${typeof source}`);
  return load(urlOf(source), progress, (response) => response.arrayBuffer());
}

/** The plan of a file as bytes, for whoever has no time to widen half floats or to bring up what is old. */
export function planBytes(source) {
  if (!source.byteLength) return source; // transferred to another thread: no view can be made of it
  const bytes = ArrayBuffer.isView(source) ? source : new Uint8Array(source);
  const file = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const old = broughtUp(file);
  if (old) return old;
  const length = storedLength(file);
  if (!length) return source;
  const plan = new Uint8Array(length);
  widen(file, plan);
  return plan;
}

/** What a response holds, written to memory as it comes: {block, length}. */
async function putBody({ headers, body }, heap) {
  const said = Number(headers.get("content-length"));
  let block = heap.allocate(Number.isSafeInteger(said) && said > 0 ? said : PAGE);
  let length = 0;
  for (const reader = body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return { block, length };
    if (length + value.length > block.bytes) {
      // Compressed on its way: what the server said was the length of that.
      const larger = heap.allocate(2 * (length + value.length));
      heap.view(Uint8Array, larger.address, length).set(heap.view(Uint8Array, block.address, length));
      heap.release(block);
      block = larger;
    }
    heap.view(Uint8Array, block.address + length, value.length).set(value);
    length += value.length;
  }
}

/** The same of a file as `bytesOf` takes it. */
export async function place(source, heap, progress) {
  if (!isPlace(source)) return placeBytes(await bytesOf(source), heap);
  const use = async (response) => (response.body ? putBody(response, heap) : response.arrayBuffer());
  const found = await load(urlOf(source), progress, use);
  return "block" in found ? planIn(found, heap) : placeBytes(found, heap);
}

const SMALLER = { core: CORE, training: TRAINING };

/** `{variant, isFull, kind}` of the module that is tried first. */
export function firstModule(variant, kind = "core") {
  if (!Object.hasOwn(SMALLER, kind)) throw new Error(`unknown module ${kind}: expected one of ${Object.keys(SMALLER).join(", ")}`);
  return { variant, isFull: false, kind };
}

/** Where a module is. */
export const moduleUrl = ({ variant, isFull, kind = "core" }) =>
  fileUrl(`wasm_${variant}${isFull ? "" : `_${kind}`}.wasm`, (isFull ? FULL : SMALLER[kind])[variant]);

const compiled = new Map(); // URL -> promise of the module

/** The module of a variant, the core or the full one, fetched once, or that of `wasm`: a module, its bytes or its URL. */
export function compile(chosen, { wasm, progress } = {}) {
  if (wasm instanceof WebAssembly.Module) return wasm;
  if (wasm) return compileFrom(wasm, "the given file", progress);
  const url = moduleUrl(chosen);
  if (!compiled.has(url.href)) {
    const module = compileFrom(url, url.pathname.split("/").pop(), progress);
    module.catch(() => compiled.delete(url.href));
    compiled.set(url.href, module);
  }
  return compiled.get(url.href);
}

async function compileFrom(source, name, progress) {
  // Compiled while it is loading, where the server sends the right type.
  const whole = (response) => {
    const streams = WebAssembly.compileStreaming && response.headers.get("content-type") === WASM_TYPE;
    return streams ? { response } : response.arrayBuffer();
  };
  const found = isPlace(source) ? await load(urlOf(source), progress, whole) : await bytesOf(source);
  try {
    return await (found.response ? WebAssembly.compileStreaming(found.response) : WebAssembly.compile(found));
  } catch (error) {
    throw new Error(`${name} is not a module of kernels that can run here: ${error.message}`, { cause: error });
  }
}
