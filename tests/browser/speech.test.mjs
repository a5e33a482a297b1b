// Speech in Node: node speech.test.mjs <file URL of a site of sound_cases> <folder of vad-web's scripts>

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { test } from "node:test";

const [base, vadWeb] = process.argv.slice(2);
const load = (file) => import(new URL(file, base));
const json = async (file) => JSON.parse(await readFile(new URL(file, base), "utf8"));
const floats = async (file) => new Float32Array((await readFile(new URL(file, base))).buffer.slice(0));

const { SpeechFrames, speechOptions } = await load("speech_frames.js");
const { segments, segmentsOf } = await load("speech.js");
const { MicVAD, NonRealTimeVAD, Message, getDefaultRealTimeVADOptions, utils } = await load("vad.js");
const peer = createRequire(import.meta.url)(`${vadWeb}/frame-processor.js`);
const peerUtils = createRequire(import.meta.url)(`${vadWeb}/utils.js`);

/** A generator with a seed: the same numbers everywhere. */
function generator(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const pick = (random, values) => values[Math.floor(random() * values.length)];

function randomProbabilities(random) {
  const found = [];
  while (found.length < 120) {
    const [centre, count] = [pick(random, [0.02, 0.27, 0.5, 0.95]), 1 + Math.floor(random() * 25)];
    for (let i = 0; i < count; i++) found.push(Math.min(1, Math.max(0, centre + 0.3 * (random() - 0.5))));
  }
  return found;
}

const described = ({ msg, audio, frame, probs }) => [msg, audio && [...audio], frame && [...frame], probs && { ...probs }];

test("what vad-web does with the same probabilities", async () => {
  const random = generator(11);
  const seen = new Set();
  for (let round = 0; round < 150; round++) {
    const rules = {
      positiveSpeechThreshold: pick(random, [0.3, 0.5, 0.9]),
      negativeSpeechThreshold: pick(random, [0, 0.1, 0.25, 0.3]),
      preSpeechPadMs: pick(random, [0, 31, 96, 800]),
      redemptionMs: pick(random, [0, 32, 100, 1400]),
      minSpeechMs: pick(random, [0, 32, 250, 400]),
      submitUserSpeechOnPause: pick(random, [false, true]),
    };
    const [ours, theirs, probabilities] = [[], [], randomProbabilities(random)];
    const frames = new SpeechFrames(speechOptions("test", rules, 32), 32, (event) => ours.push(described(event)));
    let next;
    const other = new peer.FrameProcessor(async () => ({ isSpeech: next, notSpeech: 1 - next }), () => {}, rules, 32);
    const tell = (event) => theirs.push(described(event));
    other.resume();
    for (const [i, probability] of probabilities.entries()) {
      next = probability;
      const frame = Float32Array.of(i, i + 0.5);
      frames.process(probability, frame);
      await other.process(frame, tell);
      if (i === 70 && rules.submitUserSpeechOnPause) {
        frames.end();
        other.pause(tell);
        other.resume();
      } else if (i === 70) {
        frames.reset();
        other.pause(tell);
        other.resume();
      } else if (i === 90) {
        frames.setOptions(speechOptions("test", { ...rules, redemptionMs: 64 }, 32));
        other.setOptions({ redemptionMs: 64 });
      }
      assert.equal(frames.speaking, other.speaking);
    }
    frames.end();
    other.endSegment(tell);
    assert.deepEqual(ours, theirs);
    for (const [msg] of ours) seen.add(msg);
  }
  assert.deepEqual([...seen].toSorted(), [Message.FrameProcessed, Message.SpeechEnd, Message.SpeechRealStart, Message.SpeechStart, Message.VADMisfire].toSorted());
});

test("defaults are vad-web's", () => {
  const ours = getDefaultRealTimeVADOptions("v5");
  for (const [name, value] of Object.entries(peer.defaultFrameProcessorOptions)) assert.equal(ours[name], value);
});

test("segments of probabilities are those of silero-vad", async () => {
  for (const { probabilities, options, found } of await json("segments.json")) {
    assert.deepEqual(segmentsOf(probabilities, options), found);
  }
});

test("segments of a recording", async () => {
  const [samples, expected] = [await floats("speech.f32"), await json("speech.json")];
  const told = [];
  assert.deepEqual(await segments(samples, 16000, { onProgress: (percent) => told.push(percent) }), expected);
  assert.equal(told.at(-1), 100);
  assert.deepEqual(await segments(samples, 16000, { weights: "float32" }), expected);
  const tripled = Float32Array.from({ length: 3 * samples.length }, (_, i) => samples[Math.floor(i / 3)]);
  assert.deepEqual(await segments(tripled, 48000), expected.map(({ start, end }) => ({ start: 3 * start, end: 3 * end })));
  assert.deepEqual(await segments(new Float32Array(0)), []);
});

test("segments: misuse", async () => {
  const silence = new Float32Array(512);
  const refuses = (promise, message) => assert.rejects(promise, { name: "TypeError", message });
  await refuses(segments([0, 0]), /samples are a Float32Array, not Array/);
  await refuses(segments(silence, 8000), /8000 Hz is less than the 16000 Hz/);
  await refuses(segments(silence, 16000, { treshold: 0.5 }), /no option 'treshold'; there are threshold, negThreshold/);
  await refuses(segments(silence, 16000, { threshold: 2 }), /threshold is a number from 0 to 1, not 2/);
  await refuses(segments(silence, 16000, { speechPadMs: -1 }), /speechPadMs is a number of at least 0, not -1/);
  await refuses(segments(silence, 16000, { weights: "int4" }), /silero has no weights 'int4'; it has int16, int8, float32/);
});

test("NonRealTimeVAD gives vad-web's segments of the same probabilities", async () => {
  const samples = await floats("speech.f32");
  const given = { redemptionMs: 300, preSpeechPadMs: 100, minSpeechMs: 200 };
  const vad = await NonRealTimeVAD.new({ ...given, weights: "float32", modelURL: "unused.onnx" });
  const ours = [];
  for await (const each of vad.run(samples, 16000)) ours.push(each);
  const probabilities = await floats("probabilities.f32");
  const rules = { ...peer.defaultFrameProcessorOptions, ...given };
  let i = 0;
  const other = new peer.FrameProcessor(async () => ({ isSpeech: probabilities[i] }), () => {}, rules, 32);
  const theirs = [];
  let start = 0;
  other.resume();
  const tell = (end) => ({ msg, audio }) => {
    if (msg === Message.SpeechStart) start = i * 32;
    else if (msg === Message.SpeechEnd) theirs.push({ audio, start, end });
  };
  for (; i < Math.floor(samples.length / 512); i++) await other.process(samples.subarray(512 * i, 512 * (i + 1)), tell((i + 1) * 32));
  other.endSegment(tell(i * 32));
  assert.ok(ours.length > 1);
  assert.deepEqual(ours.map(({ start: from, end }) => [from, end]), theirs.map(({ start: from, end }) => [from, end]));
  ours.forEach(({ audio }, place) => assert.equal(Buffer.compare(Buffer.from(audio.buffer), Buffer.from(theirs[place].audio.buffer)), 0));
  const again = [];
  for await (const each of vad.run(samples, 16000)) again.push(each);
  assert.deepEqual(again.length, ours.length, "states begin anew");
  await assert.rejects(vad.run(samples, 8000).next(), { name: "TypeError", message: /at least 16000 Hz/ });
});

test("options in frames are options in milliseconds", async () => {
  const inFrames = { positiveSpeechThreshold: 0.5, negativeSpeechThreshold: 0.35, redemptionFrames: 8, preSpeechPadFrames: 1, minSpeechFrames: 3 };
  const { options } = await NonRealTimeVAD.new(inFrames);
  assert.deepEqual([options.redemptionMs, options.preSpeechPadMs, options.minSpeechMs], [768, 96, 288]);
  const { options: newer } = await NonRealTimeVAD.new({ ...inFrames, model: "v5" });
  assert.deepEqual([newer.redemptionMs, newer.preSpeechPadMs, newer.minSpeechMs], [256, 32, 96]);
  const { options: sized } = await NonRealTimeVAD.new({ ...inFrames, frameSamples: 1024 });
  assert.equal(sized.redemptionMs, 512);
});

test("vad: misuse", async () => {
  const refuses = (promise, message) => assert.rejects(promise, { name: "TypeError", message });
  await refuses(MicVAD.new({ onSpeachEnd: () => {} }), /MicVAD: there is no option 'onSpeachEnd'; there are positiveSpeechThreshold/);
  await refuses(MicVAD.new({ onSpeechEnd: "stop" }), /onSpeechEnd is a function, not string/);
  await refuses(MicVAD.new({ positiveSpeechThreshold: 3 }), /positiveSpeechThreshold is a number from 0 to 1, not 3/);
  await refuses(MicVAD.new({ negativeSpeechThreshold: 0.4 }), /negativeSpeechThreshold is a number from 0 to 0.3, not 0.4/);
  await refuses(MicVAD.new({ redemptionMs: 100, redemptionFrames: 3 }), /say the same: give one of them/);
  await refuses(NonRealTimeVAD.new({ model: "v4" }), /no model 'v4'; there are v5, v6, legacy/);
  await refuses(NonRealTimeVAD.new({ minSpeechMs: "400" }), /minSpeechMs is a number of at least 0, not '400'/);
});

test("utils", () => {
  const samples = Float32Array.of(0, 0.5, -0.5, 1, -1, 2);
  for (const rest of [[], [3, 44100, 2], [1, 8000, 1, 16]]) {
    assert.deepEqual(new Uint8Array(utils.encodeWAV(samples, ...rest)), new Uint8Array(peerUtils.encodeWAV(samples, ...rest)));
  }
  assert.equal(utils.arrayBufferToBase64(samples.buffer), peerUtils.arrayBufferToBase64(samples.buffer));
  assert.equal(utils.minFramesForTargetMS(100, 512), peerUtils.minFramesForTargetMS(100, 512));
  assert.throws(() => utils.encodeWAV(samples, 1, 8000, 1, 32), { name: "TypeError", message: /format 1 has 16/ });
});
