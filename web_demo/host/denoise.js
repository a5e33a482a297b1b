// A denoiser for a microphone, a call or any node. Types: denoise.d.ts.
//
//   const clean = await denoise(navigator.mediaDevices.getUserMedia({ audio: true }));
//   connection.addTrack(clean.track, clean.stream);
//   clean.mix = 0.8; // and clean.bypass(), clean.stop()

import { AudioModels } from "./audio_models.js";
import { choosePlan, planOf, prepare } from "./audio_plans.js";
import { AudioError, awaitedSource, contextFor, modelsOptions, requireNumber, requireOpen, resumeSoon, sourceOf, withDefaults } from "./audio_source.js";

const DENOISE = "denoise"; // the name of the filter, and of who speaks
const DENOISE_OPTIONS = { model: "dtln", weights: undefined, mix: 1, bypass: false, context: undefined, audio: {} };

function denoiseOptions(given, who = DENOISE) {
  const options = withDefaults(who, given, DENOISE_OPTIONS);
  requireNumber(who, "mix", options.mix, 0, 1);
  modelsOptions(who, options.audio);
  return { ...options, chosen: choosePlan(who, options.model, options.weights) };
}

/** A filter in a context, between an input and what listens to its node. */
class Denoiser {
  #models;
  #mix;
  #isBypassed;
  #latency = 0;
  #stopped = null;
  #release; // what is undone when it stops

  constructor(models, { mix, bypass }, release) {
    this.#models = models;
    this.#mix = mix;
    this.#isBypassed = Boolean(bypass);
    this.#release = release;
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

  get isStopped() {
    return this.#stopped !== null;
  }

  /** In seconds. */
  get latency() {
    return this.#latency / this.context.sampleRate;
  }

  get isBypassed() {
    return this.#isBypassed;
  }

  get mix() {
    return this.#mix;
  }

  set mix(share) {
    this.setMix(share).catch(() => {}); // whoever wants to know calls setMix
  }

  async setMix(share) {
    requireNumber(DENOISE, "mix", share, 0, 1);
    this.#requireRunning();
    this.#mix = share;
    await this.#models.mix(DENOISE, share);
  }

  async bypass(isOn = true) {
    this.#requireRunning();
    this.#isBypassed = Boolean(isOn);
    await this.#models.bypass(DENOISE, isOn);
  }

  /** Exchange the model while it runs. */
  async load(model, { weights } = {}) {
    this.#requireRunning();
    const chosen = choosePlan(DENOISE, model, weights);
    await this.#models.load(DENOISE, await planOf(chosen));
    this.#latency = await this.#models.latency();
  }

  /** Begins with a plan; the first samples are clean already. */
  async start(chosen) {
    await this.#models.load(DENOISE, await planOf(chosen));
    if (this.#isBypassed) await this.#models.bypass(DENOISE);
    if (this.#mix !== 1) await this.#models.mix(DENOISE, this.#mix);
    this.#latency = await this.#models.latency();
  }

  /** Once is enough; again is no error. */
  stop() {
    this.#stopped ??= this.#release();
    return this.#stopped;
  }

  #requireRunning() {
    if (this.#stopped) throw new AudioError("stopped", "denoise: it was stopped; call denoise again");
    requireOpen(DENOISE, this.context);
  }
}

/** An AudioNode that can also do what a Denoiser can. */
function asNode(denoiser) {
  const { node } = denoiser;
  for (const name of ["stop", "bypass", "load", "setMix"]) {
    Object.defineProperty(node, name, { value: denoiser[name].bind(denoiser) });
  }
  for (const name of ["latency", "isBypassed", "isStopped", "models"]) {
    Object.defineProperty(node, name, { get: () => denoiser[name] });
  }
  Object.defineProperty(node, "node", { value: node });
  const mix = Object.getOwnPropertyDescriptor(Denoiser.prototype, "mix");
  Object.defineProperty(node, "mix", { get: mix.get.bind(denoiser), set: mix.set.bind(denoiser) });
  return node;
}

/** AudioModels where small weights may be known before the plan is. */
const modelsFor = (context, { audio, chosen }) => AudioModels.create(context, { variant: audio.wasm ? undefined : chosen.variant, ...audio });

/** A track, a stream, a node or a promise of one; gives what was given, clean. */
export async function denoise(source, options = {}) {
  const settings = denoiseOptions(options);
  if (typeof source?.then !== "function") {
    const { kind, node } = sourceOf(DENOISE, source);
    if (kind === "node") return ofNode(node, settings);
  }
  // All of it while a person is asked for the microphone.
  const own = contextFor(DENOISE, settings.context);
  const early = modelsFor(own.context, settings);
  try {
    const [found, models] = await Promise.all([awaitedSource(DENOISE, source), early, prepare(settings.chosen, own.context.sampleRate)]);
    if (found.kind !== "node") return await ofTrack(found.track, settings, own, models);
    const { close } = undone(own, models);
    await close();
    return await ofNode(found.node, { ...settings, context: undefined });
  } catch (error) {
    early.then((models) => undone(own, models).close()).catch(() => {});
    throw error;
  }
}

/** How models and a context of our own are closed. */
const undone = ({ context, isOwn }, models) => ({
  async close() {
    await models.close();
    if (isOwn && context.state !== "closed") await context.close();
  },
});

async function ofNode(input, settings) {
  const context = requireOpen(DENOISE, input.context);
  if (settings.context && settings.context !== context) throw new TypeError("denoise: the node is of another context");
  const [models] = await Promise.all([modelsFor(context, settings), prepare(settings.chosen, context.sampleRate)]);
  const denoiser = new Denoiser(models, settings, async () => {
    try {
      input.disconnect(models.node);
    } catch (error) {
      if (error.name !== "InvalidAccessError") throw error; // somebody has done it
    }
    await models.close();
  });
  return startOrClose(denoiser, models, settings, () => {
    input.connect(models.node);
    return asNode(denoiser);
  });
}

async function ofTrack(track, settings, own, models) {
  const { context } = own;
  resumeSoon(context);
  const input = new MediaStreamAudioSourceNode(context, { mediaStream: new MediaStream([track]) });
  const output = new MediaStreamAudioDestinationNode(context);
  const [clean] = output.stream.getAudioTracks();
  const denoiser = new Denoiser(models, settings, async () => {
    track.removeEventListener("ended", ended);
    input.disconnect();
    clean.stop();
    await undone(own, models).close();
  });
  /** A device that was unplugged: a track that is stopped says nothing by itself. */
  function ended() {
    denoiser.stop().then(() => clean.dispatchEvent(new Event("ended")));
  }
  return startOrClose(denoiser, models, settings, () => {
    input.connect(models.node).connect(output);
    track.addEventListener("ended", ended);
    Object.defineProperties(denoiser, {
      track: { value: clean, enumerable: true },
      stream: { value: output.stream, enumerable: true },
      source: { value: track, enumerable: true },
    });
    return denoiser;
  });
}

async function startOrClose(denoiser, models, { chosen }, connect) {
  try {
    await denoiser.start(chosen);
    return connect();
  } catch (error) {
    await models.close().catch(() => {});
    throw error;
  }
}

/** Loads and compiles what `denoise` with the same options needs, so that it starts at once. */
denoise.prefetch = async (options = {}) => prepare(denoiseOptions(options).chosen, options.context?.sampleRate);

/** A processor for a LiveKit track: `await track.setProcessor(denoiseProcessor())`. */
export function denoiseProcessor(options = {}) {
  return new DenoiseProcessor(denoiseOptions(options, "denoiseProcessor") && options);
}

class DenoiseProcessor {
  name = "webrnn-denoise";
  processedTrack = undefined;
  #options;
  #denoiser = null;

  constructor(options) {
    this.#options = options;
    denoise.prefetch(options).catch(() => {}); // init says what is wrong
  }

  get denoiser() {
    return this.#denoiser;
  }

  /** `audioContext` is the room's, which stays open. */
  async init({ track, audioContext }) {
    await this.destroy();
    this.#denoiser = await denoise(track, { context: audioContext, ...this.#options });
    this.processedTrack = this.#denoiser.track;
  }

  /** The room has another track, such as of another microphone. */
  async restart(options) {
    await this.init(options);
  }

  async destroy() {
    const before = this.#denoiser;
    this.#denoiser = null;
    this.processedTrack = undefined;
    await before?.stop();
  }
}
