// Hosts the VM of webrnn: runs plan files (.rnn) in a page, a worker, an AudioWorklet or Node. Types: webrnn.d.ts.
//
//   const model = await Model.load("denoise.rnn");
//   const { y } = model.run({ x: new Float32Array(256) }); // a new array
//   const stream = model.stream(); // with the states that were chosen at export, or { carry: { h_in: "h_out" } }
//   const { y } = stream.step({ x: frame }, { borrow: true }); // synchronous; a view, overwritten by the next step

import { Heap, Progress, chooseVariant, compile, place, placeBytes } from "./instance.js";
import { PlanError, PlanFile, ShapeError } from "./plan_file.js";
import { Stream } from "./stream.js";

export { supportedVariants } from "./instance.js";
export { ModelError, PlanError, ShapeError, StreamError, WebrnnError } from "./plan_file.js";

const NO_STATES =
  "the plan does not say which states are carried: export it with carry, or name them here, as in " +
  'stream({ carry: { h_in: "h_out" } })';

export class Model {
  #vm;
  #runs = null;

  static async load(source, { variant, wasm, onProgress } = {}) {
    const chosen = wasm ? variant : chooseVariant(variant);
    const progress = onProgress && new Progress(onProgress);
    const heap = new Heap();
    const [plan, module] = await Promise.all([place(source, heap, progress), compile(chosen, wasm, progress)]);
    return new Model(plan, heap, await WebAssembly.instantiate(module, { env: { memory: heap.memory } }), chosen);
  }

  /** For an AudioWorklet's constructor: plan and wasm (a module or its bytes) are there already. */
  static loadSync(plan, { variant, wasm }) {
    const module = wasm instanceof WebAssembly.Module ? wasm : new WebAssembly.Module(wasm);
    const heap = new Heap();
    const instance = new WebAssembly.Instance(module, { env: { memory: heap.memory } });
    return new Model(placeBytes(plan, heap), heap, instance, variant);
  }

  constructor(plan, heap, instance, variant) {
    this.variant = variant;
    this.#vm = new Vm(plan, heap, instance.exports);
    const shown = ({ shape, taken }) => (taken < 0 ? shape : [null, ...shape.slice(1)]);
    const port = (row) => ({ name: row.name, type: row.type, shape: shown(row) });
    this.inputs = this.#vm.file.inputs.map(port);
    this.outputs = this.#vm.file.outputs.map(port);
    this.carry = Object.fromEntries(this.#vm.file.states.map(({ input, output }) => [input, output]));
    this.about = this.#vm.file.about;
  }

  run(feeds, options) {
    this.#runs ??= new Stream(this.#vm, {}, {});
    return this.#runs.step(feeds, options);
  }

  /** The shapes of the results of the last run, by name. */
  get shapes() {
    return this.#runs?.shapes ?? {};
  }

  stream({ carry = this.carry, sizes = {} } = {}) {
    if (carry === null || typeof carry !== "object") throw new ShapeError(`carry is an object, not ${typeof carry}`);
    if (!Object.keys(carry).length && carry === this.carry) throw new ShapeError(NO_STATES);
    return new Stream(this.#vm, carry, sizes);
  }
}

/** What the streams of a model share: the instance, the plan in its memory, and the arena, which keeps nothing. */
class Vm {
  #arena = null;
  #user = null; // the stream whose run was the last one in the arena

  constructor({ address, length }, heap, exports) {
    this.file = new PlanFile(heap.view(Uint8Array, address, length));
    this.heap = heap;
    this.call = exports;
    this.plan = address;
    this.raise(exports.wr_plan_check(address, length));
    this.tableBytes = exports.wr_plan_table_bytes(this.plan);
    if (this.tableBytes <= 0) throw new PlanError("the memory is too small");
  }

  /** Throws for a number other than 0 that the VM returned. */
  raise(error, tables) {
    if (error) throw this.file.error(error, tables && this.call.wr_plan_where(tables));
  }

  reserveArena(bytes) {
    this.#arena = this.heap.enlarged(this.#arena, bytes);
    this.#user = null;
  }

  /** The address of the arena, without what another stream has left in it: a plan may read what it never wrote. */
  arenaFor(stream, bytes) {
    if (this.#user !== stream) {
      this.heap.clear(this.#arena.address, bytes);
      this.#user = stream;
    }
    return this.#arena.address;
  }
}
