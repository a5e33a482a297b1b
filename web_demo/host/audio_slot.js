// The place of a filter in a node: it can be switched off and exchanged while it runs, without a click or a gap.

import { Queue } from "./audio_runner.js";

/** Samples that it takes to fade from one signal to another. */
export const FADE = 256;

/** A filter, and beside it the signal itself with the same latency. Without a filter it is the signal alone. */
class Path {
  age = 0;
  #dry;
  #wet;
  #delay = null;

  constructor(runner, block, failed) {
    this.runner = runner;
    this.failed = failed;
    this.latency = runner?.latency ?? 0;
    this.#dry = new Float32Array(block);
    this.#wet = new Float32Array(block);
    if (!runner) return;
    this.#delay = new Queue(this.latency + 2 * block);
    this.#delay.pushZeros(this.latency);
  }

  /** `mix` is how much of the filter is heard, 0 to 1, and what it is changed by in each sample. */
  process(input, output, count, mix, change) {
    this.age += count;
    if (!this.#delay) {
      for (let i = 0; i < count; i++) output[i] = input[i];
      return;
    }
    this.#delay.push(input, count);
    this.#delay.pop(this.#dry, count);
    if (this.runner) this.#run(input, count);
    blend(this.#dry, this.runner ? this.#wet : this.#dry, output, count, mix, change);
  }

  #run(input, count) {
    try {
      this.runner.process(input, this.#wet, count);
      this.#follow(this.runner.latency);
    } catch (error) {
      this.runner = null;
      this.failed(error);
    }
  }

  /** A runner that meets blocks of another size than before may become slower. */
  #follow(latency) {
    if (latency === this.latency) return;
    this.#delay.pushZeros(latency - this.latency);
    this.latency = latency;
  }
}

/** From one signal (share 0) to another (share 1); whole shares give the bits of that signal. */
function blend(from, to, output, count, share, change) {
  for (let i = 0; i < count; i++) {
    share = Math.min(1, Math.max(0, share + change));
    output[i] = share === 1 ? to[i] : share === 0 ? from[i] : from[i] + share * (to[i] - from[i]);
  }
}

const moved = (share, change, count) => Math.min(1, Math.max(0, share + change * count));

export class FilterSlot {
  #path;
  #next = null; // runs along until its first samples are out, then takes over
  #waiting = null; // comes after that
  #shift = 0; // how much of the next one is heard
  #mix = 1;
  #target = 1;
  #other;
  #block;
  #failed;

  /** `failed(error)` is told when the filter could not go on; then the signal is heard as it is. */
  constructor(block, failed) {
    this.#block = block;
    this.#other = new Float32Array(block);
    this.#failed = failed;
    this.#path = new Path(null, block, failed);
  }

  get latency() {
    return this.#path.latency;
  }

  get runner() {
    return this.#path.runner;
  }

  /** Exchange the filter; null takes it away. */
  load(runner) {
    const path = new Path(runner, this.#block, this.#failed);
    if (this.#path.age === 0) this.#path = path; // nothing was heard yet
    else if (this.#next && this.#shift > 0) this.#waiting = path;
    else this.#next = path;
  }

  bypass(isOn) {
    this.#target = isOn ? 0 : 1;
  }

  process(input, output, count) {
    const change = Math.sign(this.#target - this.#mix) / FADE;
    this.#path.process(input, output, count, this.#mix, change);
    if (this.#next) {
      const isReady = this.#next.age >= this.#next.latency;
      this.#next.process(input, this.#other, count, this.#mix, change);
      if (isReady) this.#takeOver(output, count);
    }
    this.#mix = moved(this.#mix, change, count);
  }

  #takeOver(output, count) {
    blend(output, this.#other, output, count, this.#shift, 1 / FADE);
    this.#shift = moved(this.#shift, 1 / FADE, count);
    if (this.#shift < 1) return;
    this.#path = this.#next;
    this.#next = this.#waiting;
    this.#waiting = null;
    this.#shift = 0;
  }
}
