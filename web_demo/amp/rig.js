// The way of the sound: an instrument, its gain, the amp on the audio thread, a level, the loudspeaker.

import { AudioModels } from "../host/audio.js";
import { DeviceError, Microphone, running, within } from "../sound/devices.js";
import { guitar } from "./guitar.js";

const AMP = "amp";
const COMPILING_MS = 60_000;
const PREVIEW_RATE = 48000;

const silent = () =>
  new DeviceError("the audio thread does not answer", "load the page again, or choose another output device.");
const gainOf = (decibels) => 10 ** (decibels / 20);

function bufferOf(context) {
  const samples = guitar(context.sampleRate);
  const buffer = new AudioBuffer({ length: samples.length, sampleRate: context.sampleRate });
  buffer.copyToChannel(samples, 0);
  return buffer;
}

/** The guitar and what an amp makes of it, rendered without a device, or why it is no amp: {dry, wet, rate, seconds, ms that it took}. */
export async function rendered(plan, drive, level) {
  const dry = guitar(PREVIEW_RATE);
  const context = new OfflineAudioContext(1, dry.length, PREVIEW_RATE);
  const audio = await AudioModels.create(context, {});
  const { kind } = await audio.load(AMP, plan);
  if (kind !== "filter") throw new Error("it gives numbers, not samples: an amp gives a sample for each");
  const source = new AudioBufferSourceNode(context, { buffer: bufferOf(context) });
  const [before, after] = [drive, level].map((decibels) => new GainNode(context, { gain: gainOf(decibels) }));
  source.connect(before).connect(audio.node).connect(after).connect(context.destination);
  source.start();
  const began = performance.now();
  const wet = (await context.startRendering()).getChannelData(0);
  return { dry, wet, rate: PREVIEW_RATE, seconds: dry.length / PREVIEW_RATE, ms: performance.now() - began };
}

export class Rig {
  #context;
  #audio;
  #drive;
  #level;
  #source = null;
  #microphone = new Microphone();
  #isLoaded = false;
  #isWet = true;
  #report = () => {};
  #gone = () => {};

  /** To be called where a person has pressed something. */
  static async start({ drive, level }) {
    const context = new AudioContext({ latencyHint: "interactive" });
    try {
      await running(context);
      const audio = await within(AudioModels.create(context, { interval: 0.2 }), silent, COMPILING_MS);
      return new Rig(context, audio, drive, level);
    } catch (error) {
      await context.close();
      throw error;
    }
  }

  constructor(context, audio, drive, level) {
    this.#context = context;
    this.#audio = audio;
    const node = (decibels) => new GainNode(context, { gain: gainOf(decibels) });
    const analyser = () =>
      new AnalyserNode(context, { fftSize: 2048, smoothingTimeConstant: 0.2, minDecibels: -95, maxDecibels: -25 });
    [this.#drive, this.#level] = [node(drive), node(level)];
    [this.before, this.after] = [analyser(), analyser()];
    this.#drive.connect(this.before).connect(audio.node).connect(this.#level).connect(this.after).connect(context.destination);
    audio.addEventListener("load", async ({ detail }) => {
      this.#report({ ...detail, latencyMs: (1000 * (await audio.latency())) / context.sampleRate });
    });
    audio.addEventListener("error", ({ detail }) => this.#report({ error: detail.error }));
    context.addEventListener("statechange", () => this.#source && context.state !== "running" && this.#gone());
  }

  set drive(decibels) {
    this.#drive.gain.setTargetAtTime(gainOf(decibels), this.#context.currentTime, 0.02);
  }

  set level(decibels) {
    this.#level.gain.setTargetAtTime(gainOf(decibels), this.#context.currentTime, 0.02);
  }

  /** Heard with the same latency either way, and faded. */
  set wet(isOn) {
    this.#isWet = isOn;
    if (this.#isLoaded) this.#audio.bypass(AMP, !isOn);
  }

  /** Takes the plan of an amp, also while one plays: it is faded in. */
  async load(plan) {
    await within(this.#audio.load(AMP, plan), silent, COMPILING_MS);
    this.#isLoaded = true;
    this.wet = this.#isWet;
  }

  /** `source` is "guitar" or "instrument", what is connected to the microphone's input. */
  async play(source, { report, gone }) {
    await running(this.#context);
    const node = source === "guitar" ? this.#guitar() : await this.#microphone.open(this.#context, 1, gone);
    this.#report = report;
    this.#gone = gone;
    this.#source = node;
    node.connect(this.#drive);
    if (source === "guitar") node.start();
  }

  #guitar() {
    return new AudioBufferSourceNode(this.#context, { buffer: bufferOf(this.#context), loop: true });
  }

  async stop() {
    this.#report = this.#gone = () => {};
    this.#source?.disconnect();
    this.#source = null;
    this.#microphone.close();
    await within(this.#context.suspend(), silent).catch(() => {}); // without a device nobody answers
  }

  async close() {
    await this.stop();
    await this.#audio.close().catch(() => {});
    await this.#context.close();
  }
}
