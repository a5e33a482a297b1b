// webrnn.js in Node: node webrnn.test.mjs <file URL of a folder with the host, and cases/ in it>

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { Session } from "node:inspector/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { withMeta, withMetaText } from "./plan_edits.mjs";
import { check, differences, readCase } from "./webrnn_cases.mjs";
import { checkLimits } from "./webrnn_limits.mjs";

const base = process.argv[2];
const webrnn = await import(new URL("webrnn.js", base));
const { ERRORS } = await import(new URL("plan_file.js", base));
const { Model, ModelError, PlanError, ShapeError, supportedVariants } = webrnn;

const read = async (file) => new Uint8Array(await readFile(new URL(`cases/${file}`, base)));
const expectations = JSON.parse(await readFile(new URL("cases/expectations.json", base)));
const names = JSON.parse(await readFile(new URL("cases/cases.json", base)));
const load = async (name, options) => Model.load(await read(`${name}.rnn`), options);
const variants = supportedVariants();
const frame = () => ({ x: Float32Array.from({ length: 12 }, (_, i) => Math.sin(i)) });

test("the errors are those of the VM", () => assert.deepEqual(ERRORS, expectations.errors));

test("the fastest variant is taken", async () => {
  assert.deepEqual(variants, ["relaxed", "simd", "scalar"]);
  assert.equal((await load("gru")).variant, "relaxed");
});

for (const variant of variants) {
  test(`${variant}: the bits that Python computes`, async () => {
    assert.deepEqual(await check(webrnn, names, variant, {}, read), []);
  });
}

test("limits end runs", async () => {
  for (const variant of variants) {
    assert.deepEqual(await checkLimits(webrnn, (name, limits) => load(name, { variant, limits })), []);
  }
});

test("plan and wasm from URLs, bytes or a module", async () => {
  const url = new URL("cases/gru.rnn", base);
  const wasm = new URL("wasm_simd.wasm", base);
  const bytes = await readFile(wasm);
  const { runs } = await readCase("gru", "simd", read);
  const expected = (await Model.load(url, { variant: "simd" })).run(runs[0]);
  for (const given of [wasm, wasm.href, bytes, await WebAssembly.compile(bytes)]) {
    assert.deepEqual((await Model.load(url.href, { wasm: given })).run(runs[0]), expected);
  }
  const [plan] = [await readFile(url)];
  assert.deepEqual(Model.loadSync(plan, { wasm: bytes }).run(runs[0]), expected);
  const copy = plan.buffer.slice(plan.byteOffset, plan.byteOffset + plan.length);
  assert.deepEqual(Model.loadSync(copy, { wasm: new WebAssembly.Module(bytes) }).run(runs[0]), expected);
});

test("a plan that needs the full module gets it, and others the core module", async () => {
  const [core, full] = await Promise.all(["_core", ""].map((kind) => readFile(new URL(`wasm_simd${kind}.wasm`, base))));
  const plan = await read("determinants.rnn");
  const { runs } = await readCase("determinants", "simd", read);
  const expected = Model.loadSync(plan, { wasm: full }).run(runs[0]);
  assert.deepEqual((await Model.load(plan, { variant: "simd" })).run(runs[0]), expected);
  const refusal = { name: "PlanError", message: "the plan needs the full module of kernels, and this is a smaller one" };
  assert.throws(() => Model.loadSync(plan, { wasm: core }), refusal);
  await assert.rejects(Model.load(plan, { wasm: core }), refusal); // what is given is taken, and nothing else
  // one beside the other
  const gru = await readCase("gru", "simd", read);
  const [common, rare] = await Promise.all([load("gru", { variant: "simd" }), load("determinants", { variant: "simd" })]);
  const wanted = Model.loadSync(await read("gru.rnn"), { wasm: core }).run(gru.runs[0]);
  for (let i = 0; i < 2; i++) {
    assert.deepEqual(common.run(gru.runs[0]), wanted);
    assert.deepEqual(rare.run(runs[0]), expected);
  }
});

test("the module for plans that learn is taken if it is asked for, and the full one where it is not enough", async () => {
  const training = await readFile(new URL("wasm_simd_training.wasm", base));
  const gru = await readCase("gru", "simd", read);
  const plan = await read("gru.rnn");
  const wanted = Model.loadSync(plan, { wasm: training }).run(gru.runs[0]);
  assert.deepEqual((await Model.load(plan, { variant: "simd", module: "training" })).run(gru.runs[0]), wanted);
  assert.deepEqual((await Model.load(plan, { variant: "simd" })).run(gru.runs[0]), wanted);
  const { runs } = await readCase("determinants", "simd", read);
  const rare = await load("determinants", { variant: "simd", module: "training" });
  assert.deepEqual(rare.run(runs[0]), (await load("determinants", { variant: "simd" })).run(runs[0]));
  const message = "unknown module small: expected one of core, training";
  await assert.rejects(Model.load(plan, { module: "small" }), { message });
});

test("a plan that needs an unfused module gets the simd one, and all variants give the same bits", async () => {
  for (const name of ["small_gru", "small_determinants"]) {
    const { runs, results } = await readCase(name, "scalar", read);
    for (const [asked, taken] of [["relaxed", "simd"], ["simd", "simd"], ["scalar", "scalar"], [undefined, "simd"]]) {
      const model = await load(name, { variant: asked });
      assert.equal(model.variant, taken);
      assert.deepEqual(differences(model.run(runs[0]), model.shapes, results[0]), [], `${name}, ${asked}`);
    }
    const plan = await read(`${name}.rnn`);
    const wasm = await readFile(new URL("wasm_relaxed.wasm", base));
    const message = "the plan needs a build whose multiply-adds are not fused, and those of this one are";
    assert.throws(() => Model.loadSync(plan, { wasm }), { name: "PlanError", message });
    await assert.rejects(Model.load(plan, { wasm }), { name: "PlanError", message }); // what is given is taken
  }
});

test("half floats in a file are widened, wherever it comes from", async () => {
  const file = await read("half_gru.rnn");
  assert.equal(file[4], 6);
  const { runs, results } = await readCase("half_gru", "simd", read);
  const options = { variant: "simd" };
  const wasm = await readFile(new URL("wasm_simd_core.wasm", base));
  const respond = (body, headers) => new Response(body, { headers });
  const sources = [
    new URL("cases/half_gru.rnn", base), file, file.slice().buffer, Uint8Array.of(0, ...file).subarray(1), new Blob([file]),
    respond(file), respond(file, { "content-length": "1" }),
  ];
  const models = await Promise.all(sources.map((source) => Model.load(source, options)));
  for (const model of [...models, Model.loadSync(file, { wasm })]) {
    assert.deepEqual(differences(model.run(runs[0]), model.shapes, results[0]), []);
  }
});

test("every half float is widened exactly", async () => {
  const file = await read("every_half.rnn");
  assert.equal(file[4], 6);
  const { y } = (await Model.load(file)).run({ x: Float32Array.of(1) });
  const exponents = Array.from({ length: 31 }, (_, e) => e);
  const sizes = exponents.flatMap((e) =>
    Array.from({ length: 1024 }, (_, m) => (e ? (1 + m / 1024) * 2 ** (e - 15) : m * 2 ** -24)));
  const expected = [...sizes, Infinity];
  assert.deepEqual(y, Float32Array.of(...expected, ...expected.map((size) => -size)));
});

test("files with damaged half floats are refused", async () => {
  const file = await read("half_gru.rnn");
  const changed = (words) => {
    const bytes = file.slice();
    const view = new DataView(bytes.buffer);
    for (const [index, change] of Object.entries(words)) {
      view.setInt32(4 * index, change(view.getInt32(4 * index, true)), true);
    }
    return bytes;
  };
  const [table, stretches] = [/^the table of stretches does not fit/, /^the stretches of the file are damaged$/];
  for (const [bytes, message] of [
    [changed({ 2: (length) => length + 4 }), stretches], [changed({ 2: () => 0x7fffffff }), stretches],
    [changed({ 3: () => -1 }), table], [changed({ 3: () => 0x7fffffff }), table], [changed({ 3: () => 0 }), stretches],
    [changed({ 4: () => 0x7fffffff }), stretches], [changed({ 4: () => -4 }), stretches],
    [changed({ 4: (length) => length + 8, 6: () => -8 }), stretches], [changed({ 5: (count) => count + 1 }), stretches],
    [changed({ 4: (length) => length - 2, 5: (count) => count + 1 }), stretches],
    [file.slice(0, -1), stretches], [Uint8Array.of(...file, 0), stretches], [file.slice(0, 16), table],
    [changed({ 1: () => 7 }), /of version 7, this webrnn reads versions 1 to 6/],
  ]) {
    const before = process.memoryUsage().arrayBuffers;
    await assert.rejects(Model.load(bytes), { name: "PlanError", message });
    assert.ok(process.memoryUsage().arrayBuffers - before < 4e6);
  }
});

test("inputs and outputs are described", async () => {
  const { inputs, outputs } = await load("lstm_symbolic");
  assert.deepEqual(inputs[0], { name: "x", type: "float32", shape: ["time", "batch", 12] });
  assert.deepEqual(outputs.map(({ name }) => name), ["y", "y_h", "y_c"]);
  assert.deepEqual((await load("types")).inputs.map(({ type }) => type), ["int32", "int64", "bool", "float32"]);
  assert.deepEqual((await load("countdown")).outputs[1], { name: "all", type: "float32", shape: [null, 2] });
});

test("results are copies, borrowed ones are views that the next call overwrites", async () => {
  const model = await load("gru");
  const { runs } = await readCase("gru", "relaxed", read);
  const copied = model.run(runs[0]);
  const kept = copied.y.slice();
  const borrowed = model.run(runs[0], { borrow: true });
  assert.deepEqual(borrowed.y, kept);
  model.run(runs[1]);
  assert.deepEqual(copied.y, kept);
  assert.notDeepEqual(borrowed.y, kept);
  assert.equal(model.run(runs[0], { borrow: true }), borrowed);
});

test("a bool is anything but zero", async () => {
  const { runs, results } = await readCase("types", "relaxed", read);
  const given = (await load("types")).run({ ...runs[0], p: Uint8Array.of(255, 0, 2) });
  assert.deepEqual(given.not_p, results[0].not_p.data);
  assert.deepEqual(given.kept, results[0].kept.data);
});

test("feeds of a stream need no shapes where sizes are given", async () => {
  const model = await load("lstm_symbolic");
  const sizes = { time: 2, batch: 3 };
  const stream = model.stream({ carry: { h: "y_h", c: "y_c" }, sizes });
  assert.equal(stream.step({ x: new Float32Array(72) }).y.length, 120);
  assert.deepEqual(stream.shapes, { y: [2, 1, 3, 20] });
  assert.equal(stream.state.h.length, 60);
  const feeds = { x: new Float32Array(72), h: new Float32Array(60), c: new Float32Array(60) };
  assert.deepEqual(model.run(feeds, { sizes }).y.length, 120);
  const other = { sizes: { time: 3, batch: 3 } };
  assert.throws(() => model.run(feeds, other), /input 'x' has 72 elements, but \[3,3,12\] has 108/);
});

test("states are saved, restored and reset", async () => {
  const model = await load("lstm_stream");
  const { carry, runs } = await readCase("lstm_stream", "relaxed", read);
  const stream = model.stream({ carry });
  assert.deepEqual(stream.state, { h: new Float32Array(20), c: new Float32Array(20) });
  const first = runs.map((feeds) => stream.step(feeds).y);
  stream.reset();
  assert.deepEqual(stream.state.h, new Float32Array(20));
  for (const feeds of runs.slice(0, 3)) stream.step(feeds);
  const state = stream.state;
  assert.deepEqual(stream.step(runs[3]).y, first[3]);
  assert.deepEqual(stream.step(runs[4]).y, first[4]);
  stream.load(state);
  assert.deepEqual(stream.state, state);
  const other = model.stream({ carry });
  other.load({ h: { data: state.h, shape: [1, 1, 20] }, c: state.c });
  state.h.fill(9);
  for (const one of [stream, other]) assert.deepEqual(runs.slice(3).map((feeds) => one.step(feeds).y), first.slice(3));
});

for (const name of ["stored", "stored_start"]) {
  test(`${name}: the plan's own states, from where they start`, async () => {
    const model = await load(name);
    const { carry, about, runs, results } = await readCase(name, "relaxed", read);
    assert.deepEqual(model.carry, carry);
    assert.deepEqual(model.about, about);
    const stream = model.stream();
    for (let time = 0; time < 2; time++) {
      for (const [index, feeds] of runs.entries()) {
        const given = stream.step(feeds);
        for (const output in results[index]) assert.deepEqual(given[output], results[index][output].data, output);
      }
      stream.reset();
    }
    const sized = model.stream({ sizes: { time: 1, batch: 2 } });
    const [state] = Object.values(sized.state);
    assert.equal(state.some((element) => element !== 0), name === "stored_start");
    assert.deepEqual(state.slice(0, 20), state.slice(20));
  });
}

test("rings stay where they are while the frames of a step fit beside what is needed", async () => {
  const model = await load("rings");
  const { runs, results } = await readCase("rings", "relaxed", read);
  const stream = model.stream();
  const same = (index) => assert.deepEqual(stream.step(runs[index]).y, results[index].y.data, `step ${index}`);
  for (let time = 0; time < 2; time++) {
    runs.forEach((_, index) => same(index));
    stream.reset();
  }
  for (let index = 0; index < 5; index++) same(index);
  const saved = stream.state;
  for (let index = 5; index < 8; index++) same(index);
  const other = model.stream();
  const shapes = Object.fromEntries(model.inputs.map(({ name, shape }) => [name, shape]));
  const sized = ([name, data]) => [name, { data, shape: shapes[name].map((size) => (typeof size === "string" ? 2 : size)) }];
  other.load(Object.fromEntries(Object.entries(saved).map(sized)));
  for (let index = 5; index < runs.length; index++) {
    assert.deepEqual(other.step(runs[index]).y, results[index].y.data, `restored, step ${index}`);
  }
  for (let index = 8; index < runs.length; index++) same(index);
  other.dispose();
  stream.dispose();
});

test("a stream whose rings are disposed of gives each place back once", async () => {
  const model = await load("rings");
  const { runs } = await readCase("rings", "relaxed", read);
  const used = () => {
    const stream = model.stream();
    for (const feeds of runs) stream.step(feeds);
    const second = model.stream(); // what was given back twice would be the place of both
    const [first, other] = [stream, second].map((one) => one.step(runs[0]).y);
    assert.notDeepEqual(first, other);
    assert.deepEqual(other, model.stream().step(runs[0]).y);
    stream.dispose();
    second.dispose();
  };
  for (let time = 0; time < 4; time++) used();
});

test("other states than the plan's", async () => {
  const model = await load("stored");
  const { runs } = await readCase("stored", "relaxed", read);
  const crossed = model.stream({ carry: { h: "y_c", c: "y_h" } });
  crossed.step(runs[0]);
  assert.notDeepEqual(crossed.step(runs[0]).y, model.stream().step(runs[0]).y);
  const h = { data: new Float32Array(40), shape: [1, 2, 20] };
  assert.ok(model.stream({ carry: {} }).step({ ...runs[0], h, c: h }).y);
});

test("streams and runs of one model do not disturb each other, also when memory grows", async () => {
  const model = await load("lstm_symbolic");
  const carry = { h: "y_h", c: "y_c" };
  const feed = (seed, time, batch) => {
    const data = Float32Array.from({ length: time * batch * 12 }, (_, i) => Math.sin(seed + i));
    return { x: { data, shape: [time, batch, 12] } };
  };
  const alone = [0, 1, 2, 3].map(() => model.stream({ carry })).map((stream, seed) =>
    [1, 5, 2].map((time) => stream.step(feed(seed, time, 1 + seed)).y));
  const streams = alone.map(() => model.stream({ carry }));
  const together = alone.map(() => []);
  for (const time of [1, 5, 2]) {
    for (const [seed, stream] of streams.entries()) {
      together[seed].push(stream.step(feed(seed, time, 1 + seed)).y);
      model.stream({ carry }).step(feed(7, 60, 100 * time));
    }
  }
  assert.deepEqual(together, alone);
});

test("a stream that is disposed of gives its memory back", async () => {
  const bytes = await readFile(new URL("wasm_relaxed.wasm", base));
  const model = await load("gru_stream", { wasm: bytes });
  const { carry } = await readCase("gru_stream", "relaxed", read);
  const buffers = new Set();
  for (let i = 0; i < 500; i++) {
    const stream = model.stream({ carry });
    buffers.add(stream.step(frame(), { borrow: true }).y.buffer);
    stream.dispose();
    assert.throws(() => stream.step(frame()));
  }
  assert.equal(buffers.size, 1);
});

test("wrong feeds are named and leave the stream as it was", async () => {
  const { carry, runs, results } = await readCase("gru_stream", "relaxed", read);
  const model = await load("gru_stream");
  const stream = model.stream({ carry });
  const wrong = (feeds, message) => {
    assert.throws(() => stream.step(feeds), { name: "ShapeError", message });
  };
  for (const [index, feeds] of runs.entries()) {
    wrong({}, /^input 'x' is missing; there is 'x'$/);
    wrong({ x: undefined }, /^input 'x' is missing; there is 'x'$/);
    wrong({ X: feeds.x }, /^no input 'X'; there is 'x'$/);
    wrong(feeds.x.data, /^inputs are given by name, not as Float32Array; there is 'x'$/);
    wrong({ x: null }, /^input 'x' takes a Float32Array, or \{data, shape\} with one, not object$/);
    wrong({ x: new Float64Array(12) }, /takes a Float32Array.* not Float64Array/);
    wrong({ x: [1, 2] }, /takes a Float32Array.* not object/);
    wrong({ x: new Float32Array(11) }, /^input 'x' has 11 elements, but \[1,1,12\] has 12$/);
    wrong({ x: { ...feeds.x, shape: [1, 12] } }, /^input 'x' has shape \[1,12\], the plan takes \[1,1,12\]$/);
    wrong({ ...feeds, h: new Float32Array(20) }, /^no input 'h'; there is 'x'$/);
    assert.deepEqual(stream.step(feeds).y, results[index].y.data);
  }
  assert.throws(() => stream.load({}), /^ShapeError: input 'h' is missing; there is 'h'$/);
  assert.throws(() => stream.load({ h: new Float32Array(3) }), /input 'h' has 3 elements/);
  assert.deepEqual(stream.state.h, results.at(-1).y_h.data);
  assert.throws(() => model.stream(), /does not say which states are carried: export it with carry, or name them/);
  assert.throws(() => model.stream({ carry: { q: "y_h" } }), /carry: there is no input 'q'/);
  assert.throws(() => model.stream({ carry: { h: "q" } }), /carry: there is no output 'q'/);
  assert.throws(() => model.stream({ carry: { h: "y_h", x: "y_h" } }), /output 'y_h' is carried to two inputs/);
  assert.throws(() => model.run({ x: runs[0].x, H: runs[0].x }), { name: "ShapeError", message: "no input 'H'; there are 'x', 'h'" });
  const crossed = model.stream({ carry: { x: "y_h" } });
  assert.throws(() => crossed.step({ h: new Float32Array(20) }), /carry: output 'y_h' has shape \[1,1,20\]/);
});

test("symbolic sizes must be said, fit and stay", async () => {
  const model = await load("lstm_symbolic");
  const x = (time, batch) => ({ x: { data: new Float32Array(time * batch * 12), shape: [time, batch, 12] } });
  const stream = model.stream({ carry: { h: "y_h", c: "y_c" } });
  assert.throws(() => stream.step({ x: new Float32Array(12) }), /how large is time, batch\? Pass \{data, shape\}/);
  assert.throws(() => stream.state, /how large is time, batch/);
  assert.deepEqual(stream.shapes, {});
  const shaped = (...shape) => ({ x: { data: new Float32Array(12), shape } });
  assert.throws(() => stream.step(shaped(-1, -1, 12)), /-1 is not a size/);
  assert.throws(() => stream.step(shaped(2 ** 32 + 1, 1, 12)), /4294967297 is not a size/);
  assert.throws(() => stream.step(shaped(2 ** 20, 2 ** 20, 12)), /has 12 elements, but/);
  stream.step(x(2, 3));
  assert.throws(() => stream.step(x(2, 4)), /input 'h' has shape \[1,4,20\] here, its state has \[1,3,20\]/);
  stream.step(x(5, 3));
  stream.reset();
  assert.equal(stream.step(x(2, 4)).y.length, 160);
});

test("what goes wrong inside names the node", async () => {
  const gather = await load("gather");
  assert.deepEqual(gather.run({ i: BigInt64Array.of(1n) }).y, Float32Array.of(2));
  assert.throws(() => gather.run({ i: BigInt64Array.of(9n) }), (error) =>
    error instanceof ShapeError && error.node === "pick" && error.message === "node 'pick': an index is out of range");
  const endless = await load("endless");
  assert.throws(() => endless.run({ x: new Float32Array(1) }), (error) =>
    error instanceof ModelError && error.node === "forever" && /did not end within its limit/.test(error.message));
});

test("damaged plans raise PlanError", async () => {
  const plan = await read("gru.rnn");
  const words = (edit) => {
    const copy = plan.slice();
    edit(new Int32Array(copy.buffer), copy);
    return copy;
  };
  const rejected = (bytes, message) => assert.rejects(Model.load(bytes), { name: "PlanError", message });
  await rejected(plan.slice(0, 20), /shorter than the header/);
  await rejected(words((w) => (w[0] = 1)), /not a plan file/);
  await rejected(words((w) => (w[1] = 99)), /of version 99, this webrnn reads versions 1 to 6/);
  await rejected(words((w) => w[4]++), /the header is damaged|metadata/);
  await rejected(words((w) => (w[4] = -1)), /table of sizes/);
  await rejected(words((w) => (w[8] = 1 << 24)), /the header is damaged/);
  await rejected(words((w) => (w[13] += 4)), /metadata/);
  await rejected(plan.slice(0, -1), /metadata do not fit/);
  await rejected(words((w, bytes) => (bytes[bytes.length - 1] = 0)), /the metadata are damaged/);
  await rejected(words((w) => (w[15] = 77)), /the metadata of 'x' are damaged/);
});

test("damaged states and metadata raise PlanError", async () => {
  const plan = await read("stored_start.rnn");
  const rejected = (edit, message) => {
    const bytes = withMeta(plan, (meta) => edit(meta, meta.states[0]));
    return assert.rejects(Model.load(bytes), { name: "PlanError", message });
  };
  await rejected((meta) => (meta.about = [1]), /the metadata are damaged/);
  await rejected((meta) => (meta.states = {}), /the metadata are damaged/);
  await rejected((meta) => (meta.states = [null]), /carry 'undefined' to 'undefined', which the plan does not have/);
  await rejected((meta, state) => (state.input = "q"), /to 'q', which the plan does not have/);
  await rejected((meta, state) => (state.output = "y"), /carry 'y' to .* which is of another kind/);
  await rejected((meta, state) => meta.states.push({ ...state }), /carry a state twice/);
  for (const start of [
    null, 3, {}, { shape: [1, 20] }, { shape: [1, 20], offset: -1 }, { shape: [1, 20], offset: 1e9 },
    { shape: [2, 20], offset: 0 }, { shape: [20], offset: 0 }, { shape: [1, 20], offset: 0.5 },
  ]) await rejected((meta, state) => (state.start = start), /the metadata of .* are damaged/);
});

test("metadata with anything anywhere raise PlanError, or do no harm", async () => {
  const wasm = await WebAssembly.compile(await readFile(new URL("wasm_relaxed.wasm", base)));
  const plan = await read("stored_start.rnn");
  const { runs } = await readCase("stored_start", "relaxed", read);
  const parts = [null, 3, -1, "x", [], {}, [[]], ["n", 2], [{}], 1e300, true, { external: 0 }, { shape: [1, 20] }, 0.5];
  let seed = 1;
  const random = (below) => (seed = (seed * 48271) % 0x7fffffff) % below;
  const damage = (part) => {
    const keys = Object.keys(part);
    const key = keys[random(keys.length)];
    const inner = part[key];
    if (inner && typeof inner === "object" && Object.keys(inner).length && random(5)) damage(inner);
    else part[key] = parts[random(parts.length)];
  };
  const seen = { ran: 0, PlanError: 0, ShapeError: 0 };
  for (let i = 0; i < 1000; i++) {
    const bytes = withMetaText(plan, (text) => {
      const meta = JSON.parse(text);
      damage(meta);
      const damaged = JSON.stringify(meta);
      return random(10) ? damaged : damaged.slice(0, random(damaged.length));
    });
    try {
      const model = Model.loadSync(bytes, { wasm });
      model.stream(Object.keys(model.carry).length ? {} : { carry: {} }).step(runs[0]);
      seen.ran++;
    } catch (error) {
      assert.ok(error.name in seen, error.stack);
      seen[error.name]++;
    }
  }
  assert.ok(seen.ran > 50 && seen.PlanError > 250, JSON.stringify(seen));
});

test("plans with flipped bits raise what they should, or run", async () => {
  const bytes = await readFile(new URL("wasm_relaxed_core.wasm", base));
  const wasm = await WebAssembly.compile(bytes);
  const messages = new Map();
  let ran = 0;
  for (const name of ["gru", "scan", "lstm_symbolic"]) {
    const plan = await read(`${name}.rnn`);
    const { runs } = await readCase(name, "relaxed", read);
    const head = new DataView(plan.buffer).getInt32(8, true) * 4; // data follow: flips there change numbers only
    for (let bit = 0; bit < 8 * head; bit += 37) {
      const damaged = plan.slice();
      damaged[bit >> 3] ^= 1 << (bit & 7);
      try {
        Model.loadSync(damaged, { wasm }).run(runs[0]);
        ran++;
      } catch (error) {
        const expected = [PlanError, ShapeError, ModelError].some((Kind) => error instanceof Kind);
        assert.ok(expected, `bit ${bit} of ${name}: ${error.stack}`);
        messages.set(error.message, (messages.get(error.message) ?? 0) + 1);
      }
    }
  }
  assert.ok(ran > 10);
  for (const text of [
    "the header is damaged", "a table is damaged", "an instruction is damaged",
    "node 'GRU': an instruction's operands do not fit each other",
  ]) assert.ok(messages.get(text), `${text}: not among ${[...messages.keys()].join("\n")}`);
});

test("what cannot be loaded is named", async () => {
  await assert.rejects(load("gru", { variant: "avx2" }), /unknown variant avx2: expected one of relaxed, simd, scalar/);
  await assert.rejects(Model.load(new URL("missing.rnn", base)), /missing.rnn could not be loaded/);
  await assert.rejects(Model.load(undefined), /a URL, bytes, a Blob or a Response is expected, not undefined/);
  await assert.rejects(load("gru", { wasm: new Uint8Array(8) }), /is not a module of kernels that can run here/);
});

test("results in the arrays that are given", async () => {
  const model = await load("lstm_stream");
  const { carry, runs } = await readCase("lstm_stream", "relaxed", read);
  const [stream, other] = [model.stream({ carry }), model.stream({ carry })];
  const out = { y: new Float32Array(20) };
  for (const feeds of runs) {
    assert.equal(stream.step(feeds, { out }), out);
    assert.deepEqual(out.y, other.step(feeds).y);
  }
  const before = stream.state;
  for (const [wrong, message] of [
    [{ y: new Float32Array(19) }, /^out: output 'y' needs a Float32Array of 20 elements, not Float32Array of 19$/],
    [{ y: new Float64Array(20) }, /needs a Float32Array of 20 elements, not Float64Array of 20/],
    [{ y: null }, /not object of undefined/],
    [{ q: out.y }, /^no output 'q'; there is 'y'$/],
    [{ y: out.y, y_h: out.y }, /^no output 'y_h'; there is 'y'$/],
  ]) assert.throws(() => stream.step(runs[0], { out: wrong }), { name: "ShapeError", message });
  assert.deepEqual(stream.state, before);
  assert.deepEqual(stream.step(runs[0], { out: {} }), {});
  const feeds = { ...runs[0], h: new Float32Array(20), c: new Float32Array(20) };
  const all = { y_c: new Float32Array(20) };
  assert.deepEqual(model.run(feeds, { out: all }).y_c, model.run(feeds).y_c);
});

test("an output that is as long as a loop runs fills the start of its array", async () => {
  const model = await load("countdown");
  const out = { all: new Float32Array(20).fill(7) };
  const feeds = { x: Float32Array.of(5.5, 1) };
  const { all } = model.run(feeds);
  model.run(feeds, { out });
  assert.deepEqual(out.all.slice(0, all.length), all);
  assert.ok(all.length < 20 && out.all.subarray(all.length).every((element) => element === 7));
});

test("states grow, and shrink", async () => {
  for (const name of ["cache", "late_cache"]) {
    const stream = (await load(name)).stream();
    const step = (value, go = 1) => {
      const feeds = { x: Float32Array.of(value, 1), ...(name === "cache" ? {} : { go: Uint8Array.of(go) }) };
      return stream.step(feeds).y[0];
    };
    if (name === "late_cache") step(0, 0);
    else assert.equal(step(0), 0); // it is empty at first
    let sum = 0;
    for (let i = 1; i <= 300; i++) {
      sum += i;
      assert.equal(step(i), Math.fround(sum / (i + 1)));
    }
    assert.equal(stream.state.past.length, 602);
    if (name === "late_cache") {
      assert.equal(step(7, 0), 7);
      assert.deepEqual(stream.state.past, Float32Array.of(7, 1));
      assert.equal(step(9), 8);
    } else {
      stream.reset();
      assert.equal(step(5), 5);
    }
    stream.load({ past: { data: new Float32Array(6).fill(3), shape: [3, 2] } });
    assert.equal(step(7), 4);
  }
});

test("a plain array says how large its only open axis is", async () => {
  const { runs, results } = await readCase("rnn", "relaxed", read);
  const given = (await load("rnn")).run({ x: runs[0].x.data, h: runs[0].h.data });
  assert.deepEqual(given.y, results[0].y.data);
  const model = await load("rnn");
  assert.throws(() => model.run({ x: new Float32Array(95), h: runs[0].h.data }), /95 elements|how large/);
});

test("states are as large as they will be, where no feed says it", async () => {
  for (const batch of [1, 3]) {
    const model = await load("unnamed_batch");
    const stream = model.stream();
    const x = { data: Float32Array.from({ length: batch * 24 }, (_, i) => Math.sin(i)), shape: [2, batch, 12] };
    const { y } = stream.step({ x });
    assert.equal(stream.state.h.length, batch * 20);
    const h = { data: new Float32Array(batch * 20), shape: [1, batch, 20] };
    assert.deepEqual(y, model.run({ x, h }).y);
  }
});

test("progress", async () => {
  const bytes = { "/m.rnn": await readFile(new URL("cases/gru.rnn", base)) };
  bytes["/k.wasm"] = await readFile(new URL("wasm_simd.wasm", base));
  const types = { "/k.wasm": "application/wasm", "/m.rnn": "application/octet-stream" };
  const server = createServer((request, response) => {
    const body = bytes[request.url.replace("/chunked", "")];
    const sized = !body || request.url.startsWith("/chunked") ? {} : { "content-length": body.length };
    response.writeHead(body ? 200 : 404, { "content-type": types[request.url] ?? "text/plain", ...sized });
    response.end(body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const at = (path) => `http://127.0.0.1:${server.address().port}${path}`;
  try {
    const events = [];
    const total = bytes["/m.rnn"].length + bytes["/k.wasm"].length;
    const model = await Model.load(at("/m.rnn"), { wasm: at("/k.wasm"), onProgress: (event) => events.push(event) });
    const { runs } = await readCase("gru", "simd", read);
    assert.deepEqual(model.run(runs[0]).y, (await load("gru", { variant: "simd" })).run(runs[0]).y);
    assert.deepEqual(events.at(-1), { loaded: total, total });
    assert.ok(events.every(({ loaded }, i) => i === 0 || loaded > events[i - 1].loaded));
    let last;
    await Model.load(at("/chunked/m.rnn"), { wasm: at("/chunked/k.wasm"), onProgress: (event) => (last = event) });
    assert.deepEqual(last, { loaded: total, total: null });
    await assert.rejects(Model.load(at("/none.rnn")), /\/none.rnn could not be loaded: HTTP 404/);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test("a plan that is compressed on its way", async () => {
  const bytes = await readFile(new URL("cases/gru.rnn", base));
  const packed = gzipSync(bytes);
  assert.ok(packed.length < bytes.length);
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-encoding": "gzip", "content-length": packed.length });
    response.end(packed);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { runs } = await readCase("gru", "simd", read);
    for (const onProgress of [undefined, () => {}]) {
      const model = await Model.load(`http://127.0.0.1:${server.address().port}/m.rnn`, { variant: "simd", onProgress });
      assert.deepEqual(model.run(runs[0]).y, (await load("gru", { variant: "simd" })).run(runs[0]).y);
    }
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test("plans from paths, Blobs and Responses", async () => {
  const bytes = await read("gru.rnn");
  const before = process.cwd();
  process.chdir(fileURLToPath(new URL("cases", base)));
  try {
    for (const source of ["gru.rnn", new Blob([bytes]), new Response(bytes)]) {
      assert.equal((await Model.load(source)).inputs[0].name, "x");
    }
  } finally {
    process.chdir(before);
  }
});

const SAMPLING = {
  samplingInterval: 64,
  includeObjectsCollectedByMinorGC: true,
  includeObjectsCollectedByMajorGC: true,
};

/** Bytes that 100,000 calls of `step` allocate in the JavaScript heap, whether they are collected or not. */
async function allocatedBy(step) {
  const session = new Session();
  session.connect();
  for (let i = 0; i < 50_000; i++) step();
  await session.post("HeapProfiler.startSampling", SAMPLING);
  for (let i = 0; i < 100_000; i++) step();
  const { profile } = await session.post("HeapProfiler.stopSampling");
  session.disconnect();
  const total = ({ selfSize, children }) => children.reduce((sum, child) => sum + total(child), selfSize);
  return total(profile.head);
}

/** The least of three times: the engine allocates too, when it compiles; what a step allocates is there each time. */
async function alwaysAllocatedBy(step) {
  const times = [];
  while (times.length < 3 && !(times.at(-1) < 50_000)) times.push(await allocatedBy(step));
  return Math.min(...times);
}

test("steps that borrow, or fill given arrays, allocate nothing", async () => {
  for (const name of ["gru_stream", "lstm_stream"]) {
    const model = await load(name);
    const { carry } = await readCase(name, "relaxed", read);
    const stream = model.stream({ carry });
    const feeds = frame();
    const [borrow, fill] = [{ borrow: true }, { out: { y: new Float32Array(20) } }];
    for (const options of [borrow, fill]) {
      const bytes = await alwaysAllocatedBy(() => stream.step(feeds, options));
      assert.ok(bytes < 50_000, `${bytes} bytes in 100,000 steps with ${Object.keys(options)}`);
    }
    const shaped = { x: { data: feeds.x, shape: [1, 1, 12] } };
    const bytes = await alwaysAllocatedBy(() => stream.step(shaped, borrow));
    assert.ok(bytes < 50_000, `${bytes} bytes in 100,000 steps with shapes`);
    const kept = { last: null };
    const one = await allocatedBy(() => (kept.last = { ...stream.step(feeds, borrow) }));
    assert.ok(one > 1_000_000, `one object a step is seen: ${one} bytes`);
  }
});
