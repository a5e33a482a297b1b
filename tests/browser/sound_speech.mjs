// detectSpeech and MicVAD on a microphone that plays speech, and on a node: each function gives what was wrong.

import { AudioError, denoise, detectSpeech, segments } from "./audio.js";
import { MicVAD, utils } from "./vad.js";
import { SpeechFrames, speechOptions } from "./speech_frames.js";

const RATE = 16000;
const floats = async (name) => new Float32Array(await (await fetch(name)).arrayBuffer());
const microphone = () => navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
const RULES = { redemptionMs: 200, preSpeechPadMs: 64, minSpeechMs: 96, submitUserSpeechOnPause: true };

function check(found, isRight, text) {
  if (!isRight) found.push(text);
}

const isSame = (a, b) => a.length === b.length && a.every((number, i) => Object.is(number, b[i]));

/** Plays samples to `listen(source)` in an OfflineAudioContext. */
async function played(samples, listen) {
  const context = new OfflineAudioContext(1, samples.length, RATE);
  const sound = context.createBuffer(1, samples.length, RATE);
  sound.copyToChannel(samples, 0);
  const source = new AudioBufferSourceNode(context, { buffer: sound });
  const listener = await listen(source);
  source.start();
  await context.startRendering();
  await listener.stop();
}

/** A node in an OfflineAudioContext: the probabilities of Python, and the segments of the rules on them. */
export async function bits() {
  const found = [];
  const [noisy, probabilities] = [await floats("noisy.f32"), await floats("silero_int16.f32")];
  const [given, spoken, frames] = [[], [], []];
  const callbacks = {
    onFrame: ({ isSpeech }, frame) => given.push(isSpeech) && frames.push(frame),
    onSpeechEnd: (audio) => spoken.push(audio),
    onSpeechStart: () => {
      throw new Error("of the page"); // must not stop anything
    },
  };
  const errors = [];
  const onError = (event) => event.preventDefault() || errors.push(event.message);
  addEventListener("error", onError);
  await played(noisy, (source) => detectSpeech(source, { ...RULES, ...callbacks }));
  removeEventListener("error", onError);
  check(found, isSame(Float32Array.from(given), probabilities), `${given.length} probabilities`);
  check(found, frames.every((frame, i) => isSame(frame, noisy.subarray(512 * i, 512 * (i + 1)))), "frames are the samples");
  const expected = [];
  const rules = new SpeechFrames(speechOptions("test", RULES, 32), 32, ({ msg, audio }) => msg === "SPEECH_END" && expected.push(audio));
  probabilities.forEach((probability, i) => rules.process(probability, noisy.subarray(512 * i, 512 * (i + 1))));
  rules.end();
  check(found, expected.length > 0 && spoken.length === expected.length, `${spoken.length} of ${expected.length} segments`);
  check(found, spoken.every((audio, i) => isSame(audio, expected[i])), "what was said");
  check(found, errors.length >= expected.length && errors.every((text) => /of the page/.test(text)), `the page hears of its errors: ${errors}`);
  return found;
}

/** Behind a denoiser, in the same context. */
export async function chained() {
  const found = [];
  let count = 0;
  await played(await floats("noisy.f32"), async (source) => detectSpeech(await denoise(source), { onFrameProcessed: () => count++ }));
  check(found, count === 187, `${count} frames`);
  return found;
}

const until = async (condition, seconds = 20) => {
  for (let i = 0; i < seconds * 50 && !condition(); i++) await new Promise((resolve) => setTimeout(resolve, 20));
};

export async function live() {
  const found = [];
  const happened = [];
  const said = [];
  const speech = await detectSpeech(microphone(), {
    ...RULES,
    onSpeechStart: () => happened.push("start"),
    onSpeechEnd: (audio) => happened.push("end") && said.push(audio),
  });
  await until(() => said.length);
  check(found, happened[0] === "start" && happened.includes("end"), `${happened}`);
  check(found, said[0]?.length % 512 === 0 && said[0].some((sample) => Math.abs(sample) > 0.01), "samples");
  speech.setOptions({ positiveSpeechThreshold: 0.9, redemptionFrames: 4 });
  await speech.pause();
  const before = happened.length;
  await new Promise((resolve) => setTimeout(resolve, 300));
  check(found, happened.length === before && !speech.listening && !speech.speaking, "it pauses");
  await speech.resume();
  await speech.resume();
  check(found, speech.listening, "it listens again");
  await Promise.all([speech.stop(), speech.stop()]);
  const refused = await speech.resume().catch((error) => error);
  check(found, refused instanceof AudioError && refused.code === "stopped", `${refused}`);
  check(found, speech.context.state === "closed", "its context is closed");
  return found;
}

export async function ended() {
  const found = [];
  const [track] = (await microphone()).getAudioTracks();
  let isOver = false;
  const speech = await detectSpeech(track, { onEnded: () => (isOver = true) });
  track.dispatchEvent(new Event("ended"));
  await until(() => isOver, 5);
  check(found, isOver && speech.isStopped, "it ends with its track");
  track.stop();
  for (const [options, message] of [
    [{ onSpeechEnds: () => {} }, /no option 'onSpeechEnds'; there are onSpeechStart/],
    [{ onSpeechEnd: 3 }, /onSpeechEnd is a function, not number/],
    [{ redemptionMs: -1 }, /redemptionMs is a number of at least 0, not -1/],
    [{ model: "whisper" }, /no model 'whisper'/],
  ]) {
    const error = await detectSpeech(microphone(), options).catch((raised) => raised);
    check(found, error instanceof TypeError && message.test(error.message), `${message}: ${error}`);
  }
  const gone = await detectSpeech(track).catch((error) => error);
  check(found, gone.code === "ended", `${gone}`);
  return found;
}

/** As a page for vad-web uses it. */
export async function micVAD() {
  const found = [];
  const said = [];
  const vad = await MicVAD.new({
    model: "v5", baseAssetPath: "/", onnxWASMBasePath: "/", ...RULES,
    onSpeechEnd: (audio) => said.push(audio),
    getStream: microphone, resumeStream: microphone,
  });
  check(found, vad.listening, "startOnLoad");
  await until(() => said.length);
  check(found, said.length > 0, "speech");
  await vad.pause();
  await vad.pause();
  check(found, !vad.listening, "paused");
  vad.setOptions({ redemptionMs: 100 });
  await vad.start();
  check(found, vad.listening && vad.options.redemptionMs === 100, "started again");
  await vad.destroy();
  await vad.destroy();
  check(found, !vad.listening, "destroyed");
  const refused = await vad.start().catch((error) => error);
  check(found, refused.code === "stopped", `${refused}`);
  const later = await MicVAD.new({ startOnLoad: false, getStream: () => Promise.reject(new DOMException("no", "NotAllowedError")) });
  check(found, !later.listening, "not started");
  const denied = await later.start().catch((error) => error);
  check(found, denied.code === "denied" && /not allowed/.test(later.errored), `${denied}`);
  const { audio, sampleRate } = await utils.audioFileToArray(await (await fetch("noisy.wav")).blob());
  check(found, sampleRate === 44100 && Math.abs(audio.length / sampleRate - 6) < 0.01, `${audio.length} samples at ${sampleRate} Hz`);
  check(found, (await segments(audio, sampleRate)).length > 0, "a recording at another rate");
  return found;
}
