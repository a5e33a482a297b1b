// Feeds of streams that wait for the next tick of a worker: those of the same kind in one array, which is sent without a copy.

import { ShapeError } from "./plan_file.js";
import { nameError, sameShape } from "./slot.js";

const MOST_SPARE = 8;

/** What a caller gives, by input: [name, data, shape]; the shape is null if there is none. Raises unless its names are `names`,
 * if they are known. */
export function readFeeds(feeds, names) {
  const entries = Object.entries(feeds ?? {});
  const isWhole = !names || (entries.length === names.length && names.every((name) => Object.hasOwn(feeds, name)));
  if (!isWhole || ArrayBuffer.isView(feeds)) throw nameError("input", feeds ?? {}, names ?? []);
  return entries.map(([name, feed]) => {
    const isArray = ArrayBuffer.isView(feed);
    const data = isArray ? feed : feed?.data;
    if (!ArrayBuffer.isView(data) || data instanceof DataView) {
      throw new ShapeError(`input '${name}' takes a typed array, or {data, shape}`);
    }
    const shape = isArray ? null : feed.shape ?? null;
    return [name, data, shape && Array.from(shape)];
  });
}

const areSame = (a, b) => (a && b ? sameShape(a, b) : a === b);

/** Feeds of the same names, types, lengths and shapes. */
class Group {
  ids = [];
  #feeds;
  #arrays;
  #capacity;

  constructor(feeds, capacity, newArray) {
    this.#feeds = feeds;
    this.#capacity = capacity;
    this.#arrays = feeds.map(([, { constructor: Type, length }]) => newArray(Type, capacity * length));
  }

  takes(feeds) {
    return feeds.length === this.#feeds.length && feeds.every(([name, data, shape], i) => {
      const [otherName, other, otherShape] = this.#feeds[i];
      return name === otherName && data.constructor === other.constructor && data.length === other.length && areSame(shape, otherShape);
    });
  }

  add(id, feeds) {
    if (this.ids.length === this.#capacity) this.#grow();
    for (let i = 0; i < feeds.length; i++) this.#arrays[i].set(feeds[i][1], this.ids.length * feeds[i][1].length);
    this.ids.push(id);
  }

  #grow() {
    this.#capacity *= 2;
    this.#arrays = this.#arrays.map((array) => {
      const larger = new array.constructor(2 * array.length);
      larger.set(array);
      return larger;
    });
  }

  remove(id) {
    const row = this.ids.indexOf(id);
    if (row < 0) return;
    this.ids.splice(row, 1);
    this.#feeds.forEach(([, { length }], i) => this.#arrays[i].copyWithin(row * length, (row + 1) * length));
  }

  /** As it is sent. */
  get message() {
    const { ids } = this;
    const part = ([name, { length }, shape], i) => [name, { data: this.#arrays[i].subarray(0, ids.length * length), shape }];
    return { ids, feeds: Object.fromEntries(this.#feeds.map(part)) };
  }

  get buffers() {
    return this.#arrays.map(({ buffer }) => buffer);
  }
}

/** Arrays that have come back from another thread: memory that need not be collected and asked for anew. */
export class Spare {
  #arrays = [];

  add(arrays) {
    this.#arrays = [...arrays, ...this.#arrays].slice(0, MOST_SPARE);
  }

  /** An array, with anything in it. */
  take(Type, length) {
    const index = this.#arrays.findIndex((array) => array instanceof Type && array.length === length);
    return index < 0 ? new Type(length) : this.#arrays.splice(index, 1)[0];
  }
}

/** All that waits. */
export class Waiting {
  spare = new Spare();
  #groups = [];
  #expected = 1; // so many streams came before the last tick

  add(id, feeds) {
    this.#groupFor(feeds).add(id, feeds);
  }

  /** Feeds of one stream among those of many, in arrays for all of them. */
  addRow(id, row, feeds, lengths) {
    const part = ([name, data, shape], i) => [name, data.subarray(row * lengths[i], (row + 1) * lengths[i]), shape];
    this.add(id, feeds.map(part));
  }

  #groupFor(feeds) {
    let group = this.#groups.findLast((each) => each.takes(feeds));
    if (!group) {
      const own = feeds.map(([name, data, shape]) => [name, { constructor: data.constructor, length: data.length }, shape]);
      group = new Group(own, this.#expected, (Type, length) => this.spare.take(Type, length));
      this.#groups.push(group);
    }
    return group;
  }

  remove(id) {
    for (const group of this.#groups) group.remove(id);
  }

  /** Everything, which waits no longer: {groups, buffers}; the buffers can be transferred. */
  take() {
    const taken = this.#groups.filter(({ ids }) => ids.length);
    this.#groups = [];
    this.#expected = Math.max(1, ...taken.map(({ ids }) => ids.length));
    return { groups: taken.map(({ message }) => message), buffers: taken.flatMap(({ buffers }) => buffers) };
  }
}
