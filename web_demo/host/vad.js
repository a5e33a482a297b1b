// What @ricky0123/vad-web exports, on webrnn: moving over is changing an import. Types: vad.d.ts.

import { AudioError, requireFunction, withDefaults } from "./audio_source.js";
import { detectSpeech } from "./speech.js";
import { IN_FRAMES, Message, SPEECH_DEFAULTS, SPEECH_FRAME, SPEECH_RATE, SpeechFrames, speechOptions } from "./speech_frames.js";
import { framesOf, means, speechModel } from "./speech_segments.js";

export { AudioError } from "./audio_source.js";
export { Message } from "./speech_frames.js";

export const DEFAULT_MODEL = "v6";
const MODELS = ["v5", "v6", "legacy"];
const VAD_FRAME_MS = (1000 * SPEECH_FRAME) / SPEECH_RATE;
const LEGACY_FRAME = 1536;
/** Where vad-web finds its files and how it runs them: there is nothing to say about that here. */
const WITHOUT_MEANING = ["baseAssetPath", "onnxWASMBasePath", "ortConfig", "workletOptions", "processorType", "modelURL", "modelFetcher", "workletURL"];
const VAD_CALLBACKS = ["onFrameProcessed", "onVADMisfire", "onSpeechStart", "onSpeechEnd", "onSpeechRealStart"];
const STREAM_FUNCTIONS = ["getStream", "pauseStream", "resumeStream"];

const CONSTRAINTS = { audio: { channelCount: 1, echoCancellation: true, autoGainControl: true, noiseSuppression: true } };

async function openMicrophone() {
  const devices = globalThis.navigator?.mediaDevices;
  if (!devices) throw new AudioError("denied", "MicVAD: there are no microphones here: the page needs https, or localhost");
  return devices.getUserMedia(CONSTRAINTS);
}

const unset = (names) => Object.fromEntries(names.map((name) => [name, undefined]));

const SHARED_OPTIONS = {
  ...SPEECH_DEFAULTS,
  ...unset(Object.keys(IN_FRAMES)),
  ...unset(WITHOUT_MEANING),
  frameSamples: undefined,
  model: undefined,
  weights: undefined,
};

export const getDefaultRealTimeVADOptions = (model = DEFAULT_MODEL) => ({
  ...SPEECH_DEFAULTS,
  ...Object.fromEntries(VAD_CALLBACKS.map((name) => [name, () => {}])),
  model,
  getStream: openMicrophone,
  pauseStream: async (stream) => stream.getTracks().forEach((track) => track.stop()),
  resumeStream: openMicrophone,
  startOnLoad: true,
});

/** The rules of a segment. Frames of earlier versions are 1536 samples long, 96 ms, unless another model was chosen. */
function rulesOf(who, given, known) {
  const { model, frameSamples } = withDefaults(who, given, known);
  if (model !== undefined && !MODELS.includes(model)) {
    throw new TypeError(`${who}: there is no model '${model}'; there are ${MODELS.join(", ")}, which are Silero v6 here`);
  }
  const samples = frameSamples ?? (model === "v5" || model === "v6" ? SPEECH_FRAME : LEGACY_FRAME);
  const rules = Object.fromEntries(Object.entries(given).filter(([name]) => name in SPEECH_DEFAULTS || name in IN_FRAMES));
  return speechOptions(who, rules, (1000 * samples) / SPEECH_RATE);
}

export class MicVAD {
  listening = false;
  errored = null;
  #rules;
  #detector = null;
  #stream = null;
  #state = "new"; // "starting", "started", "destroyed", "errored"

  static async new(options = {}) {
    const defaults = getDefaultRealTimeVADOptions();
    const known = { ...SHARED_OPTIONS, ...defaults, model: undefined, stream: undefined, additionalAudioConstraints: undefined, audioContext: undefined, audio: undefined };
    const rules = rulesOf("MicVAD", options, known);
    for (const name of [...VAD_CALLBACKS, ...STREAM_FUNCTIONS]) requireFunction("MicVAD", name, options[name]);
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    const vad = new MicVAD({ ...defaults, ...given, ...rules }, rules);
    await detectSpeech.prefetch({ weights: given.weights });
    if (vad.options.startOnLoad) await vad.start();
    return vad;
  }

  constructor(options, rules) {
    const { stream, additionalAudioConstraints } = options;
    this.options = options;
    this.#rules = rules;
    // As earlier versions: a stream of one's own, or more constraints.
    if (stream) this.options.getStream = async () => stream;
    else if (additionalAudioConstraints) {
      const audio = { ...CONSTRAINTS.audio, ...additionalAudioConstraints };
      this.options.getStream = this.options.resumeStream = () => navigator.mediaDevices.getUserMedia({ audio });
    }
  }

  async start() {
    if (this.#state === "destroyed") throw new AudioError("stopped", "MicVAD: it was destroyed; make a new one");
    if (this.#state === "starting" || this.listening) return;
    const isFirst = this.#state === "new" || this.#state === "errored";
    this.#state = "starting";
    try {
      const stream = isFirst ? this.options.getStream() : this.options.resumeStream(this.#stream);
      this.#detector = await detectSpeech(stream, this.#detectorOptions());
      this.#stream = await stream;
    } catch (error) {
      this.#state = "errored";
      this.errored = error.message;
      throw error;
    }
    if (this.#state === "destroyed") return this.#stop();
    this.#state = "started";
    this.errored = null;
    this.listening = true;
  }

  #detectorOptions() {
    const { audioContext, weights, audio } = this.options;
    const callbacks = Object.fromEntries(VAD_CALLBACKS.map((name) => [name, this.options[name]]));
    return { ...callbacks, ...this.#rules, weights, audio, context: audioContext };
  }

  async pause() {
    if (!this.listening) return;
    this.listening = false;
    await this.#stop();
  }

  async #stop() {
    const detector = this.#detector;
    this.#detector = null;
    await detector?.stop();
    if (this.#stream) await this.options.pauseStream(this.#stream);
  }

  async destroy() {
    if (this.#state === "destroyed") return;
    this.#state = "destroyed";
    this.listening = false;
    await this.#stop();
  }

  setOptions(update) {
    const known = { ...SPEECH_DEFAULTS, ...unset(Object.keys(IN_FRAMES)), frameSamples: undefined, model: undefined };
    const kept = { ...this.#rules };
    for (const [inFrames, inMs] of Object.entries(IN_FRAMES)) if (update[inFrames] !== undefined) delete kept[inMs];
    this.#rules = rulesOf("MicVAD", { ...kept, model: this.options.model, ...update }, known);
    Object.assign(this.options, this.#rules);
    this.#detector?.setOptions(this.#rules);
  }
}

export class NonRealTimeVAD {
  frameSamples = SPEECH_FRAME;
  #model;

  static async new(options = {}) {
    const rules = rulesOf("NonRealTimeVAD", options, SHARED_OPTIONS);
    const model = await speechModel("NonRealTimeVAD", { model: "silero", weights: options.weights });
    return new NonRealTimeVAD({ ...options, ...rules }, model);
  }

  constructor(options, model) {
    this.options = options;
    this.#model = model;
  }

  /** {audio, start, end} of each segment; times are in milliseconds. */
  async *run(inputAudio, sampleRate) {
    const samples = inputAudio instanceof Float32Array ? inputAudio : Float32Array.from(inputAudio);
    const step = sampleRate / SPEECH_RATE;
    if (!(step >= 1)) throw new TypeError(`NonRealTimeVAD: a rate of at least ${SPEECH_RATE} Hz is expected, not ${sampleRate}`);
    const happened = [];
    const frames = new SpeechFrames(speechOptions("NonRealTimeVAD", this.options, VAD_FRAME_MS), VAD_FRAME_MS, (event) => happened.push(event));
    this.#model.reset();
    let [start, index] = [0, 0];
    const whole = step === 1 ? samples : means(samples, step);
    for (const frame of framesOf(whole.subarray(0, whole.length - (whole.length % SPEECH_FRAME)))) {
      frames.process(this.#model.probability(frame), frame);
      for (const { msg, audio } of happened.splice(0)) {
        if (msg === Message.SpeechStart) start = index * VAD_FRAME_MS;
        else if (msg === Message.SpeechEnd) yield { audio, start, end: (index + 1) * VAD_FRAME_MS };
      }
      index++;
    }
    frames.end();
    for (const { msg, audio } of happened) if (msg === Message.SpeechEnd) yield { audio, start, end: index * VAD_FRAME_MS };
  }
}

// --- utils ------------------------------------------------------------------------------------------------------------

const minFramesForTargetMS = (targetDuration, frameSamples, sr = SPEECH_RATE) => Math.ceil((targetDuration * sr) / 1000 / frameSamples);

function arrayBufferToBase64(buffer) {
  return btoa(Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join(""));
}

/** A wav file; `format` 3 is float32, 1 is 16-bit numbers. */
function encodeWAV(samples, format = 3, sampleRate = SPEECH_RATE, numChannels = 1, bitDepth = format === 1 ? 16 : 32) {
  if ((format !== 3 || bitDepth !== 32) && (format !== 1 || bitDepth !== 16)) {
    throw new TypeError(`encodeWAV: format 3 has 32 bits and format 1 has 16, not ${format} with ${bitDepth}`);
  }
  const size = bitDepth / 8;
  const view = new DataView(new ArrayBuffer(44 + samples.length * size));
  const write = (at, text) => [...text].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
  write(0, "RIFF");
  view.setUint32(4, 36 + samples.length * size, true);
  write(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, format, true);
  view.setUint16(22, numChannels, true);
  view.setUint32(24, sampleRate, true);
  view.setUint32(28, sampleRate * numChannels * size, true);
  view.setUint16(32, numChannels * size, true);
  view.setUint16(34, bitDepth, true);
  write(36, "data");
  view.setUint32(40, samples.length * size, true);
  for (let i = 0; i < samples.length; i++) {
    const sample = Math.max(-1, Math.min(1, samples[i]));
    if (format === 3) view.setFloat32(44 + 4 * i, samples[i], true);
    else view.setInt16(44 + 2 * i, sample < 0 ? sample * 0x8000 : sample * 0x7fff, true);
  }
  return view.buffer;
}

/** The sum of the channels of a file, and its rate: that at which the browser decodes. */
async function audioFileToArray(audioFileData) {
  const context = new OfflineAudioContext(1, 1, 44100);
  const decoded = await context.decodeAudioData(await audioFileData.arrayBuffer());
  const audio = new Float32Array(decoded.length);
  for (let channel = 0; channel < decoded.numberOfChannels; channel++) {
    decoded.getChannelData(channel).forEach((sample, i) => (audio[i] += sample));
  }
  return { audio, sampleRate: decoded.sampleRate };
}

export const utils = { audioFileToArray, minFramesForTargetMS, arrayBufferToBase64, encodeWAV };
