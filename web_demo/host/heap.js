// The memory that an instance of the kernels works on, and the plan in it.

import { broughtUp } from "./first_versions.js";
import { storedLength, widen } from "./halves.js";
import { PlanError } from "./plan_file.js";

export const PAGE = 65536;
const MOST_BYTES = 2 ** 32; // of a memory
const OWN_PAGES = 4; // at least what the modules ask for: their stack and constants
const ALIGNMENT = 64;

/** Puts bytes into memory: {block, length}. */
function put(bytes, heap) {
  const { buffer, byteOffset } = ArrayBuffer.isView(bytes) ? bytes : { buffer: bytes, byteOffset: 0 };
  const length = bytes?.byteLength;
  if (!Number.isInteger(length)) throw new TypeError(`the bytes of a file are expected, not ${typeof bytes}`);
  const block = heap.allocate(length);
  // Bytes that were transferred to another thread have no length, and no view can be made of them.
  if (length) heap.view(Uint8Array, block.address, length).set(new Uint8Array(buffer, byteOffset, length));
  return { block, length };
}

/** The plan of a file that is in memory: {address, length}. */
export function planIn({ block, length }, heap) {
  const file = () => heap.view(Uint8Array, block.address, length); // again when memory has grown
  const old = broughtUp(file());
  if (old) {
    heap.release(block);
    return planIn(put(old, heap), heap);
  }
  const planLength = storedLength(file());
  if (!planLength) return { address: block.address, length };
  const { address } = heap.allocate(planLength);
  widen(file(), heap.view(Uint8Array, address, planLength));
  heap.release(block);
  return { address, length: planLength };
}

/** Puts the plan of a file into memory: {address, length}. */
export const placeBytes = (bytes, heap) => planIn(put(bytes, heap), heap);

// Ticks of 1/64 ms: small integers, for which no engine makes an object. An AudioWorklet has no performance.
const now = globalThis.performance
  ? () => (performance.now() * 64) & 0x3fffffff
  : () => (Date.now() * 64) & 0x3fffffff;

/** What a module of kernels imports: its memory, and a clock for limits of time. */
export const imports = (memory) => ({ env: { memory, now } });

/** An instance's linear memory. Blocks begin behind what the module has for itself; released ones are used again. */
export class Heap {
  memory = new WebAssembly.Memory({ initial: OWN_PAGES });
  /** How often it has grown: then all views are stale. */
  age = 0;
  #top = OWN_PAGES * PAGE;
  #free = [];
  #bytes = new Uint8Array(this.memory.buffer);

  /** A new block of zeros: {address, bytes}. */
  allocate(bytes) {
    const index = this.#free.findIndex((block) => block.bytes >= bytes && block.bytes <= 2 * bytes);
    if (index >= 0) {
      const [block] = this.#free.splice(index, 1);
      this.clear(block.address, block.bytes);
      return block;
    }
    const address = Math.ceil(this.#top / ALIGNMENT) * ALIGNMENT;
    const end = address + bytes;
    const missing = Math.ceil(end / PAGE) - this.memory.buffer.byteLength / PAGE;
    if (!(end <= MOST_BYTES)) throw noMemory(bytes);
    if (missing > 0) {
      try {
        this.memory.grow(missing);
      } catch (error) {
        throw noMemory(bytes, error);
      }
      this.age++;
      this.#bytes = new Uint8Array(this.memory.buffer);
    }
    this.#top = end;
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

  clear(address, bytes) {
    this.#bytes.fill(0, address, address + bytes);
  }

  /** Copies a block to the start of another one. */
  copy(from, to) {
    this.move(to.address, from.address, from.bytes);
  }

  /** Copies so many bytes from one address to another. */
  move(to, from, bytes) {
    this.#bytes.copyWithin(to, from, from + bytes);
  }

  view(Type, address, length) {
    return new Type(this.memory.buffer, address, length);
  }
}

const noMemory = (bytes, cause) =>
  Object.assign(new PlanError(`${bytes} more bytes do not fit into WebAssembly memory`), cause && { cause });
