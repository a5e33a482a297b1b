import type { Source, Variant } from "./webrnn.js";

/** What a plan says about the audio that it takes. */
export interface AudioPlan {
  /** A filter gives samples, an analyser numbers. */
  readonly kind: "filter" | "analyser";
  readonly sample_rate: number;
  /** Samples that it takes at a time, and how many of them are new. */
  readonly frame: number;
  readonly hop: number;
  readonly input: string;
  readonly output: string;
  /** Numbers in a result. */
  readonly size: number;
  /** By how many samples a plan with frames is behind, besides what a step takes at a time. */
  readonly delay: number;
}

/** An analyser's result: event "result". */
export interface AudioResult {
  readonly name: string;
  /** Where the frame ends, in samples of the context since it began, rounded down where the plan has another rate. */
  readonly sample: number;
  readonly values: Float32Array;
  /** The new samples of the frame, at the rate of the plan, if they were asked for. */
  readonly samples?: Float32Array;
}

/** How the audio thread fares: event "load". */
export interface AudioLoad {
  /** Since the last report: how many quanta, and the milliseconds that one took, on average and at most. Where the audio
   * thread has no fine clock, the average is of samples, one in 31 quanta, and the longest is rounded to milliseconds. */
  readonly quanta: number;
  readonly ms: number;
  readonly worst: number;
  /** The milliseconds that a quantum lasts, and ms / budget. */
  readonly budget: number;
  readonly load: number;
  /** Since the start: quanta that took longer than they last; quanta that came too late (as the context counts them, or where
   * it does not, as the clocks say); and how often a result was not finite, upon which the states of that plan began anew. */
  readonly overruns: number;
  readonly missed: number;
  readonly restarts: number;
}

/** A plan that could not go on was taken out: event "error". `name` is null if the whole processor failed. */
export interface AudioFailure {
  readonly name: string | null;
  readonly error: Error;
}

interface Events {
  result: CustomEvent<AudioResult>;
  load: CustomEvent<AudioLoad>;
  error: CustomEvent<AudioFailure>;
}

/** Audio plans on the audio thread of a context: one node, several plans. */
export class AudioModels extends EventTarget {
  private constructor();

  /**
   * Compiles the VM here and makes the node.
   *
   * `variant` and `wasm` as for Model.load: without `wasm` a plan that needs another module gets it when it is loaded.
   * `interval` is the time between reports of the load, in seconds. `processor` is the address of audio_processor.js if it
   * is not beside this file. `sendBytes` lets the audio thread compile the VM.
   *
   * The context may have any rate: plans of another one are resampled. `channels` is "mono" (the default: the mean of all
   * channels goes through the filters, and all channels of the output are the result) or "each": each of `channelCount`
   * channels, by default 2, goes through filters with states of its own. Analysers always listen to the mean.
   */
  static create(
    context: BaseAudioContext,
    options?: {
      variant?: Variant;
      wasm?: WebAssembly.Module | Source;
      interval?: number;
      processor?: string | URL;
      sendBytes?: boolean;
      channels?: "mono" | "each";
      channelCount?: number;
    },
  ): Promise<AudioModels>;

  readonly context: BaseAudioContext;
  /** As many channels out as in, or `channelCount`. */
  readonly node: AudioWorkletNode;

  /**
   * Loads a plan, or exchanges the one of this name. Filters follow each other in the order of their names' first use;
   * analysers listen to what comes into the node, or to what goes out.
   *
   * A new filter runs beside the old one until its first samples are out and is then faded in; its states are new. A plan
   * that cannot be run raises, and audio goes on as it was. With `samples` an analyser's results have the samples that
   * they speak of.
   */
  load(
    name: string,
    source: Source | Blob | Response,
    options?: { listens?: "input" | "output"; samples?: boolean },
  ): Promise<AudioPlan>;
  remove(name: string): Promise<void>;
  /** Hear the signal instead of the filter's result, with the same latency, or the filter again; faded over 256 samples. */
  bypass(name: string, isOn?: boolean): Promise<void>;
  /** How much of the filter is heard beside the signal as it was, both with the same latency: 0 to 1; faded over 256 samples. */
  mix(name: string, share: number): Promise<void>;
  /** Samples of the context by which the output is later than the input, what resampling takes included. */
  latency(): Promise<number>;
  /** Ends the processor. */
  close(): Promise<void>;

  addEventListener<Type extends keyof Events>(
    type: Type,
    listener: (event: Events[Type]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
}
