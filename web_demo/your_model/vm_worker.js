// Runs plans on the bare VM: a run of a plan, which may be anybody's, ends when its time is up.

import { answer } from "../page/remote.js";
import { Model } from "../host/webrnn.js";
import { filled, random } from "./arrays.js";

const REPEATS_MS = 50; // browsers round their clocks
const LIMITS = { seconds: 10 };
let model = null;

/** The sizes that inputs leave open, as these feeds have them. */
function sizesOf(feeds) {
  const shapes = new Map(model.inputs.map(({ name, shape }) => [name, shape]));
  const pairs = feeds.flatMap(({ name, shape }) => shape.map((size, axis) => [shapes.get(name)?.[axis], size]));
  return Object.fromEntries(pairs.filter(([label]) => typeof label === "string"));
}

/** The results of one run, and the mean time of as many as fit. A plan whose states nobody gives is run as a stream. */
function runOnce(feeds) {
  const named = Object.fromEntries(feeds.map(({ name, data, shape }) => [name, { data, shape }]));
  const carried = new Set(Object.values(model.carry ?? {}));
  const isStream = model.inputs.some(({ name }) => !(name in named));
  const stream = isStream ? model.stream({ sizes: sizesOf(feeds) }) : null;
  const run = (options) => (stream ? stream.step(named, options) : model.run(named, options));
  const results = run();
  const shapes = { ...(stream ?? model).shapes };
  let runs = 0;
  const start = performance.now();
  do {
    run({ borrow: true });
    runs++;
  } while (performance.now() - start < REPEATS_MS);
  const ms = (performance.now() - start) / runs;
  stream?.dispose();
  const outputs = model.outputs.filter(({ name }) => !isStream || !carried.has(name));
  return { ms, outputs: outputs.map(({ name, type }) => ({ name, type, shape: shapes[name], data: results[name] })) };
}

/** The results of steps of one stream, one after the other; those that are carried are left out. */
function runSteps(feeds, steps, carry) {
  const stream = model.stream({ carry });
  const carried = Object.values(carry);
  const outputs = model.outputs.filter(({ name }) => !carried.includes(name));
  const found = new Map(outputs.map(({ name }) => [name, []]));
  const start = performance.now();
  for (let step = 0; step < steps; step++) {
    const named = Object.fromEntries(
      feeds.map(({ name, data, shape }) => [name, { data: part(data, step, steps), shape }]),
    );
    const results = stream.step(named);
    for (const [name, parts] of found) parts.push(results[name]);
  }
  const ms = (performance.now() - start) / steps;
  const { shapes } = stream;
  stream.dispose();
  return {
    ms,
    outputs: outputs.map(({ name, type }) => ({
      name,
      type,
      shape: [steps, ...shapes[name]],
      data: joined(found.get(name)),
    })),
  };
}

const part = (data, step, steps) => data.subarray((step * data.length) / steps, ((step + 1) * data.length) / steps);

function joined(parts) {
  const { length } = parts[0];
  const all = new parts[0].constructor(length * parts.length);
  parts.forEach((values, i) => all.set(values, i * length));
  return all;
}

/** The place of the first of `tries` with which the plan runs; else null, and what the first one met. */
function firstThatFits(tries) {
  let problem = null;
  for (const [place, feeds] of tries.entries()) {
    try {
      const made = ({ type, shape, fill }) => (fill === null ? random(type, shape) : filled(type, shape, fill));
      model.run(Object.fromEntries(feeds.map((feed) => [feed.name, { data: made(feed), shape: feed.shape }])));
      return { place, problem: null };
    } catch (error) {
      problem ??= error.message;
    }
  }
  return { place: null, problem };
}

answer({
  fits: async ({ tries }) => firstThatFits(tries),

  async open({ bytes }) {
    model = await Model.load(bytes, { limits: LIMITS });
    const { inputs, outputs, variant, carry = {}, about = null } = model;
    return { inputs, outputs, variant, carry, about };
  },

  async run({ feeds, steps = 1, carry = {} }) {
    const { outputs, ms } = steps > 1 ? runSteps(feeds, steps, carry) : runOnce(feeds);
    return { outputs, ms, transfer: [...new Set(outputs.map(({ data }) => data.buffer))] };
  },
});
