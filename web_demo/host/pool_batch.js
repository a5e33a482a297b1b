// Streams of a pool side by side: where their feeds wait, and where their states and results are in the memory of the VM.

import { GROW, ModelError, PlanError, ShapeError } from "./plan_file.js";
import { keptInPlace, neededBytes } from "./sizes.js";
import { Slot, allocated, count, sameShape } from "./slot.js";

const MOST_RERUNS = 1000;

/** How the elements of one stream lie among those of many: `outer` stretches of `inner` elements each. */
class Rows {
  constructor(slot, axis, sizes) {
    this.slot = slot;
    this.shape = slot.sizes.map((index) => sizes[index]);
    slot.checkShape(this.shape);
    this.outer = count(this.shape.slice(0, axis));
    this.inner = count(this.shape.slice(axis + 1));
    this.count = this.outer * this.inner;
    this.stretch = this.inner * slot.Array.BYTES_PER_ELEMENT;
    this.bytes = this.outer * this.stretch;
  }

  /** Copies rows that lie one after the other, each whole, to rows among `n`. */
  spread(heap, from, to, n, first, rows) {
    const { outer, stretch } = this;
    if (outer === 1) {
      heap.move(to + first * stretch, from, rows * stretch);
      return;
    }
    for (let row = 0; row < rows; row++) {
      for (let i = 0; i < outer; i++) heap.move(to + (i * n + first + row) * stretch, from + (row * outer + i) * stretch, stretch);
    }
  }

  /** Copies one row among `n` to where it is whole. */
  collect(heap, from, n, row, to) {
    const { outer, stretch } = this;
    for (let i = 0; i < outer; i++) heap.move(to + i * stretch, from + (i * n + row) * stretch, stretch);
  }

  /** Copies all rows among `n` into an array, one whole row after the other. */
  gather(view, n, target) {
    const { outer, inner } = this;
    let to = 0;
    for (let row = 0; row < n; row++) {
      for (let i = 0; i < outer; i++) {
        const from = (i * n + row) * inner;
        for (let j = 0; j < inner; j++) target[to++] = view[from + j];
      }
    }
    return target;
  }
}

/** What a pool knows of its plan: slots of one stream, and the axes that count streams. */
export class Ports {
  constructor(vm) {
    const { file } = vm;
    const { inputs, outputs } = file.pool;
    this.vm = vm;
    this.inputs = file.inputs.map((port, i) => Object.assign(new Slot(port, "input"), { axis: inputs[i] }));
    const byName = new Map(file.outputs.map((port, i) => [port.name, Object.assign(new Slot(port, "output"), { axis: outputs[i] })]));
    this.outputs = [...byName.values()];
    this.states = file.states.map(({ input, output, start }) => {
      const state = this.inputs.find(({ name }) => name === input);
      state.partner = byName.get(output);
      state.partner.partner = state;
      state.start = start;
      return state;
    });
    this.fed = this.inputs.filter(({ partner }) => !partner);
    this.returned = this.outputs.filter(({ partner }) => !partner);
  }
}

/** Feeds of one shape that wait for the next tick, a row for each place of the pool; and what follows from that shape. */
export class Layout {
  members = []; // who has handed in feeds
  n = 0; // how many of them count
  #heap;
  #age = -1;
  #capacity = 0;
  #blocks = [];
  #views = [];

  constructor({ vm, fed, states, returned }, symbols, strides) {
    const sizes = vm.file.sizes(symbols);
    const rows = (slot) => new Rows(slot, slot.axis, sizes);
    this.#heap = vm.heap;
    this.symbols = symbols; // of one stream
    this.strides = strides; // of frames
    this.fed = fed.map(rows);
    this.states = states.map(rows);
    this.returned = returned.map(rows);
  }

  /** How many places have room. */
  get capacity() {
    return this.#capacity;
  }

  isFor(symbols) {
    return sameShape(this.symbols, symbols);
  }

  /** Makes room for the feeds of places below `capacity`. */
  reserve(capacity) {
    if (capacity <= this.#capacity) return;
    this.#blocks = this.fed.map(({ bytes }, i) => {
      const larger = this.#heap.allocate(capacity * bytes);
      if (this.#blocks[i]) this.#heap.move(larger.address, this.#blocks[i].address, this.#capacity * bytes);
      this.#heap.release(this.#blocks[i]);
      return larger;
    });
    this.#capacity = capacity;
    this.#age = -1;
  }

  /** Copies elements of an input to the rows of places that follow each other. */
  put(i, place, data) {
    const { slot, count: length } = this.fed[i];
    const view = this.#view(i);
    const at = place * length;
    if (slot.type === "bool") for (let j = 0; j < data.length; j++) view[at + j] = data[j] ? 1 : 0;
    else view.set(data, at);
  }

  /** A copy of what a place has of an input. */
  taken(i, place) {
    const { count: length } = this.fed[i];
    return this.#view(i).slice(place * length, (place + 1) * length);
  }

  #view(i) {
    if (this.#age !== this.#heap.age) {
      this.#views = this.fed.map(({ slot, count: length }, j) =>
        this.#heap.view(slot.Array, this.#blocks[j].address, this.#capacity * length));
      this.#age = this.#heap.age;
    }
    return this.#views[i];
  }

  address(i, place) {
    return this.#blocks[i].address + place * this.fed[i].bytes;
  }

  dispose() {
    for (const block of this.#blocks) this.#heap.release(block);
  }
}

/** Assigns a result by its name, whatever that is. */
function put(results, name, value) {
  if (name === "__proto__") Object.defineProperty(results, name, { value, writable: true, enumerable: true, configurable: true });
  else results[name] = value;
}

/** Runs streams together. As long as they are the same ones, their states stay where the VM has them. */
export class Batch {
  layout = null;
  n = 0;
  at = 0; // at which of their two places the states are
  isUsed = false; // in this tick
  members = []; // by row; those whose states are elsewhere by now have another batch, or none
  given = null; // results by row, when they have been asked for
  #ports;
  #isBound = false;
  #tables = null;
  #arenaBytes = 0;
  #addresses; // of the externals, for both places of the states; then the symbols
  #blocks = [];
  #kept = new Map();
  #age = -1;
  #views = []; // of what is returned
  #borrowed = []; // results by row
  #gathered = []; // where rows are not whole in memory: arrays in which they are

  constructor(ports) {
    this.#ports = ports;
    const { heap, file } = ports.vm;
    this.#addresses = heap.allocate(4 * (2 * file.externals + file.symbols.length));
  }

  fits(layout, n) {
    return this.#isBound && this.layout === layout && this.n === n;
  }

  /** Makes room for so many streams with feeds of a layout. Nobody's states may be here. */
  bind(layout, n, streams) {
    const { vm, inputs, outputs, states } = this.#ports;
    const { heap, file, call } = vm;
    this.#isBound = false;
    this.layout = layout;
    this.n = n;
    this.at = 0;
    const symbols = layout.symbols.map((number, i) => (i === streams ? n : number));
    const sizes = file.sizes(symbols);
    const slots = [...inputs, ...outputs];
    const shapes = new Map(slots.map((slot) => [slot, slot.sizes.map((index) => sizes[index])]));
    const alone = file.sizes(layout.symbols);
    for (const [slot, shape] of shapes) {
      const isRight = (size, axis) => size === (axis === slot.axis ? n : alone[slot.sizes[axis]]);
      if (!shape.every(isRight)) throw new PlanError(`${slot.label} would be of shape [${shape}] for ${n} streams`);
      slot.checkShape(shape);
    }
    for (const state of states) {
      const [now, next] = [state, state.partner].map((slot) => shapes.get(slot));
      if (!sameShape(now, next)) throw new ShapeError(`carry: ${state.partner.label} has shape [${next}], ${state.label} has [${now}]`);
    }
    this.#tables ??= heap.allocate(vm.tableBytes);
    const words = this.#addresses.address + 8 * file.externals;
    heap.view(Int32Array, words, symbols.length).set(symbols);
    vm.bind(words, this.#tables.address);
    this.#arenaBytes = call.wr_plan_arena_bytes(this.#tables.address);
    vm.reserveArena(this.#arenaBytes);
    const needed = neededBytes(vm, states, sizes, shapes, this.#tables);
    this.#kept = keptInPlace(states, sizes, needed);
    this.#makeRoom(needed);
    this.#age = -1;
    this.#isBound = true;
  }

  #makeRoom(needed) {
    const { heap } = this.#ports.vm;
    for (const external of this.#kept.keys()) needed[external] = 0;
    this.#blocks = needed.map((bytes, external) => heap.enlarged(this.#blocks[external], bytes));
    this.#writeAddresses();
  }

  #writeAddresses() {
    const { vm, states } = this.#ports;
    const { heap, file } = vm;
    const words = heap.view(Uint32Array, this.#addresses.address, 2 * file.externals);
    const place = (external) => this.#blocks[this.#kept.get(external) ?? external].address;
    for (const offset of [0, file.externals]) this.#blocks.forEach((_, external) => (words[offset + external] = place(external)));
    for (const { external, partner } of states) {
      words[file.externals + external] = place(partner.external);
      words[file.externals + partner.external] = place(external);
    }
  }

  /** Where a state is, or will be after the next run. */
  #stateAddress(i, at) {
    const { external, partner } = this.#ports.states[i];
    const chosen = at ? partner.external : external;
    return this.#blocks[this.#kept.get(chosen) ?? chosen].address;
  }

  /** Copies the states of a row to where they are whole: `addressOf` says it of each state. */
  leave(row, addressOf) {
    const { heap } = this.#ports.vm;
    this.layout.states.forEach((rows, i) => rows.collect(heap, this.#stateAddress(i, this.at), this.n, row, addressOf(i)));
  }

  /** The other way round, for some rows whose states lie one after the other. */
  take(first, n, addressOf) {
    const { heap } = this.#ports.vm;
    this.layout.states.forEach((rows, i) => rows.spread(heap, addressOf(i), this.#stateAddress(i, this.at), this.n, first, n));
  }

  /** Feeds the rows from the places of their members, and runs. */
  run() {
    this.#feed();
    let error = this.#execute();
    for (let i = 0; error === GROW && i < MOST_RERUNS; i++) error = this.#executeWithMore();
    if (!error) return;
    if (error === GROW) this.#isBound = false;
    this.#ports.vm.raise(error, this.#tables.address);
  }

  #feed() {
    const { layout, members, n } = this;
    const { vm, fed } = this.#ports;
    for (let i = 0; i < fed.length; i++) {
      const to = this.#blocks[fed[i].external].address;
      for (let first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && members[end].place === members[end - 1].place + 1; ) end++;
        layout.fed[i].spread(vm.heap, layout.address(i, members[first].place), to, n, first, end - first);
      }
    }
  }

  #execute() {
    const { vm } = this.#ports;
    const arena = vm.arenaFor(this, this.#arenaBytes);
    const addresses = this.#addresses.address + (this.at ? 4 * vm.file.externals : 0);
    try {
      return vm.call.wr_plan_run(this.#tables.address, arena, addresses);
    } catch (cause) {
      this.#isBound = false; // the tables are as they were in the middle of a run
      throw new ModelError(`the run was broken off: ${cause.message}`);
    }
  }

  #executeWithMore() {
    const { vm } = this.#ports;
    try {
      this.#arenaBytes = vm.call.wr_plan_arena_bytes(this.#tables.address);
      vm.reserveArena(this.#arenaBytes);
    } catch (cause) {
      this.#isBound = false;
      throw cause;
    }
    return this.#execute();
  }

  // --- results -----------------------------------------------------------------------------------------------------------

  #refreshViews() {
    allocated(() => this.#makeViews());
  }

  #makeViews() {
    const { vm, returned } = this.#ports;
    const { layout, n } = this;
    this.#views = returned.map(({ Array, external }, i) =>
      vm.heap.view(Array, this.#blocks[external].address, n * layout.returned[i].count));
    this.#gathered = layout.returned.map(({ outer, slot, count: length }) => (outer === 1 ? null : new slot.Array(n * length)));
    this.#borrowed = this.#cut(this.#views.map((view, i) => this.#gathered[i] ?? view));
    this.#age = vm.heap.age;
  }

  /** Results by row, of arrays in which rows are whole. */
  #cut(arrays) {
    const { returned } = this.layout;
    return Array.from({ length: this.n }, (_, row) => {
      const results = {};
      for (let i = 0; i < returned.length; i++) {
        const { count: length, slot } = returned[i];
        put(results, slot.name, arrays[i].subarray(row * length, (row + 1) * length));
      }
      return results;
    });
  }

  /** Lets `given` be the results of the last run: views that the next one overwrites, or copies. */
  give(areCopies) {
    if (this.#age !== this.#ports.vm.heap.age) this.#refreshViews();
    if (areCopies) {
      this.given = this.#copies();
      return;
    }
    const { returned } = this.layout;
    for (let i = 0; i < returned.length; i++) if (this.#gathered[i]) returned[i].gather(this.#views[i], this.n, this.#gathered[i]);
    this.given = this.#borrowed;
  }

  #copies() {
    const { returned } = this.layout;
    const whole = (view, i) =>
      this.#gathered[i] ? returned[i].gather(view, this.n, new view.constructor(view.length)) : view.slice();
    return allocated(() => this.#cut(this.#views.map(whole)));
  }

  dispose() {
    const { heap } = this.#ports.vm;
    for (const block of [...this.#blocks, this.#tables, this.#addresses]) heap.release(block);
  }
}

/** Raises unless a plan says of each input and output which axis counts streams, all by one name that is on no other axis. */
export function checkPool(file) {
  const { pool, streams, inputs, outputs, states, symbols } = file;
  const number = symbols.indexOf(streams);
  const ports = [...inputs, ...outputs];
  const areAxes = Array.isArray(pool.inputs) && Array.isArray(pool.outputs) && pool.inputs.length === inputs.length;
  const axes = areAxes ? [...pool.inputs, ...pool.outputs] : [];
  const axisOf = (rows, chosen, wanted) => chosen[rows.findIndex(({ name }) => name === wanted)];
  const known = (n) => file.sizes(symbols.map((_, i) => (i === number ? n : NaN)));
  const free = file.sizes(symbols.map((_, i) => (i === number ? NaN : 1)));
  const counts = (n) => ports.every(({ sizes }, i) => known(n)[sizes[axes[i]]] === n);
  const fits =
    number >= 0 && axes.length === ports.length &&
    ports.every(({ shape, isLate }, i) => shape[axes[i]] === streams && !isLate) && counts(1) && counts(2) &&
    ports.every(({ sizes }, i) => sizes.every((size, axis) => axis === axes[i] || !Number.isNaN(free[size]))) &&
    states.every(({ input, output }) => axisOf(inputs, pool.inputs, input) === axisOf(outputs, pool.outputs, output));
  if (!fits) throw new PlanError("the metadata of the pool are damaged");
  return number;
}
