// Other sample rates on the audio thread: the kernels wr_resample of the module that plans run on. They give the bits of
// webrnn.audio.Resampler in Python. Nothing is allocated for a block.

import { Heap, imports } from "./heap.js";
import { PlanError } from "./plan_file.js";

const REACH = 64; // samples of the lower rate that a filter reaches to each side
const LANES = 16;
const MOST_NUMBERS = 1 << 20; // in a table of filters
const MOST_FACTOR = 1 << 24; // products of numbers of samples stay exact
const BYTES = 4;

export function gcd(a, b) {
  return b ? gcd(b, a % b) : a;
}

/**
 * How a signal gets from one rate to another: up / down in lowest terms; a result waits for `reach` samples behind the one at or
 * before its place, and its filter has `taps` numbers. Raises if there is no table for it.
 */
export function ratioOf(from, to) {
  const divisor = gcd(to, from);
  const [up, down] = [to / divisor, from / divisor];
  const reach = Math.ceil((REACH * Math.max(up, down)) / up);
  const taps = Math.ceil((2 * reach) / LANES) * LANES;
  const areRates = [from, to].every((rate) => Number.isInteger(rate) && rate > 0 && rate < MOST_FACTOR);
  if (!areRates || up * taps > MOST_NUMBERS) {
    throw new PlanError(
      `audio at ${from} Hz cannot be brought to ${to} Hz: the ratio has too many filters; ` +
        `use new AudioContext({ sampleRate: ${to} }) or a usual rate, such as 44100 or 48000`,
    );
  }
  return { up, down, reach, taps };
}

/** How many results there are of so many samples. */
export const resultsOf = ({ up, down, reach }, count) => Math.max(0, Math.ceil(((count - reach) * up) / down));

/** An instance of a module with memory of its own, which all resamplers of a node share. */
export class ResamplerKernels {
  heap = new Heap();
  call;
  #tables = new Map();

  constructor(module) {
    this.call = new WebAssembly.Instance(module, imports(this.heap.memory)).exports;
  }

  /** The address of the filters of a ratio. */
  table({ up, down, taps }) {
    const name = `${up}/${down}`;
    if (!this.#tables.has(name)) {
      const { address } = this.heap.allocate(BYTES * up * taps);
      this.call.wr_resample_table(address, up, down, taps);
      this.#tables.set(name, address);
    }
    return this.#tables.get(name);
  }
}

/** One channel of a signal at another rate. The results of a block are the first numbers of `output`. */
export class Resampler {
  /** How many samples were taken, and how many results were given. */
  taken = 0;
  given = 0;
  output;
  #kernels;
  #ratio;
  #table;
  #blocks; // of memory: samples that later results read too, and results
  #input;
  #age = -1; // of the memory that the views are of
  #filled; // samples in the input, at first zeros before the signal
  #place = 0; // of the next result, in parts of 1 / up of a sample behind the first in the input

  /** `block` is the most samples that come at a time. */
  constructor(kernels, ratio, block) {
    const { up, down, taps, reach } = ratio;
    this.#kernels = kernels;
    this.#ratio = ratio;
    this.#table = kernels.table(ratio);
    this.#filled = taps - 1 - reach;
    this.#blocks = [taps + block, Math.ceil((block * up) / down) + 1].map((count) => kernels.heap.allocate(BYTES * count));
    this.#view();
  }

  /** Gives its memory back. */
  close() {
    for (const block of this.#blocks) this.#kernels.heap.release(block);
  }

  #view() {
    const { heap } = this.#kernels;
    if (this.#age === heap.age) return;
    this.#age = heap.age;
    [this.#input, this.output] = this.#blocks.map(({ address, bytes }) => heap.view(Float32Array, address, bytes / BYTES));
  }

  /** Takes samples, from the number `from` on; returns how many results they complete. */
  push(samples, count, from = 0) {
    this.#view();
    const { up, down, taps } = this.#ratio;
    const input = this.#input;
    for (let i = 0; i < count; i++) input[this.#filled + i] = samples[from + i];
    this.#filled += count;
    this.taken += count;
    const results = Math.max(0, Math.ceil(((this.#filled - taps + 1) * up - this.#place) / down));
    const first = Math.floor(this.#place / up);
    const [{ address: x }, { address: y }] = this.#blocks;
    this.#kernels.call.wr_resample(x + BYTES * first, this.#table, y, results, this.#place - first * up, up, down, taps);
    const end = this.#place + results * down;
    const used = Math.floor(end / up);
    input.copyWithin(0, used, this.#filled);
    this.#filled -= used;
    this.#place = end - used * up;
    this.given += results;
    return results;
  }
}
