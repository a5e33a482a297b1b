// One run after the other: where inputs, outputs and states are, and how they are exchanged.
//
// A call that raises leaves the stream as it was: new sizes are bound beside the old ones, and a state moves on only when
// the results of its step have been handed over.

import { GROW, ModelError, PlanError, ShapeError, StreamError, shown } from "./plan_file.js";
import { Frames } from "./frames.js";
import { Sizing, keptInPlace, neededBytes } from "./sizes.js";
import { Slot, allocated, count, readAll, refuseOthers, sameShape } from "./slot.js";

const MOST_RERUNS = 1000; // because memory has to grow: each time some of it is twice as large
const NOTHING = Object.freeze({});

// Where the states are from which the next step goes on.
const AT_START = 0; // what the plan says
const LOADED = 1; // what was given to load()
const IN_MEMORY = 2; // what the last step left

/** Runs of a model one after the other, and the states between them. */
export class Stream {
  #vm;
  #inputs;
  #outputs;
  #fed; // inputs that are not carried
  #sizing;
  #states; // inputs that are carried; their partners are the outputs that they take
  #returned; // outputs that are not carried
  #sizes;
  #symbols = null; // as bound
  #origin = AT_START;
  #age = -1; // of the heap when the views were made
  #tables = null;
  #arenaBytes = 0;
  #addresses; // of the externals; then the symbols
  #blocks = []; // of the externals
  #words; // view of #addresses
  #borrowed;
  #isBusy = false;
  #isResized = false; // whether a state has changed its size from one step to the next
  #frames = null; // of a stream with frames
  #mayWarmUp = false; // whether the next step may give frames that are not shown
  #isFed = false; // since it began or was loaded

  constructor(vm, carry, sizes, timing = null) {
    const { heap, file } = (this.#vm = vm);
    this.#sizes = { ...sizes };
    this.#inputs = file.inputs.map((port) => new Slot(port, "input"));
    const outputs = new Map(file.outputs.map((port) => [port.name, new Slot(port, "output")])); // one may be listed twice
    this.#outputs = [...outputs.values()];
    this.#states = this.#paired(carry, outputs);
    this.#fed = this.#inputs.filter(({ partner }) => !partner);
    this.#sizing = new Sizing(file, this.#inputs, this.#states, this.#fed);
    this.#returned = this.#outputs.filter(({ partner }) => !partner);
    this.#borrowed = this.#byName(() => null);
    if (timing) this.#frames = new Frames(timing, this.#fed, this.#returned);
    this.#mayWarmUp = timing !== null;
    this.#addresses = heap.allocate(4 * (file.externals + file.symbols.length));
  }

  #paired(carry, outputs) {
    const inputs = new Map(this.#inputs.map((slot) => [slot.name, slot]));
    const starts = new Map(this.#vm.file.states.map(({ input, start }) => [input, start]));
    return Object.entries(carry).map(([to, from]) => {
      const [input, output] = [inputs.get(to), outputs.get(from)];
      if (!input || !output) throw new ShapeError(`carry: there is no ${input ? `output '${shown(from)}'` : `input '${to}'`}`);
      if (output.partner) throw new ShapeError(`carry: ${output.label} is carried to two inputs`);
      if (output.type !== input.type) throw new ShapeError(`carry: ${input.label} and ${output.label} differ in type`);
      output.partner = input;
      input.partner = output;
      input.start = starts.get(to) ?? null;
      return input;
    });
  }

  /** An object of what is returned. Its names are its own properties, whatever they are, so that they can be assigned to. */
  #byName(value) {
    return Object.fromEntries(this.#returned.map((slot) => [slot.name, value(slot)]));
  }

  // --- calls -----------------------------------------------------------------------------------------------------------

  #enter() {
    if (this.#vm === null) throw new StreamError("the stream has been disposed of");
    if (this.#isBusy) throw new StreamError("the stream is reading what was given to another call");
    this.#isBusy = true;
  }

  #leave() {
    const inputs = this.#inputs;
    const outputs = this.#outputs;
    for (let i = 0; i < inputs.length; i++) inputs[i].forget();
    for (let i = 0; i < outputs.length; i++) outputs[i].forget();
    this.#isBusy = false;
  }

  get stride() {
    return this.#frames?.stride ?? 1;
  }

  get delay() {
    return this.#frames?.delay ?? 0;
  }

  get shapes() {
    this.#enter();
    this.#leave();
    const known = this.#returned.filter(({ resultShape }) => resultShape);
    return Object.fromEntries(known.map((slot) => [slot.name, [...slot.resultShape]]));
  }

  get state() {
    this.#enter();
    try {
      return allocated(() => this.#copiedStates());
    } finally {
      this.#leave();
    }
  }

  #copiedStates() {
    const isNew = this.#origin === AT_START && this.#states.some(({ resultShape }) => !resultShape);
    const sizes = isNew ? this.#vm.file.sizes(this.#resolved(this.#sizes)) : null;
    const copy = (slot) => {
      if (this.#origin !== AT_START) return this.#stateView(slot).slice();
      const shape = sizes ? slot.sizes.map((index) => sizes[index]) : slot.resultShape;
      slot.checkShape(shape);
      return slot.begin(new slot.Array(count(shape)), shape);
    };
    return Object.fromEntries(this.#states.map((slot) => [slot.name, copy(slot)]));
  }

  #stateView(slot) {
    if (this.#origin === IN_MEMORY) this.#refreshViews();
    return this.#origin === IN_MEMORY ? slot.view : slot.loaded.data;
  }

  reset() {
    this.#enter();
    this.#restart();
    this.#leave();
  }

  #restart() {
    for (const slot of this.#states) {
      slot.loaded = null;
      if (this.#isResized) slot.resultShape = null;
    }
    if (this.#isResized) this.#symbols = null; // states begin as large as they were at first
    this.#isFed = false;
    this.#goOnFrom(AT_START);
  }

  #goOnFrom(origin) {
    this.#origin = origin;
    this.#mayWarmUp = this.#frames !== null;
  }

  load(states) {
    this.#enter();
    const before = this.#origin;
    try {
      readAll(states ?? NOTHING, this.#states);
      const loaded = allocated(() => this.#states.map((slot) => slot.copied()));
      this.#origin = LOADED;
      this.#checkLoaded(before);
      this.#states.forEach((slot, i) => (slot.loaded = { data: loaded[i], shape: slot.given }));
      this.#isFed = false;
      this.#goOnFrom(LOADED);
    } catch (error) {
      this.#origin = before;
      throw error;
    } finally {
      this.#leave();
    }
  }

  step(feeds, options) {
    this.#enter();
    try {
      const { out, borrow, sizes } = options ?? NOTHING;
      const fed = this.#fed;
      readAll(feeds ?? NOTHING, fed);
      if (out) this.#readTargets(out);
      const named = sizes ? { ...this.#sizes, ...sizes } : this.#sizes;
      // From here on no code of the caller runs.
      let fits = this.#symbols !== null && this.#origin !== LOADED && !sizes;
      for (let i = 0; i < fed.length; i++) if (!fed[i].fits()) fits = false;
      if (!fits) this.#prepare(named);
      if (this.#mayWarmUp) this.#mayWarmUp = this.#frames.hide(this.#returned, this.#strides());
      if (out) this.#checkTargets();
      this.#run();
      const results = out ? this.#fill(out) : borrow ? this.#borrow() : this.#copies();
      this.#commit();
      return results;
    } finally {
      this.#leave();
    }
  }

  /** How many strides were fed; 0 where that makes no difference. */
  #strides() {
    const slot = this.#states.find(({ name }) => name === this.#frames.position);
    return slot && this.#origin !== AT_START ? Number(this.#stateView(slot)[0]) : 0;
  }

  flush() {
    this.#enter();
    try {
      const frames = this.#frames;
      if (!this.#isFed || !frames) throw new StreamError(`flush: ${frames ? "nothing was fed yet" : "there are no frames"}`);
      return allocated(() => this.#flushed(frames));
    } finally {
      this.#leave();
    }
  }

  /** The frames that are left; then the stream begins anew. If it raises, it goes on from where it was. */
  #flushed(frames) {
    const returned = this.#returned;
    const strides = this.#strides();
    const before = this.#states.map((slot) => ({ data: this.#stateView(slot).slice(), shape: slot.shape }));
    const shapes = returned.map(({ resultShape }) => resultShape);
    const goOnFrom = (states) => {
      this.#states.forEach((slot, i) => (slot.loaded = states[i]));
      this.#goOnFrom(LOADED);
    };
    try {
      const parts = returned.map((slot, i) => frames.rest(slot, shapes[i], strides));
      if (frames.flushStrides) {
        frames.feedZeros(this.#fed);
        const end = { data: BigInt64Array.of(BigInt(strides)), shape: [1] };
        goOnFrom(before.map((state, i) => (this.#states[i].name === frames.end ? end : state)));
        this.#prepare(this.#sizes);
      }
      for (let done = 0; done < frames.flushStrides; done += frames.flushFrames / frames.stride) {
        this.#run();
        returned.forEach((slot, i) => parts[i].take(this.#resultView(slot), this.#resultShape(slot), done));
        this.#commit();
      }
      returned.forEach((slot, i) => (slot.resultShape = parts[i].shape));
      this.#restart();
      return Object.fromEntries(returned.map(({ name }, i) => [name, parts[i].data]));
    } catch (error) {
      goOnFrom(before);
      returned.forEach((slot, i) => (slot.resultShape = shapes[i]));
      throw error;
    }
  }

  dispose() {
    if (this.#vm === null) return;
    this.#enter();
    const { heap } = this.#vm;
    for (const block of new Set([...this.#blocks, this.#tables, this.#addresses])) heap.release(block);
    this.#vm = null;
  }

  #readTargets(out) {
    const returned = this.#returned;
    let found = 0;
    for (let i = 0; i < returned.length; i++) {
      const target = returned[i].of(out);
      if (target === undefined) continue;
      returned[i].target = target;
      found++;
    }
    refuseOthers(out, returned, found);
  }

  #checkTargets() {
    const returned = this.#returned;
    const { memory } = this.#vm.heap;
    for (let i = 0; i < returned.length; i++) if (returned[i].target !== undefined) returned[i].checkTarget(memory);
  }

  #run() {
    const vm = this.#vm;
    const fed = this.#fed;
    this.#refreshViews();
    if (this.#origin !== IN_MEMORY) this.#writeStates();
    for (let i = 0; i < fed.length; i++) fed[i].write();
    let error = this.#execute();
    if (error === GROW) error = this.#executeGrowing();
    if (error) vm.raise(error, this.#tables.address);
  }

  #execute() {
    const vm = this.#vm;
    const arena = vm.arenaFor(this, this.#arenaBytes);
    try {
      return vm.call.wr_plan_run(this.#tables.address, arena, this.#addresses.address);
    } catch (cause) {
      this.#symbols = null; // the tables are as they were in the middle of a run
      throw new ModelError(`the run was broken off: ${cause.message}`);
    }
  }

  /** Tables that ask for more memory than there is are given up: new ones ask for what was there before anything grew. */
  #executeGrowing() {
    let error = GROW;
    try {
      for (let i = 0; error === GROW && i < MOST_RERUNS; i++) {
        this.#grow();
        error = this.#execute();
      }
      if (error === GROW) this.#vm.raise(error, this.#tables.address);
      return error;
    } catch (cause) {
      this.#vm.heap.release(this.#tables);
      this.#symbols = this.#tables = null;
      throw cause;
    }
  }

  /** Makes the room that the tables ask for by now. */
  #grow() {
    const { call, file, heap } = this.#vm;
    const tables = this.#tables.address;
    this.#age = -1;
    this.#arenaBytes = call.wr_plan_arena_bytes(tables);
    this.#vm.reserveArena(this.#arenaBytes);
    for (const external of file.lateExternals) {
      const bytes = call.wr_plan_external_bytes(tables, external);
      this.#blocks[external] = heap.enlarged(this.#blocks[external], bytes);
    }
    for (const { external, partner } of this.#states) this.#enlargeState(external, this.#blocks[partner.external].bytes);
    this.#refreshViews();
    this.#blocks.forEach((block, external) => (this.#words[external] = block.address));
  }

  /** A state's place becomes that of its next value, so it is as large. */
  #enlargeState(external, bytes) {
    const { heap } = this.#vm;
    const block = this.#blocks[external];
    if (block.bytes >= bytes) return;
    const larger = heap.allocate(bytes);
    heap.copy(block, larger);
    heap.release(block);
    this.#blocks[external] = larger;
  }

  #writeStates() {
    for (const slot of this.#states) {
      if (this.#origin === LOADED) slot.write(slot.loaded.data);
      else slot.begin(slot.view, slot.shape);
    }
  }

  // --- results -----------------------------------------------------------------------------------------------------------

  #copies() {
    return allocated(() => this.#byName((slot) => this.#shownView(slot).slice()));
  }

  #borrow() {
    const returned = this.#returned;
    for (let i = 0; i < returned.length; i++) this.#borrowed[returned[i].name] = this.#shownView(returned[i]);
    return this.#borrowed;
  }

  #fill(out) {
    const returned = this.#returned;
    for (let i = 0; i < returned.length; i++) returned[i].fill(this.#shownView(returned[i]));
    return out;
  }

  #commit() {
    const states = this.#states;
    const returned = this.#returned;
    for (let i = 0; i < states.length; i++) if (states[i].partner.isLate) this.#resultView(states[i].partner); // or raise
    for (let i = 0; i < returned.length; i++) returned[i].resultShape = returned[i].shownShape(this.#resultShape(returned[i]));
    if (this.#frames?.keepsResults) for (const slot of returned) slot.kept = this.#resultView(slot).slice();
    this.#isFed = true;
    for (let i = 0; i < states.length; i++) {
      const shape = this.#resultShape(states[i].partner);
      this.#exchange(states[i], states[i].partner);
      if (!sameShape(shape, states[i].shape)) this.#resize(states[i], shape);
      states[i].resultShape = states[i].shape;
      if (states[i].partner.isLate) this.#age = -1; // the view of what was an output
    }
    if (this.#origin === LOADED) for (const slot of states) slot.loaded = null;
    this.#origin = IN_MEMORY;
  }

  /** A state that is of another size now: the next step binds that. */
  #resize(slot, shape) {
    slot.shape = shape;
    slot.count = count(shape);
    this.#age = -1;
    this.#symbols = null;
    this.#isResized = true;
  }

  /** The new state's place becomes that of the next step's input, and the other way round. */
  #exchange(input, output) {
    const blocks = this.#blocks;
    const block = blocks[input.external];
    blocks[input.external] = blocks[output.external];
    blocks[output.external] = block;
    const view = input.view;
    input.view = output.view;
    output.view = view;
    this.#words[input.external] = blocks[input.external].address;
    this.#words[output.external] = block.address;
  }

  /** What is shown of a result: a copy if that is not all. */
  #shownView(slot) {
    const view = this.#resultView(slot);
    if (!slot.hidden) return view;
    const shape = this.#resultShape(slot);
    const left = slot.shownShape(shape);
    return slot.copyFrames(view, shape, new slot.Array(count(left)), left[slot.timed.axis], slot.hidden);
  }

  #resultView(slot) {
    if (!slot.isLate) return slot.view;
    const { address, bytes } = this.#blocks[slot.external];
    const length = count(this.#resultShape(slot));
    if (length * slot.Array.BYTES_PER_ELEMENT > bytes) throw new PlanError(`${slot.label} is larger than its place`);
    return this.#vm.heap.view(slot.Array, address, length);
  }

  #resultShape(slot) {
    return slot.isLate ? this.#lateShape(slot) : slot.shape;
  }

  /** With the sizes that came out in the last run. */
  #lateShape(slot) {
    const { call, file } = this.#vm;
    const sizeOf = (row) => call.wr_plan_size(this.#tables.address, row);
    const shape = slot.sizes.map((row, axis) => (file.isLate[row] ? sizeOf(row) : slot.shape[axis]));
    slot.checkShape(shape);
    return shape;
  }

  // --- sizes -------------------------------------------------------------------------------------------------------------

  /** The numbers of the symbols, undefined where nothing says it. */
  #resolve(sizes) {
    return this.#sizing.resolve(sizes, this.#origin === IN_MEMORY, this.#origin === AT_START);
  }

  /** The same; raises where nothing says it. */
  #resolved(sizes) {
    return this.#sizing.whole(this.#resolve(sizes));
  }

  /** Raises unless the states that were read fit the plan, as far as that can be told before feeds come. */
  #checkLoaded(before) {
    const states = this.#states;
    // An array as long as the state is now has its shape; it need not say it.
    if (this.#symbols) for (const slot of states) if (!slot.given && slot.length === slot.count) slot.given = slot.shape;
    const symbols = this.#resolve(this.#sizes);
    if (!symbols.includes(undefined)) {
      this.#bind(symbols);
      return;
    }
    const { file } = this.#vm;
    const found = new Map(file.symbols.map((name, i) => [name, symbols[i]]));
    for (const slot of states) {
      const shape = slot.axes.map((axis) => found.get(axis) ?? axis);
      const known = shape.filter((size) => typeof size === "number");
      const isWhole = known.length === shape.length;
      const others = count(known);
      const fits = slot.given
        ? slot.given.length === shape.length && shape.every((size, i) => typeof size === "string" || size === slot.given[i]) &&
          slot.length === count(slot.given)
        : isWhole || others === 0 ? slot.length === others : slot.length % others === 0;
      if (!fits) throw new ShapeError(`${slot.label} has ${described(slot)}, the plan takes [${shape}]`);
      // Feeds may still say it; but the state that there is must not be given up for one that may not fit.
      if (!slot.given && !isWhole && before === IN_MEMORY) {
        const open = shape.filter((size) => typeof size === "string");
        throw new ShapeError(`${slot.label}: how large is ${open.join(", ")}? Pass {data, shape}`);
      }
    }
  }

  /** Binds the sizes that follow from what was read. */
  #prepare(sizes) {
    if (this.#origin === LOADED) {
      for (const slot of this.#states) {
        slot.data = slot.loaded.data;
        slot.given = slot.loaded.shape;
      }
    }
    const symbols = this.#resolved(sizes);
    this.#frames?.check(this.#fed, (name) => symbols[this.#vm.file.symbols.indexOf(name)]);
    this.#bind(symbols);
  }

  /** Makes room for sizes. Only when all of it is there does it take the place of what was bound before. */
  #bind(symbols) {
    const { file, call, heap, tableBytes } = this.#vm;
    const sizes = file.sizes(symbols);
    const shapes = this.#checkedShapes(sizes);
    if (this.#symbols && sameShape(symbols, this.#symbols)) return;

    // What was borrowed of the memory is lost when that grows.
    for (const slot of this.#fed) if (slot.data && slot.isIn(heap.memory)) slot.data = allocated(() => slot.copied());
    const made = [];
    const allocate = (bytes) => made[made.push(heap.allocate(bytes)) - 1];
    let tables;
    let blocks;
    let arenaBytes;
    try {
      tables = allocate(tableBytes);
      if (this.#tables) heap.copy({ ...this.#tables, bytes: tableBytes }, tables); // they know what room runs have needed
      const words = this.#addresses.address + 4 * file.externals;
      heap.view(Int32Array, words, symbols.length).set(symbols);
      this.#vm.bind(words, tables.address);
      arenaBytes = call.wr_plan_arena_bytes(tables.address);
      this.#vm.reserveArena(arenaBytes);
      const fits = (block, bytes) => block?.bytes >= bytes;
      const room = (bytes) => (this.#isResized ? bytes + (bytes >> 1) : bytes); // states that grow will do so again
      const needed = neededBytes(this.#vm, this.#states, sizes, shapes, tables);
      const kept = keptInPlace(this.#states, sizes, needed);
      const isShared = (block, external) => this.#blocks.indexOf(block) !== external; // with the input before it
      blocks = needed.map((bytes, external) => {
        if (kept.has(external)) return null;
        const block = this.#blocks[external];
        return fits(block, bytes) && !isShared(block, external) ? block : allocate(Math.max(room(bytes), block?.bytes ?? 0));
      });
      for (const [to, from] of kept) blocks[to] = blocks[from];
    } catch (error) {
      for (const block of made) heap.release(block);
      throw error;
    }
    this.#takeBlocks(blocks);
    heap.release(this.#tables);
    this.#tables = tables;
    this.#arenaBytes = arenaBytes;
    for (const [slot, shape] of shapes) {
      slot.shape = shape;
      slot.count = slot.isLate ? 0 : count(shape);
    }
    this.#age = -1;
    this.#refreshViews();
    this.#blocks.forEach((block, external) => (this.#words[external] = block.address));
    this.#symbols = symbols;
  }

  #takeBlocks(blocks) {
    const { heap } = this.#vm;
    if (this.#origin === IN_MEMORY) {
      for (const { external } of this.#states) {
        if (blocks[external] !== this.#blocks[external]) heap.copy(this.#blocks[external], blocks[external]);
      }
    }
    for (const block of new Set(this.#blocks)) if (!blocks.includes(block)) heap.release(block);
    this.#blocks = blocks;
  }

  /** The shape of each slot for given sizes; raises if what was read, or states as they are, have another one. */
  #checkedShapes(sizes) {
    const slots = [...this.#inputs, ...this.#outputs];
    const shapes = new Map(slots.map((slot) => [slot, slot.sizes.map((index) => sizes[index])]));
    for (const slot of this.#states) {
      const [now, next] = [shapes.get(slot), shapes.get(slot.partner)];
      const fits = (size, axis) => size === now[axis] || typeof slot.axes[axis] === "string" || Number.isNaN(size);
      if (now.length !== next.length || !next.every(fits)) {
        throw new ShapeError(`carry: ${slot.partner.label} has shape [${next}], ${slot.label} has [${now}]`);
      }
      if (this.#origin === IN_MEMORY && !sameShape(now, slot.shape)) {
        throw new ShapeError(`${slot.label} has shape [${now}] here, its state has [${slot.shape}]: reset()?`);
      }
    }
    for (const slot of this.#inputs) if (slot.data) slot.check(shapes.get(slot));
    for (const [slot, shape] of shapes) slot.checkShape(shape);
    return shapes;
  }

  #refreshViews() {
    const { heap, file } = this.#vm;
    if (this.#age === heap.age) return;
    for (const slots of [this.#inputs, this.#outputs]) {
      for (const slot of slots) slot.view = heap.view(slot.Array, this.#blocks[slot.external].address, slot.count);
    }
    this.#words = heap.view(Uint32Array, this.#addresses.address, file.externals);
    this.#age = heap.age;
  }
}

const described = ({ given, length }) => (given ? `shape [${given}] and ${length} elements` : `${length} elements`);
