// Engines compile WebAssembly quickly first and well later, once it has been seen to run: until then a quantum can take several
// times as long. What is compiled for a module here is there for the audio thread as well.

import { AUDIO_LIMITS, audioOf, audioStream } from "./audio_runner.js";
import { Model } from "./webrnn.js";

const STEPS = 8; // at a time, so that the page stays alive
const PATIENCE = 4; // times without getting faster
const MOST = 50;

const pause = () => new Promise((resolve) => setTimeout(resolve));

/** Runs a plan in this thread until it gets no faster. Raises if it cannot be run at all. */
export async function warmUp(plan, wasm, rate) {
  const model = Model.loadSync(plan, { wasm, limits: AUDIO_LIMITS });
  const audio = audioOf(model, rate);
  const { frame, input } = audio;
  const stream = audioStream(model, audio);
  const feeds = { [input]: Float32Array.from({ length: frame }, (_, i) => Math.sin(i * i) / 10) };
  let best = Infinity;
  for (let times = 0, since = 0; times < MOST && since < PATIENCE; times++) {
    const began = performance.now();
    for (let i = 0; i < STEPS; i++) stream.step(feeds, { borrow: true });
    const ms = performance.now() - began;
    since = ms < 0.9 * best ? 0 : since + 1;
    best = Math.min(best, ms);
    await pause();
  }
}
