// Filters that are bypassed and exchanged while sound plays: what goes in and comes out is recorded on the audio thread, and
// this thread computes the same again. Each function gives what was wrong.

import { AudioModels } from "./audio.js";
import { FADE } from "./audio_slot.js";
import { FilterRunner, audioOf } from "./audio_runner.js";
import { LATENCY, RATE, compare, expectRefusals, faded, fetched, floats, sampled } from "./audio_page.js";
import { Model, supportedVariants } from "./webrnn.js";

const BLOCK = 128;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Both signals from the first frame on, while `action` lasts. */
async function recorded(noisy, prepare, action) {
  const context = new AudioContext({ sampleRate: RATE });
  await context.suspend(); // until all is there
  await context.audioWorklet.addModule(new URL("audio_recorder.js", import.meta.url));
  const audio = await AudioModels.create(context);
  const errors = [];
  audio.addEventListener("error", ({ detail }) => errors.push(`${detail.name}: ${detail.error}`));
  const recorder = new AudioWorkletNode(context, "recorder", { numberOfInputs: 2, channelCount: 1, channelCountMode: "explicit" });
  const parts = [];
  recorder.port.onmessage = ({ data }) => parts.push(data);
  await prepare(audio);
  const buffer = context.createBuffer(1, noisy.length, RATE);
  buffer.copyToChannel(noisy, 0);
  const source = new AudioBufferSourceNode(context, { buffer, loop: true });
  source.connect(audio.node).connect(recorder, 0, 1);
  source.connect(recorder, 0, 0).connect(context.destination);
  source.start();
  await context.resume();
  await action(audio);
  await pause(500); // for what is still to be heard
  await context.suspend();
  await audio.close();
  await context.close();
  parts.forEach(({ frame }, i) => {
    if (frame !== parts[0].frame + i * parts[0].channels[0].length) errors.push(`the record has a gap at ${frame}`);
  });
  const joined = (channel) => Float32Array.from(parts.flatMap(({ channels }) => [...channels[channel]]));
  return { input: joined(0), output: joined(1), errors };
}

async function filtered(plan, input) {
  const wasm = await WebAssembly.compileStreaming(fetch(new URL(`wasm_${supportedVariants()[0]}.wasm`, import.meta.url)));
  const model = Model.loadSync(plan, { wasm });
  const runner = new FilterRunner(model, audioOf(model, RATE), BLOCK);
  const output = new Float32Array(input.length);
  for (let i = 0; i < input.length; i += BLOCK) runner.process(input.subarray(i, i + BLOCK), output.subarray(i, i + BLOCK), BLOCK);
  return output;
}

const firstDifference = (a, b, from) => {
  for (let i = from; i < a.length; i++) if (!Object.is(a[i], b[i])) return i;
  return a.length;
};
const from = (signal) => (i) => signal[i] ?? 0;

/** Bypassed, heard again, exchanged for a second instance, and not disturbed by plans that are refused. */
export async function live() {
  const [noisy, plan] = [await floats("noisy.f32"), new Uint8Array(await fetched("dtln.rnn"))];
  const found = [];
  const { input, output, errors } = await recorded(
    noisy.subarray(16000, 48000),
    (audio) => audio.load("denoise", plan.slice()),
    async (audio) => {
      await pause(500);
      await audio.bypass("denoise");
      await pause(300);
      await audio.bypass("denoise", false);
      await pause(300);
      await expectRefusals(audio, found);
      await audio.load("denoise", plan.slice());
      await pause(300);
    },
  );
  found.push(...errors);
  const wet = await filtered(plan, input);
  const dry = (i) => (i < LATENCY ? 0 : input[i - LATENCY]);
  // When the audio thread got a message only the sound says: each fade begins with a quantum.
  const begin = (expected, after) => Math.floor(firstDifference(output, sampled(expected, output.length), after) / BLOCK) * BLOCK;
  const off = begin(from(wet), 0);
  const bypassed = faded(from(wet), dry, off);
  const on = begin(bypassed, off + FADE);
  const again = faded(bypassed, from(wet), on);
  const swap = begin(again, on + FADE);
  const heard = swap - LATENCY; // a new filter is heard when it gives something
  const second = await filtered(plan, input.subarray(Math.max(0, heard)));
  const expected = faded(again, (i) => second[i - heard], swap);
  const times = [0, off, on, swap, output.length];
  if (times.some((time, i) => i && time <= times[i - 1])) found.push(`fades begin at ${times}`);
  return [...found, ...compare("live", output, sampled(expected, output.length))];
}
