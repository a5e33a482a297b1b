import type { AudioModels } from "./audio_models.js";
import type { AudioSourceOrPromise, HelperOptions } from "./audio_source.js";
import type { Source } from "./webrnn.js";

export interface SpeechProbabilities {
  readonly isSpeech: number;
  readonly notSpeech: number;
}

/** When speech begins and ends: the names and defaults of @ricky0123/vad-web. */
export interface SpeechRules {
  /** A frame (32 ms) is speech from this probability on; 0.3. */
  positiveSpeechThreshold?: number;
  /** And silence below this one; 0.25. */
  negativeSpeechThreshold?: number;
  /** How long it is silent before speech has ended; 1400. */
  redemptionMs?: number;
  /** What is put before speech; 800. */
  preSpeechPadMs?: number;
  /** What is shorter was a misfire; 400. */
  minSpeechMs?: number;
  /** Whether a pause ends speech; else it forgets it; false. */
  submitUserSpeechOnPause?: boolean;
  /** The same in frames, as earlier versions of vad-web have them. */
  redemptionFrames?: number;
  preSpeechPadFrames?: number;
  minSpeechFrames?: number;
}

export interface SpeechOptions extends SpeechRules, HelperOptions {
  onSpeechStart?: () => unknown;
  /** Speech is long enough to be no misfire. */
  onSpeechRealStart?: () => unknown;
  /** What was said, at 16 kHz. */
  onSpeechEnd?: (audio: Float32Array) => unknown;
  onMisfire?: () => unknown;
  /** Of every 512 samples at 16 kHz. */
  onFrame?: (probabilities: SpeechProbabilities, frame: Float32Array) => unknown;
  /** As vad-web names the two. */
  onVADMisfire?: () => unknown;
  onFrameProcessed?: (probabilities: SpeechProbabilities, frame: Float32Array) => unknown;
  /** The track has ended. */
  onEnded?: () => unknown;
  onError?: (error: Error) => unknown;
  model?: "silero" | Source | Blob | Response;
  /** By default int16, whose probabilities differ by .0007 at most. */
  weights?: "int8" | "int16" | "float32";
}

export interface SpeechDetector {
  readonly context: BaseAudioContext;
  readonly node: AudioWorkletNode;
  readonly models: AudioModels;
  readonly speaking: boolean;
  readonly listening: boolean;
  readonly isStopped: boolean;
  setOptions(rules: SpeechRules): void;
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends it; what has come so far is looked at. The source stays as it is. Again is no error. */
  stop(): Promise<void>;
}

export interface DetectSpeech {
  (source: AudioSourceOrPromise, options?: SpeechOptions): Promise<SpeechDetector>;
  prefetch(options?: SpeechOptions): Promise<void>;
}

export const detectSpeech: DetectSpeech;

/** Those of get_speech_timestamps of the Python package silero-vad. */
export interface SegmentOptions {
  threshold?: number;
  /** By default .15 less. */
  negThreshold?: number;
  minSpeechDurationMs?: number;
  maxSpeechDurationS?: number;
  minSilenceDurationMs?: number;
  speechPadMs?: number;
  returnSeconds?: boolean;
  timeResolution?: number;
  minSilenceAtMaxSpeech?: number;
  useMaxPossSilAtMaxSpeech?: boolean;
}

export interface Segment {
  start: number;
  end: number;
}

/** Where somebody speaks in a recording, in samples of its rate, or in seconds. Of multiples of 16 kHz every second, third ...
 * sample is taken, as silero-vad does. */
export function segments(
  samples: Float32Array,
  rate?: number,
  options?: SegmentOptions & {
    onProgress?: (percent: number) => void;
    model?: "silero" | Source | Blob | Response;
    weights?: "int8" | "int16" | "float32";
  },
): Promise<Segment[]>;

/** The same of probabilities, one for each 512 samples at 16 kHz. */
export function segmentsOf(
  probabilities: readonly number[] | Float32Array,
  options?: SegmentOptions & { length?: number },
): Segment[];
