// One run after the other: where inputs, outputs and states are, and how they are exchanged.

import { ShapeError, within } from "./plan_file.js";

const MAX_SIZE = 0x7fffffff;

const count = (shape) => shape.reduce((a, b) => a * b, 1);

function sameShape(a, b) {
  for (let i = 0; i < b.length; i++) if (a[i] !== b[i]) return false;
  return a.length === b.length;
}

/** Raises if something is given besides `slots`, all of which are. It has no closures, which would be allocated. */
function refuseOthers(given, slots) {
  let length = 0;
  for (const _ in given) length++;
  if (length !== slots.length) throw unexpected(Object.keys(given), slots.map(({ name }) => name));
}

function unexpected(given, names) {
  const others = given.filter((name) => !names.includes(name));
  return new ShapeError(`'${others[0]}' is not expected here, only ${names.join(", ") || "nothing"}`);
}

/** An input or output of a stream, and its place in memory. */
class Slot {
  block = null;
  view = null;
  shape = null; // as bound
  count = 0;
  state = null; // of an output that is carried: the input that it is carried to
  start = null; // of an input that is carried: what it starts from, {data, shape}, or zeros

  constructor(port, direction) {
    Object.assign(this, port);
    this.label = `${direction} '${port.name}'`;
    this.tag = port.Array.name;
    this.axes = port.shape;
    this.shape = null;
  }

  /** Whether `feed` has the shape that is bound; raises if it is nothing that this input takes. */
  fits(feed) {
    const data = ArrayBuffer.isView(feed) ? feed : feed?.data;
    if (data?.[Symbol.toStringTag] !== this.tag) {
      const given = data?.[Symbol.toStringTag] ?? typeof (data ?? feed);
      throw new ShapeError(`${this.label} takes a ${this.tag}, or {data, shape} with one, not ${given}`);
    }
    if (this.shape === null || data.length !== this.count) return false;
    return data === feed || !feed.shape || sameShape(feed.shape, this.shape);
  }

  /** Raises unless `feed` has this shape. */
  check(feed, shape) {
    if (feed.shape && !sameShape(feed.shape, shape)) {
      throw new ShapeError(`${this.label} has shape [${feed.shape}], the plan takes [${this.axes}]`);
    }
    const { length } = ArrayBuffer.isView(feed) ? feed : feed.data;
    if (length !== count(shape)) {
      throw new ShapeError(`${this.label} has ${length} elements, but [${shape}] has ${count(shape)}`);
    }
  }

  /** Raises unless `array` has room for this output. */
  takes(array) {
    if (array?.[Symbol.toStringTag] !== this.tag || array.length !== this.count) {
      const given = array?.[Symbol.toStringTag] ?? typeof array;
      throw new ShapeError(
        `out: ${this.label} needs a ${this.tag} of ${this.count} elements, not ${given} of ${array?.length}`,
      );
    }
  }

  write(feed) {
    const data = ArrayBuffer.isView(feed) ? feed : feed.data;
    if (this.tag !== "Uint8Array") this.view.set(data);
    else for (let i = 0; i < data.length; i++) this.view[i] = data[i] ? 1 : 0;
  }

  /** Writes what a state starts from. */
  begin() {
    if (this.start) repeat(this.view, this.shape, this.start);
    else this.view.fill(this.tag === "BigInt64Array" ? 0n : 0);
  }
}

/** Fills `view`, of shape `shape`, with the elements of `data`, whose axes of one element are repeated. */
function repeat(view, shape, { data, shape: given }) {
  const index = shape.map(() => 0);
  for (let i = 0; i < view.length; i++) {
    let at = 0;
    for (let axis = 0; axis < shape.length; axis++) at = at * given[axis] + (given[axis] === 1 ? 0 : index[axis]);
    view[i] = data[at];
    for (let axis = shape.length - 1; axis >= 0 && ++index[axis] === shape[axis]; axis--) index[axis] = 0;
  }
}

/** Runs of a model one after the other, and the states between them. */
export class Stream {
  #vm;
  #inputs;
  #outputs;
  #fed; // inputs that are not carried
  #states; // outputs that are carried
  #returned; // outputs that are not
  #sizes;
  #symbols = null; // as bound
  #loaded = {}; // states to begin with; those that are missing start as the plan says
  #begun = false;
  #age = -1; // of the heap when the views were made
  #tables;
  #addresses; // of the externals; then the symbols
  #others = new Map(); // blocks of externals that are no input or output
  #words; // view of #addresses
  #borrowed = {};

  constructor(vm, carry, sizes) {
    const { heap, file, tableBytes } = (this.#vm = vm);
    this.#sizes = sizes;
    this.#inputs = file.inputs.map((port) => new Slot(port, "input"));
    this.#outputs = file.outputs.map((port) => new Slot(port, "output"));
    this.#states = Object.entries(carry).map(([to, from]) => this.#pair(to, from));
    this.#fed = this.#inputs.filter((slot) => !this.#states.some(({ state }) => state === slot));
    this.#returned = this.#outputs.filter(({ state }) => !state);
    for (const { name } of this.#returned) this.#borrowed[name] = null;
    this.#tables = heap.allocate(tableBytes);
    this.#addresses = heap.allocate(4 * (file.externals + file.symbols.length));
  }

  #pair(to, from) {
    const input = this.#inputs.find((slot) => slot.name === to);
    const output = this.#outputs.find((slot) => slot.name === from);
    if (!input || !output) throw new ShapeError(`carry: there is no ${input ? `output '${from}'` : `input '${to}'`}`);
    if (output.state) throw new ShapeError(`carry: ${output.label} is carried to two inputs`);
    if (output.Array !== input.Array) throw new ShapeError(`carry: ${input.label} and ${output.label} differ in type`);
    if (output.taken >= 0) throw new ShapeError(`carry: ${output.label} is as long as a loop takes steps`);
    output.state = input;
    input.start = this.#vm.file.states.find((state) => state.input === to)?.start ?? null;
    return output;
  }

  get shapes() {
    if (!this.#symbols) return {};
    this.#refreshViews();
    return Object.fromEntries(this.#returned.map((slot) => [slot.name, this.#resultShape(slot)]));
  }

  get state() {
    if (!this.#symbols) this.#bind({}, this.#sizes);
    this.#begin();
    return Object.fromEntries(this.#states.map(({ state }) => [state.name, state.view.slice()]));
  }

  reset() {
    this.#loaded = {};
    this.#begun = false;
  }

  load(states) {
    const slots = this.#states.map(({ state }) => state);
    for (const slot of slots) slot.fits(states[slot.name]);
    refuseOthers(states, slots);
    const copy = (feed) => (ArrayBuffer.isView(feed) ? feed.slice() : { data: feed.data.slice(), shape: feed.shape });
    const loaded = Object.fromEntries(slots.map(({ name }) => [name, copy(states[name])]));
    const [before, begun] = [this.#loaded, this.#begun];
    this.#loaded = loaded;
    this.#begun = false;
    try {
      if (this.#resolve({}, this.#sizes).includes(undefined)) this.#symbols = null; // bound by the next step
      else this.#bind({}, this.#sizes);
    } catch (error) {
      this.#loaded = before;
      this.#begun = begun;
      throw error;
    }
  }

  step(feeds, options) {
    const vm = this.#vm;
    if (vm === null) throw new Error("the stream has been disposed of");
    const fed = this.#fed;
    const out = options?.out;
    let fits = this.#symbols !== null && !options?.sizes;
    for (let i = 0; i < fed.length; i++) if (!fed[i].fits(feeds[fed[i].name])) fits = false;
    refuseOthers(feeds, fed);
    if (!fits) this.#bind(feeds, { ...this.#sizes, ...options?.sizes });
    if (out) this.#checkOut(out);
    this.#begin();
    for (let i = 0; i < fed.length; i++) fed[i].write(feeds[fed[i].name]);
    const error = vm.call.wr_plan_run(this.#tables.address, vm.arena.address, this.#addresses.address);
    if (error) vm.raise(error, this.#tables.address);
    const results = out ? this.#fill(out) : this.#results(options?.borrow);
    for (let i = 0; i < this.#states.length; i++) this.#exchange(this.#states[i]);
    return results;
  }

  #results(borrow) {
    const returned = this.#returned;
    const results = borrow ? this.#borrowed : {};
    for (let i = 0; i < returned.length; i++) {
      const view = this.#resultView(returned[i]);
      results[returned[i].name] = borrow ? view : view.slice();
    }
    return results;
  }

  /** Raises unless each array of `out` is of the type and length of an output. */
  #checkOut(out) {
    const returned = this.#returned;
    let found = 0;
    for (let i = 0; i < returned.length; i++) {
      const array = out[returned[i].name];
      if (array === undefined) continue;
      returned[i].takes(array);
      found++;
    }
    for (const _ in out) found--;
    if (found) throw unexpected(Object.keys(out), returned.map(({ name }) => name));
  }

  #fill(out) {
    const returned = this.#returned;
    for (let i = 0; i < returned.length; i++) out[returned[i].name]?.set(this.#resultView(returned[i]));
    return out;
  }

  dispose() {
    if (this.#vm === null) return;
    const { heap } = this.#vm;
    for (const slot of [...this.#inputs, ...this.#outputs]) heap.release(slot.block);
    for (const block of [...this.#others.values(), this.#tables, this.#addresses]) heap.release(block);
    this.#vm = null;
  }

  /** The numbers of the symbols, undefined where nothing says it. */
  #resolve(feeds, sizes) {
    const { file } = this.#vm;
    const found = new Map(Object.entries(sizes));
    const name = (slot, shape) => shape?.forEach((number, axis) => found.set(slot.axes[axis], number));
    if (this.#begun) for (const { state } of this.#states) name(state, state.shape);
    for (const slot of this.#inputs) name(slot, (feeds[slot.name] ?? this.#loaded[slot.name])?.shape);
    for (const slot of this.#fed) if (feeds[slot.name]) this.#fromLength(slot, feeds[slot.name], found);
    this.#fromOutputs(found);
    const symbols = file.symbols.map((name) => found.get(name));
    const wrong = symbols.find((number) => number !== undefined && !within(number, 0, MAX_SIZE));
    if (wrong !== undefined) throw new ShapeError(`${wrong} is not a size`);
    return symbols;
  }

  /** A plain array says how large the only axis is that nothing else says. */
  #fromLength({ axes }, feed, found) {
    const open = axes.filter((axis) => typeof axis === "string" && !found.has(axis));
    if (feed.shape || open.length !== 1) return;
    const others = count(axes.filter((axis) => axis !== open[0]).map((axis) => found.get(axis) ?? axis));
    const { length } = ArrayBuffer.isView(feed) ? feed : feed.data;
    if (others > 0 && length % others === 0) found.set(open[0], length / others);
  }

  /** States that begin are as large as they will be after the step; what that leaves open is 1: one stream. */
  #fromOutputs(found) {
    const { file } = this.#vm;
    const begin = this.#states.filter(({ state }) => !this.#begun && !this.#loaded[state.name]);
    const isFed = (axis) => this.#fed.some(({ axes }) => axes.includes(axis));
    for (;;) {
      const sizes = file.sizes(file.symbols.map((name) => found.get(name) ?? NaN));
      let open;
      let known;
      for (const output of begin) {
        output.state.axes.forEach((axis, i) => {
          if (typeof axis !== "string" || found.has(axis) || isFed(axis) || known) return;
          open = axis;
          if (!Number.isNaN(sizes[output.sizes[i]])) known = { axis, size: sizes[output.sizes[i]] };
        });
      }
      if (open === undefined) return;
      found.set(known?.axis ?? open, known?.size ?? 1);
    }
  }

  /** Makes room for the sizes that follow from the feeds. */
  #bind(feeds, sizes) {
    const { file, call, plan, heap } = this.#vm;
    const symbols = this.#resolve(feeds, sizes);
    const missing = file.symbols.filter((_, i) => symbols[i] === undefined);
    if (missing.length) throw new ShapeError(`how large is ${missing.join(", ")}? Pass {data, shape}, or sizes`);
    const shapes = this.#checkedShapes(feeds, file.sizes(symbols));
    if (this.#symbols && sameShape(symbols, this.#symbols)) return;

    this.#symbols = null;
    const { address } = this.#tables;
    const words = this.#addresses.address;
    heap.view(Int32Array, words + 4 * file.externals, symbols.length).set(symbols);
    this.#vm.raise(call.wr_plan_bind(plan, words + 4 * file.externals, address), address);
    this.#vm.arena = heap.enlarged(this.#vm.arena, call.wr_plan_arena_bytes(address));
    const others = new Set(Array(file.externals).keys());
    for (const [slot, shape] of shapes) {
      const partner = this.#states.find(({ state }) => state === slot) ?? slot.state ?? slot;
      const needed = [slot, partner].map(({ external }) => this.#vm.externalBytes(address, external));
      slot.shape = shape;
      slot.count = count(shape);
      slot.block = heap.enlarged(slot.block, Math.max(...needed, slot.count * slot.Array.BYTES_PER_ELEMENT));
      others.delete(slot.external);
    }
    for (const external of others) {
      const bytes = Math.max(this.#vm.externalBytes(address, external), 8);
      this.#others.set(external, heap.enlarged(this.#others.get(external), bytes));
    }
    this.#age = -1;
    this.#refreshViews();
    for (const [external, block] of this.#others) this.#words[external] = block.address;
    for (const slot of shapes.keys()) this.#words[slot.external] = slot.block.address;
    this.#symbols = symbols;
  }

  /** The shape of each slot for given sizes; raises if the feeds, or states as they are, have another one. */
  #checkedShapes(feeds, sizes) {
    const slots = [...this.#inputs, ...this.#outputs];
    const shapes = new Map(slots.map((slot) => [slot, slot.sizes.map((index) => sizes[index])]));
    for (const output of this.#states) {
      const [now, next] = [shapes.get(output.state), shapes.get(output)];
      if (!sameShape(now, next)) {
        throw new ShapeError(`carry: ${output.label} has shape [${next}], ${output.state.label} has [${now}]`);
      }
      const { label, shape } = output.state;
      if (this.#begun && !sameShape(now, shape)) {
        throw new ShapeError(`${label} has shape [${now}] here, its state has [${shape}]: reset()?`);
      }
    }
    for (const slot of this.#inputs) {
      const feed = feeds[slot.name] ?? this.#loaded[slot.name];
      if (feed) slot.check(feed, shapes.get(slot));
    }
    return shapes;
  }

  #refreshViews() {
    const { heap, file } = this.#vm;
    if (this.#age === heap.age) return;
    for (const slots of [this.#inputs, this.#outputs]) {
      for (const slot of slots) slot.view = heap.view(slot.Array, slot.block.address, slot.count);
    }
    this.#words = heap.view(Uint32Array, this.#addresses.address, file.externals);
    this.#age = heap.age;
  }

  /** Views as memory is now, and states, if none were carried here. */
  #begin() {
    this.#refreshViews();
    if (this.#begun) return;
    for (const { state } of this.#states) {
      const loaded = this.#loaded[state.name];
      if (loaded) state.write(loaded);
      else state.begin();
    }
    this.#loaded = {};
    this.#begun = true;
  }

  /** The new state's place becomes that of the next step's input, and the other way round. */
  #exchange(output) {
    const input = output.state;
    const { block, view } = input;
    input.block = output.block;
    input.view = output.view;
    output.block = block;
    output.view = view;
    this.#words[input.external] = input.block.address;
    this.#words[output.external] = block.address;
  }

  #resultView(slot) {
    return slot.taken < 0 ? slot.view : slot.view.subarray(0, count(this.#resultShape(slot)));
  }

  /** An output that a loop makes step by step ends where the loop did. */
  #resultShape({ shape, taken }) {
    if (taken < 0) return [...shape];
    const [steps] = this.#vm.heap.view(Int32Array, this.#words[taken], 1);
    return [Math.max(0, Math.min(steps, shape[0])), ...shape.slice(1)];
  }
}
