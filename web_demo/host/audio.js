// What `webrnn/audio` exports. Types: audio.d.ts.

export { AudioModels } from "./audio_models.js";
