// A model in a worker of its own: the page stays free while it runs. The calls are those of a Model, each a promise.
//
//   const model = await ModelWorker.load("model.rnn");
//   const stream = await model.stream();
//   const { y } = await stream.step({ x: frame });
//   model.terminate();

import { fileUrl } from "./files.js";
import { Progress, bytesOf, chooseVariant, compile, planBytes } from "./instance.js";
import { allLimits } from "./model.js";
import { PlanError, ShapeError, StreamError, otherModule, shown, within } from "./plan_file.js";
import { errorOf } from "./thread_errors.js";
import { count } from "./slot.js";
import { readFeeds } from "./worker_feeds.js";
import { startWorker } from "./workers.js";

const SCRIPT = () => new URL("./worker_thread.js", import.meta.url);
const OPTIONS = ["variant", "wasm", "onProgress", "limits", "maxCalls"];
const CALL_OPTIONS = ["out", "sizes", "transfer"];
const MOST_CALLS = 1 << 16;

function checkNames(who, given, known) {
  if (given === null || typeof given !== "object") throw new ShapeError(`${who}: options are an object, not ${shown(given)}`);
  const other = Object.keys(given).find((name) => !known.includes(name));
  if (other === "borrow") throw new ShapeError(`${who}: what a worker has cannot be borrowed; leave borrow out, or give out`);
  if (other !== undefined) throw new ShapeError(`${who}: there is no ${other}, only ${known.join(", ")}`);
}

/** The calls to a worker, and who waits for their answers. */
class Line {
  #worker;
  #pending = new Map(); // by number
  #number = 0;
  #failure = null; // why nothing is answered any more

  constructor() {
    this.#worker = startWorker(
      fileUrl("worker_thread.js", SCRIPT),
      ({ number, result, error }) => {
        const asked = this.#pending.get(number);
        this.#pending.delete(number);
        if (error) asked?.reject(errorOf(error)); // nobody waits any more if it was terminated meanwhile
        else asked?.resolve(result);
      },
      (reason) => this.end(`the worker has ended: ${reason}`),
    );
  }

  ask(act, given, transfer = []) {
    return new Promise((resolve, reject) => {
      if (this.#failure) throw this.#failure;
      const number = this.#number++;
      try {
        this.#worker.postMessage({ number, act, ...given }, transfer);
      } catch (error) {
        throw new ShapeError(`${act}: this cannot be sent to a worker: ${error.message}`);
      }
      this.#pending.set(number, { resolve, reject });
    });
  }

  end(reason) {
    if (this.#failure) return;
    this.#failure = new StreamError(reason);
    this.#worker.terminate();
    for (const { reject } of this.#pending.values()) reject(this.#failure);
    this.#pending.clear();
  }
}

/** How many calls with arrays may be under way, so that a page that is too quick does not fill the memory. */
class Gate {
  #most;
  #underWay = 0;
  #waiting = [];

  constructor(most) {
    this.#most = most;
  }

  ready() {
    if (this.#underWay < this.#most) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async through(call) {
    if (this.#underWay >= this.#most) {
      throw new StreamError(`${this.#underWay} calls are under way: await one of them, or ready(), before the next`);
    }
    this.#underWay++;
    try {
      return await call();
    } finally {
      this.#underWay--;
      this.#waiting.shift()?.();
    }
  }
}

const typedArray = Object.getPrototypeOf(Uint8Array.prototype);
// By the method of all typed arrays: that of Node's Buffer does not copy. Arrays that were transferred cannot be copied.
const copyOf = (data) => (data.length ? typedArray.slice.call(data) : new data.constructor(0));

/** Feeds as they are sent: arrays of their own, or, with `transfer`, the caller's, who has them no longer. */
function packed(given, transfer = false) {
  const feeds = {};
  const buffers = new Set();
  for (const [name, data, shape] of readFeeds(given)) {
    const sent = transfer ? data : copyOf(data);
    if (sent.buffer[Symbol.toStringTag] === "ArrayBuffer" && sent.length) buffers.add(sent.buffer);
    Object.defineProperty(feeds, name, { value: shape ? { data: sent, shape } : sent, enumerable: true });
  }
  return { feeds, buffers: [...buffers] };
}

/** Which arrays the caller wants filled: [name, type, length], for the worker, which sees whether they fit. */
function described(out) {
  return Object.entries(out).map(([name, target]) => {
    if (!ArrayBuffer.isView(target) || target instanceof DataView) throw new ShapeError(`out: output '${name}' needs a typed array`);
    return [name, target[Symbol.toStringTag], target.length];
  });
}

/** Copies results into the caller's arrays. */
function fill(out, results, shapes) {
  for (const [name, target] of Object.entries(out)) target.set(results[name].subarray(0, count(shapes[name])));
  return out;
}

/** What runs: the model itself, or a stream of it. */
class Runner {
  shapes = {};
  #line;
  #gate;

  constructor(line, gate) {
    this.#line = line;
    this.#gate = gate;
  }

  /** One run, `act`, with feeds. */
  async call(act, id, given, options) {
    checkNames(act, options, CALL_OPTIONS);
    const { out, sizes, transfer = false } = options;
    if (typeof transfer !== "boolean") throw new ShapeError(`${act}: transfer is true or false, not ${shown(transfer)}`);
    const targets = out ? described(out) : undefined;
    const { results, shapes } = await this.#gate.through(() => {
      const { feeds, buffers } = packed(given, transfer);
      return this.#line.ask(act, { id, feeds, sizes, targets }, buffers);
    });
    this.shapes = shapes;
    return out ? fill(out, results, shapes) : results;
  }
}

/** A stream in the worker; a call that rejects leaves it as it was. */
class WorkerStream {
  #line;
  #runner;
  #id;

  constructor(line, gate, { id, delay, stride }) {
    this.#line = line;
    this.#runner = new Runner(line, gate);
    this.#id = id;
    this.delay = delay;
    this.stride = stride;
  }

  get shapes() {
    return this.#runner.shapes;
  }

  async #ask(act, given, transfer) {
    if (this.#id === null) throw new StreamError("the stream has been disposed of");
    return this.#line.ask(act, { id: this.#id, ...given }, transfer);
  }

  async step(feeds, options = {}) {
    if (this.#id === null) throw new StreamError("the stream has been disposed of");
    return this.#runner.call("step", this.#id, feeds, options);
  }

  async flush() {
    const { results, shapes } = await this.#ask("flush");
    this.#runner.shapes = shapes;
    return results;
  }

  get state() {
    return this.#ask("state");
  }

  async load(state) {
    const { feeds, buffers } = packed(state);
    await this.#ask("restore", { state: feeds }, buffers);
  }

  async reset() {
    await this.#ask("reset");
  }

  async dispose() {
    if (this.#id === null) return;
    const disposed = this.#ask("dispose");
    this.#id = null;
    await disposed;
  }
}

export class ModelWorker {
  #line;
  #gate;
  #runner;

  static async load(source, options = {}) {
    checkNames("ModelWorker", options, OPTIONS);
    const { variant, wasm, onProgress, limits, maxCalls = 16 } = options;
    if (!within(maxCalls, 1, MOST_CALLS)) {
      throw new ShapeError(`ModelWorker: maxCalls is a number from 1 to ${MOST_CALLS}, not ${shown(maxCalls)}`);
    }
    allLimits(limits); // raises here rather than there
    let chosen = { variant: wasm ? variant : chooseVariant(variant), isFull: false };
    const progress = onProgress && new Progress(onProgress);
    const line = new Line(); // it starts while files are loading
    try {
      const [bytes, first] = await Promise.all([bytesOf(source, progress), compile(chosen, { wasm, progress })]);
      const plan = planBytes(bytes);
      if (!plan.byteLength) throw new PlanError("this is not a plan file: it is empty, or was transferred to another thread");
      for (let module = first; ; module = await compile(chosen, { progress })) {
        try {
          const said = await line.ask("load", { plan, wasm: module, variant: chosen.variant, limits });
          return new ModelWorker(line, new Gate(maxCalls), { ...said, variant: chosen.variant });
        } catch (error) {
          if (wasm) throw error;
          chosen = otherModule(chosen, error);
        }
      }
    } catch (error) {
      line.end("the model could not be loaded");
      throw error;
    }
  }

  constructor(line, gate, said) {
    this.#line = line;
    this.#gate = gate;
    this.#runner = new Runner(line, gate);
    Object.assign(this, said);
  }

  get shapes() {
    return this.#runner.shapes;
  }

  async run(feeds, options = {}) {
    return this.#runner.call("run", undefined, feeds, options);
  }

  async stream(options) {
    return new WorkerStream(this.#line, this.#gate, await this.#line.ask("stream", { options }));
  }

  /** Resolves as soon as another call may begin. */
  ready() {
    return this.#gate.ready();
  }

  /** Ends the worker: what is under way rejects. */
  terminate() {
    this.#line.end("the worker was terminated");
  }
}
