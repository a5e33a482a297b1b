// Microseconds that resampling takes of a quantum: 128 samples down to another rate, and what comes of them up again. Rounds of all
// variants are interleaved; the median and the quickest round are shown. Arguments: a folder with the host, rounds, pairs of rates.

import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const [folder, rounds, pairs] = process.argv.slice(2);
const base = pathToFileURL(`${folder}/`);
const { Resampler, ResamplerKernels, ratioOf } = await import(new URL("audio_resampler.js", base));
const [QUANTUM, QUANTA] = [128, 2000];

const samples = Float32Array.from({ length: QUANTUM }, (_, i) => Math.sin(i * i));

async function quanta(variant, from, to) {
  const module = await WebAssembly.compile(await readFile(new URL(`wasm_${variant}_core.wasm`, base)));
  const kernels = new ResamplerKernels(module);
  const began = performance.now();
  const down = new Resampler(kernels, ratioOf(from, to), QUANTUM);
  const up = new Resampler(kernels, ratioOf(to, from), QUANTUM);
  const tables = performance.now() - began;
  const run = () => {
    for (let i = 0; i < QUANTA; i++) up.push(down.output, down.push(samples, QUANTUM));
  };
  return { tables, run };
}

const shown = (value) => value.toFixed(1).padStart(8);
console.log("us a quantum of 128 samples".padEnd(32), "median", "quickest", "tables, ms");
for (const pair of pairs.split(",")) {
  const [from, to] = pair.split(":").map(Number);
  const variants = [];
  for (const variant of ["relaxed", "simd", "scalar"]) variants.push({ variant, times: [], ...(await quanta(variant, from, to)) });
  for (let round = 0; round <= rounds; round++) {
    for (const { run, times } of variants) {
      const began = performance.now();
      run();
      if (round) times.push(((performance.now() - began) * 1000) / QUANTA); // the first one warms up
    }
  }
  for (const { variant, times, tables } of variants) {
    times.sort((a, b) => a - b);
    console.log(`${from} -> ${to} -> ${from}, ${variant}`.padEnd(31), shown(times[times.length >> 1]), shown(times[0]), shown(tables));
  }
}
