// An input or output of a stream: what callers give for it, read and checked, and what its memory shows.
//
// What a caller gives may run code of the caller when it is read: getters, proxies. So everything is read first, each thing
// once; afterwards only what a typed array really is counts, by the getters that all typed arrays inherit.

import { PlanError, ShapeError, shown, within } from "./plan_file.js";

const MAX_SIZE = 0x7fffffff;
const MOST_AXES_GIVEN = 64;

const typedArray = Object.getPrototypeOf(Uint8Array.prototype);
const getter = (key) => Object.getOwnPropertyDescriptor(typedArray, key).get;
const [getTag, getLength, getBuffer] = [getter(Symbol.toStringTag), getter("length"), getter("buffer")];
const tagOf = (value) => getTag.call(value); // undefined of anything else
const lengthOf = (array) => getLength.call(array);
const bufferOf = (array) => getBuffer.call(array);
const { set } = typedArray;
const setIn = (array, elements) => set.call(array, elements);

/** What `make()` allocates of JavaScript's own memory, or the error of this package if there is none left. */
export function allocated(make) {
  try {
    return make();
  } catch (error) {
    if (error instanceof RangeError) throw new PlanError(`there is no memory for this: ${error.message}`);
    throw error;
  }
}

export const count = (shape) => shape.reduce((a, b) => a * b, 1);

export function sameShape(a, b) {
  for (let i = 0; i < b.length; i++) if (a[i] !== b[i]) return false;
  return a.length === b.length;
}

/** Reads what is given for each slot; raises if it is not all, or something is given besides. */
export function readAll(given, slots) {
  for (let i = 0; i < slots.length; i++) {
    const feed = slots[i].of(given);
    if (feed === undefined) throw misnamed(given, slots);
    slots[i].read(feed);
  }
  refuseOthers(given, slots, slots.length);
}

/** Raises if something is given besides `slots`, `found` of which are. It has no closures, which would be allocated. */
export function refuseOthers(given, slots, found) {
  let number = 0;
  for (const _ in given) number++;
  if (number !== found) throw misnamed(given, slots);
}

/** The error for a name that nothing has, or for one that is missing; `names` are those that there are. */
export function nameError(kind, given, names) {
  const there = names.length ? `there ${names.length > 1 ? "are" : "is"} '${names.join("', '")}'` : "there is none";
  if (tagOf(given) !== undefined || typeof given !== "object") {
    return new ShapeError(`${kind}s are given by name, not as ${kindOf(given)}; ${there}`);
  }
  for (const name in given) if (!names.includes(name)) return new ShapeError(`no ${kind} '${name}'; ${there}`);
  const missing = names.find((name) => !Object.hasOwn(given, name) || given[name] === undefined) ?? names[0];
  return new ShapeError(`${kind} '${missing}' is missing; ${there}`);
}

const misnamed = (given, slots) => nameError(slots[0]?.direction ?? "input", given, slots.map(({ name }) => name));

const kindOf = (value) => tagOf(value) ?? typeof value;

export class Slot {
  view = null;
  shape = null; // as bound
  count = 0;
  partner = null; // of a state: the output that is carried to this input, or the input that this output is carried to
  start = null; // of an input that is carried: what it starts from, {data, shape}, or zeros
  loaded = null; // of an input that is carried: what it goes on from, {data, shape}
  resultShape = null; // that of the last result, or of the state after the last step
  data = null; // of an input: what the caller gives, during a call
  given = null; // the shape of that, or null
  own = null; // of an output: the array that was filled last
  target = undefined; // of an output: the array that the caller wants filled, during a call
  timed = null; // its axis of time; of an output its rate, delay and extra frames too
  hidden = 0; // of an output: how many frames the next step gives that are not shown
  kept = null; // of an output without frames: what the last step gave, if a flush needs it

  constructor(port, direction) {
    this.name = port.name;
    this.axes = port.shape;
    this.sizes = port.sizes;
    this.external = port.external;
    this.over = port.over; // of an output: the external of an input whose place it may have, and the size that says when
    this.isLate = port.isLate;
    this.Array = port.Array;
    this.tag = port.Array.name;
    this.type = port.type;
    this.direction = direction;
    this.label = `${direction} '${port.name}'`;
    this.isInherited = port.name in Object.prototype;
  }

  /** What an object has by this name; not what all objects have, such as a constructor. */
  of(object) {
    return this.isInherited && !Object.hasOwn(object, this.name) ? undefined : object[this.name];
  }

  /** Reads a feed: an array, or {data, shape}. */
  read(feed) {
    const isArray = tagOf(feed) !== undefined;
    const data = isArray ? feed : feed?.data;
    const shape = isArray ? null : feed?.shape ?? null;
    if (tagOf(data) !== this.tag) {
      const given = kindOf(data === undefined ? feed : data);
      throw new ShapeError(`${this.label} takes a ${this.tag}, or {data, shape} with one, not ${given}`);
    }
    this.given = shape === null ? null : this.shape !== null && sameShape(shape, this.shape) ? this.shape : this.#own(shape);
    this.data = data;
  }

  /** A copy of a shape that is none that is bound. */
  #own(shape) {
    const { length } = shape;
    if (!within(length, 0, MOST_AXES_GIVEN)) throw new ShapeError(`${this.label} has a shape that is no array`);
    const sizes = Array.from({ length }, (_, axis) => shape[axis]);
    for (const size of sizes) if (!within(size, 0, MAX_SIZE)) throw new ShapeError(`${shown(size)} is not a size`);
    return sizes;
  }

  forget() {
    this.data = null;
    this.given = null;
    this.target = undefined;
  }

  /** Whether what was read has the shape that is bound. */
  fits() {
    return this.shape !== null && lengthOf(this.data) === this.count && (this.given === null || this.given === this.shape);
  }

  get length() {
    return lengthOf(this.data);
  }

  /** What was read, as an array of our own. */
  copied() {
    return this.length ? new this.Array(this.data) : new this.Array(0);
  }

  /** Raises unless what was read has this shape. */
  check(shape) {
    if (this.given && !sameShape(this.given, shape)) {
      throw new ShapeError(`${this.label} has shape [${this.given}], the plan takes [${this.axes}]`);
    }
    if (this.length !== count(shape)) {
      throw new ShapeError(`${this.label} has ${this.length} elements, but [${shape}] has ${count(shape)}`);
    }
  }

  /** Raises unless the array to fill has room for this output, and is not in the memory of the VM. */
  checkTarget(memory) {
    const { target } = this;
    const room = tagOf(target) === this.tag ? lengthOf(target) : undefined;
    const needs = this.hidden ? count(this.shownShape(this.shape)) : this.count;
    if (this.isLate ? room === undefined : room !== needs) {
      const needed = this.isLate ? this.tag : `${this.tag} of ${needs} elements`;
      throw new ShapeError(`out: ${this.label} needs a ${needed}, not ${kindOf(target)} of ${room ?? target?.length}`);
    }
    if (target === this.own) return; // to ask for its buffer takes as long as a small step
    if (this.isIn(memory, target)) throw new ShapeError(`out: ${this.label} needs an array of yours, not a borrowed one`);
    this.own = target;
  }

  /** A shape with another number of frames. */
  withFrames(shape, frames) {
    return shape.map((size, axis) => (axis === this.timed.axis ? frames : size));
  }

  /** The shape of what is shown of a result of this shape. */
  shownShape(shape) {
    return this.hidden ? this.withFrames(shape, Math.max(0, shape[this.timed.axis] - this.hidden)) : shape;
  }

  /** Copies frames of a result into those of `target`, whose first frame is `later` frames behind the first of the result. */
  copyFrames(view, shape, target, frames, later) {
    const { axis } = this.timed;
    const inner = count(shape.slice(axis + 1));
    const [first, end] = [Math.max(0, later), Math.min(shape[axis], later + frames)];
    if (first >= end) return target;
    for (let from = 0, to = 0; from < view.length; from += shape[axis] * inner, to += frames * inner) {
      target.set(view.subarray(from + first * inner, from + end * inner), to + (first - later) * inner);
    }
    return target;
  }

  isIn(memory, array = this.data) {
    return bufferOf(array) === memory.buffer;
  }

  /** Writes what was read into memory. */
  write(data = this.data) {
    if (this.count === 0) return; // an array without elements may be one that was transferred, which cannot be read
    if (this.type !== "bool") this.view.set(data);
    else for (let i = 0; i < this.count; i++) this.view[i] = data[i] ? 1 : 0;
  }

  /** Copies a result into the array to fill. */
  fill(view) {
    if (this.target === undefined || !view.length) return;
    if (view.length > lengthOf(this.target)) {
      throw new ShapeError(`out: ${this.label} has ${view.length} elements, the array ${lengthOf(this.target)}`);
    }
    setIn(this.target, view);
  }

  /** What a state of a shape starts from, written into `view`. */
  begin(view, shape) {
    if (this.start) repeat(view, shape, this.start);
    else view.fill(this.tag.startsWith("Big") ? 0n : 0);
    return view;
  }

  /** Raises unless a plan may give this input or output this shape; what is late is seen later. */
  checkShape(shape) {
    if (shape.includes(NaN)) return;
    const bytes = count(shape) * this.Array.BYTES_PER_ELEMENT;
    if (!shape.every((size) => within(size, 0, MAX_SIZE)) || bytes > MAX_SIZE) {
      throw new PlanError(`${this.label} would be of shape [${shape}]`);
    }
  }
}

/** Fills `view`, of shape `shape`, with the elements of `data`, whose axes of one element are repeated. */
function repeat(view, shape, { data, shape: given }) {
  const [outer, inner] = [shape.slice(0, -1), shape.at(-1) ?? 1];
  const width = given.at(-1) ?? 1;
  const index = outer.map(() => 0);
  for (let i = 0; i < view.length; i += inner) {
    let row = 0;
    for (let axis = 0; axis < outer.length; axis++) row = row * given[axis] + (given[axis] === 1 ? 0 : index[axis]);
    if (width === 1) view.fill(data[row], i, i + inner);
    else view.set(data.subarray(row * width, (row + 1) * width), i);
    for (let axis = outer.length - 1; axis >= 0 && ++index[axis] === outer[axis]; axis--) index[axis] = 0;
  }
}
