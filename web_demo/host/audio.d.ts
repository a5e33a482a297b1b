export * from "./audio_models.js";
