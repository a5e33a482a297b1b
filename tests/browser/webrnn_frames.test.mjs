// Streams with a delay and a stride, in Node: node webrnn_frames.test.mjs <as webrnn.test.mjs>

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { withMeta } from "./plan_edits.mjs";
import { differences, readCase } from "./webrnn_cases.mjs";

const base = process.argv[2];
const { Model, PlanError, ShapeError, StreamError, WebrnnError } = await import(new URL("webrnn.js", base));
const read = async (file) => new Uint8Array(await readFile(new URL(`cases/${file}`, base)));
const wasm = await WebAssembly.compile(await readFile(new URL("wasm_relaxed.wasm", base)));
const names = JSON.parse(await readFile(new URL("cases/timed.json", base)));
const load = async (name) => Model.loadSync(await read(`timed_${name}.rnn`), { wasm });
const caseOf = async (name) => ({
  ...(await readCase(`timed_${name}`, "relaxed", read)),
  timing: JSON.parse(await readFile(new URL(`cases/timed_${name}.json`, base))).timing,
});

for (const name of names) {
  test(`all steps and the flush of ${name} are what Python gives`, async () => {
    const { timing, runs, results } = await caseOf(name);
    const stream = (await load(name)).stream();
    assert.deepEqual([stream.delay, stream.stride], timing);
    for (let round = 0; round < 2; round++) {
      for (const [i, feeds] of runs.entries()) {
        const borrow = round === 1;
        assert.deepEqual(differences(stream.step(feeds, { borrow }), stream.shapes, results[i]), []);
      }
      assert.deepEqual(differences(stream.flush(), stream.shapes, results.at(-1)), []);
      assert.throws(() => stream.flush(), (error) => error instanceof StreamError && /nothing was fed yet/.test(error.message));
    }
  });

  test(`a stream of ${name} goes on from a snapshot`, async () => {
    const { runs, results } = await caseOf(name);
    const model = await load(name);
    const stream = model.stream();
    for (const [at, feeds] of runs.entries()) {
      stream.step(feeds);
      const other = model.stream();
      other.load(shaped(model, stream.state, feeds));
      for (let i = at + 1; i < runs.length; i++) {
        assert.deepEqual(differences(other.step(runs[i]), other.shapes, results[i]), []);
      }
      if (at + 1 < runs.length) assert.deepEqual(differences(other.flush(), other.shapes, results.at(-1)), []);
    }
  });
}

/** A snapshot with the shapes of its states, whose batch is that of x. */
function shaped(model, state, { x }) {
  const sizes = { batch: x.shape[0], "2*batch": 2 * x.shape[0] };
  const shape = (name) => model.inputs.find((port) => port.name === name).shape.map((size) => sizes[size] ?? size);
  return Object.fromEntries(Object.entries(state).map(([name, data]) => [name, { data, shape: shape(name) }]));
}

test("arrays of the caller are as long as what is shown", async () => {
  const { runs, results } = await caseOf("strided");
  const stream = (await load("strided")).stream();
  const mine = { y: new Float32Array(results[0].y.data.length) };
  assert.equal(stream.step(runs[0], { out: mine }), mine);
  const long = { y: new Float32Array(1000) };
  assert.throws(() => stream.step(runs[1], { out: long }), (error) => error instanceof ShapeError && /out: output 'y'/.test(error.message));
  for (let i = 1; i < runs.length; i++) {
    const filled = stream.step(runs[i], { out: { y: new Float32Array(results[i].y.data.length) } });
    assert.deepEqual(filled.y, results[i].y.data);
  }
});

test("steps that are no whole strides are refused, and the stream stays as it was", async () => {
  const { runs, results } = await caseOf("strided");
  const stream = (await load("strided")).stream();
  stream.step(runs[0]);
  const { state } = stream;
  const feed = (frames) => ({ x: { data: new Float32Array(2 * 3 * frames), shape: [2, 3, frames] } });
  for (const frames of [5, 1, 0]) {
    const message = `input 'x' has ${frames} frames along axis 2; a step takes a positive multiple of 2`;
    assert.throws(() => stream.step(feed(frames)), (error) => error instanceof ShapeError && error.message === message);
  }
  assert.deepEqual(stream.state, state);
  assert.deepEqual(stream.step(runs[1]).y, results[1].y.data);
});

test("reset in the warm-up begins it anew", async () => {
  const { runs, results } = await caseOf("strided");
  const stream = (await load("strided")).stream();
  stream.step(runs[0]);
  stream.reset();
  for (const [i, feeds] of runs.entries()) assert.deepEqual(stream.step(feeds).y, results[i].y.data);
});

test("a flush needs something that was fed, and frames", async () => {
  const refuses = (stream, message) => assert.throws(() => stream.flush(), (error) => error instanceof StreamError && message.test(error.message));
  for (const name of ["centred", "causal"]) {
    const model = await load(name);
    const { runs } = await caseOf(name);
    const stream = model.stream();
    refuses(stream, /nothing was fed yet/);
    for (const feeds of runs) stream.step(feeds);
    const { state } = stream;
    stream.load(shaped(model, state, runs[0]));
    refuses(stream, /nothing was fed yet/);
    assert.deepEqual(stream.state, state);
    assert.equal(stream.step(runs[0]).y.length, runs[0].x.data.length);
    stream.reset();
    refuses(stream, /nothing was fed yet/);
    const other = model.stream({ carry: { history: "history.next" } });
    assert.deepEqual([other.delay, other.stride, model.stream({ carry: { ...model.carry } }).delay], [0, 1, name === "centred" ? 1 : 0]);
    refuses(other, /there are no frames/);
  }
});

const DAMAGE = {
  "no object": (meta) => (meta.timing = 5),
  "a list": (meta) => (meta.timing = []),
  "no stride": (meta) => (meta.timing.stride = 0),
  "a stride of half a frame": (meta) => (meta.timing.stride = 0.5),
  "no inputs": (meta) => (meta.timing.inputs = []),
  "inputs that are none": (meta) => (meta.timing.inputs = {}),
  "an input that is null": (meta) => (meta.timing.inputs = [null]),
  "an unknown input": (meta) => (meta.timing.inputs[0].name = "q"),
  "an input twice": (meta) => meta.timing.inputs.push(meta.timing.inputs[0]),
  "a state": (meta) => (meta.timing.inputs[0].name = "history"),
  "an axis that is not there": (meta) => (meta.timing.inputs[0].axis = 3),
  "a negative axis": (meta) => (meta.timing.outputs[0].axis = -1),
  "a carried output": (meta) => (meta.timing.outputs[0].name = "history.next"),
  "no rate": (meta) => (meta.timing.outputs[0].rate = 0),
  "a negative delay": (meta) => (meta.timing.outputs[0].delay = -1),
  "less than no frames": (meta) => (meta.timing.outputs[0].extra = -2),
  "a long delay": (meta) => (meta.timing.outputs[0].delay = 2 ** 31),
  "an end that is no state": (meta) => (meta.timing.end = "x"),
  "an end of another type": (meta) => (meta.timing.end = "history"),
  "a negative rest": (meta) => (meta.timing.rest = -1),
  "a rest that is null": (meta) => (meta.timing.rest = null),
  "no end": (meta) => delete meta.timing.end,
  "no position": (meta) => (meta.timing.position = null),
  "a position that is the end": (meta) => (meta.timing.position = "time.end"),
  "a position that is no state": (meta) => (meta.timing.position = "x"),
};

test("damaged metadata are refused", async () => {
  const plan = await read("timed_centred.rnn");
  for (const [what, edit] of Object.entries(DAMAGE)) {
    assert.throws(
      () => Model.loadSync(withMeta(plan, edit), { wasm }),
      (error) => error instanceof PlanError && error.message === "the metadata of time are damaged", what);
  }
  const absent = Model.loadSync(withMeta(plan, (meta) => delete meta.timing), { wasm });
  assert.equal(absent.stream().delay, 0);
});

test("metadata that promise frames that there are not do no harm", async () => {
  const plan = await read("timed_strided.rnn");
  const { runs } = await caseOf("strided");
  for (const [rate, delay, extra] of [[1, 2 ** 31 - 1, 0], [7, 3, 100], [2 ** 31 - 1, 1, 2 ** 31 - 1], [1, 5, -5]]) {
    const edit = (meta) => Object.assign(meta.timing.outputs[0], { rate, delay, extra });
    const stream = Model.loadSync(withMeta(plan, edit), { wasm }).stream();
    for (const act of [...runs.map((feeds) => () => stream.step(feeds)), () => stream.flush(), () => stream.flush()]) {
      try {
        act();
      } catch (error) {
        assert.ok(error instanceof WebrnnError, error.stack);
      }
    }
  }
});
