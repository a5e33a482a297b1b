// Where the sound of a helper comes from: a track, a stream, a node, or a promise of one, such as getUserMedia's.

import { WebrnnError } from "./plan_file.js";

/** What is wrong with a source of sound. `code` is "source", "ended", "closed", "denied", "missing", "busy" or "stopped". */
export class AudioError extends WebrnnError {
  name = "AudioError";

  constructor(code, message, cause) {
    super(message);
    this.code = code;
    if (cause) this.cause = cause;
  }
}

/** What getUserMedia raises, and what to do about it. */
const REFUSALS = {
  NotAllowedError: ["denied", "the microphone is not allowed: let the page use it, in the browser's or the system's settings"],
  SecurityError: ["denied", "microphones are not allowed in this document: it needs https, and allow=\"microphone\" in a frame"],
  NotFoundError: ["missing", "there is no microphone: plug one in, or ask for less in the constraints"],
  OverconstrainedError: ["missing", "no microphone is as the constraints ask"],
  NotReadableError: ["busy", "the microphone cannot be read: another program may use it"],
  AbortError: ["busy", "the microphone could not be started"],
};

/** The options with their defaults; raises if there is one that nobody knows, or that is of another kind. */
export function withDefaults(who, given, known) {
  if (given === null || typeof given !== "object") throw new TypeError(`${who}: options are an object, not ${given}`);
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(known, name)) continue;
    throw new TypeError(`${who}: there is no option '${name}'; there are ${Object.keys(known).join(", ")}`);
  }
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...known, ...Object.fromEntries(set) };
}

/** Raises unless AudioModels.create takes these options. */
export function modelsOptions(who, given) {
  const names = ["variant", "wasm", "interval", "processor", "sendBytes", "channels", "channelCount"];
  withDefaults(`${who}: audio`, given, Object.fromEntries(names.map((name) => [name, undefined])));
}

/** Raises unless it is a number from `least` to `most`. */
export function requireNumber(who, name, value, least, most = Infinity) {
  if (typeof value === "number" && value >= least && value <= most) return value;
  const range = most === Infinity ? `of at least ${least}` : `from ${least} to ${most}`;
  throw new TypeError(`${who}: ${name} is a number ${range}, not ${typeof value === "string" ? `'${value}'` : value}`);
}

/** Raises unless it is a function, or nothing. */
export function requireFunction(who, name, value) {
  if (value === undefined || value === null || typeof value === "function") return value;
  throw new TypeError(`${who}: ${name} is a function, not ${typeof value}`);
}

const isTrack = (source) => typeof source?.kind === "string" && typeof source.readyState === "string";
const isStream = (source) => typeof source?.getAudioTracks === "function";
const isNode = (source) => typeof source?.connect === "function" && typeof source.context?.sampleRate === "number";

/** What a source is: {kind: "track" | "stream" | "node", track, node}; raises if there is no sound in it. */
export function sourceOf(who, source) {
  if (isNode(source)) return { kind: "node", node: source };
  if (isNode(source?.node)) return { kind: "node", node: source.node }; // of another helper
  if (!isTrack(source) && !isStream(source)) {
    const what = source === null ? "null" : (source?.constructor?.name ?? typeof source);
    throw new TypeError(`${who}: a MediaStreamTrack, a MediaStream or an AudioNode is expected, or a promise of one, not ${what}`);
  }
  const kind = isTrack(source) ? "track" : "stream";
  const tracks = kind === "track" ? [source] : source.getAudioTracks();
  if (!tracks.length) throw new AudioError("source", `${who}: the stream has no audio track`);
  const track = tracks.find(({ readyState }) => readyState === "live") ?? tracks[0];
  if (track.kind !== "audio") throw new AudioError("source", `${who}: a track of audio is needed, not of ${track.kind}`);
  if (track.readyState === "ended") {
    throw new AudioError("ended", `${who}: the track has ended; ask for another one with getUserMedia`);
  }
  return { kind, track };
}

/** What a promise of a source gives; a refusal of getUserMedia says what to do. */
export async function awaitedSource(who, source) {
  let found;
  try {
    found = await source;
  } catch (error) {
    const [code, message] = REFUSALS[error?.name] ?? [];
    throw code ? new AudioError(code, `${who}: ${message}`, error) : error;
  }
  return sourceOf(who, found);
}

/** Raises if nothing can be played or recorded in a context any more. */
export function requireOpen(who, context) {
  if (context.state === "closed") throw new AudioError("closed", `${who}: the AudioContext is closed; make a new one`);
  if (!context.audioWorklet) {
    throw new AudioError("source", `${who}: there is no AudioWorklet here: the page needs https, or localhost`);
  }
  return context;
}

/** The context of an options object, or a new one at the rate of the device, and whether it is to be closed again. */
export function contextFor(who, given) {
  if (given !== undefined && given !== null) {
    if (typeof given.sampleRate !== "number") throw new TypeError(`${who}: context is an AudioContext, not ${typeof given}`);
    return { context: requireOpen(who, given), isOwn: false };
  }
  if (typeof AudioContext !== "function") throw new AudioError("source", `${who}: there is no AudioContext here`);
  return { context: requireOpen(who, new AudioContext({ latencyHint: "interactive" })), isOwn: true };
}

/** Contexts start suspended where the page has not been touched yet; a press anywhere then starts it. */
export function resumeSoon(context) {
  if (typeof context.resume !== "function" || typeof context.startRendering === "function") return;
  if (context.state !== "suspended") return;
  context.resume().catch(() => {});
}
