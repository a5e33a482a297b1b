import type { AudioModels } from "./audio_models.js";
import type { AudioSource, HelperOptions } from "./audio_source.js";
import type { Source } from "./webrnn.js";

export interface DenoiseOptions extends HelperOptions {
  /** By default "dtln"; or the address or the bytes of a plan of your own. */
  model?: "dtln" | "nsnet2" | "gtcrn" | Source | Blob | Response;
  /** By default the smallest: DTLN has int8 and int16, NSNet2 int8, GTCRN float32. */
  weights?: "int8" | "int16" | "float32";
  /** How much of the result is heard, 0 (the signal as it comes) to 1; the rest is the signal with the same latency. */
  mix?: number;
  /** Begin with the signal as it comes. */
  bypass?: boolean;
}

export interface DenoiserControls {
  readonly context: BaseAudioContext;
  readonly node: AudioWorkletNode;
  readonly models: AudioModels;
  /** Seconds by which the result is later than the source. */
  readonly latency: number;
  /** Takes effect at once, faded; `setMix` says when it has. */
  mix: number;
  readonly isBypassed: boolean;
  readonly isStopped: boolean;
  setMix(share: number): Promise<void>;
  /** Hear the signal as it comes, with the same latency, or the result again; without a click. */
  bypass(isOn?: boolean): Promise<void>;
  /** Another model, exchanged while it runs. */
  load(model: NonNullable<DenoiseOptions["model"]>, options?: { weights?: DenoiseOptions["weights"] }): Promise<void>;
  /** Ends it, and its track; the source stays as it is. Again is no error. */
  stop(): Promise<void>;
}

/** A track that is clean. It ends with its source, with an event "ended". */
export interface DenoisedTrack extends DenoiserControls {
  readonly track: MediaStreamTrack;
  readonly stream: MediaStream;
  /** The track that it comes from. */
  readonly source: MediaStreamTrack;
}

/** A node that is clean: connect it. */
export type DenoisedNode = AudioWorkletNode & DenoiserControls;

type MediaSource = MediaStreamTrack | MediaStream;
type NodeSource = Exclude<AudioSource, MediaSource>;

export interface Denoise {
  /** A node in, a node out; a track or a stream in, or getUserMedia's promise, and a track out. */
  (source: NodeSource | PromiseLike<NodeSource>, options?: DenoiseOptions): Promise<DenoisedNode>;
  (source: MediaSource | PromiseLike<MediaSource>, options?: DenoiseOptions): Promise<DenoisedTrack>;
  /** Loads and compiles what the call with the same options needs, so that it starts at once. */
  prefetch(options?: DenoiseOptions): Promise<void>;
}

export const denoise: Denoise;

/** What livekit-client asks of a processor of audio: `await track.setProcessor(denoiseProcessor())`. */
export interface DenoiseProcessor {
  name: string;
  processedTrack?: MediaStreamTrack;
  readonly denoiser: DenoisedTrack | null;
  init(options: { track: MediaStreamTrack; audioContext?: AudioContext }): Promise<void>;
  restart(options: { track: MediaStreamTrack; audioContext?: AudioContext }): Promise<void>;
  destroy(): Promise<void>;
}

export function denoiseProcessor(options?: DenoiseOptions): DenoiseProcessor;
