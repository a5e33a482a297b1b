// The sound itself: a source, the networks on the audio thread, the loudspeaker, and analysers for the pictures.

import { AudioModels } from "../host/audio.js";
import { download } from "../page/files.js";
import { DeviceError, Microphone, running, within } from "../sound/devices.js";

const DENOISER = "denoiser";
const DETECTOR = "detector";
const LEFT = -0.5;
const COMPILING_MS = 60_000; // longer than the slowest machine takes

function analyserOf(context) {
  const fftSize = 2 ** Math.round(Math.log2((512 * context.sampleRate) / 16000)); // 32 ms
  return new AnalyserNode(context, { fftSize, smoothingTimeConstant: 0.2, minDecibels: -95, maxDecibels: -25 });
}

const silent = () =>
  new DeviceError("the audio thread does not answer", "load the page again, or choose another rate or output device.");

export class Sound {
  #context;
  #audio;
  #clip = null;
  #source = null;
  #microphone = new Microphone();
  #isDenoising = true;
  #hasDenoiser = false;
  #report = () => {};
  #gone = () => {};

  /** Starts the audio thread; to be called where a person has pressed something. `rate` is null for the device's own. */
  static async start({ rate, channels }) {
    const context = new AudioContext({ ...(rate ? { sampleRate: rate } : {}), latencyHint: "interactive" });
    try {
      await running(context);
      const audio = await within(AudioModels.create(context, { interval: 0.2, channels: channels > 1 ? "each" : "mono" }), silent, COMPILING_MS);
      return new Sound(context, audio, channels);
    } catch (error) {
      await context.close();
      throw error;
    }
  }

  constructor(context, audio, channels) {
    this.#context = context;
    this.#audio = audio;
    this.channels = channels;
    this.before = analyserOf(context);
    this.after = analyserOf(context);
    this.before.connect(audio.node).connect(this.after).connect(context.destination);
    audio.addEventListener("load", async ({ detail }) => {
      this.#report({ ...detail, latencyMs: await this.#latencyMs() }); // it changes once another plan has taken over
    });
    audio.addEventListener(
      "result",
      ({ detail }) => detail.name === DETECTOR && this.#report({ probability: detail.values[0] }),
    );
    audio.addEventListener("error", ({ detail }) => this.#report({ error: detail.error }));
    context.addEventListener("statechange", () => this.#source && context.state !== "running" && this.#gone());
  }

  get rate() {
    return this.#context.sampleRate;
  }

  get denoising() {
    return this.#isDenoising;
  }

  /** Heard with the same latency either way, and faded. */
  set denoising(isOn) {
    this.#isDenoising = isOn;
    if (this.#hasDenoiser) this.#audio.bypass(DENOISER, !isOn);
  }

  async #latencyMs() {
    return ((await this.#audio.latency()) / this.rate) * 1000;
  }

  /** Takes these plans, {denoiser, detector} or one of them, also while it plays. */
  async load(plans) {
    for (const name of [DENOISER, DETECTOR]) {
      if (plans[name]) await within(this.#audio.load(name, plans[name]), silent, COMPILING_MS);
    }
    this.#hasDenoiser ||= Boolean(plans[DENOISER]);
    this.denoising = this.#isDenoising;
  }

  /**
   * `source` is "clip" (the file `clip`) or "microphone"; `report` gets reports of the load, {probability} and {error};
   * `gone()` is called when the device is.
   */
  async play(source, clip, { report, gone }) {
    await running(this.#context);
    const node = source === "microphone" ? await this.#microphone.open(this.#context, this.channels, gone) : await this.#recording(clip);
    this.#report = report;
    this.#gone = gone;
    this.#source = node;
    if (source === "clip") {
      this.#placed(node).connect(this.before);
      node.start();
    } else node.connect(this.before);
  }

  async #recording(clip) {
    this.#clip ??= await this.#context.decodeAudioData((await download(clip)).buffer);
    return new AudioBufferSourceNode(this.#context, { buffer: this.#clip, loop: true });
  }

  /** Where there are two channels the clip stands to the left, so that they differ. */
  #placed(node) {
    if (this.channels < 2) return node;
    return node.connect(new StereoPannerNode(this.#context, { pan: LEFT }));
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
