// Audio plans in an AudioWorklet: the page's side. Types: audio_models.d.ts.
//
//   const context = new AudioContext(); // of any rate: plans of other rates are resampled
//   const audio = await AudioModels.create(context);
//   await audio.load("denoise", "dtln.rnn");
//   await audio.load("vad", "silero.rnn");
//   source.connect(audio.node).connect(context.destination);
//   audio.addEventListener("result", ({ detail: { name, sample, values } }) => ...);

import { warmUp, warmUpResamplers } from "./audio_warmup.js";
import { fileUrl, notLoaded } from "./files.js";
import { bytesOf, chooseVariant, compile, moduleUrl, planBytes } from "./instance.js";
import { ModelError, otherModule } from "./plan_file.js";
import { errorOf } from "./thread_errors.js";

const PROCESSOR = () => new URL("./audio_processor.js", import.meta.url);

export class AudioModels extends EventTarget {
  #requests = new Map(); // id -> {resolve, reject}
  #lastId = 0;
  #wasm; // the module or its bytes
  #chosen; // which one it is, {variant, isFull}
  #others; // gives another one, unless the page gave a module of its own
  #isPlayed; // as it is made, so that time matters
  #underruns = null; // what the context had counted before
  #failure = null;
  #stateChanged = () => this.#ask("rebase").catch(() => {});

  /** `interval` is the time in seconds between reports of the load. */
  static async create(context, options = {}) {
    const { variant, wasm, interval = 0.25, processor, sendBytes = false, channels = "mono", channelCount = 2 } = options;
    if (channels !== "mono" && channels !== "each") throw new TypeError(`channels is "mono" or "each", not ${channels}`);
    if (!Number.isInteger(channelCount) || channelCount < 1 || channelCount > 32) {
      throw new TypeError(`channelCount is a number from 1 to 32, not ${channelCount}`);
    }
    const chosen = { variant: wasm ? variant : chooseVariant(variant), isFull: false };
    const url = processor ?? fileUrl("audio_processor.js", PROCESSOR);
    const failed = (cause) => {
      throw new Error(notLoaded(typeof url === "string" ? new URL(url, globalThis.location.href) : url, cause.message), { cause });
    };
    const added = context.audioWorklet.addModule(url).catch(failed);
    const [module] = await Promise.all([compile(chosen, { wasm }), added]);
    const isPlayed = typeof context.suspend === "function" && typeof context.startRendering !== "function";
    const shared = { isPlayed, interval, channels: channels === "each" ? channelCount : 0 };
    if (!sendBytes) {
      try {
        return new AudioModels(context, { ...shared, wasm: module }, chosen, wasm ? null : compile);
      } catch (error) {
        if (error.name !== "DataCloneError") throw error; // here modules cannot be sent to the audio thread
      }
    }
    const bytes = await bytesOf(wasm ?? moduleUrl(chosen));
    const others = wasm ? null : (other) => bytesOf(moduleUrl(other));
    return new AudioModels(context, { ...shared, wasm: bytes }, chosen, others);
  }

  constructor(context, processorOptions, chosen, others) {
    super();
    this.#wasm = processorOptions.wasm;
    this.#chosen = chosen;
    this.#others = others;
    this.#isPlayed = processorOptions.isPlayed;
    this.context = context;
    // Without a count of its own the output has as many channels as the input.
    const count = processorOptions.channels;
    const each = { outputChannelCount: [count], channelCount: count, channelCountMode: "explicit" };
    const options = { numberOfInputs: 1, numberOfOutputs: 1, ...(count ? each : { channelCountMode: "max" }), processorOptions };
    this.node = new AudioWorkletNode(context, "webrnn-audio", options);
    this.node.port.onmessage = ({ data }) => this.#receive(data);
    this.node.onprocessorerror = () => this.#fail(new ModelError("the audio thread has given up"));
    context.addEventListener("statechange", this.#stateChanged);
  }

  async load(name, source, { listens = "input", samples = false } = {}) {
    const plan = planBytes(await bytesOf(source)); // not on the audio thread
    for (let chosen = this.#chosen, wasm; ; wasm = await this.#others(chosen)) {
      try {
        return await this.#load({ name, plan, listens, samples: Boolean(samples), wasm });
      } catch (error) {
        if (!this.#others) throw error;
        chosen = otherModule(chosen, error);
      }
    }
  }

  async #load(request) {
    const wasm = request.wasm ?? this.#wasm;
    // What is compiled of a module here is used by the audio thread too.
    const isShared = this.#isPlayed && wasm instanceof WebAssembly.Module;
    if (isShared) await this.#warmUp(request.plan, wasm);
    return this.#ask("plan", request);
  }

  async #warmUp(plan, wasm) {
    const { sampleRate } = this.context;
    const audio = await warmUp(plan, wasm, sampleRate);
    if (this.#wasm instanceof WebAssembly.Module) warmUpResamplers(this.#wasm, audio, sampleRate);
  }

  remove(name) {
    return this.#ask("remove", { name });
  }

  bypass(name, isOn = true) {
    return this.#ask("bypass", { name, isOn: Boolean(isOn) });
  }

  mix(name, share) {
    return this.#ask("mix", { name, share });
  }

  latency() {
    return this.#ask("latency");
  }

  async close() {
    this.context.removeEventListener("statechange", this.#stateChanged);
    this.node.disconnect();
    if (this.context.state !== "closed") await this.#ask("close");
  }

  #ask(type, rest = {}) {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      if (this.#failure) throw this.#failure;
      this.#requests.set(id, { resolve, reject });
      this.node.port.postMessage({ type, id, ...rest });
    });
  }

  #receive({ type, id, ...rest }) {
    const request = this.#requests.get(id);
    this.#requests.delete(id);
    if (type === "done") request.resolve(rest.answer);
    else if (type === "failed") request.reject(errorOf(rest.error));
    else if (type === "load") this.#emit(type, { ...rest, missed: this.#missed(rest) });
    else if (type === "error") this.#emit("error", { name: rest.name, error: errorOf(rest.error) });
    else this.#emit(type, rest);
  }

  /** What the context counts itself, where it does; otherwise what the audio thread has found. */
  #missed({ missed, budget }) {
    const stats = this.context.playbackStats;
    if (!stats) return missed;
    this.#underruns ??= { events: stats.underrunEvents, duration: stats.underrunDuration };
    const events = stats.underrunEvents - this.#underruns.events;
    return Math.max(events, Math.ceil(((stats.underrunDuration - this.#underruns.duration) * 1000) / budget));
  }

  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  #fail(error) {
    this.#failure = error;
    for (const { reject } of this.#requests.values()) reject(error);
    this.#requests.clear();
    this.#emit("error", { name: null, error });
  }
}
