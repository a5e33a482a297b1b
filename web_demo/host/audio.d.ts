export * from "./audio_models.js";
export * from "./audio_source.js";
export * from "./denoise.js";
export * from "./speech.js";
export * from "./wake_word.js";
