// Many streams of one model, one run a tick: `model.pool()`. Importing this module is what makes that work.
//
// A call that raises leaves the streams as they were; a tick that raises has dropped what was submitted for it.

import { PlanError, ShapeError, StreamError, shown, within } from "./plan_file.js";
import { Frames } from "./frames.js";
import { fillTargets, part, readTargets, rowLength } from "./pool_arrays.js";
import { Bank, capacityFor } from "./pool_bank.js";
import { Batch, Layout, Ports, checkPool } from "./pool_batch.js";
import { Alone } from "./pool_alone.js";
import { NOTHING, Roster } from "./pool_roster.js";
import { Sizing } from "./sizes.js";
import { allocated, count, readAll, sameShape } from "./slot.js";
import { pools } from "./model.js";

const MOST_LAYOUTS = 8; // shapes of feeds for which room is kept
const MOST_BATCHES = 8; // that are kept although the last tick did not use them: their streams may come back
const MOST_STREAMS = 1 << 20;

/** Streams that come and go, and run together. */
export class StreamPool {
  #vm;
  #ports;
  #streams; // the number of the symbol that counts them
  #sizes;
  #sizing;
  #frames = null;
  #roster;
  #maxBatch;
  #reason = "";
  #layouts = [];
  #layout = null; // the one that was used last
  #batches = [];
  #used = []; // batches of this tick
  #nUsed = 0; // how many of them count
  #bank; // has the states of streams that are in no batch
  #results = new Map(); // that are borrowed
  #lent = []; // whose they are
  #resultsAt = (i) => this.#roster.order[i].results;

  constructor(vm, { maxStreams, maxBatch, sizes }) {
    const { file } = vm;
    this.#vm = vm;
    this.#streams = checkPool(file);
    this.#sizes = { ...sizes, [file.streams]: 1 };
    const { inputs, states, fed, returned } = (this.#ports = new Ports(vm));
    this.#sizing = new Sizing(file, inputs, states, fed);
    if (file.timing) this.#frames = new Frames(file.timing, fed, returned);
    this.#roster = new Roster(maxStreams);
    this.#bank = new Bank(vm.heap, maxStreams);
    this.#maxBatch = maxBatch;
  }

  get batched() {
    return !this.#reason;
  }

  get reason() {
    return this.#reason;
  }

  get size() {
    return this.#roster.size;
  }

  get maxStreams() {
    return this.#roster.max;
  }

  get stride() {
    return this.#frames?.stride ?? 1;
  }

  get delay() {
    return this.#frames?.delay ?? 0;
  }

  // --- calls -----------------------------------------------------------------------------------------------------------

  #call(act) {
    this.#roster.enter();
    try {
      return act();
    } finally {
      for (const slot of this.#ports.inputs) slot.forget();
      for (const slot of this.#ports.returned) slot.forget();
      this.#roster.leave();
    }
  }

  open() {
    return this.#call(() => this.#roster.open());
  }

  close(handle) {
    this.#call(() => this.#roster.close(handle));
  }

  submit(handle, feeds) {
    this.#roster.enter();
    const { fed } = this.#ports;
    try {
      readAll(feeds ?? NOTHING, fed);
      const stream = this.#roster.unfed(handle);
      const layout = this.#fittingLayout(stream.place);
      for (let i = 0; i < fed.length; i++) if (fed[i].length) layout.put(i, stream.place, fed[i].data);
      this.#roster.submitted(stream, layout);
    } finally {
      for (let i = 0; i < fed.length; i++) fed[i].forget();
      this.#roster.leave();
    }
  }

  submitMany(handles, feeds) {
    this.#call(() => {
      const streams = this.#roster.allUnfed(handles);
      if (!streams.length) return;
      const { fed } = this.#ports;
      readAll(feeds ?? NOTHING, fed);
      const most = streams.reduce((place, stream) => Math.max(place, stream.place), 0);
      const whole = fed.map((slot) => slot.data);
      const lengths = fed.map((slot) => rowLength(slot, streams.length));
      fed.forEach((slot, i) => (slot.data = part(slot, 0, lengths[i])));
      const layout = this.#fittingLayout(most, whole);
      fed.forEach((slot, i) => (slot.data = whole[i]));
      for (let first = 0, end; first < streams.length; first = end) {
        for (end = first + 1; streams[end]?.place === streams[end - 1].place + 1; ) end++;
        for (let i = 0; i < fed.length; i++) {
          const length = lengths[i];
          if (length) layout.put(i, streams[first].place, part(fed[i], first * length, (end - first) * length));
        }
      }
      for (const stream of streams) this.#roster.submitted(stream, layout);
    });
  }

  tick(options) {
    this.#roster.enter();
    try {
      const { out, borrow } = options ?? NOTHING;
      if (out) readTargets(out, this.#ports.returned);
      // From here on no code of the caller runs.
      this.#runTogether();
      for (let i = 0; i < this.#nUsed; i++) this.#used[i].give(!out && !borrow);
      const { order, waiting } = this.#roster;
      for (let i = 0; i < waiting; i++) this.#show(order[i]);
      if (out) fillTargets(this.#ports.returned, waiting, this.#resultsAt, this.#vm.heap.memory);
      const results = out ?? (borrow ? this.#lend() : this.#byHandle(new Map()));
      this.#commit();
      return results;
    } finally {
      this.#endTick();
    }
  }

  flush(handle) {
    return this.#call(() => {
      const stream = this.#roster.idle(handle, "flush");
      const frames = this.#frames;
      if (!frames || !stream.last) throw new StreamError(`flush: ${frames ? "nothing was fed yet" : "there are no frames"}`);
      return allocated(() => this.#flushed(stream, frames));
    });
  }

  state(handle) {
    return this.#call(() => {
      const stream = this.#roster.get(handle);
      return stream.isFresh ? {} : allocated(() => this.#snapshot(stream));
    });
  }

  load(handle, states) {
    this.#call(() => {
      const { states: slots } = this.#ports;
      const isStart = Object.keys(states ?? NOTHING).length === 0;
      if (!isStart) readAll(states, slots);
      const stream = this.#roster.idle(handle, "load");
      if (isStart) {
        this.#restart(stream);
        return;
      }
      this.#prepareBank(stream);
      slots.forEach((slot, i) => this.#bank.write(i, stream.place, slot.data));
      this.#leaveBatch(stream);
      const position = slots.findIndex(({ name }) => name === this.#frames?.position);
      const strides = position < 0 ? 0 : Number(slots[position].data[0]);
      Object.assign(stream, { isFresh: false, isWarm: false, strides, last: null, kept: null, hidden: null });
    });
  }

  shapes(handle) {
    return this.#call(() => {
      const { last, hidden } = this.#roster.get(handle);
      const shape = (rows, i) => {
        const frames = hidden?.[i];
        return frames ? rows.slot.withFrames(rows.shape, Math.max(0, rows.shape[rows.slot.timed.axis] - frames)) : [...rows.shape];
      };
      return Object.fromEntries((last?.returned ?? []).map((rows, i) => [rows.slot.name, shape(rows, i)]));
    });
  }

  dispose() {
    if (this.#roster.isOver) return;
    this.#roster.end();
    for (const each of [...this.#batches, ...this.#layouts, this.#bank]) each.dispose();
  }

  // --- shapes of feeds -----------------------------------------------------------------------------------------------------

  /** The layout of what was read for one stream, with room for the feeds of a place. `others` are arrays that are read later. */
  #fittingLayout(place, others) {
    const { fed } = this.#ports;
    let fits = this.#layout !== null;
    for (let i = 0; i < fed.length; i++) if (!fed[i].fits()) fits = false;
    if (!fits) this.#layout = this.#findLayout();
    if (place >= this.#layout.capacity) this.#reserve(this.#layout, place, others);
    return this.#layout;
  }

  #reserve(layout, place, others) {
    const { heap } = this.#vm;
    // What was borrowed of the memory is lost when that grows.
    for (const slot of this.#ports.fed) if (slot.isIn(heap.memory)) slot.data = allocated(() => slot.copied());
    others?.forEach((array, i) => {
      if (this.#ports.fed[i].isIn(heap.memory, array)) others[i] = allocated(() => array.slice());
    });
    layout.reserve(capacityFor(place, this.#roster.max));
  }

  #findLayout() {
    const { fed, states } = this.#ports;
    const { file } = this.#vm;
    const hasStates = this.#knowsStates();
    const symbols = this.#sizing.whole(this.#sizing.resolve(this.#sizes, hasStates, !hasStates));
    if (symbols[this.#streams] !== 1) throw new ShapeError("what is submitted is of one stream; submitMany takes more");
    const sizeOf = (axis) => symbols[file.symbols.indexOf(axis)] ?? axis;
    this.#frames?.check(fed, sizeOf);
    const sizes = file.sizes(symbols);
    for (const slot of fed) slot.check(slot.sizes.map((index) => sizes[index]));
    let layout = this.#layouts.find((each) => each.isFor(symbols));
    if (!layout) {
      const timed = fed.find((slot) => slot.timed);
      layout = new Layout(this.#ports, symbols, timed ? sizeOf(timed.axes[timed.timed.axis]) / this.#frames.stride : 0);
      layout.states.forEach(({ slot, shape }) => {
        if (hasStates && !sameShape(shape, slot.shape)) {
          throw new ShapeError(`${slot.label} would have shape [${shape}], those of the other streams have [${slot.shape}]`);
        }
      });
      this.#layouts.push(layout);
    }
    if (!hasStates) this.#bank.become(layout.states);
    layout.fed.forEach(({ slot, shape, count: length }) => Object.assign(slot, { shape, count: length }));
    states.forEach((slot, i) => (slot.shape = layout.states[i].shape));
    return layout;
  }

  // --- states --------------------------------------------------------------------------------------------------------------

  /** Whether the sizes of states are those that some stream has. */
  #knowsStates() {
    return this.#bank.isThere && this.#roster.some((stream) => !stream.isFresh || stream.layout);
  }

  /** A bank for the states that were read; raises unless they fit the plan and the other streams. */
  #prepareBank(stream) {
    const { states } = this.#ports;
    const { file, heap } = this.#vm;
    const hasStates = this.#bank.isThere && this.#roster.some((other) => other !== stream && (!other.isFresh || other.layout));
    const symbols = hasStates ? null : this.#sizing.resolve(this.#sizes, false, false);
    const sizes = hasStates ? null : file.sizes(symbols.map((number) => number ?? NaN));
    for (const slot of states) {
      const shape = sizes ? slot.sizes.map((index) => sizes[index]) : slot.shape;
      if (shape.includes(NaN)) throw new ShapeError(`${slot.label}: how large is [${slot.axes}]? Pass {data, shape}`);
      slot.check(shape);
      if (slot.isIn(heap.memory)) slot.data = allocated(() => slot.copied());
    }
    if (!hasStates) {
      const known = symbols.map((number) => number ?? 0); // those that are not known are of no state
      const { states: rows } = new Layout({ ...this.#ports, fed: [], returned: [] }, known, 0);
      this.#layout = null;
      this.#bank.become(rows);
      states.forEach((slot, i) => (slot.shape = rows[i].shape));
    }
    this.#bank.reserve(stream.place);
  }

  #leaveBatch(stream) {
    stream.batch = null;
  }

  /** Lets the states of a stream be in the bank, those of a new one as they begin. */
  #park(stream) {
    this.#bank.reserve(stream.place);
    if (stream.isFresh) {
      const { states } = this.#ports;
      for (let i = 0; i < states.length; i++) states[i].begin(this.#bank.view(i, stream.place), this.#bank.rows[i].shape);
    } else if (stream.batch) {
      stream.batch.leave(stream.row, (i) => this.#bank.address(i, stream.place));
    }
    this.#leaveBatch(stream);
  }

  #restart(stream) {
    this.#leaveBatch(stream);
    Object.assign(stream, { isFresh: true, isWarm: false, strides: 0, last: null, kept: null, hidden: null });
  }

  #snapshot(stream) {
    const view = (i) => this.#bank.view(i, stream.place);
    if (stream.batch) {
      this.#bank.reserve(stream.place);
      stream.batch.leave(stream.row, (i) => this.#bank.address(i, stream.place)); // where it is stays in the batch
    }
    return Object.fromEntries(this.#ports.states.map(({ name }, i) => [name, view(i).slice()]));
  }

  // --- ticks ---------------------------------------------------------------------------------------------------------------

  /** Runs all that was submitted, one stream at a time if the plan does not hold for these sizes of many, or if there is no
   * memory for so many. */
  #runTogether() {
    const most = this.#maxBatch;
    try {
      this.#runAll();
    } catch (error) {
      if (!(error instanceof PlanError) || most === 1) throw error;
      this.#maxBatch = 1;
      try {
        this.#runAll();
      } catch (other) {
        this.#maxBatch = most;
        throw other;
      }
      this.#reason = `the plan does not take these streams together: ${error.message}`;
    }
  }

  /** Runs all that was submitted; `#used` are then the batches that did. */
  #runAll() {
    this.#nUsed = 0;
    for (let i = 0; i < this.#batches.length; i++) this.#batches[i].isUsed = false;
    const nLayouts = this.#roster.group();
    for (let i = 0; i < nLayouts; i++) {
      const layout = this.#roster.layouts[i];
      for (let first = 0; first < layout.n; first += this.#maxBatch) {
        const batch = this.#batchFor(layout, first, Math.min(this.#maxBatch, layout.n - first));
        batch.isUsed = true;
        this.#used[this.#nUsed++] = batch;
        batch.run();
      }
    }
  }

  /** A batch that has the states of `n` members of a layout. */
  #batchFor(layout, first, n) {
    const { members } = layout;
    const { batch } = members[first];
    let isThere = batch !== null && !batch.isUsed && batch.fits(layout, n);
    for (let row = 0; isThere && row < n; row++) isThere = members[first + row].batch === batch && members[first + row].row === row;
    return isThere ? batch : this.#rearranged(layout, first, n);
  }

  #rearranged(layout, first, n) {
    const some = layout.members.slice(first, first + n);
    for (const stream of some) this.#park(stream);
    const batch = this.#idleBatch(layout, n);
    for (const stream of batch.members) if (stream.batch === batch) this.#park(stream);
    batch.members = [];
    if (!batch.fits(layout, n)) batch.bind(layout, n, this.#streams);
    for (let from = 0, end; from < n; from = end) {
      for (end = from + 1; end < n && some[end].place === some[end - 1].place + 1; ) end++;
      batch.take(from, end - from, (i) => this.#bank.address(i, some[from].place));
    }
    batch.members = some;
    some.forEach((stream, row) => Object.assign(stream, { batch, row }));
    return batch;
  }

  /** A batch that nobody needs in this tick, best one that is bound already. */
  #idleBatch(layout, n) {
    const idle = this.#batches.filter(({ isUsed }) => !isUsed);
    const empty = idle.filter((batch) => !batch.members.some((stream) => stream.batch === batch));
    const found = empty.find((batch) => batch.fits(layout, n)) ?? empty[0] ?? (this.#batches.length >= MOST_BATCHES ? idle[0] : null);
    if (found) return found;
    this.#batches.push(new Batch(this.#ports));
    return this.#batches.at(-1);
  }

  #byHandle(results) {
    const { order, waiting } = this.#roster;
    for (let i = 0; i < waiting; i++) results.set(order[i].handle, order[i].results);
    return results;
  }

  /** The same, in an object that is always the same one. */
  #lend() {
    const { order, waiting } = this.#roster;
    const lent = this.#lent;
    let isSame = lent.length === waiting;
    for (let i = 0; isSame && i < waiting; i++) isSame = lent[i] === order[i].handle;
    if (!isSame) {
      this.#results.clear();
      lent.length = 0;
      for (let i = 0; i < waiting; i++) lent.push(order[i].handle);
    }
    return this.#byHandle(this.#results);
  }

  /** Finds the results of a stream, without its warm-up. */
  #show(stream) {
    const results = stream.batch.given[stream.row];
    const frames = this.#frames;
    stream.hidden = null;
    stream.results = results;
    if (!frames || stream.isWarm || !frames.hide(this.#ports.returned, stream.strides)) return;
    stream.hidden = this.#ports.returned.map(({ hidden }) => hidden);
    const cut = ({ slot, shape }) => {
      if (!slot.hidden) return results[slot.name];
      const left = slot.shownShape(shape);
      return slot.copyFrames(results[slot.name], shape, new slot.Array(count(left)), left[slot.timed.axis], slot.hidden);
    };
    stream.results = allocated(() => Object.fromEntries(stream.layout.returned.map((rows) => [rows.slot.name, cut(rows)])));
  }

  /** The states of all that ran have moved on. */
  #commit() {
    const { order, waiting } = this.#roster;
    const frames = this.#frames;
    if (frames) for (let i = 0; i < waiting; i++) this.#remember(order[i], frames);
    for (let i = 0; i < this.#nUsed; i++) this.#used[i].at = 1 - this.#used[i].at;
    for (let i = 0; i < waiting; i++) {
      const stream = order[i];
      stream.isFresh = false;
      stream.last = stream.layout;
      stream.strides += stream.layout.strides;
      stream.isWarm = stream.hidden === null;
      stream.results = null;
    }
  }

  /** Keeps what a flush will need. */
  #remember(stream, frames) {
    const { fed, returned } = this.#ports;
    stream.timeless = fed.map((slot, i) => (slot.timed ? null : stream.layout.taken(i, stream.place)));
    const { given } = stream.batch;
    if (frames.keepsResults) stream.kept = returned.map(({ name, timed }) => (timed ? null : given[stream.row][name].slice()));
  }

  #endTick() {
    this.#roster.endTick();
    const { returned } = this.#ports;
    for (let i = 0; i < returned.length; i++) returned[i].forget();
    const keep = Math.max(MOST_BATCHES, this.#nUsed);
    while (this.#batches.length > keep) this.#drop(this.#batches.findIndex(({ isUsed }) => !isUsed));
    while (this.#layouts.length > MOST_LAYOUTS) {
      const [oldest] = this.#layouts.splice(this.#layouts[0] === this.#layout ? 1 : 0, 1);
      oldest.dispose();
    }
    this.#roster.leave();
  }

  #drop(number) {
    const [batch] = this.#batches.splice(number, 1);
    for (const stream of batch.members) if (stream.batch === batch) this.#park(stream);
    batch.dispose();
  }

  // --- the end of a sequence -------------------------------------------------------------------------------------------------

  /** The frames that are left; then the stream begins anew. If it raises, it goes on from where it was. */
  #flushed(stream, frames) {
    const { fed, returned, states } = this.#ports;
    const { last } = stream;
    const before = this.#snapshot(stream);
    const strides = frames.position in before ? Number(before[frames.position][0]) : 0;
    try {
      returned.forEach((slot, i) => (slot.kept = stream.kept?.[i] ?? null));
      const parts = returned.map((slot, i) => frames.rest(slot, last.returned[i].shape, strides));
      if (frames.flushStrides) {
        fed.forEach((slot, i) => {
          const { shape } = last.fed[i];
          slot.given = slot.timed ? slot.withFrames(shape, frames.flushFrames) : shape;
          slot.data = slot.timed ? new slot.Array(count(slot.given)) : stream.timeless[i];
        });
        const layout = this.#fittingLayout(stream.place);
        fed.forEach((slot, i) => slot.length && layout.put(i, stream.place, slot.data));
        this.#park(stream);
        const end = states.findIndex(({ name }) => name === frames.end);
        if (end >= 0) this.#bank.view(end, stream.place).fill(BigInt(strides));
        layout.members = [stream];
        for (const batch of this.#batches) batch.isUsed = false;
        const batch = this.#rearranged(layout, 0, 1);
        for (let done = 0; done < frames.flushStrides; done += frames.flushFrames / frames.stride) {
          batch.run();
          batch.give(false);
          returned.forEach(({ name }, i) => parts[i].take(batch.given[0][name], layout.returned[i].shape, done));
          batch.at = 1 - batch.at;
        }
      }
      this.#restart(stream);
      return Object.fromEntries(returned.map(({ name }, i) => [name, parts[i].data]));
    } catch (error) {
      this.#leaveBatch(stream);
      states.forEach(({ name }, i) => this.#bank.write(i, stream.place, before[name]));
      throw error;
    }
  }
}

const OPTIONS = ["maxStreams", "maxBatch", "sizes"];

function makePool(model, vm, options = {}) {
  const { maxStreams = 64, maxBatch = maxStreams, sizes = {} } = options;
  const other = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (other !== undefined) throw new ShapeError(`pool: there is no ${other}, only ${OPTIONS.join(", ")}`);
  for (const [name, number] of Object.entries({ maxStreams, maxBatch })) {
    if (!within(number, 1, MOST_STREAMS)) throw new ShapeError(`pool: ${name} is a number from 1 to ${MOST_STREAMS}, not ${shown(number)}`);
  }
  return model.isPool ? new StreamPool(vm, { maxStreams, maxBatch, sizes }) : new Alone(model, vm, { maxStreams, sizes });
}

pools.make = makePool;

/** `model.pool(options)`, which an import of this makes sure of. */
export const openPool = (model, options) => model.pool(options);
