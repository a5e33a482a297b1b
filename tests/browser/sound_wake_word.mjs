// wakeWord on a node, with heads and with whole words: each function gives what was wrong.

import { wakeWord } from "./audio.js";
import { Word } from "./wake_word.js";

const RATE = 16000;
const floats = async (name) => new Float32Array(await (await fetch(name)).arrayBuffer());

function check(found, isRight, text) {
  if (!isRight) found.push(text);
}

/** What `options` hear in the recording: {scores: {name: [...]}, detected: [...]}. */
async function heard(options) {
  const samples = await floats("noisy.f32");
  const context = new OfflineAudioContext(1, samples.length, RATE);
  const sound = context.createBuffer(1, samples.length, RATE);
  sound.copyToChannel(samples, 0);
  const source = new AudioBufferSourceNode(context, { buffer: sound });
  const [scores, detected] = [{}, []];
  const listener = await wakeWord(source, {
    onScore: (name, score) => (scores[name] ??= []).push(score),
    onDetected: (name, score, { time }) => detected.push([name, score, time]),
    ...options,
  });
  source.start();
  await context.startRendering();
  await listener.stop();
  await listener.stop();
  return { scores, detected };
}

const isNear = (given, expected) => given?.length === expected.length && given.every((score, i) => Math.abs(score - expected[i]) < 1e-5);

/** Two heads on one front-end. */
export async function heads() {
  const found = [];
  const expected = await floats("head.f32");
  const two = { "hey mycroft": "head.rnn", again: { plan: await (await fetch("head.rnn")).arrayBuffer(), threshold: 0, patience: 3, debounceMs: 400 } };
  const { scores, detected } = await heard({ words: two, threshold: 1 });
  check(found, isNear(scores["hey mycroft"], expected) && isNear(scores.again, expected), `scores ${scores.again?.slice(0, 3)}, not ${expected.slice(0, 3)}`);
  // the first score is that of 25 steps of 80 ms; detections come when three were there, and then 400 ms later
  const times = detected.map(([, , time]) => Math.round(time * 1000));
  check(found, detected.every(([name]) => name === "again") && times.slice(0, 3).join() === "2160,2560,2960", `${detected}`);
  const word = new Word(0.5, 2, 1);
  const seen = [0.6, 0.4, 0.6, 0.5, 0.9, 0.9, 0.9, 0.9].map((score, i) => word.push(score, i / 4));
  check(found, seen.join() === "false,false,false,true,false,false,false,true", `${seen}`);
  return found;
}

export async function wholeWord() {
  const found = [];
  const { scores } = await heard({ words: { mycroft: new URL("wake.rnn", import.meta.url) } });
  const expected = await floats("wake.f32");
  check(found, isNear(scores.mycroft, expected), `${scores.mycroft?.length} scores of ${expected.length}`);
  return found;
}

export async function misuse() {
  const found = [];
  for (const [options, message, type = TypeError] of [
    [{}, /words are needed/],
    [{ words: {} }, /words are needed/],
    [{ words: { a: "head.rnn" }, treshold: 1 }, /no option 'treshold'; there are words, threshold/],
    [{ words: { a: { head: "head.rnn" } } }, /words: a: there is no option 'head'; there are plan, threshold/],
    [{ words: { a: { plan: "head.rnn", patience: 0 } } }, /patience is a number of at least 1, not 0/],
    [{ words: { a: "head.rnn" }, threshold: 5 }, /threshold is a number from 0 to 1, not 5/],
    [{ words: { a: "plans/dtln_int8.rnn" } }, /'a' gives samples, not scores/, Error],
    [{ words: { a: "double.rnn" } }, /double.rnn could not be loaded: HTTP 404/, Error],
  ]) {
    const error = await heard(options).catch((raised) => raised);
    check(found, error instanceof type && message.test(error.message), `${message}: ${error}`);
  }
  return found;
}
