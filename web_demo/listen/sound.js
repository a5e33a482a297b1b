// The sound itself: a source, the networks on the audio thread, the loudspeaker, and analysers for the pictures.

import { AudioModels } from "../host/audio.js";
import { download } from "../page/files.js";

const RATE = 16000; // of both models; the browser converts
const QUIET = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
const DENOISER = "denoiser";
const DETECTOR = "detector";

function analyserOf(context) {
  return new AnalyserNode(context, { fftSize: 512, smoothingTimeConstant: 0.2, minDecibels: -95, maxDecibels: -25 });
}

export class Sound {
  #context;
  #audio;
  #clip;
  #plans;
  #source = null;
  #tracks = [];
  #isDenoising = true;
  #report = () => {};

  /** Downloads the plans and the clip and starts the audio thread; to be called where a person has pressed something. */
  static async load(files, progress) {
    const context = new AudioContext({ sampleRate: RATE, latencyHint: "interactive" });
    try {
      const [denoiser, detector, clip] = [files.denoiser, files.detector, files.clip].map((path) =>
        download(path, progress),
      );
      const plans = { [DENOISER]: await denoiser, [DETECTOR]: await detector };
      const recording = await context.decodeAudioData((await clip).buffer);
      progress("Compiling the models on the audio thread", null);
      const audio = await AudioModels.create(context, { interval: 0.2 });
      const sound = new Sound(context, audio, recording, plans);
      await sound.restore();
      return sound;
    } catch (error) {
      await context.close();
      throw error;
    }
  }

  constructor(context, audio, clip, plans) {
    this.#context = context;
    this.#audio = audio;
    this.#clip = clip;
    this.#plans = plans;
    this.latencyMs = 0;
    this.before = analyserOf(context);
    this.after = analyserOf(context);
    this.before.connect(audio.node).connect(this.after).connect(context.destination);
    audio.addEventListener("load", ({ detail }) =>
      this.#report({ msPerQuantum: detail.ms, budgetMs: detail.budget, missed: detail.missed }),
    );
    audio.addEventListener(
      "result",
      ({ detail }) => detail.name === DETECTOR && this.#report({ probability: detail.values[0] }),
    );
    audio.addEventListener("error", ({ detail }) => this.#report({ error: detail.error }));
  }

  get denoising() {
    return this.#isDenoising;
  }

  set denoising(isOn) {
    this.#isDenoising = isOn;
    this.#audio.bypass(DENOISER, !isOn);
  }

  /** Puts another audio plan in the place of the denoiser or, if it is an "analyser", of the detector. */
  exchange(plan, kind) {
    return this.#load({ [kind === "analyser" ? DETECTOR : DENOISER]: plan });
  }

  /** The plans that were there first. */
  restore() {
    return this.#load(this.#plans);
  }

  async #load(plans) {
    for (const [name, plan] of Object.entries(plans)) await this.#audio.load(name, plan);
    this.latencyMs = ((await this.#audio.latency()) / RATE) * 1000;
  }

  /** `source` is "clip" or "microphone"; `report` gets {msPerQuantum, budgetMs, missed}, {probability} and {error}. */
  async start(source, { report, ended }) {
    this.#source = source === "microphone" ? await this.#microphone() : this.#recording(ended);
    this.#report = report;
    this.#source.connect(this.before);
    await this.#context.resume();
    if (source === "clip") this.#source.start();
  }

  #recording(ended) {
    const node = new AudioBufferSourceNode(this.#context, { buffer: this.#clip, loop: true });
    node.onended = ended;
    return node;
  }

  async #microphone() {
    if (!navigator.mediaDevices)
      throw new Error("this browser gives microphones only to pages that are served safely (https, or this machine)");
    const stream = await navigator.mediaDevices.getUserMedia({ audio: { ...QUIET, channelCount: 1 } });
    this.#tracks = stream.getTracks();
    return new MediaStreamAudioSourceNode(this.#context, { mediaStream: stream });
  }

  async stop() {
    this.#report = () => {};
    if (this.#source) this.#source.onended = null;
    this.#source?.disconnect();
    this.#source = null;
    for (const track of this.#tracks) track.stop();
    this.#tracks = [];
    await this.#context.suspend();
  }
}
