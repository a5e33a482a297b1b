// What `webrnn/audio` exports. Types: audio.d.ts.

export { AudioModels } from "./audio_models.js";
export { AudioError } from "./audio_source.js";
export { denoise, denoiseProcessor } from "./denoise.js";
export { detectSpeech, segments, segmentsOf } from "./speech.js";
export { wakeWord } from "./wake_word.js";
