// One audio plan on a signal that comes by blocks of any size. Nothing is allocated for a block.

import { gcd, ratioOf } from "./audio_resampler.js";
import { PlanError, shown } from "./plan_file.js";

const LONGEST_FRAME = 1 << 16;
const LONGEST_DELAY = 1 << 20;
/** Of one step: a plan that takes this long for a frame is no plan for audio, and must not hold up the thread. */
export const AUDIO_LIMITS = { seconds: 1 };
const BORROW = { borrow: true };

const isCount = (number, most) => Number.isInteger(number) && number >= 1 && number <= most;
/** Elements of an input or output; of a plan with frames, if it has so many of them and takes one stream. */
const sizeOf = ({ shape }, timed, frames) =>
  shape.reduce((a, b, axis) => a * (axis === timed?.axis ? frames : frames && typeof b === "string" ? 1 : b), 1);

/** A stream that takes what `audioOf` says. */
export function audioStream(model, { input, hop }) {
  const sizes = {};
  if (model.timing) {
    const [{ axis }] = model.timing.inputs;
    const { shape } = model.inputs.find(({ name }) => name === input);
    shape.forEach((size, i) => typeof size === "string" && (sizes[size] = i === axis ? hop : 1));
  }
  return model.stream({ sizes, ...(Object.keys(model.carry).length || model.timing ? {} : { carry: {} }) });
}

/** What a plan says about the audio that it takes, checked for audio at this rate: {kind, sample_rate, frame, hop, input, output, size, delay}. */
export function audioOf(model, rate) {
  const audio = model.about.audio;
  if (audio === null || typeof audio !== "object") {
    throw new PlanError("the plan says nothing about audio: webrnn.audio.plans writes plans that do");
  }
  const { timing } = model;
  const stride = timing?.stride ?? 1;
  const { kind, sample_rate, hop = timing?.stride, frame = timing ? hop : undefined, input, output } = audio;
  const isFrame = isCount(frame, LONGEST_FRAME) && isCount(hop, frame) && hop % stride === 0 && (!timing || frame === hop);
  if (!["filter", "analyser"].includes(kind) || !isFrame) {
    const frames = `frames of ${shown(frame)} every ${shown(hop)} samples`;
    throw new PlanError(`a plan for audio of kind '${shown(kind)}', ${frames}, cannot be run`);
  }
  if (typeof sample_rate !== "number" || typeof input !== "string" || typeof output !== "string") {
    throw new PlanError("the plan does not say what audio it is for: a sample rate, an input and an output");
  }
  if (sample_rate !== rate) ratioOf(rate, sample_rate);
  if (sample_rate !== rate && kind === "filter") ratioOf(sample_rate, rate);
  const fed = model.inputs.filter(({ name }) => !Object.hasOwn(model.carry, name));
  const taken = fed.length === 1 && sizeOf(fed[0], timing?.inputs[0], timing && frame);
  if (fed.length !== 1 || fed[0].name !== input || fed[0].type !== "float32" || taken !== frame) {
    throw new PlanError(`the plan does not take frames of ${frame} samples as '${input}' and nothing else`);
  }
  const result = model.outputs.find(({ name }) => name === output);
  const timed = timing?.outputs.find(({ name }) => name === output);
  const size = result?.type === "float32" ? sizeOf(result, timed, timing && (hop / stride) * (timed?.rate ?? 1)) : NaN;
  const delay = timed ? (timed.delay * stride) / timed.rate : 0;
  const isFilter = size === frame && !timing === !timed;
  const isCarried = Object.values(model.carry).includes(output);
  if (isCarried || !isCount(size, LONGEST_FRAME) || delay > LONGEST_DELAY || (kind === "filter" && !isFilter)) {
    throw new PlanError(`the plan does not give ${kind === "filter" ? `frames of ${frame}` : "numbers"} as '${output}'`);
  }
  return { kind, sample_rate, frame, hop, input, output, size, delay };
}

/** A queue of samples with a fixed place. */
export class Queue {
  #buffer;
  #mask;
  #first = 0;
  length = 0;

  constructor(capacity) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(capacity, 1)));
    this.#buffer = new Float32Array(size);
    this.#mask = size - 1;
  }

  /** Room for so many. */
  reserve(capacity) {
    if (capacity <= this.#buffer.length) return;
    const larger = new Queue(capacity);
    for (let i = 0; i < this.length; i++) larger.#buffer[i] = this.#buffer[(this.#first + i) & this.#mask];
    [this.#buffer, this.#mask, this.#first] = [larger.#buffer, larger.#mask, 0];
  }

  drop(count) {
    this.#first = (this.#first + count) & this.#mask;
    this.length -= count;
  }

  push(samples, count) {
    const buffer = this.#buffer;
    const end = this.#first + this.length;
    for (let i = 0; i < count; i++) buffer[(end + i) & this.#mask] = samples[i];
    this.length += count;
  }

  pushZeros(count) {
    const end = this.#first + this.length;
    for (let i = 0; i < count; i++) this.#buffer[(end + i) & this.#mask] = 0;
    this.length += count;
  }

  pop(samples, count) {
    const buffer = this.#buffer;
    for (let i = 0; i < count; i++) samples[i] = buffer[(this.#first + i) & this.#mask];
    this.#first = (this.#first + count) & this.#mask;
    this.length -= count;
  }
}

/** Calls the plan with the last `frame` samples whenever `hop` new ones have come. */
class Frames {
  #stream;
  #feeds;
  #filled = 0;
  /** How often a result was not finite, upon which the states began anew. */
  restarts = 0;

  constructor(model, audio) {
    this.audio = audio;
    this.samples = new Float32Array(audio.frame);
    this.#feeds = { [audio.input]: this.samples };
    this.#stream = audioStream(model, audio);
    this.#stream.step(this.#feeds, BORROW); // so that memory is there, and errors are known
    this.#stream.reset();
  }

  /** `done.frame(result, i)` is called when sample i of a block completes a frame; a result that is not finite is null. */
  push(block, count, done) {
    const { frame, hop } = this.audio;
    const samples = this.samples;
    for (let i = 0; i < count; ) {
      const end = Math.min(count, i + hop - this.#filled);
      let to = frame - hop + this.#filled;
      this.#filled += end - i;
      while (i < end) samples[to++] = block[i++];
      if (this.#filled < hop) return;
      this.#filled = 0;
      done.frame(this.#run(), i - 1);
      samples.copyWithin(0, hop);
    }
  }

  #run() {
    const result = this.#stream.step(this.#feeds, BORROW)[this.audio.output];
    let sum = 0;
    for (let i = 0; i < result.length; i++) sum += result[i];
    if (Number.isFinite(sum)) return result;
    this.#stream.reset();
    this.restarts++;
    return null;
  }
}

/** A plan whose results are samples: as many out as in, `latency` samples later. */
export class FilterRunner {
  #frames;
  #missing = 0; // samples that a stream with a delay has kept back
  #sums;
  #queue;
  #lead;
  latency = 0;

  constructor(model, audio, block) {
    const { frame, hop, delay } = audio;
    this.audio = audio;
    this.#frames = new Frames(model, audio);
    this.#sums = new Float32Array(frame);
    this.#lead = frame - hop; // what lies before the first sample
    this.#queue = new Queue(frame + hop + 2 * (block + delay));
    this.#delay(hop - gcd(hop, block) + delay);
    this.latency += frame - hop;
  }

  get restarts() {
    return this.#frames.restarts;
  }

  #delay(count) {
    this.#queue.pushZeros(count);
    this.latency += count;
  }

  process(input, output, count) {
    this.#frames.push(input, count, this);
    const most = this.audio.frame - 1 + this.audio.delay; // enough for blocks of any size
    if (this.#queue.length < count) this.#delay(most - this.latency);
    this.#queue.pop(output, count);
  }

  /** Adds a frame to those that it overlaps with; its first `hop` samples are complete then. */
  frame(result) {
    const sums = this.#sums;
    const { frame, hop, delay } = this.audio;
    if (delay) {
      this.#take(result, hop);
      return;
    }
    if (result) for (let i = 0; i < frame; i++) sums[i] += result[i];
    const early = Math.min(this.#lead, hop);
    this.#lead -= early;
    for (let i = 0; i < early; i++) sums[i] = 0;
    this.#queue.push(sums, hop);
    sums.copyWithin(0, hop);
    sums.fill(0, frame - hop);
  }

  /** Of a plan with a delay: what comes out of it, and where it begins anew as many zeros as it will keep back again. */
  #take(result, hop) {
    if (result) this.#queue.push(result, result.length);
    else this.#queue.pushZeros(hop + this.#missing);
    this.#missing = result ? this.#missing + hop - result.length : 0;
  }
}

/** A plan whose results are numbers, given to `report(values, i, samples)` when sample i of a block completes a frame. */
export class AnalyserRunner {
  #frames;
  #report;

  constructor(model, audio, report) {
    this.audio = audio;
    this.#frames = new Frames(model, audio);
    this.#report = report;
  }

  get restarts() {
    return this.#frames.restarts;
  }

  process(input, count) {
    this.#frames.push(input, count, this);
  }

  frame(result, index) {
    if (result?.length) this.#report(result, index - this.audio.delay, this.#frames.samples);
  }
}
