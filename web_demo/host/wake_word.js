// Wake words in a microphone or any node. Types: wake_word.d.ts.
//
//   const listener = await wakeWord(navigator.mediaDevices.getUserMedia({ audio: true }), {
//     words: { "hey computer": "hey_computer.rnn" }, // a head of your own, or the three models of a word in one plan
//     onDetected: (name, score) => ...,
//   });

import { allResults, listen, tell } from "./audio_listen.js";
import { choosePlan, planOf, prepare } from "./audio_plans.js";
import { AudioError, modelsOptions, requireFunction, requireNumber, requireOpen, withDefaults } from "./audio_source.js";
import { PlanError } from "./plan_file.js";
import { Model } from "./webrnn.js";

const WAKE = "wakeWord";
const FRONT = "front-end"; // what heads share
const FEATURES = 96; // numbers of an embedding

const WAKE_OPTIONS = {
  words: undefined,
  threshold: 0.5,
  patience: 1,
  debounceMs: 1000,
  onDetected: undefined,
  onScore: undefined,
  onEnded: undefined,
  onError: undefined,
  model: "wake_word_front",
  weights: undefined,
  context: undefined,
  audio: {},
};

/** Detects a word in its scores: so many in a row are not below the threshold. */
export class Word {
  #threshold;
  #patience;
  #debounce;
  #count = 0;
  #quietUntil = -Infinity;

  /** `debounce` is the time behind a detection in which there is no other one, in the unit of `push`'s. */
  constructor(threshold, patience, debounce) {
    this.#threshold = threshold;
    this.#patience = patience;
    this.#debounce = debounce;
  }

  push(score, time) {
    this.#count = score >= this.#threshold ? this.#count + 1 : 0;
    if (this.#count < this.#patience || time < this.#quietUntil) return false;
    this.#count = 0;
    this.#quietUntil = time + this.#debounce;
    return true;
  }

  reset() {
    this.#count = 0;
    this.#quietUntil = -Infinity;
  }
}

/** A model of the last embeddings, which gives scores. */
class Head {
  #model;
  #input;
  #output;
  #window;
  #shape;
  #missing; // numbers until the window is full

  constructor(name, model) {
    const [input, ...others] = model.inputs;
    const rows = input?.shape.at(-2);
    const isWindow = others.length === 0 && input?.type === "float32" && input.shape.at(-1) === FEATURES && Number.isInteger(rows);
    if (!isWindow) {
      throw new PlanError(`'${name}' is neither a whole wake word nor a head: it does not take the last embeddings, [1, 16, ${FEATURES}]`);
    }
    this.#model = model;
    this.#input = input.name;
    this.#output = model.outputs[0].name;
    this.#shape = input.shape.map((size) => (typeof size === "number" ? size : 1));
    this.#window = new Float32Array(rows * FEATURES);
    this.#missing = this.#window.length;
  }

  get output() {
    return this.#output;
  }

  /** The scores behind this embedding; null until there are enough. */
  push(embedding) {
    this.#window.copyWithin(0, FEATURES);
    this.#window.set(embedding, this.#window.length - FEATURES);
    this.#missing = Math.max(0, this.#missing - FEATURES);
    if (this.#missing) return null;
    return this.#model.run({ [this.#input]: { data: this.#window, shape: this.#shape } })[this.#output];
  }

  reset() {
    this.#window.fill(0);
    this.#missing = this.#window.length;
  }
}

function wakeOptions(given) {
  const options = withDefaults(WAKE, given, WAKE_OPTIONS);
  modelsOptions(WAKE, options.audio);
  const { words } = options;
  if (words === null || typeof words !== "object" || !Object.keys(words).length) {
    throw new TypeError(`${WAKE}: words are needed, { name: plan }; heads of one's own, or whole words made by webrnn.audio.plans openwakeword`);
  }
  for (const name of ["onDetected", "onScore", "onEnded", "onError"]) requireFunction(WAKE, name, options[name]);
  const rows = Object.entries(words).map(([name, word]) => wordOptions(name, word, options));
  return { ...options, rows, chosen: choosePlan(WAKE, options.model, options.weights) };
}

const isPlain = (word) => word !== null && typeof word === "object" && Object.getPrototypeOf(word) === Object.prototype;

function wordOptions(name, word, { threshold, patience, debounceMs }) {
  const who = `${WAKE}: words: ${name}`;
  const known = { plan: undefined, threshold, patience, debounceMs, labels: undefined };
  const row = { name, ...withDefaults(who, isPlain(word) ? word : { plan: word }, known) };
  if (row.plan === undefined) throw new TypeError(`${who}: a plan is needed: its address or its bytes`);
  requireNumber(who, "threshold", row.threshold, 0, 1);
  requireNumber(who, "debounceMs", row.debounceMs, 0);
  if (!Number.isInteger(requireNumber(who, "patience", row.patience, 1))) throw new TypeError(`${who}: patience is a whole number`);
  if (row.labels !== undefined && !Array.isArray(row.labels)) throw new TypeError(`${who}: labels are a list of names`);
  return row;
}

/** Names of several scores of one model: as they were given, or as openWakeWord writes them into the name of the output. */
function labelsOf({ name, labels }, output, count) {
  if (labels) return labels;
  if (count === 1) return [name];
  let known = {};
  try {
    known = JSON.parse(output);
  } catch {
    // a name like any other
  }
  return Array.from({ length: count }, (_, i) => known[i] ?? (Object.keys(known).length ? null : `${name} ${i}`));
}

class WakeWords {
  #models;
  #options;
  #rows; // {name, head or null, labels, words}
  #ends = new Map(); // by name: samples from where a result's window begins to speak to where it ends
  #isListening = false;
  #stopped = null;
  #release;

  constructor(models, rows, options, release) {
    this.#models = models;
    this.#rows = rows;
    this.#options = options;
    this.#release = release;
    models.addEventListener("result", ({ detail }) => this.#isListening && this.#receive(detail));
    models.addEventListener("error", ({ detail: { error } }) => tell(options.onError, error));
  }

  get context() {
    return this.#models.context;
  }

  get node() {
    return this.#models.node;
  }

  get models() {
    return this.#models;
  }

  get listening() {
    return this.#isListening;
  }

  get isStopped() {
    return this.#stopped !== null;
  }

  async pause() {
    this.#requireListener();
    this.#isListening = false;
  }

  /** Listens again, with new states: the first scores come two seconds later. */
  async resume() {
    this.#requireListener();
    if (this.#isListening) return;
    if (this.#rows.some(({ head }) => head)) await this.#load(FRONT, await planOf(this.#options.chosen));
    for (const row of this.#rows) {
      row.head?.reset();
      row.words?.forEach((word) => word.reset());
      if (!row.head) await this.#load(row.name, row.bytes);
    }
    this.#isListening = true;
  }

  async #load(name, bytes) {
    const { delay, sample_rate } = await this.#models.load(name, bytes);
    this.#ends.set(name, Math.round((delay * this.context.sampleRate) / sample_rate));
  }

  stop() {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop() {
    await allResults(this.#models);
    this.#isListening = false;
    await this.#release();
  }

  #receive({ name, sample: first, values }) {
    const sample = first + (this.#ends.get(name) ?? 0);
    if (name !== FRONT) {
      this.#score(this.#rows.find((row) => row.name === name), values, sample);
      return;
    }
    for (let at = 0; at + FEATURES <= values.length; at += FEATURES) {
      for (const row of this.#rows) {
        const scores = row.head?.push(values.subarray(at, at + FEATURES));
        if (scores) this.#score(row, scores, sample);
      }
    }
  }

  #score(row, scores, sample) {
    const { sampleRate } = this.context;
    row.labels ??= labelsOf(row, row.head?.output ?? "", scores.length);
    row.words ??= row.labels.map(() => new Word(row.threshold, row.patience, (row.debounceMs * sampleRate) / 1000));
    row.labels.forEach((label, i) => {
      if (label === null) return;
      tell(this.#options.onScore, label, scores[i]);
      if (row.words[i].push(scores[i], sample)) tell(this.#options.onDetected, label, scores[i], { sample, time: sample / sampleRate });
    });
  }

  #requireListener() {
    if (this.#stopped) throw new AudioError("stopped", `${WAKE}: it was stopped; call wakeWord again`);
    requireOpen(WAKE, this.context);
  }
}

/** A word's plan: with samples as its input it is a whole word, else a head. */
async function loadedWord(row, variant) {
  const bytes = await planOf({ key: String(row.plan), source: row.plan });
  const model = await Model.load(bytes, { variant }); // the module that the front-end needs
  if (model.about.audio === undefined) return { ...row, head: new Head(row.name, model) };
  if (model.about.audio.kind !== "analyser") throw new PlanError(`'${row.name}' gives samples, not scores`);
  if (row.name === FRONT) throw new TypeError(`${WAKE}: '${FRONT}' cannot be the name of a word`);
  return { ...row, head: null, bytes };
}

/** Listens for words in a track, a stream, a node, another helper, or a promise of one. */
export async function wakeWord(source, options = {}) {
  const settings = wakeOptions(options);
  const words = prepared(settings);
  const listener = await listen(WAKE, source, { ...settings, ready: words });
  try {
    const wakeWords = new WakeWords(listener.models, await words, settings, listener.close);
    listener.whenEnded(() => wakeWords.stop().then(() => tell(settings.onEnded)));
    await wakeWords.resume();
    listener.connect();
    return wakeWords;
  } catch (error) {
    await listener.close();
    throw error;
  }
}

async function prepared({ rows, chosen }) {
  const words = await Promise.all(rows.map((row) => loadedWord(row, chosen.variant)));
  if (words.some(({ head }) => head)) await prepare(chosen);
  return words;
}

/** Loads and compiles what `wakeWord` with the same options needs. */
wakeWord.prefetch = async (options = {}) => {
  await prepared(wakeOptions(options));
};
