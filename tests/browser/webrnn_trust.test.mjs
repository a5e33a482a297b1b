// What webrnn.js does with plans and feeds that mean no good, in Node: node webrnn_trust.test.mjs <as webrnn.test.mjs>

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { planOf, withHeader, withMeta, withMetaText, withPart } from "./plan_edits.mjs";
import { readCase } from "./webrnn_cases.mjs";

const base = process.argv[2];
const { Model, PlanError, ShapeError, StreamError, WebrnnError } = await import(new URL("webrnn.js", base));
const { Heap } = await import(new URL("heap.js", base));
const { instructions } = JSON.parse(await readFile(new URL("cases/expectations.json", base)));

const read = async (file) => new Uint8Array(await readFile(new URL(`cases/${file}`, base)));
const wasm = await WebAssembly.compile(await readFile(new URL("wasm_relaxed.wasm", base)));
const open = (plan) => Model.loadSync(plan, { wasm });
const load = async (name) => open(await read(`${name}.rnn`));
const frame = (seed = 0) => ({ x: Float32Array.from({ length: 12 }, (_, i) => Math.sin(seed + i)) });
const timed = (time, batch) => ({ x: { data: new Float32Array(time * batch * 12).fill(0.5), shape: [time, batch, 12] } });
const STATES = { h: "y_h", c: "y_c" };

/** Throws unless `act` raises a WebrnnError with this message and leaves state and shapes of the stream as they were. */
function refused(stream, act, message) {
  const before = [stream.state, stream.shapes];
  assert.throws(act, (error) => {
    assert.ok(error instanceof WebrnnError, error.stack);
    assert.match(error.message, message);
    return true;
  });
  assert.deepEqual([stream.state, stream.shapes], before);
}

// --- states ------------------------------------------------------------------------------------------------------------

test("a state of the wrong size is refused where sizes are open, and the good one stays", async () => {
  const model = await load("lstm_symbolic");
  const stream = model.stream({ carry: STATES });
  stream.step(timed(2, 3));
  const of = (h, c) => () => stream.load({ h: new Float32Array(h), c: new Float32Array(c) });
  refused(stream, of(3, 3), /input 'h' has 3 elements, the plan takes \[1,batch,20\]/);
  refused(stream, of(61, 60), /has 61 elements/);
  refused(stream, of(60, 40), /has 40 elements/);
  refused(stream, of(0, 60), /has 0 elements/);
  const shaped = (...shape) => () => stream.load({ h: { data: new Float32Array(60), shape }, c: new Float32Array(60) });
  refused(stream, shaped(1, 4, 20), /input 'h' has shape \[1,4,20\]/);
  refused(stream, shaped(3, 20), /input 'h' has shape \[3,20\]/);
  refused(stream, shaped(1, 3, 10), /input 'h' has shape \[1,3,10\]/);
  refused(stream, shaped(1, 3.5, 20), /3.5 is not a size/);
  refused(stream, shaped(1, "3", 20), /3 is not a size/);
  refused(stream, () => stream.load({ h: { data: new Float32Array(60), shape: 7 }, c: new Float32Array(60) }), /no array/);
  refused(stream, () => stream.load(null), /input 'h' is missing; there are 'h', 'c'/);
  of(40, 40)(); // another batch: the next feeds must have it
  assert.deepEqual(stream.state, { h: new Float32Array(40), c: new Float32Array(40) });
  refused(stream, () => stream.step(timed(2, 3)), /shape|elements/);
  assert.equal(stream.step(timed(2, 2)).y.length, 80);
});

test("a state is there after load, reset and refused sizes", async () => {
  const model = await load("lstm_symbolic");
  const stream = model.stream({ carry: STATES });
  const states = { h: new Float32Array(60).fill(1), c: new Float32Array(60).fill(2) };
  stream.load(states);
  assert.deepEqual(stream.state, states);
  refused(stream, () => stream.step({ x: { data: new Float32Array(12), shape: [2 ** 20, 2 ** 20, 12] } }), /elements/);
  refused(stream, () => stream.step(timed(1, 2)), /shape|elements/);
  const { y } = stream.step(timed(1, 3));
  const { state } = stream;
  stream.load(states);
  refused(stream, () => stream.step({ x: timed(1, 3).x, q: states.h }), /no input 'q'/);
  assert.deepEqual(stream.step(timed(1, 3)).y, y);
  assert.deepEqual(stream.state, state);
  stream.reset();
  assert.deepEqual(stream.state, { h: new Float32Array(60), c: new Float32Array(60) });
  assert.equal(stream.step(timed(1, 2)).y.length, 40, "looking at a state does not begin it");
});

/** t is s; x may be so large that there is no arena for it. */
const LARGE = {
  sizes: [0, 1, 4, [1, 0, 0], 2 ** 20, [3, 3, 4]],
  buffers: [[2, 0, 3, 0], [2, 0, 2, 1], [2, 0, 2, 2 | (1 << 30)], [1, 0, 5, 0]],
  tensors: [[1, 0, 2], [2, 0, 2]],
  code: [instructions.indexOf("copy"), 2, 0, 1],
  externals: 3,
  slots: 1,
  meta: {
    symbols: ["n"],
    inputs: [
      { name: "x", dtype: "f32", shape: ["n"], sizes: [3], external: 0 },
      { name: "s", dtype: "f32", shape: [4], sizes: [2], external: 1 },
    ],
    outputs: [{ name: "t", dtype: "f32", shape: [4], sizes: [2], external: 2 }],
  },
};

test("sizes that the VM refuses leave what was bound", async () => {
  const model = open(planOf(LARGE));
  const stream = model.stream({ carry: { s: "t" } });
  refused(model.stream({ carry: { s: "t" }, sizes: { n: 9000 } }), () => stream.step({ x: new Float32Array(9000) }), /./);
  stream.load({ s: Float32Array.of(1, 2, 3, 4) });
  refused(stream, () => stream.step({ x: new Float32Array(9000) }), /size is negative or too large|memory is too small/);
  stream.step({ x: new Float32Array(2) });
  refused(stream, () => stream.step({ x: new Float32Array(9000) }), /size is negative or too large|memory is too small/);
  for (const n of [3, 1, 2]) stream.step({ x: new Float32Array(n) });
  assert.deepEqual(stream.state, { s: Float32Array.of(1, 2, 3, 4) });
  const sized = model.stream({ carry: { s: "t" }, sizes: { n: 9000 } });
  refused(sized, () => sized.load({ s: new Float32Array(4) }), /./);
  const symbolic = await load("lstm_symbolic");
  const huge = symbolic.stream({ carry: STATES, sizes: { time: 2 ** 28, batch: 2 ** 28 } });
  assert.throws(() => huge.state, { name: "PlanError", message: /would be of shape/ });
  assert.throws(() => huge.step({ x: new Float32Array(12) }), ShapeError);
});

test("a run that fails leaves the states, also those that were loaded", async () => {
  const plan = await read("countdown.rnn");
  const model = open(withMeta(plan, (meta) => (meta.outputs[0].name = "next")));
  const stream = model.stream({ carry: { x: "next" } });
  assert.deepEqual(Object.keys(stream.step({})), ["all"]);
  const gather = await load("gather");
  assert.throws(() => gather.run({ i: BigInt64Array.of(9n) }), /out of range/);
  assert.deepEqual(gather.shapes, {});
  gather.run({ i: BigInt64Array.of(1n) });
  assert.throws(() => gather.run({ i: BigInt64Array.of(9n) }), /out of range/);
  assert.deepEqual(gather.shapes, { y: [1] });
});

test("sizes of a step that failed are not those of the state", async () => {
  const symbolic = (await load("lstm_symbolic")).stream({ carry: STATES });
  const short = { out: { y: new Float32Array(3) } };
  assert.throws(() => symbolic.step(timed(2, 3), short), /needs a Float32Array of 120 elements/);
  assert.throws(() => symbolic.state, /how large is/);
  symbolic.step(timed(2, 3));
  symbolic.reset();
  assert.throws(() => symbolic.step(timed(2, 4), short), /needs a Float32Array of 160 elements/);
  assert.equal(symbolic.state.h.length, 60);
});

test("a stream that was disposed of says so", async () => {
  const stream = (await load("gru_stream")).stream({ carry: { h: "y_h" } });
  stream.step(frame());
  stream.dispose();
  stream.dispose();
  for (const call of [
    () => stream.step(frame()), () => stream.state, () => stream.shapes, () => stream.reset(),
    () => stream.load({ h: new Float32Array(20) }), () => stream.load(),
  ]) assert.throws(call, { name: "StreamError", message: "the stream has been disposed of" });
  assert.ok(new StreamError("") instanceof WebrnnError);
});

// --- names -------------------------------------------------------------------------------------------------------------

const NAMES = ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "__defineGetter__", "prototype", ""];

test("any name is a name", async () => {
  const plan = await read("stored.rnn");
  const names = ["x", "h", "c", "y", "y_h", "y_c"];
  for (const odd of NAMES) {
    for (const replaced of names) {
      const renamed = (name) => (name === replaced ? odd : name);
      const model = open(withMeta(plan, (meta) => {
        for (const port of [...meta.inputs, ...meta.outputs]) port.name = renamed(port.name);
        for (const state of meta.states) Object.assign(state, { input: renamed(state.input), output: renamed(state.output) });
        meta.about = JSON.parse(`{"${odd}": 5}`);
      }));
      assert.deepEqual(Object.entries(model.about), [[odd, 5]]);
      assert.deepEqual(Object.keys(model.carry), ["h", "c"].map(renamed));
      const stream = model.stream();
      const feeds = { [renamed("x")]: timed(2, 3).x };
      assert.throws(() => stream.step({}), { name: "ShapeError", message: `input '${renamed("x")}' is missing; there is '${renamed("x")}'` });
      const expected = (await load("stored")).stream().step(timed(2, 3)).y;
      for (const options of [{}, { borrow: true }, { out: { [renamed("y")]: new Float32Array(120) } }]) {
        stream.reset();
        const results = stream.step(feeds, options);
        assert.deepEqual(Object.keys(results), [renamed("y")]);
        assert.deepEqual(Object.getOwnPropertyDescriptor(results, renamed("y")).value, expected);
        assert.equal(Object.getPrototypeOf(results), Object.prototype);
      }
      assert.deepEqual(Object.entries(stream.shapes), [[renamed("y"), [2, 1, 3, 20]]]);
      const { state } = stream;
      assert.deepEqual(Object.keys(state), ["h", "c"].map(renamed));
      stream.load(state);
      assert.deepEqual(stream.state, state);
    }
  }
});

// --- feeds -------------------------------------------------------------------------------------------------------------

test("what is no array, or none any more, is refused", async () => {
  const stream = (await load("gru_stream")).stream({ carry: { h: "y_h" } });
  stream.step(frame());
  const wrong = (x, message) => refused(stream, () => stream.step({ x }), message);
  const transferred = new Float32Array(12);
  structuredClone(transferred.buffer, { transfer: [transferred.buffer] });
  wrong(transferred, /has 0 elements, but \[1,1,12\] has 12/);
  wrong({ data: transferred, shape: [1, 1, 12] }, /has 0 elements/);
  const fake = { [Symbol.toStringTag]: "Float32Array", length: 12, 0: 1 };
  for (const x of [fake, { data: fake }, new DataView(new ArrayBuffer(48)), new ArrayBuffer(48), new Proxy(frame().x, {})]) {
    wrong(x, /takes a Float32Array/);
  }
  wrong(undefined, /'x' is missing/);
  for (const x of [null, 3, "x", Symbol("x"), () => 1, [], new Map(), { data: null }, new Int32Array(12)]) {
    wrong(x, /takes a Float32Array/);
  }
  class Liar extends Float32Array {
    get length() {
      return 12;
    }
  }
  wrong(new Liar(11), /has 11 elements/);
  for (const shape of [12, "1", [1, 1, "12"], [NaN, 1, 12], [1, 12], { length: 1e9 }, [1, 1, -12], [1, 1, 12n]]) {
    wrong({ data: frame().x, shape }, /./);
  }
  for (const feeds of [null, undefined, 5, "ab", new Map([["x", frame().x]])]) {
    refused(stream, () => stream.step(feeds), /'x' is missing|given by name/);
  }
  const shared = new Float32Array(new SharedArrayBuffer(48));
  assert.equal(stream.step({ x: shared }).y.length, 20);
  assert.equal(stream.step({ x: { data: shared, shape: new Int32Array([1, 1, 12]) } }).y.length, 20);
});

test("each thing is read once, and before anything is done", async () => {
  const model = await load("lstm_symbolic");
  const stream = model.stream({ carry: STATES });
  stream.step(timed(2, 3));
  const counts = {};
  const counted = (object) => new Proxy(object, {
    get(target, key) {
      if (typeof key === "string" && Object.hasOwn(target, key)) counts[key] = (counts[key] ?? 0) + 1;
      return Reflect.get(target, key);
    },
  });
  for (const [time, batch] of [[2, 3], [4, 3]]) {
    const feed = timed(time, batch).x;
    stream.step({ x: counted(feed) }, counted({ borrow: true }));
    stream.step(counted({ x: feed }), counted({ out: counted({ y: new Float32Array(20 * time * batch) }) }));
  }
  assert.deepEqual(counts, { data: 2, shape: 2, borrow: 2, x: 2, out: 2, y: 2 });

  const boom = new Error("mine");
  const throwing = (key, rest = {}) => Object.defineProperty(rest, key, { enumerable: true, get() { throw boom; } });
  const before = stream.state;
  for (const call of [
    () => stream.step(throwing("x")), () => stream.step({ x: throwing("shape", { data: timed(2, 3).x.data }) }),
    () => stream.step(timed(2, 3), throwing("out")), () => stream.step(timed(2, 3), { out: throwing("y") }),
    () => stream.step(timed(2, 3), { sizes: throwing("time") }), () => stream.load(throwing("h")),
  ]) assert.throws(call, boom);
  assert.deepEqual(stream.state, before);

  // One feed's getter takes the memory of the other away.
  const both = model.stream({ carry: { h: "y_h" } });
  const feeds = () => ({ ...timed(2, 3), c: { data: new Float32Array(60), shape: [1, 3, 20] } });
  both.step(feeds());
  const evil = feeds();
  const { c } = evil;
  Object.defineProperty(evil, "c", {
    enumerable: true,
    get() {
      structuredClone(evil.x.data.buffer, { transfer: [evil.x.data.buffer] });
      return c;
    },
  });
  refused(both, () => both.step(evil), /input 'x' has 0 elements/);
});

test("a stream cannot be called by what it reads", async () => {
  const stream = (await load("gru_stream")).stream({ carry: { h: "y_h" } });
  stream.step(frame());
  for (const call of [
    () => stream.step(frame()), () => stream.state, () => stream.reset(), () => stream.dispose(),
    () => stream.load({ h: new Float32Array(20) }), () => stream.shapes,
  ]) {
    const feeds = { get x() { return call(), frame().x; } };
    refused(stream, () => stream.step(feeds), /is reading what was given to another call/);
    refused(stream, () => stream.load({ get h() { return call(), new Float32Array(20); } }), /is reading/);
  }
  assert.equal(stream.step(frame()).y.length, 20);
});

test("arrays to fill are the caller's own", async () => {
  const model = await load("lstm_symbolic");
  const stream = model.stream({ carry: STATES });
  const { y } = stream.step(timed(2, 3), { borrow: true });
  refused(stream, () => stream.step(timed(2, 3), { out: { y } }), /needs an array of yours, not a borrowed one/);
  const inside = new Float32Array(y.buffer, 64, 120);
  refused(stream, () => stream.step(timed(2, 3), { out: { y: inside } }), /not a borrowed one/);
  refused(stream, () => stream.step(timed(2, 3), { out: { constructor: y } }), /no output 'constructor'/);
  const mine = new Float32Array(120);
  Object.defineProperty(mine, "set", { value: () => assert.fail("its own set was called") });
  Object.defineProperty(mine, "length", { value: 3 });
  stream.reset();
  const expected = stream.step(timed(2, 3)).y;
  stream.reset();
  stream.step(timed(2, 3), { out: { y: mine } });
  assert.deepEqual([...Float32Array.prototype.subarray.call(mine)], [...expected]);
});

test("borrowed results are feeds, also where memory grows meanwhile", async () => {
  const model = await load("lstm_symbolic");
  const [stream, other] = [model.stream({ carry: STATES }), model.stream({ carry: STATES })];
  const data = Float32Array.from({ length: 240 }, (_, i) => Math.sin(i));
  const feed = { data, shape: [20, 1, 12] };
  const { y } = stream.step({ x: feed }, { borrow: true });
  const x = { data: y.subarray(0, 36), shape: [3, 1, 12] };
  const copied = { data: x.data.slice(), shape: [3, 1, 12] };
  const before = y.buffer;
  const given = other.step({ x }, { borrow: false, sizes: {} });
  assert.deepEqual(given.y, model.stream({ carry: STATES }).step({ x: copied }).y);
  model.run({ x: { data: new Float32Array(12 * 300 * 40), shape: [300, 40, 12] }, ...statesOf(40) });
  assert.notEqual(stream.step({ x: feed }, { borrow: true }).y.buffer, before, "memory has grown");
});

const statesOf = (batch) => {
  const state = { data: new Float32Array(20 * batch), shape: [1, batch, 20] };
  return { h: state, c: state };
};

// --- memory ------------------------------------------------------------------------------------------------------------

const X = { name: "x", dtype: "f32", shape: [16], sizes: [2], external: 0 };
const Y = { name: "y", dtype: "f32", shape: [16], sizes: [2], external: 1 };
const [ARENA, EXTERNAL] = [1, 2];
const WRITABLE = 1 << 30;
const copy = (from, to) => [instructions.indexOf("copy"), 2, from, to];

/** y becomes what the arena held, then the arena takes x. */
const REMEMBERS = {
  sizes: [0, 1, 16],
  buffers: [[EXTERNAL, 0, 2, 0], [EXTERNAL, 0, 2, 1 | WRITABLE], [ARENA, 0, 2, 0]],
  tensors: [[0, 0, 2], [1, 0, 2], [2, 0, 2]],
  code: [...copy(2, 1), ...copy(0, 2)],
  externals: 2,
  slots: 1,
  meta: { inputs: [X], outputs: [Y] },
};
const isZero = (array) => array.every((element) => element === 0);

test("what a program does not write shows nothing of other streams", () => {
  const feed = (number) => ({ x: new Float32Array(16).fill(number) });
  for (const code of [REMEMBERS.code, copy(0, 2), copy(2, 1)]) {
    const model = open(planOf({ ...REMEMBERS, code }));
    const first = model.stream({ carry: {} });
    for (let i = 0; i < 3; i++) first.step(feed(5));
    const second = model.stream({ carry: {} });
    assert.ok(isZero(second.step(feed(6)).y), "in the arena");
    assert.ok(isZero(model.run(feed(7)).y), "in the arena, of a stream");
    second.dispose();
    first.dispose();
    for (let i = 0; i < 6; i++) assert.ok(isZero(model.stream({ carry: {} }).step(feed(8)).y), "in memory that was given back");
  }
});

test("an output that is listed twice is there once", async () => {
  const plan = await read("gru.rnn");
  const { runs } = await readCase("gru", "relaxed", read);
  const expected = open(plan).run(runs[0]);
  const twice = open(withMeta(plan, (meta) => meta.outputs.push(meta.outputs[0])));
  assert.equal(twice.outputs.length, 3);
  for (const options of [{}, { borrow: true }]) assert.deepEqual({ ...twice.run(runs[0], options) }, expected);
  const out = { y: new Float32Array(expected.y.length) };
  assert.deepEqual(twice.run(runs[0], { out }).y, expected.y);
  const other = open(withMeta(plan, (meta) => meta.outputs.push({ ...meta.outputs[0], name: "again" })));
  assert.deepEqual(other.run(runs[0]), { ...expected, again: expected.y });
});

test("externals that are not the inputs' own are refused", async () => {
  const plan = await read("lstm_stream.rnn");
  const rejected = (edit, message, from = plan) => {
    assert.throws(() => open(withMeta(from, edit)), { name: "PlanError", message });
  };
  rejected(({ inputs }) => (inputs[1].name = inputs[0].name), /two inputs have the same name/);
  rejected(({ inputs }) => (inputs[2].external = inputs[1].external), /memory of the input 'c' is not its own/);
  rejected(({ inputs, outputs }) => (inputs[1].external = outputs[1].external), /the input 'h' is written/);
  rejected(({ inputs, outputs }) => (outputs[1].external = inputs[1].external), /input 'h' is not its own/);
  rejected(({ outputs }) => (outputs[1].name = outputs[0].name), /two outputs have the same name/);
  const countdown = await read("countdown.rnn");
  const late = ({ inputs, outputs }) => Object.assign(inputs[0], { shape: ["n", 2], sizes: outputs[1].sizes });
  rejected(late, /the metadata of 'x' are damaged/, countdown);
  const written = { ...REMEMBERS, buffers: [[EXTERNAL, 0, 2, WRITABLE], ...REMEMBERS.buffers.slice(1)] };
  assert.throws(() => open(planOf(written)), { name: "PlanError", message: /the input 'x' is written/ });
});

test("an external is as large as the program says, whatever the port says", () => {
  const small = { shape: [1], sizes: [1] };
  const meta = { inputs: [{ ...X, ...small }], outputs: [{ ...Y, ...small }] };
  const model = open(planOf({ ...REMEMBERS, code: copy(0, 1), meta }));
  const [stream, other] = [model.stream({ carry: {} }), model.stream({ carry: {} })];
  for (let i = 1; i < 5; i++) {
    assert.deepEqual(stream.step({ x: Float32Array.of(i) }).y, Float32Array.of(i));
    assert.deepEqual(other.step({ x: Float32Array.of(-i) }).y, Float32Array.of(-i));
  }
});

test("a run after one whose memory could not grow has the memory that it needs", (t) => {
  const LATE = 5;
  const CHECKED = 1 << 24;
  const fill = (tensor, mark = 0) => [instructions.indexOf("fill") | mark, 2, tensor, 0x3f800000];
  // As many ones as n says, in the arena; behind them sixteen, which become y.
  const model = open(planOf({
    sizes: [0, 1, 16, [LATE, 0, 0]],
    buffers: [[EXTERNAL, 1, 1, 0], [EXTERNAL, 0, 2, 1 | WRITABLE], [ARENA, 0, 3, 0], [ARENA, 0, 2, 1]],
    tensors: [[0, 1, 1], [1, 0, 2], [2, 0, 3], [3, 0, 2]],
    code: [instructions.indexOf("let"), 3, 3, 0, 0, ...fill(2, CHECKED), ...fill(3), ...copy(3, 1)],
    externals: 2,
    slots: 2,
    meta: { inputs: [{ ...X, name: "n", dtype: "i64", shape: [1], sizes: [1] }], outputs: [Y] },
  }));
  const allocate = Heap.prototype.allocate;
  t.mock.method(Heap.prototype, "allocate", function (bytes) {
    return allocate.call(this, bytes > 2 ** 20 ? 2 ** 32 : bytes);
  });
  const stream = model.stream({ carry: {} });
  const step = (n) => stream.step({ n: BigInt64Array.of(BigInt(n)) }).y;
  for (const n of [5, 1000, 5]) {
    assert.deepEqual(step(n), new Float32Array(16).fill(1));
    assert.throws(() => step(2 ** 24), PlanError);
  }
  assert.deepEqual(step(7), new Float32Array(16).fill(1));
});

test("memory that is not there is a PlanError, and what there was goes on", () => {
  const sized = (number) => planOf({
    ...REMEMBERS, sizes: [...REMEMBERS.sizes, number], buffers: [...REMEMBERS.buffers, [ARENA, 0, 3, 0]],
  });
  assert.equal(open(sized(1000)).run({ x: new Float32Array(16) }).y.length, 16);
  assert.throws(() => open(sized(2 ** 30)).run({ x: new Float32Array(16) }), PlanError);
  const heap = new Heap();
  assert.throws(() => heap.allocate(2 ** 32), { name: "PlanError", message: /do not fit into WebAssembly memory/ });
  for (const bytes of [Infinity, NaN, 2 ** 53]) assert.throws(() => heap.allocate(bytes), PlanError);
  const { address } = heap.allocate(100);
  heap.view(Uint8Array, address, 100).fill(1);
  heap.release({ address, bytes: 100 });
  const again = heap.allocate(90);
  assert.equal(again.address, address);
  assert.ok(isZero(heap.view(Uint8Array, address, 100)));
});

test("the memory is full up to its end, and no further", () => {
  const heap = new Heap();
  heap.memory = { buffer: { byteLength: 2 ** 32 }, grow: () => assert.fail("it is full") };
  heap.allocate(2 ** 32 - 4 * 65536);
  for (const bytes of [1, 64, 65536]) assert.throws(() => heap.allocate(bytes), PlanError);
});

test("bytes that are no plan", () => {
  const transferred = new Uint8Array(100);
  structuredClone(transferred.buffer, { transfer: [transferred.buffer] });
  for (const bytes of [transferred, transferred.buffer, new Uint8Array(0), new ArrayBuffer(3)]) {
    assert.throws(() => open(bytes), { name: "PlanError", message: /shorter than the header/ });
  }
  assert.throws(() => open(undefined), { name: "TypeError", message: /bytes of a file are expected, not undefined/ });
});

// --- metadata ----------------------------------------------------------------------------------------------------------

test("metadata of any size, depth and kind", async () => {
  const plan = await read("stored_start.rnn");
  const nested = (depth) => "[".repeat(depth) + "]".repeat(depth);
  const odd = '{"toString":1,"valueOf":2}';
  const values = [odd, `[${odd}]`, "1e400", "-1e400", "1e300", "-0.5", "null", "true", "[[0]]", "[[1e400,{}]]", nested(100_000)];
  const rejected = (bytes) => assert.throws(() => open(bytes), { name: "PlanError" });
  const ports = ["name", "dtype", "shape", "sizes", "external"].map((key) => ["inputs", 0, key]);
  const parts = ["symbols", "nodes", "inputs", "outputs", "states"].map((key) => [key]);
  const states = [["input"], ["output"], ["start"], ["start", "shape"], ["start", "offset"]].map((at) => ["states", 0, ...at]);
  const others = [["nodes", 0], ["nodes", 0, 0], ["nodes", 0, 1], ["symbols", 0], ["inputs", 0], ["states", 0]];
  for (const path of [...ports, ...parts, ...states, ...others]) {
    for (const value of values) {
      const isSafe = path[0] === "nodes" && path.length === 3 && value === (path[2] === 0 ? "1e300" : "");
      const isLeftOut = value === "null" && path.join() === "states";
      if (!isSafe && !isLeftOut) rejected(withPart(plan, path, value));
    }
  }
  for (const value of values.slice(1)) if (value !== "null") rejected(withPart(plan, ["about"], value));
  for (const text of ["", "null", "[]", "\0".repeat(100), Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d)]) {
    rejected(withMetaText(plan, () => text));
  }
  assert.ok(Array.isArray(open(withPart(plan, ["about"], `{"deep":${nested(1000)}}`)).about.deep));
  for (const text of ["x".repeat(5_000_000), "für 100% 👍"]) {
    assert.equal(open(withMeta(plan, (meta) => (meta.about = { text }))).about.text, text);
  }
});

test("many ports and states are read in no time", () => {
  const n = 20_000;
  const rows = (letter, from) => Array.from({ length: n }, (_, i) => ({ ...X, name: `${letter}${i}`, external: from + i }));
  const states = Array.from({ length: n }, (_, i) => ({ input: `x${i}`, output: `y${i}` }));
  const meta = { inputs: rows("x", 0), outputs: rows("y", n), states };
  const model = open(planOf({ ...REMEMBERS, buffers: [[ARENA, 0, 2, 0]], tensors: [], code: [], externals: 2 * n, meta }));
  const stream = model.stream();
  assert.deepEqual(stream.step({}), {});
  assert.equal(Object.keys(stream.state).length, n);
});

test("states that share their start cannot multiply a file", async () => {
  const plan = await read("stored_start.rnn");
  const huge = withMeta(plan, (meta) => {
    const [{ input, output, start }] = meta.states;
    const [state] = meta.inputs.filter(({ name }) => name === input);
    const [next] = meta.outputs.filter(({ name }) => name === output);
    const externals = [state.external, next.external];
    meta.inputs = meta.inputs.filter((port) => port !== state);
    meta.states = [];
    for (let i = 0; i < 3000; i++) {
      meta.inputs.push({ ...state, name: `s${i}`, external: externals[0] + i });
      meta.outputs.push({ ...next, name: `n${i}` });
      meta.states.push({ input: `s${i}`, output: `n${i}`, start: { ...start } });
    }
  });
  assert.throws(() => open(withHeader(huge, { 8: 4000 })), PlanError);
});

test("carry is an object of names", async () => {
  const model = await load("gru_stream");
  for (const carry of [null, 5, "h", { h: Symbol("y") }, { h: null }, { h: {} }, { constructor: "y_h" }, { h: "toString" }, [1]]) {
    assert.throws(() => model.stream({ carry }), { name: "ShapeError", message: /^carry/ });
  }
  for (const sizes of [null, undefined, {}, 5]) assert.ok(model.stream({ carry: { h: "y_h" }, sizes }).step(frame()).y);
  const symbolic = await load("lstm_symbolic");
  for (const time of [-1, 0.5, "2", {}, Symbol("2"), 2n, NaN, null, 2 ** 31]) {
    assert.throws(() => symbolic.stream({ carry: STATES, sizes: { time, batch: 1 } }).state, { name: "ShapeError" });
  }
});
