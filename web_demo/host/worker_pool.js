// Pools of streams in several workers: a page uses all its cores.
//
//   const pool = await WorkerPool.load("denoise.rnn", { workers: 4, maxStreams: 256 });
//   const handle = pool.open();
//   pool.submit(handle, { x: frame });
//   const results = await pool.tick(); // Map: handle -> { y }

import { bytesOf, chooseVariant, compile, planBytes } from "./instance.js";
import { ShapeError, StreamError, otherModule, shown, within } from "./plan_file.js";
import { nameError } from "./slot.js";
import { errorOf } from "./thread_errors.js";
import { Crew } from "./worker_crew.js";
import { readFeeds } from "./worker_feeds.js";

const DEFAULTS = { maxStreams: 64, maxBatch: undefined, snapshotEvery: 32, maxTicks: 4, timeout: Infinity };
const OTHERS = ["workers", "sizes", "variant", "wasm", "limits"];
const MOST = 1 << 20;
const MOST_WORKERS = 64;
function checkOptions(options) {
  const known = [...Object.keys(DEFAULTS), ...OTHERS];
  const other = Object.keys(options).find((name) => !known.includes(name));
  if (other !== undefined) throw new ShapeError(`WorkerPool: there is no ${other}, only ${known.join(", ")}`);
  const all = { ...DEFAULTS, workers: Math.min(MOST_WORKERS, globalThis.navigator?.hardwareConcurrency ?? 1), ...options };
  const asked = { workers: [1, MOST_WORKERS], maxStreams: [1, MOST], snapshotEvery: [0, MOST], maxTicks: [1, MOST] };
  for (const [name, [least, most]] of Object.entries(asked)) {
    if (!within(all[name], least, most)) {
      throw new ShapeError(`WorkerPool: ${name} is a number from ${least} to ${most}, not ${shown(all[name])}`);
    }
  }
  if (!(all.timeout > 0)) throw new ShapeError(`WorkerPool: timeout is a number of ms above 0, not ${shown(all.timeout)}`);
  return all;
}

/** Where workers read it without a copy each, if that is allowed here. */
function shared(bytes) {
  const view = ArrayBuffer.isView(bytes) ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new Uint8Array(bytes);
  const isAllowed = globalThis.crossOriginIsolated ?? globalThis.process !== undefined;
  if (!isAllowed || !globalThis.SharedArrayBuffer) return view;
  const copy = new Uint8Array(new SharedArrayBuffer(view.length));
  copy.set(view);
  return copy;
}

export class WorkerPool extends EventTarget {
  #crew;
  #options;
  #inputs; // the names of feeds
  #streams = new Map();
  #submitted = new Set(); // handles, as they came
  #next = 0;
  #inFlight = 0;
  #waiting = []; // who waits until another tick may begin

  static async load(source, options = {}) {
    const all = checkOptions(options);
    const { wasm, limits, sizes, maxStreams, maxBatch, snapshotEvery } = all;
    let chosen = { variant: wasm ? all.variant : chooseVariant(all.variant), isFull: false };
    const [bytes, first] = await Promise.all([bytesOf(source), compile(chosen, { wasm })]);
    const pool = { maxStreams, ...(maxBatch !== undefined && { maxBatch }), ...(sizes && { sizes }) };
    const order = { plan: shared(planBytes(bytes)), limits, options: pool, snapshotEvery };
    for (let module = first; ; module = await compile(chosen)) {
      const crew = new Crew({ ...order, wasm: module, variant: chosen.variant }, all);
      try {
        const said = await crew.start();
        return new WorkerPool(crew, all, said);
      } catch (error) {
        crew.dispose();
        if (wasm) throw error;
        chosen = otherModule(chosen, error);
      }
    }
  }

  constructor(crew, options, { batched, reason, delay, stride, inputs }) {
    super();
    this.#inputs = inputs;
    this.#crew = crew;
    this.#options = options;
    this.batched = batched;
    this.reason = reason;
    this.delay = delay;
    this.stride = stride;
    crew.onRestart = (detail) => this.dispatchEvent(Object.assign(new Event("restart"), { detail }));
  }

  /** How often a worker was replaced. */
  get restarts() {
    return this.#crew.restarts;
  }

  get workers() {
    return this.#options.workers;
  }

  get size() {
    return this.#streams.size;
  }

  /** How many streams each worker has. */
  get loads() {
    return this.#crew.loads;
  }

  open() {
    this.#crew.check();
    if (this.#streams.size === this.#options.maxStreams) {
      throw new StreamError(`the pool is full: ${this.#options.maxStreams} streams are open`);
    }
    const id = this.#next++;
    this.#streams.set(id, this.#crew.place(id));
    return id;
  }

  close(handle) {
    const stream = this.#get(handle);
    this.#streams.delete(handle);
    this.#submitted.delete(handle);
    this.#crew.remove(stream);
  }

  #get(handle) {
    this.#crew.check();
    const stream = this.#streams.get(handle);
    if (!stream) throw new StreamError(`no stream ${shown(handle)} is open`);
    return stream;
  }

  #unfed(handle) {
    const stream = this.#get(handle);
    if (this.#submitted.has(handle)) throw new StreamError(`stream ${handle} has feeds for this tick already`);
    return stream;
  }

  /** What a stream gets in the next tick; it is copied. */
  submit(handle, feeds) {
    const read = readFeeds(feeds, this.#inputs);
    const stream = this.#unfed(handle);
    stream.seat.submit(stream, read);
    this.#submitted.add(handle);
  }

  /** The same for many streams: one array for each input, one stream after the other. */
  submitMany(handles, feeds) {
    const read = readFeeds(feeds, this.#inputs);
    if (typeof handles?.[Symbol.iterator] !== "function") throw new StreamError("submitMany: handles are a list");
    const streams = Array.from(handles, (handle) => this.#unfed(handle));
    if (new Set(streams).size < streams.length) throw new StreamError("submitMany: a stream is named twice");
    const lengths = read.map(([name, { length }]) => {
      if (length % streams.length) throw new ShapeError(`input '${name}' has ${length} elements for ${streams.length} streams`);
      return length / streams.length;
    });
    streams.forEach((stream, row) => {
      stream.seat.submitRow(stream, row, read, lengths);
      this.#submitted.add(stream.id);
    });
  }

  /** Resolves as soon as another tick may begin. */
  ready() {
    if (this.#inFlight < this.#options.maxTicks) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Runs all streams that have feeds. Streams whose worker died meanwhile are not among the results. */
  async tick(options) {
    this.#crew.check();
    if (this.#inFlight >= this.#options.maxTicks) {
      throw new StreamError(`${this.#inFlight} ticks are under way: await one of them, or ready(), before the next`);
    }
    const submitted = this.#submitted;
    this.#submitted = new Set();
    this.#inFlight++;
    try {
      return await this.#tick(submitted, options?.out);
    } finally {
      this.#inFlight--;
      this.#waiting.shift()?.();
    }
  }

  async #tick(submitted, out) {
    const parts = await Promise.all(this.#crew.tick());
    const found = new Map();
    const failures = [];
    for (const part of parts) {
      if (part.error) failures.push(part.error);
      for (const [, error] of part.failures ?? []) failures.push(errorOf(error));
      unpack(part, found);
    }
    const results = new Map();
    for (const id of submitted) if (found.has(id)) results.set(id, found.get(id));
    if (out && results.size < submitted.size) failures.push(new StreamError("out: the results of streams whose worker died are missing"));
    if (failures.length) throw Object.assign(failures[0], { results });
    if (!out) return results;
    try {
      fill(out, [...results.values()]);
    } catch (error) {
      throw Object.assign(error, { results });
    }
    for (const { seat, outputs } of parts) seat.giveBack(outputs.map(({ data }) => data));
    return out;
  }

  /** As of a StreamPool, when the ticks before it are done. */
  flush(handle) {
    return this.#ask(handle, "flush");
  }

  state(handle) {
    return this.#ask(handle, "state");
  }

  async load(handle, state) {
    const copied = ([name, data, shape]) => [name, shape ? { data: data.slice(), shape } : data.slice()];
    await this.#ask(handle, "loadState", { state: Object.fromEntries(readFeeds(state).map(copied)) });
  }

  async #ask(handle, act, given) {
    const stream = this.#get(handle);
    if (this.#submitted.has(handle)) throw new StreamError(`${act}: stream ${handle} has feeds for the next tick, call tick() before`);
    return this.#crew.ask(stream, act, given);
  }

  dispose() {
    this.#crew.dispose();
    this.#streams.clear();
    this.#submitted.clear();
  }
}

/** Copies results into arrays of the caller, one stream after the other. */
function fill(out, results) {
  for (const [name, target] of Object.entries(out)) {
    const arrays = results.map((result) => (Object.hasOwn(result, name) ? result[name] : null));
    if (arrays.includes(null)) throw nameError("output", out, Object.keys(results[0]));
    const length = arrays.reduce((total, array) => total + array.length, 0);
    if (arrays.length && (target?.constructor !== arrays[0].constructor || target.length !== length)) {
      throw new ShapeError(`out: output '${name}' needs a ${arrays[0].constructor.name} of ${length} elements`);
    }
    let at = 0;
    for (const array of arrays) {
      target.set(array, at);
      at += array.length;
    }
  }
}

/** Results by handle: views of the arrays that a worker sent. */
function unpack({ ids, outputs }, found) {
  const at = (outputs ?? []).map(() => 0);
  (ids ?? []).forEach((id, row) => {
    const results = {};
    outputs.forEach(({ name, data, lengths }, i) => {
      const value = data.subarray(at[i], (at[i] += lengths[row]));
      if (name === "__proto__") Object.defineProperty(results, name, { value, enumerable: true });
      else results[name] = value;
    });
    found.set(id, results);
  });
}
