// The worker of a ModelWorker: one model and its streams. Messages come and are answered in their order.

import { Model } from "./model.js";
import { answer, listen } from "./thread_port.js";

const streams = new Map();
let model = null;
let next = 0;

/** The results of one run, and their shapes. */
function run(runner, call, { feeds, sizes, targets }) {
  const out = targets && Object.fromEntries(targets.map(([name, type, length]) => [name, new globalThis[type](length)]));
  const results = runner[call](feeds, { sizes, out });
  return { results, shapes: runner.shapes };
}

const ACTS = {
  load({ plan, wasm, variant, limits }) {
    model = Model.loadSync(plan, { wasm, variant, limits });
    const { inputs, outputs, carry, about, timing, isPool } = model;
    return { inputs, outputs, carry, about, timing, isPool };
  },
  run: (given) => run(model, "run", given),
  stream({ options }) {
    const stream = model.stream(options);
    streams.set(next, stream);
    return { id: next++, delay: stream.delay, stride: stream.stride };
  },
  step: ({ id, ...given }) => run(streams.get(id), "step", given),
  flush({ id }) {
    const stream = streams.get(id);
    const results = stream.flush();
    return { results, shapes: stream.shapes };
  },
  state: ({ id }) => streams.get(id).state,
  restore: ({ id, state }) => streams.get(id).load(state),
  reset: ({ id }) => streams.get(id).reset(),
  dispose({ id }) {
    streams.get(id).dispose();
    streams.delete(id);
  },
};

listen((message) => answer(ACTS, message));
