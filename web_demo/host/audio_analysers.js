// The analysers of a node: each listens to one channel before the filters, or behind them.

import { Resampler, ratioOf } from "./audio_resampler.js";
import { AnalyserRunner } from "./audio_runner.js";
import { PlanError } from "./plan_file.js";

/** A signal at the rate of those that listen to it. */
class Tap {
  rows = []; // {name, runner}
  #ratio = null;
  #resampler = null;
  #origin = 0; // the sample of the context with which it began
  #taken = 0; // samples of its own rate before this block

  constructor(listens, rate, contextRate, kernels, block) {
    this.listens = listens;
    this.rate = rate;
    if (rate === contextRate) return;
    this.#ratio = ratioOf(contextRate, rate);
    this.#resampler = new Resampler(kernels(), this.#ratio, block);
  }

  close() {
    this.#resampler?.close();
  }

  /** The block at this rate is in `signal(block)`: how many samples it has. `first` is its sample in the time of the context. */
  take(block, count, first) {
    if (!this.#resampler) {
      this.#origin = first;
      return count;
    }
    this.#origin = first - this.#resampler.taken;
    this.#taken = this.#resampler.given;
    return this.#resampler.push(block, count);
  }

  signal(block) {
    return this.#resampler ? this.#resampler.output : block;
  }

  /** The sample of the context that a number of samples of this block ends before, rounded down. */
  sample(count) {
    if (!this.#resampler) return this.#origin + count;
    return this.#origin + Math.floor(((this.#taken + count) * this.#ratio.down) / this.#ratio.up);
  }
}

export class Analysers {
  #taps = [];
  #rate;
  #block;
  #kernels;
  #post;
  #tell;
  #late = 0; // by how much the signal of this block is late

  /** `post(message)` sends a result; `tell(name, error)` is called for an analyser that could not go on. */
  constructor({ rate, block, kernels, post, tell }) {
    this.#rate = rate;
    this.#block = block;
    this.#kernels = kernels;
    this.#post = post;
    this.#tell = tell;
  }

  has(name) {
    return this.#taps.some(({ rows }) => rows.some((row) => row.name === name));
  }

  listensTo(what) {
    for (let i = 0; i < this.#taps.length; i++) if (this.#taps[i].listens === what) return true;
    return false;
  }

  get restarts() {
    return this.#taps.reduce((sum, { rows }) => rows.reduce((part, { runner }) => part + runner.restarts, sum), 0);
  }

  /** With `withSamples` a result has the new samples of its frame, too, at the rate of the plan. */
  load(name, model, audio, listens, withSamples) {
    if (listens !== "input" && listens !== "output") throw new PlanError(`it can listen to "input" or "output", not ${listens}`);
    let tap = this.#taps.find((each) => each.listens === listens && each.rate === audio.sample_rate);
    const message = { type: "result", name, sample: 0, values: new Float32Array(audio.size) };
    if (withSamples) message.samples = new Float32Array(audio.hop);
    const report = (values, index, samples) => {
      if (withSamples) message.samples.set(samples.subarray(audio.frame - audio.hop));
      if (values.length !== message.values.length) message.values = new Float32Array(values.length); // in a warm-up
      message.values.set(values);
      message.sample = tap.sample(index + 1) - this.#late;
      this.#post(message);
    };
    const runner = new AnalyserRunner(model, audio, report);
    tap ??= new Tap(listens, audio.sample_rate, this.#rate, this.#kernels, this.#block);
    if (!this.#taps.includes(tap)) this.#taps = [...this.#taps, tap];
    tap.rows = [...tap.rows, { name, runner }];
    this.#keep((row) => row.name !== name || row.runner === runner);
  }

  /** Whether there was one of this name. */
  remove(name) {
    const isThere = this.has(name);
    if (isThere) this.#keep((row) => row.name !== name);
    return isThere;
  }

  #keep(isKept) {
    for (const tap of this.#taps) {
      tap.rows = tap.rows.filter(isKept);
      if (!tap.rows.length) tap.close();
    }
    this.#taps = this.#taps.filter(({ rows }) => rows.length);
  }

  /** A block of what is listened to, which is `late` samples late. */
  process(listens, block, count, first, late) {
    this.#late = late;
    const taps = this.#taps; // as they are now, if one is taken out
    for (let i = 0; i < taps.length; i++) if (taps[i].listens === listens) this.#run(taps[i], block, count, first);
  }

  #run(tap, block, count, first) {
    const taken = tap.take(block, count, first);
    const signal = tap.signal(block);
    const { rows } = tap;
    for (let i = 0; i < rows.length; i++) {
      try {
        rows[i].runner.process(signal, taken);
      } catch (error) {
        this.remove(rows[i].name);
        this.#tell(rows[i].name, error);
      }
    }
  }
}
