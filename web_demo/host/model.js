// A plan that runs: what it takes and gives, its runs and streams. How it gets here is webrnn.js; an AudioWorklet and workers, which
// are given plan and module, do without that.

import { Heap, imports, placeBytes } from "./heap.js";
import { PlanError, PlanFile, ShapeError, StreamError, WebrnnError } from "./plan_file.js";
import { Stream } from "./stream.js";

const NO_STATES =
  "the plan does not say which states are carried: export it with carry, or name them here, as in " +
  'stream({ carry: { h_in: "h_out" } })';

const NO_POOLS = 'import "webrnn/pool" first: this plan was exported without pool=True, or import() is not allowed here';

/** What pool.js puts here when it is loaded. */
export const pools = { make: null };

const DEFAULT_LIMITS = { loopSteps: 10_000_000, runSteps: 1_000_000_000, seconds: Infinity };

/** Limits with those that are not given as they are by default; raises if one is none. */
export function allLimits(given = {}) {
  for (const [name, limit] of Object.entries(given)) {
    if (!Object.hasOwn(DEFAULT_LIMITS, name)) {
      throw new WebrnnError(`limits: there is no ${name}, only ${Object.keys(DEFAULT_LIMITS).join(", ")}`);
    }
    const isCount = Number.isSafeInteger(limit) && limit > 0;
    const isTime = name === "seconds" && typeof limit === "number" && limit > 0;
    if (limit !== undefined && limit !== Infinity && !isCount && !isTime) {
      throw new WebrnnError(`limits: ${name} is a number above 0, or Infinity, not ${limit}`);
    }
  }
  const known = Object.entries(given).filter(([, limit]) => limit !== undefined);
  return { ...DEFAULT_LIMITS, ...Object.fromEntries(known) };
}

export class Model {
  #vm;
  #runs = null;

  /** For an AudioWorklet's constructor: plan and wasm (a module or its bytes) are there already. */
  static loadSync(plan, { variant, wasm, limits }) {
    const bounds = allLimits(limits);
    const module = wasm instanceof WebAssembly.Module ? wasm : new WebAssembly.Module(wasm);
    const heap = new Heap();
    const instance = new WebAssembly.Instance(module, imports(heap.memory));
    return new Model(placeBytes(plan, heap), heap, instance, variant, bounds);
  }

  constructor(plan, heap, instance, variant, limits) {
    this.variant = variant;
    this.#vm = new Vm(plan, heap, instance.exports, limits);
    const { isLate } = this.#vm.file;
    const shown = ({ shape, sizes }) => shape.map((size, axis) => (isLate[sizes[axis]] ? null : size));
    const port = (row) => ({ name: row.name, type: row.type, shape: shown(row) });
    this.inputs = this.#vm.file.inputs.map(port);
    this.outputs = this.#vm.file.outputs.map(port);
    this.carry = Object.fromEntries(this.#vm.file.states.map(({ input, output }) => [input, output]));
    this.about = this.#vm.file.about;
    this.timing = this.#vm.file.timing;
    this.isPool = this.#vm.file.pool !== null;
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
    const { timing } = this;
    if (!Object.keys(carry).length && carry === this.carry && !timing && !this.isPool) throw new ShapeError(NO_STATES);
    const names = Object.keys(this.carry);
    const isOwn = names.length === Object.keys(carry).length && names.every((name) => carry[name] === this.carry[name]);
    const { streams } = this.#vm.file;
    return new Stream(this.#vm, carry, streams ? { [streams]: 1, ...sizes } : sizes, isOwn ? timing : null);
  }

  pool(options) {
    if (!pools.make) throw new StreamError(NO_POOLS);
    return pools.make(this, this.#vm, options);
  }
}

/** What the streams of a model share: the instance, the plan in its memory, and the arena, which keeps nothing. */
class Vm {
  #arena = null;
  #user = null; // the stream whose run was the last one in the arena
  #limits;
  #numbers; // where the VM finds them

  constructor({ address, length }, heap, exports, limits) {
    this.#limits = limits;
    this.file = new PlanFile(heap.view(Uint8Array, address, length));
    this.heap = heap;
    this.call = exports;
    this.plan = address;
    this.raise(exports.wr_plan_check(address, length));
    this.tableBytes = exports.wr_plan_table_bytes(this.plan);
    if (this.tableBytes <= 0) throw new PlanError("the memory is too small");
    const { loopSteps, runSteps, seconds } = limits;
    const numbers = [loopSteps, runSteps, Math.ceil(seconds * 1e6)];
    this.#numbers = heap.allocate(8 * numbers.length).address;
    const inVm = (limit) => (limit <= Number.MAX_SAFE_INTEGER ? BigInt(limit) : -1n); // what is negative is no limit
    heap.view(BigInt64Array, this.#numbers, numbers.length).set(numbers.map(inVm));
  }

  /** Binds sizes, which are at an address, in `tables`, and sets the limits of runs with them. */
  bind(symbols, tables) {
    this.raise(this.call.wr_plan_bind(this.plan, symbols, tables), tables);
    this.call.wr_plan_limit(tables, this.#numbers);
  }

  /** Throws for a number other than 0 that the VM returned. */
  raise(error, tables) {
    if (error) throw this.file.error(error, tables && this.call.wr_plan_where(tables), this.#limits);
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
