// The place of a filter in a node: it can be switched off and exchanged while it runs, without a click or a gap.

import { Share, blend } from "./audio_mixer.js";
import { Queue } from "./audio_runner.js";

export { FADE } from "./audio_mixer.js";

/** A filter, and beside it the signal itself with the same latency. Without a filter it is the signal alone. */
class Path {
  age = 0;
  #block;
  #dry;
  #wet;
  #delay = null;
  #delayed = 0; // samples

  constructor(runner, block, failed) {
    this.runner = runner;
    this.failed = failed;
    this.#block = block;
    this.#dry = new Float32Array(block);
    this.#wet = new Float32Array(block);
    if (!runner) return;
    this.#delay = new Queue(runner.latency + 2 * block);
    this.#follow(runner.latency);
  }

  get latency() {
    return this.runner ? this.runner.latency : this.#delayed;
  }

  /** `share` is how much of the filter is heard. */
  process(input, output, count, share) {
    this.age += count;
    if (!this.#delay) {
      for (let i = 0; i < count; i++) output[i] = input[i];
      return;
    }
    this.#follow(this.latency);
    this.#delay.push(input, count);
    this.#delay.pop(this.#dry, count);
    if (this.runner) this.#run(input, count);
    blend(this.#dry, this.runner ? this.#wet : this.#dry, output, count, share);
  }

  /** Its filter is not needed any more. */
  close() {
    this.runner?.close?.();
  }

  #run(input, count) {
    try {
      this.runner.process(input, this.#wet, count);
      this.#follow(this.runner.latency);
    } catch (error) {
      this.close();
      this.runner = null;
      this.failed(error);
    }
  }

  /** A runner that meets blocks of another size than before may become slower, and one that has several filters changes with them. */
  #follow(latency) {
    const more = latency - this.#delayed;
    if (more === 0) return;
    this.#delay.reserve(latency + 2 * this.#block);
    if (more > 0) this.#delay.pushZeros(more);
    else this.#delay.drop(-more);
    this.#delayed = latency;
  }
}

export class FilterSlot {
  #path;
  #next = null; // runs along until its first samples are out, then takes over
  #waiting = null; // comes after that
  #shift = new Share(); // how much of the next one is heard
  #mix = new Share();
  #other;
  #block;
  #failed;

  /**
   * `failed(error)` is told when the filter could not go on; then the signal is heard as it is. `isHeard` says that the signal
   * was heard already where the slot begins, so that the first filter is faded in.
   */
  constructor(block, failed, isHeard = false) {
    this.#block = block;
    this.#other = new Float32Array(block);
    this.#failed = failed;
    this.#path = new Path(null, block, failed);
    if (isHeard) this.#path.age = 1;
  }

  get latency() {
    return this.#path.latency;
  }

  get runner() {
    return this.#path.runner;
  }

  /** Whether there is a filter, or one is to come. */
  get isIdle() {
    return !this.#path.runner && !this.#next?.runner && !this.#waiting?.runner;
  }

  /** Exchange the filter; null takes it away. */
  load(runner) {
    const path = new Path(runner, this.#block, this.#failed);
    if (this.#path.age === 0) {
      this.#path.close(); // nothing was heard yet
      this.#path = path;
    } else if (this.#next && this.#shift.now > 0) {
      this.#waiting?.close();
      this.#waiting = path;
    } else {
      this.#next?.close();
      this.#next = path;
      this.#shift.to(0, true);
      this.#shift.to(1);
    }
  }

  /** How much of the filter is heard, 0 to 1. */
  mix(share) {
    if (share !== this.#mix.target) this.#mix.to(share, this.#path.age === 0);
  }

  process(input, output, count) {
    this.#path.process(input, output, count, this.#mix);
    if (this.#next) {
      const isReady = this.#next.age >= this.#next.latency;
      this.#next.process(input, this.#other, count, this.#mix);
      if (isReady) this.#takeOver(output, count);
    }
    this.#mix.advance(count);
  }

  #takeOver(output, count) {
    blend(output, this.#other, output, count, this.#shift);
    this.#shift.advance(count);
    if (this.#shift.now < 1) return;
    this.#path.close();
    this.#path = this.#next;
    this.#next = this.#waiting;
    this.#waiting = null;
    this.#shift.to(0, true);
    this.#shift.to(1);
  }
}
