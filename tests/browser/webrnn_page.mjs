// webrnn.js in a page, a worker and an AudioWorklet; each function gives what was wrong.

import { check, readCase } from "./webrnn_cases.js";
import { checkLimits } from "./webrnn_limits.js";

const fetched = async (url) => {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: HTTP ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
};
/** What the engine is expected to run, the fastest first: WebKitGTK has no relaxed SIMD. */
const EXPECTED = navigator.userAgent.includes("AppleWebKit") && !navigator.userAgent.includes("Chrome")
  ? ["simd", "scalar"]
  : ["relaxed", "simd", "scalar"];
const read = (file) => fetched(new URL(`cases/${file}`, import.meta.url));

export async function page() {
  const webrnn = await import("./webrnn.js");
  const names = JSON.parse(new TextDecoder().decode(await read("cases.json")));
  const found = [];
  const variants = webrnn.supportedVariants();
  if (variants.join() !== EXPECTED.join()) found.push(`supported: ${variants}`);
  for (const variant of variants) found.push(...(await check(webrnn, names, variant, {}, read)));
  const broken = (await read("gru.rnn")).slice(0, -1);
  const message = await webrnn.Model.load(broken).then(() => "none", (error) => `${error.name}: ${error.message}`);
  if (message !== "PlanError: the metadata do not fit into the file") found.push(message);
  return found;
}

/** Two functions that take 100,000 steps each: as they should be, and with an object that is allocated in each. */
export async function manySteps() {
  const webrnn = await import("./webrnn.js");
  const { carry } = await readCase("gru_stream", "relaxed", read);
  const stream = (await webrnn.Model.load(await read("gru_stream.rnn"))).stream({ carry });
  const feeds = { x: new Float32Array(12) };
  const [borrow, fill] = [{ borrow: true }, { out: { y: new Float32Array(20) } }];
  const kept = { last: null };
  const repeated = (step) => () => {
    for (let i = 0; i < 100_000; i++) step();
  };
  const pool = (await webrnn.Model.load(await read("pool_gru_of_one_step.rnn"))).pool({ maxStreams: 8 });
  const handles = Array.from({ length: 8 }, () => pool.open());
  const [frame, fillAll] = [{ x: new Float32Array(4) }, { out: { y: new Float32Array(8 * 5) } }];
  const tick = (options) => {
    for (let i = 0; i < handles.length; i++) pool.submit(handles[i], frame);
    pool.tick(options);
  };
  return {
    pool_borrow: repeated(() => tick(borrow)),
    pool_out: repeated(() => tick(fillAll)),
    borrow: repeated(() => stream.step(feeds, borrow)),
    out: repeated(() => stream.step(feeds, fill)),
    one_object: repeated(() => (kept.last = { ...stream.step(feeds, borrow) })),
  };
}

export async function limits() {
  const webrnn = await import("./webrnn.js");
  return checkLimits(webrnn, async (file, given) => webrnn.Model.load(await read(`${file}.rnn`), { limits: given }));
}

export async function limitsInAudioWorklet() {
  const context = new OfflineAudioContext(1, 128, 48000);
  await context.audioWorklet.addModule(new URL("webrnn_processor.js", import.meta.url));
  const files = ["nested_loops", "endless_sequence", "counted_loops"];
  const plans = Object.fromEntries(await Promise.all(files.map(async (file) => [file, await read(`${file}.rnn`)])));
  const wasm = await fetched(new URL(`wasm_${EXPECTED[0]}.wasm`, import.meta.url));
  const node = new AudioWorkletNode(context, "webrnn-limits", { processorOptions: { plans, wasm } });
  const found = new Promise((resolve) => (node.port.onmessage = ({ data }) => resolve(data)));
  await context.startRendering();
  return found;
}

export async function worker() {
  const started = new Worker(new URL("webrnn_worker.js", import.meta.url), { type: "module" });
  const found = await new Promise((resolve) => {
    started.onmessage = ({ data }) => resolve(data);
    started.onerror = ({ message }) => resolve([`worker: ${message}`]);
  });
  started.terminate();
  return found;
}

/** Each 128 samples of the input are a frame, and each result 128 samples of the output. */
export async function audioWorklet() {
  const { carry, runs, results } = await readCase("audio", EXPECTED[0], read);
  const samples = runs.length * 128;
  const context = new OfflineAudioContext(1, samples, 48000);
  await context.audioWorklet.addModule(new URL("webrnn_processor.js", import.meta.url));
  const sound = context.createBuffer(1, samples, 48000);
  runs.forEach(({ x }, index) => sound.copyToChannel(x.data, 0, index * 128));
  const [plan, wasm] = [await read("audio.rnn"), await fetched(new URL(`wasm_${EXPECTED[0]}.wasm`, import.meta.url))];
  const node = new AudioWorkletNode(context, "webrnn", { processorOptions: { plan, wasm, carry } });
  const failed = new Promise((resolve) => (node.onprocessorerror = () => resolve(["the processor failed"])));
  node.port.onmessage = ({ data }) => console.error(data);
  const source = new AudioBufferSourceNode(context, { buffer: sound });
  source.connect(node).connect(context.destination);
  source.start();
  const rendered = context.startRendering().then((buffer) => {
    const given = buffer.getChannelData(0);
    const same = ({ y }, index) => y.data.every((sample, i) => Object.is(sample, given[128 * index + i]));
    return results.map(same).flatMap((right, index) => (right ? [] : [`quantum ${index} differs`]));
  });
  return Promise.race([failed, rendered]);
}
