// The AudioWorkletProcessor "webrnn-audio": runs audio plans on the audio thread. audio.js is its host.
//
// The signal, one channel, goes through the filters in the order in which they were loaded; analysers listen to it before or
// behind them. A bad plan is answered with an error, and audio goes on.

import { Load } from "./audio_load.js";
import { AUDIO_LIMITS, AnalyserRunner, FilterRunner, audioOf } from "./audio_runner.js";
import { FilterSlot } from "./audio_slot.js";
import { Model } from "./model.js";
import { PlanError } from "./plan_file.js";
import { described } from "./thread_errors.js";

const QUANTUM = 128;

const moduleOf = (wasm) => (wasm instanceof WebAssembly.Module ? wasm : new WebAssembly.Module(wasm));

class AudioProcessor extends AudioWorkletProcessor {
  #wasm;
  #filters = []; // {name, slot}
  #analysers = []; // {name, listens, runner}
  #block = globalThis.renderQuantumSize ?? QUANTUM; // the most samples that are taken at a time
  #input = new Float32Array(this.#block);
  #signals = [new Float32Array(this.#block), new Float32Array(this.#block)];
  #first = 0; // of these samples, in the time of the context
  #load;
  #interval;
  #untilReport;
  #isOpen = true;
  #requests = {
    wasm: ({ wasm }) => (this.#wasm = moduleOf(wasm)),
    plan: (request) => this.#loadPlan(request),
    bypass: ({ name, isOn }) => this.#slot(name).bypass(isOn),
    remove: ({ name }) => this.#remove(name),
    latency: () => this.#latency(),
    rebase: () => this.#load.rebase(),
    close: () => (this.#isOpen = false),
  };

  constructor({ processorOptions: { wasm, isPlayed, interval } }) {
    super();
    this.#load = new Load(sampleRate, isPlayed);
    this.#interval = this.#untilReport = Math.round(interval * sampleRate);
    if (wasm) this.#wasm = moduleOf(wasm);
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
    if (audio.kind === "filter") this.#loadFilter(name, model, audio);
    else this.#loadAnalyser(name, model, audio, listens, samples);
    return audio;
  }

  #loadFilter(name, model, audio) {
    if (this.#analysers.some((row) => row.name === name)) throw new PlanError(`'${name}' is the name of an analyser`);
    const runner = new FilterRunner(model, audio, this.#block);
    let row = this.#filters.find((each) => each.name === name);
    if (!row) {
      row = { name, slot: new FilterSlot(this.#block, (error) => this.#tell(name, error)) };
      this.#filters.push(row);
    }
    row.slot.load(runner);
  }

  #loadAnalyser(name, model, audio, listens, withSamples) {
    if (this.#filters.some((row) => row.name === name)) throw new PlanError(`'${name}' is the name of a filter`);
    if (listens !== "input" && listens !== "output") throw new PlanError(`it can listen to "input" or "output", not ${listens}`);
    const message = { type: "result", name, sample: 0, values: new Float32Array(audio.size) };
    if (withSamples) message.samples = new Float32Array(audio.hop);
    const report = (values, index, samples) => {
      if (withSamples) message.samples.set(samples.subarray(audio.frame - audio.hop));
      if (values.length !== message.values.length) message.values = new Float32Array(values.length); // in a warm-up
      message.values.set(values);
      message.sample = this.#first + index + 1 - (listens === "output" ? this.#latency() : 0);
      this.port.postMessage(message);
    };
    const runner = new AnalyserRunner(model, audio, report);
    this.#analysers = [...this.#analysers.filter((row) => row.name !== name), { name, listens, runner }];
  }

  #remove(name) {
    const others = this.#analysers.filter((row) => row.name !== name);
    if (others.length === this.#analysers.length) this.#slot(name).load(null);
    this.#analysers = others;
  }

  #slot(name) {
    const row = this.#filters.find((each) => each.name === name);
    if (!row) throw new PlanError(`there is no filter '${name}'`);
    return row.slot;
  }

  /** Samples by which the output is later than the input. */
  #latency() {
    let latency = 0;
    for (let i = 0; i < this.#filters.length; i++) latency += this.#filters[i].slot.latency;
    return latency;
  }

  #tell(name, error) {
    this.port.postMessage({ type: "error", name, error: described(error) });
  }

  // --- audio; nothing here allocates but what is posted -----------------------------------------------------------------

  process(inputs, outputs) {
    const output = outputs[0];
    const length = output[0].length;
    this.#load.begin(currentFrame, length);
    for (let from = 0; from < length; from += this.#block) {
      this.#processPart(inputs[0][0], output, from, Math.min(this.#block, length - from));
    }
    this.#load.end();
    this.#untilReport -= length;
    if (this.#untilReport <= 0) this.#report();
    return this.#isOpen;
  }

  #processPart(given, output, from, count) {
    this.#first = currentFrame + from;
    let signal = this.#input;
    for (let i = 0; i < count; i++) signal[i] = given ? given[from + i] : 0;
    this.#analyse("input", signal, count);
    for (let i = 0; i < this.#filters.length; i++) {
      const filtered = this.#signals[i & 1];
      this.#filters[i].slot.process(signal, filtered, count);
      signal = filtered;
    }
    this.#analyse("output", signal, count);
    for (let channel = 0; channel < output.length; channel++) {
      for (let i = 0; i < count; i++) output[channel][from + i] = signal[i];
    }
  }

  #analyse(listens, signal, count) {
    const analysers = this.#analysers; // as they are now, if one is taken out
    for (let i = 0; i < analysers.length; i++) {
      const analyser = analysers[i];
      if (analyser.listens !== listens) continue;
      try {
        analyser.runner.process(signal, count);
      } catch (error) {
        this.#remove(analyser.name);
        this.#tell(analyser.name, error);
      }
    }
  }

  #report() {
    this.#untilReport += this.#interval;
    const report = this.#load.take();
    report.restarts = 0;
    for (const { slot } of this.#filters) report.restarts += slot.runner?.restarts ?? 0;
    for (const { runner } of this.#analysers) report.restarts += runner.restarts;
    this.port.postMessage(report);
  }
}

registerProcessor("webrnn-audio", AudioProcessor);
