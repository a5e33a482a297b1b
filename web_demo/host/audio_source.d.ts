import type { Variant, Source } from "./webrnn.js";
import { WebrnnError } from "./webrnn.js";

/** What is wrong with a source of sound. */
export class AudioError extends WebrnnError {
  /** "source": there is no sound in it; "ended": the track has; "closed": the context is; "denied", "missing" and "busy": of
   * the microphone, `cause` is what getUserMedia raised; "stopped": the helper was. */
  readonly code: "source" | "ended" | "closed" | "denied" | "missing" | "busy" | "stopped";
  readonly cause?: Error;
}

/** Where sound comes from: a node, or another helper, is listened to in its own context. */
export type AudioSource = MediaStreamTrack | MediaStream | AudioNode | { readonly node: AudioNode };
export type AudioSourceOrPromise = AudioSource | PromiseLike<AudioSource>;

/** As AudioModels.create takes them. */
export interface AudioModelsOptions {
  variant?: Variant;
  wasm?: WebAssembly.Module | Source;
  interval?: number;
  processor?: string | URL;
  sendBytes?: boolean;
  channels?: "mono" | "each";
  channelCount?: number;
}

/** What all helpers take. */
export interface HelperOptions {
  /** The context that they work in; by default a new one at the rate of the device, or the one of the node. */
  context?: BaseAudioContext;
  audio?: AudioModelsOptions;
}
