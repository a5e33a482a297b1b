// One model on all engines: first each alone (load, check, warm up), then all in turns, so that a busy moment of the machine
// does not fall on one of them only.

import { download } from "../page/files.js";
import { calmest } from "./clock.js";
import { compare } from "./compare.js";

const floats = (bytes) => new Float32Array(bytes.buffer, 0, bytes.length >> 2);

async function files(model, needsOnnx) {
  const part = (suffix) => download(`timings/models/${model.name}.${suffix}`);
  const [plan, inputs, expected, onnx] = await Promise.all([
    part("rnn"),
    part("inputs.bin"),
    part("outputs.bin"),
    needsOnnx ? part("onnx") : null,
  ]);
  const values = floats(inputs);
  let at = 0;
  const feeds = model.inputs.map(({ name, shape }) => {
    const length = shape.reduce((a, b) => a * b, 1);
    if (at + length > values.length) throw new Error(`${model.name}.inputs.bin ends before '${name}' does`);
    return { name, shape, data: values.slice(at, (at += length)) };
  });
  return { plan, onnx, feeds, expected: floats(expected) };
}

/**
 * `workers` gives the Remote of each place, `pace` is {rounds, warmUpMs, sliceMs}. `report(rows)` is called after each round
 * with {engine: {ms, isBusy, difference, twins} | {error}}, `progress(text, fraction)` all the time.
 */
export async function measure(model, engines, workers, pace, report, progress) {
  const { expected, ...parts } = await files(
    model,
    engines.some(({ id }) => id === "numpy" || id === "peer"),
  );
  const names = model.outputs.map(({ name }) => name);
  const rows = {};
  for (const [i, { id, label, where }] of engines.entries()) {
    const share = (0.5 * i) / engines.length;
    const say = (text, fraction) =>
      progress(`${model.title} · ${label}: ${text}`, fraction === undefined || fraction === null ? share : fraction);
    say("loading");
    try {
      const { results } = await workers[where]().call(
        "prepare",
        { engine: id, names, pace, ...parts },
        { progress: say },
      );
      rows[id] = { ...(await compare(results, expected, model.digests)), samples: [] };
    } catch (error) {
      if (error.name === "AbortError") throw error;
      rows[id] = { error: error.message };
    }
  }
  for (let round = 0; round < pace.rounds; round++) {
    progress(`${model.title}: round ${round + 1} of ${pace.rounds}`, 0.5 + (0.5 * round) / pace.rounds);
    for (const { id, where } of round % 2 ? engines.toReversed() : engines) {
      const row = rows[id];
      if (row.error) continue;
      row.samples.push((await workers[where]().call("slice", { engine: id })).ms);
      Object.assign(row, calmest(row.samples));
    }
    report(rows);
  }
  for (const where of new Set(engines.map((engine) => engine.where))) await workers[where]().call("clear");
  return rows;
}
