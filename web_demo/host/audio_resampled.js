// Filters that run at another rate than the context: one resampler in front of them all, and one behind.

import { Resampler, gcd, ratioOf } from "./audio_resampler.js";
import { Queue } from "./audio_runner.js";

const MOST_ROUNDS = 20_000;

/**
 * Samples of the context by which the result is late: the least with which no block of `block` samples has to wait. The filters take
 * `step` samples at a time and are `delay` samples behind, both at their own rate. Nothing is shifted by a part of a sample.
 */
export function resampledLatency(ratio, back, { step, delay, block }) {
  const period = (ratio.down * step) / gcd(ratio.up, ratio.down * step);
  const rounds = period / gcd(period, block);
  if (rounds > MOST_ROUNDS) return Math.ceil(ratio.reach + ((step - 1 + delay + back.reach) * ratio.down) / ratio.up);
  let most = 0;
  for (let round = 1; round <= rounds; round++) {
    const taken = round * block;
    const lower = Math.ceil(((taken - ratio.reach) * ratio.up) / ratio.down);
    const filtered = Math.floor(lower / step) * step - delay;
    most = Math.max(most, taken - Math.ceil(((filtered - back.reach) * back.up) / back.down));
  }
  return most;
}

/** Takes and gives as many samples, at the rate of the context, through slots at another one. */
export class ResampledSlots {
  slots = [];
  #ratio;
  #back;
  #step;
  #block;
  #down;
  #up;
  #low;
  #filled = 0;
  #signals;
  #queue;
  #delay = 0; // of the slots when it began, at their rate: so many of their first samples are left out
  #toSkip = 0;
  #late = 0;
  hasBegun = false;

  /** `step` is how many samples the slots take at a time. */
  constructor(kernels, rate, contextRate, step, block) {
    this.#ratio = ratioOf(contextRate, rate);
    this.#back = ratioOf(rate, contextRate);
    this.#step = step;
    this.#block = block;
    this.#down = new Resampler(kernels, this.#ratio, block);
    this.#up = new Resampler(kernels, this.#back, step);
    this.#low = new Float32Array(step);
    this.#signals = [new Float32Array(step), new Float32Array(step)];
    this.align();
  }

  /** The slots are those that it begins with. */
  align() {
    if (this.hasBegun) return;
    this.#delay = this.#toSkip = this.#slotsDelay();
    this.#late = resampledLatency(this.#ratio, this.#back, { step: this.#step, delay: this.#delay, block: this.#block });
    this.#queue = new Queue(this.#late + 3 * this.#block);
    this.#queue.pushZeros(this.#late);
  }

  #slotsDelay() {
    let delay = 0;
    for (let i = 0; i < this.slots.length; i++) delay += this.slots[i].latency;
    return delay;
  }

  get step() {
    return this.#step;
  }

  /** What a later slot adds is rounded to samples of the context. */
  get latency() {
    const more = this.#slotsDelay() - this.#delay;
    return this.#late + Math.round((more * this.#ratio.down) / this.#ratio.up);
  }

  get restarts() {
    return this.slots.reduce((sum, { runner }) => sum + (runner?.restarts ?? 0), 0);
  }

  close() {
    this.#down.close();
    this.#up.close();
  }

  process(input, output, count) {
    this.hasBegun = true;
    const results = this.#down.push(input, count);
    const { output: low } = this.#down;
    for (let i = 0; i < results; i++) {
      this.#low[this.#filled++] = low[i];
      if (this.#filled === this.#step) this.#run();
    }
    if (this.#queue.length < count) this.#wait();
    this.#queue.pop(output, count);
  }

  #run() {
    this.#filled = 0;
    let signal = this.#low;
    for (let i = 0; i < this.slots.length; i++) {
      const filtered = this.#signals[i & 1];
      this.slots[i].process(signal, filtered, this.#step);
      signal = filtered;
    }
    const skipped = Math.min(this.#toSkip, this.#step);
    this.#toSkip -= skipped;
    const results = this.#up.push(signal, this.#step - skipped, skipped);
    this.#queue.push(this.#up.output, results);
  }

  /** Blocks of other sizes have come: with so many more samples none has to wait again. */
  #wait() {
    this.#queue.pushZeros(this.#block - 1);
    this.#late += this.#block - 1;
  }
}
