import type { AudioModels } from "./audio_models.js";
import type { AudioSourceOrPromise, HelperOptions } from "./audio_source.js";
import type { Source } from "./webrnn.js";

type Plan = Source | Blob | Response;

export interface WakeWordRules {
  /** A score counts from here on; 0.5. */
  threshold?: number;
  /** How many scores in a row (one each 80 ms); 1. */
  patience?: number;
  /** How long nothing is detected behind a detection; 1000. */
  debounceMs?: number;
}

export interface WakeWordOptions extends WakeWordRules, HelperOptions {
  /** By name: a head, which takes the last embeddings [1, 16, 96] and gives scores, or a whole word, which takes samples. */
  words: Record<string, Plan | (WakeWordRules & { plan: Plan; labels?: (string | null)[] })>;
  /** `sample` is where the window of the score ends, in samples of the context; `time` is the same in seconds. */
  onDetected?: (name: string, score: number, at: { sample: number; time: number }) => unknown;
  onScore?: (name: string, score: number) => unknown;
  onEnded?: () => unknown;
  onError?: (error: Error) => unknown;
  /** The front-end: mel spectrum and embedding. */
  model?: "wake_word_front" | Plan;
  weights?: "int16" | "int8";
}

export interface WakeWordListener {
  readonly context: BaseAudioContext;
  readonly node: AudioWorkletNode;
  readonly models: AudioModels;
  readonly listening: boolean;
  readonly isStopped: boolean;
  pause(): Promise<void>;
  /** With new states: the first scores come two seconds later. */
  resume(): Promise<void>;
  stop(): Promise<void>;
}

export interface WakeWord {
  (source: AudioSourceOrPromise, options: WakeWordOptions): Promise<WakeWordListener>;
  prefetch(options: WakeWordOptions): Promise<void>;
}

export const wakeWord: WakeWord;
