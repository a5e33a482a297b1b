import type { SpeechProbabilities, SpeechRules } from "./speech.js";
import type { AudioModelsOptions } from "./audio_source.js";

export { AudioError } from "./audio_source.js";

export const DEFAULT_MODEL: "v6";

/** What happens, as vad-web names it. */
export declare const Message: {
  readonly AudioFrame: "AUDIO_FRAME";
  readonly SpeechStart: "SPEECH_START";
  readonly VADMisfire: "VAD_MISFIRE";
  readonly SpeechEnd: "SPEECH_END";
  readonly SpeechStop: "SPEECH_STOP";
  readonly SpeechRealStart: "SPEECH_REAL_START";
  readonly FrameProcessed: "FRAME_PROCESSED";
};

interface SharedOptions extends SpeechRules {
  /** Samples of a frame, for options in frames: by default 512 for "v5" and "v6", else 1536. */
  frameSamples?: number;
  /** All of them are Silero v6 here. */
  model?: "v5" | "v6" | "legacy";
  weights?: "int8" | "int16" | "float32";
  /** Without meaning here. */
  baseAssetPath?: string;
  onnxWASMBasePath?: string;
  ortConfig?: (ort: any) => void;
  workletOptions?: AudioWorkletNodeOptions;
  workletURL?: string;
  processorType?: "AudioWorklet" | "ScriptProcessor" | "auto";
  modelURL?: string;
  modelFetcher?: (path: string) => Promise<ArrayBuffer>;
}

export interface RealTimeVADOptions extends SharedOptions {
  onFrameProcessed?: (probabilities: SpeechProbabilities, frame: Float32Array) => Promise<void> | void;
  onVADMisfire?: () => Promise<void> | void;
  onSpeechStart?: () => Promise<void> | void;
  onSpeechEnd?: (audio: Float32Array) => Promise<void> | void;
  onSpeechRealStart?: () => Promise<void> | void;
  audioContext?: AudioContext;
  getStream?: () => Promise<MediaStream>;
  pauseStream?: (stream: MediaStream) => Promise<void>;
  resumeStream?: (stream: MediaStream) => Promise<MediaStream>;
  startOnLoad?: boolean;
  /** As in earlier versions: a stream of one's own, or more constraints for getUserMedia. */
  stream?: MediaStream;
  additionalAudioConstraints?: MediaTrackConstraints;
  audio?: AudioModelsOptions;
}

export type NonRealTimeVADOptions = SharedOptions;

export function getDefaultRealTimeVADOptions(model?: "v5" | "v6" | "legacy"): RealTimeVADOptions;

export class MicVAD {
  private constructor();
  static new(options?: RealTimeVADOptions): Promise<MicVAD>;
  readonly options: RealTimeVADOptions;
  listening: boolean;
  /** Why it could not be started, if it could not. */
  errored: string | null;
  start(): Promise<void>;
  pause(): Promise<void>;
  destroy(): Promise<void>;
  setOptions(update: SpeechRules): void;
}

export class NonRealTimeVAD {
  private constructor();
  static new(options?: NonRealTimeVADOptions): Promise<NonRealTimeVAD>;
  readonly options: NonRealTimeVADOptions;
  readonly frameSamples: number;
  /** Times are in milliseconds. */
  run(inputAudio: Float32Array | readonly number[], sampleRate: number): AsyncGenerator<{ audio: Float32Array; start: number; end: number }>;
}

export declare const utils: {
  minFramesForTargetMS(targetDuration: number, frameSamples: number, sr?: number): number;
  arrayBufferToBase64(buffer: ArrayBuffer): string;
  encodeWAV(samples: Float32Array, format?: number, sampleRate?: number, numChannels?: number, bitDepth?: number): ArrayBuffer;
  audioFileToArray(audioFileData: Blob): Promise<{ audio: Float32Array; sampleRate: number }>;
};
