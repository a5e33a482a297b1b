// Runs plans on the bare VM, where they can be ended: a plan may take as long as it likes.

import { answer } from "../page/remote.js";
import { Model } from "../webrnn.js";

const REPEATS_MS = 50; // browsers round their clocks
let model = null;

answer({
  async open({ bytes }) {
    model = await Model.load(bytes);
    const { inputs, outputs, variant, carry = {}, about = null } = model;
    return { inputs, outputs, variant, carry, about };
  },

  /** The results of one run, and the mean time of as many as fit. */
  async run({ feeds }) {
    const named = Object.fromEntries(feeds.map(({ name, data, shape }) => [name, { data, shape }]));
    const results = model.run(named);
    const { shapes } = model;
    let runs = 0;
    const start = performance.now();
    do {
      model.run(named, { borrow: true });
      runs++;
    } while (performance.now() - start < REPEATS_MS);
    const ms = (performance.now() - start) / runs;
    const outputs = model.outputs.map(({ name, type }) => ({ name, type, shape: shapes[name], data: results[name] }));
    return { outputs, ms, transfer: outputs.map(({ data }) => data.buffer) };
  },
});
