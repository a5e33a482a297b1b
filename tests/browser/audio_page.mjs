// Audio plans on the audio thread of a page: each function gives what was wrong.

import { AudioModels } from "./audio.js";
import { FADE } from "./audio_slot.js";
import { FilterRunner, audioOf } from "./audio_runner.js";
import { Model, supportedVariants } from "./webrnn.js";

export const RATE = 16000;

export async function fetched(name) {
  const response = await fetch(new URL(`audio/${name}`, import.meta.url));
  if (!response.ok) throw new Error(`${name}: HTTP ${response.status}`);
  return response.arrayBuffer();
}
export const floats = async (name) => new Float32Array(await fetched(name));
const url = (name) => new URL(`audio/${name}.rnn`, import.meta.url);

/** Renders samples through plans; `during` is {sample: action}, called when rendering has come there. */
async function render(samples, prepare, options) {
  const { outputs, ...rest } = await renderChannels([samples], prepare, options);
  return { output: outputs[0], ...rest };
}

async function renderChannels(channels, prepare, { during = {}, rate = RATE, length = channels[0].length, ...options } = {}) {
  const context = new OfflineAudioContext(channels.length, length, rate);
  const audio = await AudioModels.create(context, options);
  const results = [];
  const errors = [];
  audio.addEventListener("result", ({ detail }) => results.push(detail));
  audio.addEventListener("error", ({ detail }) => errors.push(`${detail.name}: ${detail.error.name}`));
  await prepare(audio);
  const sound = context.createBuffer(channels.length, channels[0].length, rate);
  channels.forEach((samples, channel) => sound.copyToChannel(samples, channel));
  const source = new AudioBufferSourceNode(context, { buffer: sound });
  source.connect(audio.node).connect(context.destination);
  source.start();
  for (const [sample, action] of Object.entries(during)) {
    context.suspend(Number(sample) / rate).then(async () => {
      await action(audio);
      context.resume();
    });
  }
  const rendered = await context.startRendering();
  const outputs = channels.map((_, channel) => rendered.getChannelData(channel));
  const latency = await audio.latency(); // all results were posted before the answer
  return { outputs, results, errors, latency };
}

/** Whether rendering can wait at a sample; `during` needs it, and Firefox has it not. */
export const canSuspend = () => typeof OfflineAudioContext.prototype.suspend === "function";

/** What is not the same, bit for bit, from a sample on. */
export function compare(what, given, expected, from = 0, to = expected.length) {
  const count = Math.min(to, given.length);
  for (let i = from; i < count; i++) {
    if (!Object.is(given[i], expected[i])) return [`${what}: sample ${i} is ${given[i]}, not ${expected[i]}`];
  }
  return count > from ? [] : [`${what}: there is nothing to compare`];
}

const probabilities = (results) => Float32Array.from(results, ({ values }) => values[0]);

export async function speech() {
  const [noisy, clean, speaking] = await Promise.all(["noisy.f32", "dtln.f32", "silero.f32"].map(floats));
  const found = [];
  for (const sendBytes of [false, true]) {
    const prepare = async (audio) => {
      const { kind, frame } = await audio.load("denoise", url("dtln"));
      if (kind !== "filter" || frame !== 512) found.push(`${kind} of ${frame}`);
      await audio.load("vad", await fetched("silero.rnn"));
    };
    const length = noisy.length + 384;
    const { output, results, errors, latency } = await render(noisy, prepare, { sendBytes, length });
    found.push(...errors);
    if (latency !== 384) found.push(`a latency of ${latency}`);
    found.push(...compare("DTLN", output.subarray(latency), clean));
    found.push(...compare("silence before the signal", output, new Float32Array(latency)));
    found.push(...compare("Silero", probabilities(results), speaking));
    results.forEach(({ name, sample }, i) => name === "vad" && sample === 512 * (i + 1) || found.push(`${name} at ${sample}`));
  }
  return found;
}

export const LATENCY = 384;
const delayed = (samples, from) => (i) => (i < from ? 0 : samples[i - from]);

/** What is heard when a fade from one signal to another begins at a sample; both are functions of the time. */
export function faded(from, to, begin) {
  return (i) => {
    const share = Math.min(1, Math.max(0, (i - begin + 1) / FADE));
    return share === 0 ? from(i) : share === 1 ? to(i) : Math.fround(from(i) + share * (to(i) - from(i)));
  };
}
export const sampled = (signal, length) => Float32Array.from({ length }, (_, i) => signal(i));

export async function bypass() {
  const [noisy, clean] = await Promise.all(["noisy.f32", "dtln.f32"].map(floats));
  const during = { 32000: (audio) => audio.bypass("denoise"), 64000: (audio) => audio.bypass("denoise", false) };
  const { output, errors } = await render(noisy.subarray(0, 80000), (audio) => audio.load("denoise", url("dtln")), { during });
  const [wet, dry] = [delayed(clean, LATENCY), delayed(noisy, LATENCY)];
  const expected = faded(faded(wet, dry, 32000), wet, 64000);
  return [...errors, ...compare("bypass", output, sampled(expected, 80000))];
}

export async function swap() {
  const [noisy, clean, later] = await Promise.all(["noisy.f32", "dtln.f32", "dtln_later.f32"].map(floats));
  const during = {
    48000: (audio) => audio.load("denoise", url("dtln")),
    64000: (audio) => audio.load("denoise", url("overlapping")),
    73600: (audio) => audio.remove("denoise"),
  };
  const prepare = async (audio) => {
    await audio.load("denoise", url("overlapping"));
    await audio.load("denoise", url("dtln")); // before anything is heard: there is nothing to fade from
  };
  const { output, errors, latency } = await render(noisy.subarray(0, 80000), prepare, { during });
  const dry = delayed(noisy, LATENCY);
  let expected = faded(delayed(clean, LATENCY), delayed(later, 48000 + LATENCY), 48000 + LATENCY);
  expected = faded(faded(expected, dry, 64000 + LATENCY), (i) => noisy[i], 73600);
  return [...errors, ...(latency ? ["latency"] : []), ...compare("swap", output, sampled(expected, 80000))];
}

const BAD = {
  "not_there.rnn": /Error: .*not_there.rnn could not be loaded: HTTP 404/,
  "noisy.f32": /^PlanError: this is not a plan file/,
  "odd_rate.rnn": /^PlanError: audio at 16000 Hz cannot be brought to 15999 Hz: .*use new AudioContext/,
  "no_audio.rnn": /^PlanError: the plan says nothing about audio/,
  "wrong_frame.rnn": /^PlanError: the plan does not take frames of 256/,
  "wrong_hop.rnn": /^PlanError: .*every 129 samples/,
  "wrong_output.rnn": /^PlanError: the plan does not give frames of 128 as 'z'/,
};

const refusals = (found) => async (promise, what, pattern) => {
  const text = await promise.then(() => "nothing", String);
  if (!pattern.test(text)) found.push(`${what}: ${text}`);
};

/** Plans and names that are refused; the audio goes on. */
export async function expectRefusals(audio, found) {
  const expectRefusal = refusals(found);
  for (const [file, pattern] of Object.entries(BAD)) {
    await expectRefusal(audio.load("denoise", new URL(`audio/${file}`, import.meta.url)), file, pattern);
  }
  const plan = new Uint8Array(await fetched("dtln.rnn"));
  await expectRefusal(audio.load("denoise", plan.slice(0, -9)), "truncated", /^PlanError: the metadata do not fit/);
  await expectRefusal(audio.load("denoise", plan.slice(0, 20)), "short", /^PlanError: the file is shorter/);
  plan[100] ^= 0x40;
  await expectRefusal(audio.load("denoise", plan), "damaged", /^PlanError: /);
  await expectRefusal(audio.load("denoise", url("silero")), "another kind", /^PlanError: 'denoise' is the name of a filter/);
  await expectRefusal(audio.load("x", url("silero"), { listens: "y" }), "listens", /^PlanError: it can listen to "input"/);
  await expectRefusal(audio.bypass("x"), "no such filter", /^PlanError: there is no filter 'x'/);
  await expectRefusal(audio.remove("x"), "nothing to remove", /^PlanError: there is no filter 'x'/);
}

export async function badPlans() {
  const [noisy, clean] = await Promise.all(["noisy.f32", "dtln.f32"].map(floats));
  const found = [];
  const expectRefusal = refusals(found);
  const prepare = async (audio) => {
    await audio.load("denoise", url("dtln"));
    await expectRefusals(audio, found);
  };
  const during = { 16000: (audio) => expectRefusals(audio, found) };
  const { output, errors } = await render(noisy.subarray(0, 32000), prepare, { during });
  found.push(...errors, ...compare("audio went on", output, sampled(delayed(clean, LATENCY), 32000)));
  await render(noisy.subarray(0, 4800), async (audio) => {
    await expectRefusal(audio.load("d", url("dtln")), "44101 Hz", /^PlanError: .*new AudioContext\(\{ sampleRate: 16000 \}\)/);
    await expectRefusal(audio.mix("d", 0.5), "no such filter", /^PlanError: there is no filter 'd'/);
  }, { rate: 44101 });
  const context = new OfflineAudioContext(1, 128, 16000);
  await expectRefusal(AudioModels.create(context, { channels: "all" }), "channels", /^TypeError: channels is "mono" or "each"/);
  await expectRefusal(AudioModels.create(context, { channelCount: 0 }), "channelCount", /^TypeError: channelCount/);
  return found;
}

/** Stereo at the rates of devices: the mean, and each channel, to the bit what Python gives. */
export async function rates() {
  const latencies = JSON.parse(new TextDecoder().decode(await fetched("latencies.json")));
  const found = [];
  for (const rate of [48000, 44100]) {
    const names = ["left", "right", "dtln", "left_dtln", "right_dtln", "silero"];
    const [left, right, clean, cleanLeft, cleanRight, speaking] = await Promise.all(names.map((name) => floats(`${name}_${rate}.f32`)));
    for (const channels of ["mono", "each"]) {
      const prepare = async (audio) => {
        await audio.load("denoise", url("dtln"));
        await audio.load("vad", url("silero"));
      };
      const { outputs, results, errors, latency } = await renderChannels([left, right], prepare, { rate, channels });
      found.push(...errors);
      if (latency !== latencies[rate].dtln[128]) found.push(`${rate} Hz: a latency of ${latency}`);
      const expected = channels === "each" ? [cleanLeft, cleanRight] : [clean, clean];
      outputs.forEach((output, i) => found.push(...compare(`${rate} Hz, ${channels}, ${i}`, output.subarray(latency), expected[i])));
      found.push(...compare(`Silero at ${rate} Hz`, probabilities(results), speaking, 0, results.length));
      const ends = results.every(({ sample }, i) => sample === Math.floor((512 * (i + 1) * rate) / 16000));
      if (!ends || results.length < speaking.length - 1) found.push(`${rate} Hz: results at the wrong samples`);
    }
  }
  return found;
}

/** Wet and dry by halves, without a click. */
export async function mix() {
  const [noisy, clean] = await Promise.all(["noisy.f32", "dtln.f32"].map(floats));
  const during = { 16000: (audio) => audio.mix("denoise", 0.5), 24064: (audio) => audio.mix("denoise", 0) };
  const { output, errors } = await render(noisy.subarray(0, 32000), (audio) => audio.load("denoise", url("dtln")), { during });
  let share = 1;
  const expected = sampled((i) => {
    const [wet, dry] = [clean, noisy].map((signal) => delayed(signal, LATENCY)(i));
    if (i >= 16000) share = Math.max(i < 24064 ? 0.5 : 0, share - 0.5 / FADE);
    return share === 1 ? wet : share === 0 ? dry : dry + share * (wet - dry);
  }, 32000);
  return [...errors, ...compare("mix", output, expected)];
}

/** Plans that load but cannot go on. */
export async function failingPlans() {
  const samples = new Float32Array(4096).fill(0.5);
  samples.fill(100, 2000, 2008); // no index of "picky"
  const prepare = async (audio) => {
    await audio.load("picky", url("picky"));
    await audio.load("choosy", url("choosy"), { listens: "output" });
    await audio.load("vad", url("sums"), { listens: "output" });
  };
  const { output, results, errors } = await render(samples, prepare);
  const found = errors.join() === "picky: ShapeError,choosy: ShapeError" ? [] : [`errors: ${errors}`];
  const expected = Float32Array.from(samples, (sample, i) => (i < 1920 ? 0 : sample)); // element 0; then, from this quantum on, dry
  found.push(...compare("dry after a failure", output, expected));
  const sums = Float32Array.from({ length: 40 }, (_, i) => expected.subarray(0, 100 * (i + 1)).reduce((a, b) => a + b, 0));
  return [...found, ...compare("sums", probabilities(results.filter(({ name }) => name === "vad")), sums)];
}

export async function notFinite() {
  const samples = new Float32Array(1024).fill(2);
  samples.fill(0, 512, 520);
  const loads = [];
  const prepare = async (audio) => {
    audio.addEventListener("load", ({ detail }) => loads.push(detail));
    await audio.load("reciprocal", url("reciprocal"));
  };
  const { output } = await render(samples, prepare, { interval: 0.032 });
  const found = compare("silence instead of infinity", output, Float32Array.from(samples, (sample) => (sample ? 0.5 : 0)));
  const counts = loads.map(({ restarts, quanta, missed }) => [restarts, quanta, missed]).join(" ");
  if (counts !== "0,4,0 1,4,0") found.push(`restarts, quanta and missed quanta: ${counts}`);
  return found;
}

/** Filters one after the other; an analyser behind them says of which input samples it speaks. */
export async function chain() {
  const noisy = (await floats("noisy.f32")).subarray(0, 8192);
  const prepare = async (audio) => {
    await audio.load("first", url("overlapping"));
    await audio.load("second", url("double"));
    await audio.load("sums", url("sums"), { listens: "output" });
  };
  const { output, results, latency } = await render(noisy, prepare);
  const found = latency === LATENCY ? [] : [`latency ${latency}`];
  found.push(...compare("doubled", output, sampled((i) => 2 * delayed(noisy, LATENCY)(i), 8192)));
  if (results.length !== 81 || results.some(({ sample }, i) => sample !== 100 * (i + 1) - LATENCY)) found.push("results");
  return found;
}

/** A plan for the core module beside those that need others, however modules come to the audio thread. */
export async function rare() {
  const noisy = (await floats("noisy.f32")).subarray(0, 2048);
  const found = [];
  for (const options of [{}, { sendBytes: true }]) {
    const prepare = async (audio) => {
      await audio.load("first", url("double"));
      await audio.load("second", url("wide_double")); // the full one
      await audio.load("third", url("small_double")); // the simd one
      await audio.load("fourth", url("small_wide_double")); // the full simd one
    };
    const { output, errors } = await render(noisy, prepare, options);
    found.push(...errors, ...compare(JSON.stringify(options), output, noisy.map((sample) => 16 * sample)));
  }
  const [fastest] = supportedVariants();
  const wasm = new URL(`wasm_${fastest}_core.wasm`, import.meta.url);
  const isRefused = { wide_double: "the full module", ...(fastest === "relaxed" && { small_double: "a build whose" }) };
  await render(noisy, async (audio) => {
    for (const [name, reason] of Object.entries(isRefused)) {
      const text = await audio.load("second", url(name)).then(() => "nothing", String);
      if (!text.startsWith(`PlanError: the plan needs ${reason}`)) found.push(text);
    }
  }, { wasm });
  return found;
}

/** Two nodes in one context do not know of each other; a closed one is silent. */
export async function twoNodes() {
  const noisy = (await floats("noisy.f32")).subarray(0, 2048);
  const context = new OfflineAudioContext(1, noisy.length, RATE);
  const nodes = [await AudioModels.create(context), await AudioModels.create(context), await AudioModels.create(context)];
  for (const audio of nodes) await audio.load("double", url("double"));
  await nodes[1].remove("double");
  await nodes[2].close();
  const sound = context.createBuffer(1, noisy.length, RATE);
  sound.copyToChannel(noisy, 0);
  const source = new AudioBufferSourceNode(context, { buffer: sound });
  source.connect(nodes[0].node).connect(nodes[1].node).connect(context.destination);
  source.start();
  const output = (await context.startRendering()).getChannelData(0);
  return compare("doubled once", output, sampled((i) => 2 * noisy[i], noisy.length));
}

/** DTLN and behind it Silero in real time, for so many seconds: what the audio thread said of itself and what was wrong. */
export async function realTime(seconds) {
  const [noisy, plans] = [await floats("noisy.f32"), await Promise.all(["dtln.rnn", "silero.rnn"].map(fetched))];
  const context = new AudioContext({ sampleRate: RATE });
  await context.suspend(); // until all plans are there
  const audio = await AudioModels.create(context);
  const [results, loads, found] = [[], [], []];
  audio.addEventListener("result", ({ detail }) => results.push(detail));
  audio.addEventListener("load", ({ detail }) => loads.push(detail));
  audio.addEventListener("error", ({ detail }) => found.push(`${detail.name}: ${detail.error}`));
  await audio.load("vad", plans[1], { listens: "output" });
  await audio.load("denoise", plans[0]);
  const sound = context.createBuffer(1, noisy.length, RATE);
  sound.copyToChannel(noisy, 0);
  const source = new AudioBufferSourceNode(context, { buffer: sound, loop: true });
  source.connect(audio.node).connect(context.destination);
  const begin = Math.ceil(context.currentTime) + 1; // a second that both clocks can say exactly
  source.start(begin);
  await context.resume();
  await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
  const played = context.currentTime;
  await context.suspend();
  await audio.close();
  await context.close();
  found.push(...(await expectedResults(results, noisy, plans, begin * RATE)));
  return { found, loads, played, results: results.length };
}

/** The same on this thread: results have to have the same bits. */
async function expectedResults(results, noisy, [dtln, silero], begin) {
  const wasm = await WebAssembly.compileStreaming(fetch(new URL(`wasm_${supportedVariants()[0]}.wasm`, import.meta.url)));
  const load = (plan) => Model.loadSync(plan, { wasm });
  const filter = load(dtln);
  const runner = new FilterRunner(filter, audioOf(filter, RATE), 128);
  const stream = load(silero).stream();
  const [block, chunk] = [new Float32Array(128), new Float32Array(512)];
  const first = results[0]?.sample - 512 + LATENCY; // when the node began to run
  for (let i = 0; i < results.length; i++) {
    for (let quantum = 0; quantum < 4; quantum++) {
      const from = first + 512 * i + 128 * quantum - begin;
      for (let j = 0; j < 128; j++) block[j] = from + j < 0 ? 0 : noisy[(from + j) % noisy.length];
      runner.process(block, chunk.subarray(128 * quantum), 128);
    }
    const { sample, values } = results[i];
    if (sample !== results[0].sample + 512 * i) return [`result ${i} is of sample ${sample}`];
    const [expected] = stream.step({ samples: chunk }).probability;
    if (!Object.is(values[0], expected)) return [`result ${i} is ${values[0]}, not ${expected}`];
  }
  return results.length ? [] : ["no results"];
}
