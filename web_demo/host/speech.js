// Speech in a microphone, a call or any node: when it begins, when it ends, and what was said. Types: speech.d.ts.
//
//   const speech = await detectSpeech(navigator.mediaDevices.getUserMedia({ audio: true }), {
//     onSpeechStart: () => ..., onSpeechEnd: (audio) => ..., // a Float32Array at 16 kHz
//   });
//   await speech.pause(); // and speech.resume(), speech.stop()

import { allResults, listen, tell } from "./audio_listen.js";
import { choosePlan, planOf, prepare } from "./audio_plans.js";
import { AudioError, modelsOptions, requireFunction, requireOpen, withDefaults } from "./audio_source.js";
import { IN_FRAMES, Message, SPEECH_DEFAULTS, SPEECH_FRAME, SPEECH_RATE, SpeechFrames, speechOptions } from "./speech_frames.js";

export { segments, segmentsOf } from "./speech_segments.js";

const SPEECH = "detectSpeech"; // the name of the analyser, and of who speaks
const FRAME_MS = (1000 * SPEECH_FRAME) / SPEECH_RATE;
const CALLBACKS = ["onSpeechStart", "onSpeechRealStart", "onSpeechEnd", "onFrame", "onMisfire", "onEnded", "onError"];
/** As vad-web names them. */
const OTHER_NAMES = { onFrameProcessed: "onFrame", onVADMisfire: "onMisfire" };

const nothing = (names) => Object.fromEntries(names.map((name) => [name, undefined]));

const SPEECH_OPTIONS = {
  ...nothing(CALLBACKS),
  ...nothing(Object.keys(OTHER_NAMES)),
  ...nothing(Object.keys(SPEECH_DEFAULTS)),
  ...nothing(Object.keys(IN_FRAMES)),
  model: "silero",
  weights: undefined,
  context: undefined,
  audio: {},
};

function detectorOptions(given) {
  const options = withDefaults(SPEECH, given, SPEECH_OPTIONS);
  modelsOptions(SPEECH, options.audio);
  for (const [other, name] of Object.entries(OTHER_NAMES)) options[name] ??= options[other];
  for (const name of CALLBACKS) requireFunction(SPEECH, name, options[name]);
  return { ...options, rules: speechOptions(SPEECH, options, FRAME_MS), chosen: choosePlan(SPEECH, options.model, options.weights) };
}

class SpeechDetector {
  #models;
  #chosen;
  #options;
  #rules; // as they were given, so that one can be changed
  #frames;
  #isListening = false;
  #stopped = null;
  #release;

  constructor(models, options, release) {
    this.#models = models;
    this.#options = options;
    this.#rules = options.rules;
    this.#chosen = options.chosen;
    this.#release = release;
    this.#frames = new SpeechFrames(options.rules, FRAME_MS, (event) => this.#happen(event));
    models.addEventListener("result", ({ detail: { values, samples } }) => {
      if (this.#isListening) this.#frames.process(values[0], samples);
    });
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

  get speaking() {
    return this.#frames.speaking;
  }

  get listening() {
    return this.#isListening;
  }

  get isStopped() {
    return this.#stopped !== null;
  }

  /** Thresholds and times, from the next frame on. */
  setOptions(options) {
    const known = { ...nothing(Object.keys(SPEECH_DEFAULTS)), ...nothing(Object.keys(IN_FRAMES)) };
    const given = Object.fromEntries(Object.entries(withDefaults(SPEECH, options, known)).filter(([, value]) => value !== undefined));
    const kept = { ...this.#rules };
    for (const [inFrames, inMs] of Object.entries(IN_FRAMES)) if (given[inFrames] !== undefined) delete kept[inMs];
    this.#rules = speechOptions(SPEECH, { ...kept, ...given }, FRAME_MS);
    this.#frames.setOptions(this.#rules);
  }

  /** What was said so far is handed out with submitUserSpeechOnPause, and else forgotten. */
  async pause() {
    this.#requireRunning();
    this.#end();
  }

  /** Listens again, with new states. */
  async resume() {
    this.#requireRunning();
    if (this.#isListening) return;
    await this.#models.load(SPEECH, await planOf(this.#chosen), { samples: true });
    this.#isListening = true;
  }

  /** Once is enough; again is no error. What has come so far is looked at. */
  stop() {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop() {
    await allResults(this.#models);
    this.#end();
    await this.#release();
  }

  #end() {
    if (!this.#isListening) return;
    this.#isListening = false;
    if (this.#rules.submitUserSpeechOnPause) this.#frames.end();
    else this.#frames.reset();
  }

  #happen({ msg, probs, frame, audio }) {
    const { onFrame, onSpeechStart, onSpeechRealStart, onSpeechEnd, onMisfire } = this.#options;
    if (msg === Message.FrameProcessed) tell(onFrame, probs, frame);
    else if (msg === Message.SpeechStart) tell(onSpeechStart);
    else if (msg === Message.SpeechRealStart) tell(onSpeechRealStart);
    else if (msg === Message.SpeechEnd) tell(onSpeechEnd, audio);
    else tell(onMisfire);
  }

  #requireRunning() {
    if (this.#stopped) throw new AudioError("stopped", "detectSpeech: it was stopped; call detectSpeech again");
    requireOpen(SPEECH, this.context);
  }
}

/** Listens to a track, a stream, a node, another helper, or a promise of one. */
export async function detectSpeech(source, options = {}) {
  const settings = detectorOptions(options);
  const listener = await listen(SPEECH, source, settings);
  const detector = new SpeechDetector(listener.models, settings, listener.close);
  listener.whenEnded(() => detector.stop().then(() => tell(settings.onEnded)));
  try {
    await detector.resume();
  } catch (error) {
    await listener.close();
    throw error;
  }
  listener.connect();
  return detector;
}

/** Loads and compiles what `detectSpeech` with the same options needs. */
detectSpeech.prefetch = async (options = {}) => prepare(detectorOptions(options).chosen, options.context?.sampleRate);
