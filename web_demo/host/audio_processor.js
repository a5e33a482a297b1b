// The AudioWorkletProcessor "webrnn-audio": runs audio plans on the audio thread. audio_models.js is its host.
//
// The signal goes through the filters in the order in which they were loaded; analysers listen to it before or behind them. All
// channels are mixed down to one, or each goes through filters of its own. A plan of another rate than the context is resampled.
// A bad plan is answered with an error, and audio goes on.

import { Analysers } from "./audio_analysers.js";
import { Filters } from "./audio_filters.js";
import { Load } from "./audio_load.js";
import { mixDown } from "./audio_mixer.js";
import { ResamplerKernels } from "./audio_resampler.js";
import { AUDIO_LIMITS, audioOf } from "./audio_runner.js";
import { Model } from "./model.js";
import { PlanError } from "./plan_file.js";
import { described } from "./thread_errors.js";

const AUDIO_QUANTUM = 128;

const moduleOf = (wasm) => (wasm instanceof WebAssembly.Module ? wasm : new WebAssembly.Module(wasm));

class AudioProcessor extends AudioWorkletProcessor {
  #wasm;
  #kernels = null; // that resample, once they are needed
  #filters;
  #analysers;
  #block = globalThis.renderQuantumSize ?? AUDIO_QUANTUM; // the most samples that are taken at a time
  #signals; // one of each channel, or one alone
  #heard = new Float32Array(this.#block); // one channel, for the analysers
  #areApart; // whether each channel has filters of its own
  #load;
  #interval;
  #untilReport;
  #isOpen = true;
  #requests = {
    wasm: ({ wasm }) => (this.#wasm = moduleOf(wasm)),
    plan: (request) => this.#loadPlan(request),
    bypass: ({ name, isOn }) => this.#filters.bypass(name, isOn),
    mix: ({ name, share }) => this.#filters.mix(name, share),
    remove: ({ name }) => this.#analysers.remove(name) || this.#filters.remove(name),
    latency: () => this.#filters.latency,
    rebase: () => this.#load.rebase(),
    close: () => (this.#isOpen = false),
  };

  /** `channels` is how many have filters of their own; 0 if all are mixed down. */
  constructor({ processorOptions: { wasm, isPlayed, interval, channels = 0 } }) {
    super();
    this.#load = new Load(sampleRate, isPlayed);
    this.#interval = this.#untilReport = Math.round(interval * sampleRate);
    if (wasm) this.#wasm = moduleOf(wasm);
    this.#areApart = channels > 0;
    this.#signals = Array.from({ length: channels || 1 }, () => new Float32Array(this.#block));
    const shared = {
      rate: sampleRate, block: this.#block,
      kernels: () => (this.#kernels ??= new ResamplerKernels(this.#wasm)),
      tell: (name, error) => this.port.postMessage({ type: "error", name, error: described(error) }),
    };
    this.#filters = new Filters({ ...shared, channels: channels || 1 });
    this.#analysers = new Analysers({ ...shared, post: (message) => this.port.postMessage(message) });
    this.port.onmessage = ({ data }) => this.#receive(data);
  }

  // --- what the host asks ---------------------------------------------------------------------------------------------

  #receive({ type, id, ...rest }) {
    try {
      this.port.postMessage({ type: "done", id, answer: this.#requests[type](rest) });
    } catch (error) {
      this.port.postMessage({ type: "failed", id, error: described(error) });
    }
  }

  /** `wasm` is another module for this plan alone. */
  #loadPlan({ name, plan, listens, samples, wasm = this.#wasm }) {
    const model = Model.loadSync(plan, { wasm, limits: AUDIO_LIMITS });
    const audio = audioOf(model, sampleRate);
    const isFilter = audio.kind === "filter";
    if (isFilter && this.#analysers.has(name)) throw new PlanError(`'${name}' is the name of an analyser`);
    if (!isFilter && this.#filters.has(name)) throw new PlanError(`'${name}' is the name of a filter`);
    if (isFilter) this.#filters.load(name, model, audio);
    else this.#analysers.load(name, model, audio, listens, samples);
    return audio;
  }

  // --- audio; nothing here allocates but what is posted -----------------------------------------------------------------

  process(inputs, outputs) {
    const output = outputs[0];
    const length = output[0].length;
    this.#load.begin(currentFrame, length);
    for (let from = 0; from < length; from += this.#block) {
      this.#processPart(inputs[0], output, from, Math.min(this.#block, length - from));
    }
    this.#load.end();
    this.#untilReport -= length;
    if (this.#untilReport <= 0) this.#report();
    return this.#isOpen;
  }

  #processPart(given, output, from, count) {
    const first = currentFrame + from;
    if (this.#areApart) this.#takeApart(given, from, count);
    else mixDown(given, from, this.#signals[0], count);
    this.#analyse("input", this.#signals, count, first, 0);
    const filtered = this.#filters.process(this.#signals, count);
    if (this.#analysers.listensTo("output")) this.#analyse("output", filtered, count, first, this.#filters.latency);
    for (let channel = 0; channel < output.length; channel++) {
      const signal = filtered[channel < filtered.length ? channel : 0];
      for (let i = 0; i < count; i++) output[channel][from + i] = signal[i];
    }
  }

  /** Channels that do not come are silent. */
  #takeApart(given, from, count) {
    for (let channel = 0; channel < this.#signals.length; channel++) {
      const signal = this.#signals[channel];
      const samples = given[channel];
      for (let i = 0; i < count; i++) signal[i] = samples ? samples[from + i] : 0;
    }
  }

  #analyse(listens, signals, count, first, late) {
    if (!this.#analysers.listensTo(listens)) return;
    if (signals.length > 1) mixDown(signals, 0, this.#heard, count);
    this.#analysers.process(listens, signals.length > 1 ? this.#heard : signals[0], count, first, late);
  }

  #report() {
    this.#untilReport += this.#interval;
    const report = this.#load.take();
    report.restarts = this.#filters.restarts + this.#analysers.restarts;
    this.port.postMessage(report);
  }
}

registerProcessor("webrnn-audio", AudioProcessor);
