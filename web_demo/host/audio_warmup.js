// Engines compile WebAssembly quickly first and well later, once it has been seen to run: until then a quantum can take several
// times as long. What is compiled for a module here is there for the audio thread as well.

import { Resampler, ResamplerKernels, ratioOf } from "./audio_resampler.js";
import { AUDIO_LIMITS, audioOf, audioStream } from "./audio_runner.js";
import { Model } from "./webrnn.js";

const STEPS = 8; // at a time, so that the page stays alive
const PATIENCE = 4; // times without getting faster
const MOST = 50;
const [QUANTUM, RESAMPLED] = [128, 200];

/** Lets the page do what it has to; timers would wait 4 ms each. */
function pause() {
  if (typeof globalThis.scheduler?.yield === "function") return scheduler.yield();
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

const ahead = new WeakMap(); // module -> WeakMap of plans: promise

/** Does it before the plan is used, once for each module; of bytes that nobody else has. */
export function warmUpAhead(plan, wasm) {
  if (!ahead.has(wasm)) ahead.set(wasm, new WeakMap());
  const known = ahead.get(wasm);
  if (!known.has(plan)) {
    const run = runUntilWarm(plan, wasm);
    run.catch(() => known.delete(plan));
    known.set(plan, run);
  }
  return known.get(plan);
}

/** Runs a plan in this thread until it gets no faster; what it says about audio. Raises if it cannot be run at all. */
export function warmUp(plan, wasm, rate) {
  return ahead.get(wasm)?.get(plan) ?? runUntilWarm(plan, wasm, rate);
}

async function runUntilWarm(plan, wasm, rate) {
  const model = Model.loadSync(plan, { wasm, limits: AUDIO_LIMITS });
  const audio = audioOf(model, rate ?? model.about.audio?.sample_rate);
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
  return audio;
}

const resampled = new WeakMap(); // module -> set of "from to"

/** The same of what resamples for a plan in a context of this rate, once for each module and rate. */
export function warmUpResamplers(wasm, { sample_rate, kind }, rate) {
  if (sample_rate === rate) return;
  warmUpResampler(wasm, rate, sample_rate);
  if (kind === "filter") warmUpResampler(wasm, sample_rate, rate);
}

function warmUpResampler(wasm, from, to) {
  if (!resampled.has(wasm)) resampled.set(wasm, new Set());
  if (resampled.get(wasm).has(`${from} ${to}`)) return;
  resampled.get(wasm).add(`${from} ${to}`);
  const resampler = new Resampler(new ResamplerKernels(wasm), ratioOf(from, to), QUANTUM);
  const samples = new Float32Array(QUANTUM);
  for (let i = 0; i < RESAMPLED; i++) resampler.push(samples, QUANTUM);
}
