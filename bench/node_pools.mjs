// A tick of a pool of streams in Node, beside onnxruntime-web batched by hand: its states are kept in typed arrays, and go in
// with the next batch. Both get the same frames; rounds are interleaved. Arguments: a folder with models.json, and the
// folder that onnxruntime-web is installed in.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, peers, rounds = "15", counts = "64,256"] = process.argv.slice(2);
const base = pathToFileURL(`${folder}/`);
const { Model } = await import(new URL("webrnn.js", base));
const ort = createRequire(pathToFileURL(`${peers}/`))("onnxruntime-web");
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "error";

const read = (file) => readFile(new URL(file, base));
const count = (shape) => shape.reduce((a, b) => a * b, 1);
const sized = (shape, n) => shape.map((size) => (size === "streams" ? n : size));

/** Noise that is the same each time. */
function noise(length, seed) {
  let state = seed | 1;
  return Float32Array.from({ length }, () => (((state = Math.imul(state, 1664525) + 1013904223) >>> 9) / 2 ** 23) * 2 - 1);
}

async function byHand({ onnx, input, states }, n) {
  const session = await ort.InferenceSession.create(await read(onnx), { executionProviders: ["wasm"], intraOpNumThreads: 1 });
  const shape = sized(input.shape, n);
  const kept = Object.fromEntries(states.map((state) => [state.input, new Float32Array(count(sized(state.shape, n)))]));
  return async (frames) => {
    const feeds = { [input.name]: new ort.Tensor("float32", frames, shape) };
    for (const state of states) feeds[state.input] = new ort.Tensor("float32", kept[state.input], sized(state.shape, n));
    const results = await session.run(feeds);
    for (const state of states) kept[state.input] = results[state.output].data;
    return results;
  };
}

/** `submit` hands in each frame by itself, `many` all of them at once. */
async function byPool({ plan, input }, n, way) {
  const model = await Model.load(await read(plan));
  const pool = model.pool({ maxStreams: n });
  const handles = Array.from({ length: n }, () => pool.open());
  const options = way === "many" ? { borrow: true } : {};
  return (rows) => {
    if (way === "many") pool.submitMany(handles, { [input.name]: rows.whole });
    else for (let i = 0; i < n; i++) pool.submit(handles[i], { [input.name]: rows.parts[i] });
    return pool.tick(options);
  };
}

const median = (times) => times.toSorted((a, b) => a - b)[times.length >> 1];

async function compare(entry, n) {
  const runners = {
    submit: await byPool(entry, n, "submit"),
    many: await byPool(entry, n, "many"),
    peer: await byHand(entry, n),
  };
  const length = count(sized(entry.input.shape, 1));
  const whole = noise(n * length, n);
  const parts = Array.from({ length: n }, (_, i) => whole.subarray(i * length, (i + 1) * length));
  const feedOf = { submit: { whole, parts }, many: { whole, parts }, peer: whole }; // streams are first in all inputs here
  const [first, wanted] = [runners.submit(feedOf.submit), await runners.peer(whole)];
  runners.many(feedOf.many);
  const output = wanted[entry.output].data;
  const found = Float32Array.from([...first.values()].flatMap((results) => [...results[entry.output]]));
  const difference = found.reduce((most, value, i) => Math.max(most, Math.abs(value - output[i])), 0);
  if (!(difference < 1e-4) || found.length !== output.length) throw new Error(`${entry.name}: results differ by ${difference}`);
  const times = { submit: [], many: [], peer: [] };
  const once = async (kind) => {
    const start = performance.now();
    await runners[kind](feedOf[kind]);
    return performance.now() - start;
  };
  // Until engines have compiled what is called often
  for (const kind of Object.keys(times)) for (const end = performance.now() + 300; performance.now() < end; ) await once(kind);
  const repeats = Math.max(1, Math.ceil(20 / (await once("peer"))));
  for (let round = 0; round < Number(rounds); round++) {
    for (const kind of Object.keys(times)) {
      await once(kind);
      const start = performance.now();
      for (let i = 0; i < repeats; i++) await runners[kind](feedOf[kind]);
      times[kind].push((performance.now() - start) / repeats);
    }
  }
  const ratio = (kind) => median(times[kind].map((time, i) => time / times.peer[i])).toFixed(2);
  const ms = Object.keys(times).map((kind) => median(times[kind]).toFixed(3));
  console.log(`| ${[entry.name, n, ...ms, ratio("submit"), ratio("many")].join(" | ")} |`);
}

console.log("| model | streams | submit, ms | submitMany, ms | onnxruntime-web, ms | submit / it | submitMany / it |");
console.log("|---|---|---|---|---|---|---|");
const entries = JSON.parse(await read("models.json"));
for (const entry of entries) for (const n of counts.split(",")) await compare(entry, Number(n));
