// Runs the demo's GRU on every variant of the kernels, compares it with the native results and times it.

import { Gru } from "./gru.js";
import { fetchBytes, supportedVariants } from "./instance.js";
import { fetchJson, Kernels } from "./kernels.js";

export const VARIANTS = ["relaxed", "simd", "scalar"];
const ROUNDS = 15;
const WARM_UP_MS = 250; // until the optimizing compiler has taken over
const SLICE_MS = 40; // browsers round their clocks, some to a millisecond

async function floats(url) {
  const { buffer, length } = new Uint8Array(await fetchBytes(url));
  return new Float32Array(buffer, 0, length >> 2);
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

function timed(run, count) {
  const start = performance.now();
  for (let i = 0; i < count; i++) run();
  return performance.now() - start;
}

/** How many runs fill a slice. */
function warmUp(run) {
  const end = performance.now() + WARM_UP_MS;
  let runs = 1;
  let elapsed = 0;
  while (performance.now() < end) {
    elapsed = timed(run, runs);
    if (elapsed < SLICE_MS) runs *= 2;
  }
  return Math.max(1, Math.round((runs * SLICE_MS) / Math.max(elapsed, 1)));
}

function compare(states, expected) {
  const bits = (array) => new Uint32Array(array.buffer, array.byteOffset, array.length);
  const [ours, theirs] = [bits(states), bits(expected)];
  return {
    difference: states.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i])), 0),
    identical: ours.every((word, i) => word === theirs[i]),
  };
}

/**
 * `progress(fraction, text)` is called as it goes. The result has a row for each variant: {variant, ms, against}, where `against`
 * has the difference to each native build, or {variant, unsupported} or {variant, error}.
 */
export async function measure(baseUrl, progress = () => {}) {
  progress(0, "Loading the model");
  const file = (name) => new URL(name, baseUrl);
  const [model, native, weights, expected] = await Promise.all([
    fetchJson(file("model.json")),
    fetchJson(file("native.json")),
    floats(file("weights.bin")),
    floats(file("expected.bin")),
  ]);
  const size = model.steps * model.hidden;
  const supported = supportedVariants();
  const rows = VARIANTS.map((variant) => ({ variant, unsupported: !supported.includes(variant) }));

  for (const [i, row] of rows.entries()) {
    if (row.unsupported) continue;
    progress((0.4 * i) / rows.length, `Compiling and warming up: ${row.variant}`);
    try {
      const gru = new Gru(await Kernels.load(baseUrl, row.variant), model, weights);
      gru.run();
      row.against = native.builds.map((build, b) => ({
        spec: build.spec,
        ...compare(gru.states.array, expected.subarray(b * size, (b + 1) * size)),
      }));
      row.run = () => gru.run();
      row.count = warmUp(row.run);
    } catch (error) {
      row.error = error.message;
    }
  }

  // In turns, so that a busy moment of the machine does not fall on one variant alone.
  const samples = new Map(rows.filter((row) => row.count).map((row) => [row, []]));
  for (let round = 0; round < ROUNDS; round++) {
    progress(0.4 + (0.6 * round) / ROUNDS, `Measuring: round ${round + 1} of ${ROUNDS}`);
    for (const [row, times] of samples) times.push(timed(row.run, row.count) / row.count);
  }
  for (const [row, times] of samples) row.ms = median(times);
  progress(1, "Done");
  return { model, native, rows: rows.map(({ run, count, ...row }) => row) };
}
