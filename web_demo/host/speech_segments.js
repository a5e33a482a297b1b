// Where somebody speaks in a recording: the rules of silero-vad's get_speech_timestamps, to the sample.

import { choosePlan, planOf } from "./audio_plans.js";
import { requireFunction, requireNumber, withDefaults } from "./audio_source.js";
import { SPEECH_FRAME, SPEECH_RATE } from "./speech_frames.js";
import { Model } from "./webrnn.js";

const FRAMES_AT_A_TIME = 256; // then the page gets its turn

const SEGMENT_OPTIONS = {
  threshold: 0.5,
  negThreshold: undefined,
  minSpeechDurationMs: 250,
  maxSpeechDurationS: Infinity,
  minSilenceDurationMs: 100,
  speechPadMs: 30,
  returnSeconds: false,
  timeResolution: 1,
  minSilenceAtMaxSpeech: 98,
  useMaxPossSilAtMaxSpeech: true,
  onProgress: undefined,
  model: "silero",
  weights: undefined,
};

/** As Python rounds: what lies in the middle goes to the even neighbour. */
function rounded(seconds, digits) {
  const halves = seconds * 2 ** (digits + 1);
  if (!Number.isInteger(halves) || halves % 2 === 0) return Number(seconds.toFixed(digits));
  const below = Math.floor(seconds * 10 ** digits);
  return (below + (below % 2)) / 10 ** digits;
}

/** Samples at 16 kHz: every third of 48 kHz, as silero-vad takes them; of other rates the mean of those that fall into one. */
export function atSpeechRate(who, samples, rate) {
  requireNumber(who, "rate", rate, 1);
  if (!(samples instanceof Float32Array)) throw new TypeError(`${who}: samples are a Float32Array, not ${samples?.constructor?.name ?? samples}`);
  if (rate === SPEECH_RATE) return samples;
  const step = rate / SPEECH_RATE;
  if (step < 1) throw new TypeError(`${who}: ${rate} Hz is less than the ${SPEECH_RATE} Hz that the model takes`);
  if (Number.isInteger(step)) return Float32Array.from({ length: Math.ceil(samples.length / step) }, (_, i) => samples[i * step]);
  return means(samples, step);
}

/** The mean of the samples that fall into each step. */
export function means(samples, step) {
  const output = new Float32Array(Math.floor(samples.length / step));
  for (let i = 0, from = 0; i < output.length; i++) {
    let [sum, count] = [0, 0];
    for (; from < Math.min(samples.length, (i + 1) * step); from++, count++) sum += samples[from];
    output[i] = sum / (count || 1);
  }
  return output;
}

/** Frames of a signal, the last one filled up with zeros. */
export function framesOf(samples) {
  return Array.from({ length: Math.ceil(samples.length / SPEECH_FRAME) }, (_, i) => {
    const frame = samples.subarray(SPEECH_FRAME * i, SPEECH_FRAME * (i + 1));
    if (frame.length === SPEECH_FRAME) return frame;
    const last = new Float32Array(SPEECH_FRAME);
    last.set(frame);
    return last;
  });
}

/** A function of one frame after the other: the probability that somebody speaks. */
export async function speechModel(who, { model, weights }) {
  const chosen = choosePlan(who, model, weights);
  const loaded = await Model.load(await planOf(chosen), { variant: chosen.variant });
  const { input, output } = loaded.about.audio ?? {};
  const stream = loaded.stream();
  const probability = (frame) => stream.step({ [input]: frame }, { borrow: true })[output][0];
  return { probability, reset: () => stream.reset() };
}

/** Where somebody speaks: [{start, end}] in samples, or in seconds. */
export async function segments(samples, rate = SPEECH_RATE, options = {}) {
  const settings = segmentOptions(options);
  const given = atSpeechRate("segments", samples, rate);
  const { probability } = await speechModel("segments", settings);
  const probabilities = [];
  for (const frame of framesOf(given)) {
    probabilities.push(probability(frame));
    if (probabilities.length % FRAMES_AT_A_TIME) continue;
    settings.onProgress?.((100 * probabilities.length * SPEECH_FRAME) / given.length);
    await new Promise((resolve) => setTimeout(resolve));
  }
  settings.onProgress?.(100);
  const found = segmentsOf(probabilities, { ...settings, length: given.length });
  if (settings.returnSeconds || rate === SPEECH_RATE) return found;
  const back = (sample) => Math.round((sample * rate) / SPEECH_RATE);
  return found.map(({ start, end }) => ({ start: back(start), end: back(end) }));
}

function segmentOptions(options) {
  const settings = withDefaults("segments", options, SEGMENT_OPTIONS);
  requireNumber("segments", "threshold", settings.threshold, 0, 1);
  settings.negThreshold ??= Math.max(settings.threshold - 0.15, 0.01);
  for (const [name, value] of Object.entries(SEGMENT_OPTIONS)) {
    if (typeof value === "number") requireNumber("segments", name, settings[name], 0);
  }
  requireNumber("segments", "negThreshold", settings.negThreshold, 0, 1);
  requireFunction("segments", "onProgress", settings.onProgress);
  return settings;
}

/** The same of probabilities, one for each frame; `length` is that of the signal in samples. */
export function segmentsOf(probabilities, { length = probabilities.length * SPEECH_FRAME, ...options } = {}) {
  const settings = segmentOptions(options);
  const found = new Cutter(settings).run(probabilities, length);
  pad(found, length, settings.speechPadMs * (SPEECH_RATE / 1000));
  if (!settings.returnSeconds) return found;
  const seconds = (sample) => rounded(sample / SPEECH_RATE, settings.timeResolution);
  return found.map(({ start, end }) => ({ start: Math.max(seconds(start), 0), end: Math.min(seconds(end), length / SPEECH_RATE) }));
}

/** Goes along the probabilities; a segment that gets too long is cut in a silence, if it had one. */
class Cutter {
  #found = [];
  #start = null; // of the segment that is open
  #silence = 0; // where it fell silent, 0 if it did not
  #lastEnd = 0; // of the last silence that was long enough for a cut
  #nextStart = 0; // where speech went on behind it
  #pauses = []; // {at, length}: silences where it may be cut
  #isOpen = false;
  #settings;

  constructor(settings) {
    const samples = (ms) => (SPEECH_RATE * ms) / 1000;
    const padding = samples(settings.speechPadMs);
    this.#settings = {
      ...settings,
      least: samples(settings.minSpeechDurationMs),
      most: SPEECH_RATE * settings.maxSpeechDurationS - SPEECH_FRAME - 2 * padding,
      leastSilence: samples(settings.minSilenceDurationMs),
      leastPause: samples(settings.minSilenceAtMaxSpeech),
    };
  }

  run(probabilities, length) {
    probabilities.forEach((probability, i) => this.#take(probability, i * SPEECH_FRAME));
    if (this.#start !== null && length - this.#start > this.#settings.least) this.#found.push({ start: this.#start, end: length });
    return this.#found;
  }

  #take(probability, at) {
    const { threshold, negThreshold, leastPause, most } = this.#settings;
    const isSpeech = probability >= threshold;
    if (isSpeech && this.#silence) {
      const length = at - this.#silence;
      if (length > leastPause) this.#pauses.push({ at: this.#silence, length });
      this.#silence = 0;
      if (this.#nextStart < this.#lastEnd) this.#nextStart = at;
    }
    if (isSpeech && !this.#isOpen) {
      this.#isOpen = true;
      this.#start = at;
      return;
    }
    if (this.#isOpen && at - this.#start > most && this.#cut(at)) return;
    if (probability < negThreshold && this.#isOpen) this.#fallSilent(at);
  }

  /** Whether nothing else is to be done at this place. */
  #cut(at) {
    if (this.#settings.useMaxPossSilAtMaxSpeech && this.#pauses.length) {
      const pause = this.#pauses.reduce((longest, each) => (each.length > longest.length ? each : longest));
      const next = pause.at + pause.length;
      this.#close(pause.at);
      if (next < pause.at + at) this.#start = next;
      else this.#isOpen = false;
      return false;
    }
    const [end, next] = [this.#lastEnd, this.#nextStart];
    this.#close(end || at);
    if (!end || next < end) this.#isOpen = false;
    else this.#start = next;
    return !end;
  }

  #fallSilent(at) {
    const { useMaxPossSilAtMaxSpeech, leastPause, leastSilence, least } = this.#settings;
    this.#silence ||= at;
    const length = at - this.#silence;
    if (!useMaxPossSilAtMaxSpeech && length > leastPause) this.#lastEnd = this.#silence;
    if (length < leastSilence) return;
    this.#close(this.#silence, least);
    this.#isOpen = false;
  }

  #close(end, longerThan = -Infinity) {
    if (end - this.#start > longerThan) this.#found.push({ start: this.#start, end });
    this.#start = null;
    this.#lastEnd = this.#nextStart = this.#silence = 0;
    this.#pauses = [];
  }
}

/** Makes segments longer on both sides, up to the middle of what lies between them. */
function pad(found, length, padding) {
  found.forEach((segment, i) => {
    if (i === 0) segment.start = Math.trunc(Math.max(0, segment.start - padding));
    const next = found[i + 1];
    const silence = next && next.start - segment.end;
    if (next && silence < 2 * padding) {
      segment.end += Math.floor(silence / 2);
      next.start = Math.trunc(Math.max(0, next.start - Math.floor(silence / 2)));
      return;
    }
    segment.end = Math.trunc(Math.min(length, segment.end + padding));
    if (next) next.start = Math.trunc(Math.max(0, next.start - padding));
  });
}
