// From probabilities of speech, frame by frame, to what was said: when it begins and ends, and its samples.
// The rules, names and defaults are those of @ricky0123/vad-web, so that its users find what they know.

import { requireNumber } from "./audio_source.js";

export const SPEECH_RATE = 16000;
export const SPEECH_FRAME = 512; // samples

/** What happens, as vad-web names it. */
export const Message = {
  AudioFrame: "AUDIO_FRAME",
  SpeechStart: "SPEECH_START",
  VADMisfire: "VAD_MISFIRE",
  SpeechEnd: "SPEECH_END",
  SpeechStop: "SPEECH_STOP",
  SpeechRealStart: "SPEECH_REAL_START",
  FrameProcessed: "FRAME_PROCESSED",
};

export const SPEECH_DEFAULTS = {
  positiveSpeechThreshold: 0.3,
  negativeSpeechThreshold: 0.25,
  preSpeechPadMs: 800,
  redemptionMs: 1400,
  minSpeechMs: 400,
  submitUserSpeechOnPause: false,
};

/** The same numbers in frames, as earlier versions of vad-web have them. */
export const IN_FRAMES = {
  preSpeechPadFrames: "preSpeechPadMs",
  redemptionFrames: "redemptionMs",
  minSpeechFrames: "minSpeechMs",
};

/** Options in milliseconds, checked; those in frames are of `frameMs` each. */
export function speechOptions(who, given, frameMs) {
  const options = { ...SPEECH_DEFAULTS };
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (Object.hasOwn(IN_FRAMES, name)) {
      const inMs = IN_FRAMES[name];
      if (given[inMs] !== undefined) throw new TypeError(`${who}: ${name} and ${inMs} say the same: give one of them`);
      options[inMs] = requireNumber(who, name, value, 0) * frameMs;
    } else if (Object.hasOwn(SPEECH_DEFAULTS, name)) options[name] = value;
  }
  requireNumber(who, "positiveSpeechThreshold", options.positiveSpeechThreshold, 0, 1);
  const most = options.positiveSpeechThreshold;
  requireNumber(who, "negativeSpeechThreshold", options.negativeSpeechThreshold, 0, most);
  for (const name of Object.values(IN_FRAMES)) requireNumber(who, name, options[name], 0);
  return options;
}

function joined(frames) {
  const samples = new Float32Array(frames.reduce((length, { frame }) => length + frame.length, 0));
  let at = 0;
  for (const { frame } of frames) {
    samples.set(frame, at);
    at += frame.length;
  }
  return samples;
}

export class SpeechFrames {
  speaking = false;
  #options;
  #frameMs;
  #frames = []; // {frame, isSpeech}, those that a segment would have
  #redemption = 0; // frames without speech behind the last with some
  #speech = 0; // frames with speech since the segment began
  #isReal = false; // long enough to be no misfire
  #emit;

  /** `emit({msg, ...})` is told what happens. */
  constructor(options, frameMs, emit) {
    this.#options = options;
    this.#frameMs = frameMs;
    this.#emit = emit;
  }

  get options() {
    return this.#options;
  }

  setOptions(options) {
    this.#options = options;
  }

  #inFrames(name) {
    return Math.floor(this.#options[name] / this.#frameMs);
  }

  process(isSpeech, frame) {
    const { positiveSpeechThreshold, negativeSpeechThreshold } = this.#options;
    const isAbove = isSpeech >= positiveSpeechThreshold;
    this.#emit({ msg: Message.FrameProcessed, probs: { isSpeech, notSpeech: 1 - isSpeech }, frame });
    this.#frames.push({ frame, isSpeech: isAbove });
    if (isAbove) {
      this.#speech++;
      this.#redemption = 0;
    }
    if (isAbove && !this.speaking) {
      this.speaking = true;
      this.#emit({ msg: Message.SpeechStart });
    }
    if (this.speaking && this.#speech === this.#inFrames("minSpeechMs") && !this.#isReal) {
      this.#isReal = true;
      this.#emit({ msg: Message.SpeechRealStart });
    }
    if (isSpeech < negativeSpeechThreshold && this.speaking && ++this.#redemption >= this.#inFrames("redemptionMs")) this.end();
    if (this.speaking) return;
    const kept = this.#inFrames("preSpeechPadMs");
    if (this.#frames.length > kept) this.#frames.splice(0, this.#frames.length - kept);
    this.#speech = 0;
  }

  /** Ends the segment, if there is one, as if silence had come. */
  end() {
    const [frames, { speaking }] = [this.#frames, this];
    this.reset();
    if (!speaking) return;
    const spoken = frames.filter((each) => each.isSpeech).length;
    if (spoken >= this.#inFrames("minSpeechMs")) this.#emit({ msg: Message.SpeechEnd, audio: joined(frames) });
    else this.#emit({ msg: Message.VADMisfire });
  }

  reset() {
    this.speaking = this.#isReal = false;
    this.#frames = [];
    this.#redemption = this.#speech = 0;
  }
}
