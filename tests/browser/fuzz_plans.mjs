// Tries plans that mean no good on webrnn.js: node fuzz_plans.mjs <folder of the host, a URL> <file for the seed> <weakness>
//
// Standard input has them one after the other: a seed, a length (two words), the bytes. Each is loaded, run with all kinds of
// feeds, streamed, saved, restored and disposed of. A WebrnnError is a good answer; any other exception, a byte written behind
// a block of memory or into the plan, a result with bytes of such places, and a call that raised and yet changed its stream
// are failures, which end the process. `weakness` lets it do something wrong, which must be seen.

import { fstatSync, openSync, readFileSync, readSync, writeSync } from "node:fs";

const [, , base, progressFile, weakness = ""] = process.argv;
const { Model, PlanError, StreamError, WebrnnError } = await import(new URL("webrnn.js", base));
const { Heap } = await import(new URL("heap.js", base));
const { Slot } = await import(new URL("slot.js", base));
const modules = ["relaxed", "relaxed_core", "relaxed_training", "simd", "simd_core"].map(
  (name) => new WebAssembly.Module(readFileSync(new URL(`wasm_${name}.wasm`, base))),
);

Error.stackTraceLimit = 4; // a trace takes longer than the call that it is of
const LIMITS = { loopSteps: 20_000, runSteps: 20_000, seconds: 1 };
const MOST_BYTES = 1 << 22; // of one block: plans may ask for more than a machine has
const MOST_ELEMENTS = 1 << 17; // of an input, an output or a state
const ARRAYS = {
  float32: Float32Array, float64: Float64Array, float16: globalThis.Float16Array ?? Uint16Array, bfloat16: Uint16Array,
  int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array, uint16: Uint16Array,
  uint32: Uint32Array, uint64: BigUint64Array,
}; // others are bytes

// --- memory with marks around its blocks ---------------------------------------------------------------------------------

const GUARD = 64; // bytes before and behind a block
const MARK = 0xca;
const MARKS = Buffer.alloc(16, MARK);
let blocks = new Map(); // what was given to the host -> the whole block
let heap = null; // of the plan that is tried
const { allocate, release } = Heap.prototype;

Heap.prototype.allocate = function (bytes) {
  if (!(bytes <= MOST_BYTES)) throw new PlanError(`${bytes} bytes are more than a trial may have`);
  heap = this;
  const whole = allocate.call(this, bytes + 2 * GUARD);
  const block = { address: whole.address + GUARD, bytes };
  const all = this.view(Uint8Array, whole.address, whole.bytes);
  const missing = weakness === "short" && bytes > 4 ? 4 : 0;
  all.fill(MARK, 0, GUARD).fill(MARK, GUARD + bytes - missing);
  blocks.set(block, { whole, end: GUARD + bytes - missing });
  return block;
};

Heap.prototype.release = function (block) {
  if (!block) return;
  checkMarks(block);
  release.call(this, blocks.get(block).whole);
  blocks.delete(block);
};

const { checkShape } = Slot.prototype;
Slot.prototype.checkShape = function (shape) {
  checkShape.call(this, shape);
  if (shape.reduce((a, b) => a * b, 1) > MOST_ELEMENTS) throw new PlanError("too large to try");
};

function checkMarks(block) {
  const { whole, end } = blocks.get(block);
  const all = heap.view(Uint8Array, whole.address, whole.bytes);
  const isMark = (byte) => byte === MARK;
  if (!all.subarray(0, GUARD).every(isMark)) throw new Error("something was written before a block");
  if (!all.subarray(end).every(isMark)) throw new Error("something was written behind a block");
}

// --- trials ----------------------------------------------------------------------------------------------------------------

class Trial {
  #state;
  #plan;
  model = null;

  constructor(seed, plan, outcomes) {
    this.#state = seed;
    this.#plan = plan;
    this.outcomes = outcomes;
    blocks = new Map();
    heap = null;
  }

  /** A whole number below `end`. */
  random(end) {
    let t = (this.#state = (this.#state + 0x6d2b79f5) | 0);
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % end;
  }

  oneOf(all) {
    return all[this.random(all.length)];
  }

  /** What `act` gives, or undefined if it raises what it may; how it ended is counted under `name`. */
  try(name, act) {
    let found;
    try {
      found = act();
      this.count(`${name}: done`);
    } catch (error) {
      if (!(error instanceof WebrnnError)) throw error;
      this.count(`${name}: ${error.name}`);
    }
    return found;
  }

  count(name) {
    this.outcomes[name] = (this.outcomes[name] ?? 0) + 1;
  }

  run() {
    this.model = this.try("open", () => Model.loadSync(this.#plan, { wasm: this.oneOf(modules), limits: LIMITS }));
    if (this.model) {
      const [{ address, bytes }] = blocks.keys(); // of the plan, which a file with half floats gave its block to
      const plan = () => Buffer.from(heap.memory.buffer, address, bytes);
      const before = Buffer.from(plan());
      this.#runs();
      this.#streams();
      if (!plan().equals(before)) throw new Error("something was written into the plan");
    }
    for (const block of blocks.keys()) checkMarks(block);
  }

  #runs() {
    const { model } = this;
    for (const options of [undefined, { borrow: true }]) {
      this.try("run", () => this.#checked(model.run(this.#feeds(model.inputs), options), model.shapes, model.outputs));
    }
    this.try("run with out", () => model.run(this.#feeds(model.inputs), { out: this.#targets(model) }));
    this.try("run with nothing", () => this.#checked(model.run({}), model.shapes, model.outputs));
    this.try("run with odd feeds", () => model.run(this.#oddFeeds(model.inputs)));
  }

  #streams() {
    const { model } = this;
    const stream = this.try("stream", () => model.stream({ carry: this.#carry(), sizes: this.#sizes() }));
    if (!stream) return;
    const carried = this.carried;
    const fed = model.inputs.filter(({ name }) => !Object.hasOwn(carried, name));
    const given = Object.values(carried);
    const returned = model.outputs.filter(({ name }) => !given.includes(name));
    let saved = {};
    const acts = {
      step: () => this.#checked(stream.step(this.#feeds(fed)), stream.shapes, returned),
      "step, borrowed": () => this.#checked(stream.step(this.#feeds(fed), { borrow: true }), stream.shapes, returned),
      "step with odd feeds": () => stream.step(this.#oddFeeds(fed)),
      "step with sizes": () => stream.step(this.#feeds(fed), { sizes: this.#sizes() }),
      state: () => this.#checked((saved = stream.state)),
      load: () => stream.load(saved),
      "load with shapes": () => stream.load(this.#feeds(model.inputs.filter(({ name }) => Object.hasOwn(carried, name)))),
      "load odd states": () => stream.load(this.#oddFeeds(model.inputs)),
      reset: () => stream.reset(),
      flush: () => this.#checked(stream.flush(), stream.shapes, returned),
      run: () => model.run(this.#feeds(model.inputs)),
    };
    const names = ["step", "step", "step, borrowed", ...Object.keys(acts)];
    for (let i = 0; i < 8; i++) {
      const name = i < 2 ? "step" : this.oneOf(names);
      this.#unlessItRaises(stream, name, acts[name]);
    }
    if (this.random(2)) this.#end(stream);
  }

  /** Tries it; if it raises, states and shapes must be as they were. */
  #unlessItRaises(stream, name, act) {
    const before = snapshot(stream);
    let isDone = false;
    this.try(name, () => {
      act();
      isDone = true;
    });
    if (isDone) return;
    const now = snapshot(stream);
    if (now !== before) throw new Error(`${name} has raised, and changed the stream: ${before.slice(0, 200)} -> ${now.slice(0, 200)}`);
  }

  #end(stream) {
    stream.dispose();
    stream.dispose();
    for (const call of [() => stream.step({}), () => stream.state, () => stream.load({}), () => stream.reset()]) {
      try {
        call();
      } catch (error) {
        if (error instanceof StreamError) continue;
        throw error;
      }
      throw new Error("a stream that was disposed of goes on");
    }
    this.count("dispose: done");
  }

  /** Throws if results have bytes from outside blocks, or are not as long as their shapes say. */
  #checked(results, shapes, ports) {
    for (const [name, array] of Object.entries(results)) {
      const bytes = Buffer.from(array.buffer, array.byteOffset, array.byteLength);
      if (bytes.includes(MARKS)) throw new Error(`${name} has what lies outside of its memory`);
      if (shapes && shapes[name].reduce((a, b) => a * b, 1) !== array.length) throw new Error(`${name} has another shape`);
    }
    if (ports && ports.some(({ name }) => !Object.hasOwn(results, name))) throw new Error("an output is missing");
    return results;
  }

  #shape({ shape }, named) {
    return shape.map((size) => {
      if (typeof size === "number") return size;
      if (!named.has(size)) named.set(size, this.oneOf([1, 2, 2, 3, 3, 5, 0, 16384]));
      return named.get(size);
    });
  }

  #array(type, length) {
    const array = new (ARRAYS[type] ?? Uint8Array)(length);
    const number = this.oneOf([0, 1, 2, -1, 5]);
    return array.fill(array.BYTES_PER_ELEMENT === 8 && type !== "float64" ? BigInt(number) : number);
  }

  #feeds(ports) {
    const named = new Map();
    return Object.fromEntries(ports.map((port) => {
      const shape = this.#shape(port, named);
      const length = shape.reduce((a, b) => a * b, 1);
      if (!(length >= 0 && length <= MOST_ELEMENTS)) throw new PlanError("too large to feed");
      const data = this.#array(port.type, length);
      return [port.name, this.random(3) ? { data, shape } : data];
    }));
  }

  #oddFeeds(ports) {
    const feeds = Object.fromEntries(Object.entries(this.#feeds(ports)));
    const gone = new Float32Array(4);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    const odd = [
      null, undefined, 1, "x", [], {}, gone, { data: gone, shape: [4] }, new Float32Array(0), new Float32Array(7), new DataView(
        new ArrayBuffer(8)), { data: new Float32Array(4), shape: [-1, 4] }, { data: new Float32Array(4), shape: "4" },
      { data: new Float32Array(4), shape: [2 ** 31, 2 ** 31] }, new Int32Array(3), new BigInt64Array(2), { shape: [1] },
      new Float32Array(new SharedArrayBuffer(16)), { data: new Uint8Array(3), shape: { length: 3 } },
    ];
    const names = [...ports.map(({ name }) => name), "constructor", "__proto__", "q"];
    const changed = { value: this.oneOf(odd), enumerable: true, configurable: true, writable: true };
    Object.defineProperty(feeds, this.oneOf(names), changed);
    if (!this.random(4)) delete feeds[this.oneOf(names)];
    return feeds;
  }

  #targets(model) {
    const shapes = model.shapes;
    const known = model.outputs.filter(({ name }) => Object.hasOwn(shapes, name));
    return Object.fromEntries(known.map(({ name, type }) => {
      const length = shapes[name].reduce((a, b) => a * b, 1) + (this.random(8) ? 0 : 1);
      return [name, new (ARRAYS[this.random(20) ? type : "int32"] ?? Uint8Array)(length)];
    }));
  }

  #carry() {
    const { inputs, outputs, carry } = this.model;
    this.carried = carry;
    if (Object.keys(carry).length && this.random(3)) return carry;
    const pairs = inputs.map(({ name }) => [name, this.oneOf(outputs)?.name]).slice(0, this.random(3));
    return (this.carried = Object.fromEntries(pairs));
  }

  #sizes() {
    const names = this.model.inputs.flatMap(({ shape }) => shape.filter((size) => typeof size === "string"));
    if (!names.length || this.random(3)) return undefined;
    return Object.fromEntries(names.map((name) => [name, this.oneOf([0, 1, 2, 3, 7, 2 ** 31 - 1, 2 ** 31, -1, 0.5, "2", null])]));
  }
}

/** All that can be seen of a stream, as a text. */
function snapshot(stream) {
  const seen = [JSON.stringify(stream.shapes)];
  try {
    for (const [name, array] of Object.entries(stream.state)) {
      seen.push(name, Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("latin1"));
    }
  } catch (error) {
    if (!(error instanceof WebrnnError)) throw error;
    seen.push(error.message);
  }
  return seen.join("\0");
}

if (weakness === "foreign") {
  const { stream } = Model.prototype;
  Model.prototype.stream = function (options) {
    if (this.outputs.length === 2) throw new TypeError("not ours");
    return stream.call(this, options);
  };
}

if (weakness === "forgetful") {
  const { stream } = Model.prototype;
  Model.prototype.stream = function (options) {
    const made = stream.call(this, options);
    const { step } = made;
    made.step = function (...given) {
      try {
        return step.apply(this, given);
      } catch (error) {
        this.reset();
        throw error;
      }
    };
    return made;
  };
}

// --- one after the other ---------------------------------------------------------------------------------------------------

function readExactly(length) {
  const bytes = Buffer.alloc(length);
  for (let done = 0; done < length; ) {
    const count = readSync(0, bytes, done, length - done, null);
    if (count === 0) return null;
    done += count;
  }
  return bytes;
}

const progress = openSync(progressFile, "r+");
if (!fstatSync(progress).isFile()) throw new Error(`${progressFile} is no file`);
let outcomes = {};
for (let plans = 1; ; plans++) {
  const head = readExactly(8);
  if (!head) break;
  const seed = head.readUInt32LE(0);
  writeSync(progress, `${seed}`.padStart(20), 0);
  const plan = readExactly(head.readUInt32LE(4));
  new Trial(seed, plan, outcomes).run();
  outcomes.plans = (outcomes.plans ?? 0) + 1;
  if (plans % 500 === 0) {
    writeSync(1, `${JSON.stringify(outcomes)}\n`);
    outcomes = {};
  }
}
writeSync(1, `${JSON.stringify(outcomes)}\n`);
