// Who is in a pool: handles, places, and what was submitted for the next tick.

import { StreamError, shown } from "./plan_file.js";

export const NOTHING = Object.freeze({});

/** One stream of a pool. */
class Member {
  layout = null; // of what was submitted for the next tick
  batch = null; // that has its states, or none
  row = 0;
  isFresh = true; // it begins with its next tick
  strides = 0; // that it was fed
  isWarm = false; // nothing of what it gives is hidden any more
  results = null; // during a tick
  hidden = null; // frames of its last results that were not shown, for each output
  last = null; // the layout of its last tick
  timeless = null; // what inputs without frames were in it
  kept = null; // what outputs without frames were in it

  constructor(handle, place) {
    this.handle = handle;
    this.place = place;
  }
}

export class Roster {
  order = []; // who has submitted, as they came
  waiting = 0; // how many of them count
  layouts = []; // of what they have submitted
  #open = new Map();
  #places = [];
  #free = [];
  #next = 0;
  #isBusy = false;
  isOver = false;

  constructor(max) {
    this.max = max;
  }

  enter() {
    if (this.isOver) throw new StreamError("the pool has been disposed of");
    if (this.#isBusy) throw new StreamError("the pool is reading what was given to another call");
    this.#isBusy = true;
  }

  leave() {
    this.#isBusy = false;
  }

  end() {
    this.enter();
    this.isOver = true;
  }

  get size() {
    return this.#open.size;
  }

  open() {
    if (this.#open.size === this.max) throw new StreamError(`the pool is full: ${this.max} streams are open`);
    const handle = this.#next++;
    const place = this.#free.pop() ?? this.#places.length;
    const member = new Member(handle, place);
    this.#places[place] = member;
    this.#open.set(handle, member);
    return handle;
  }

  /** Ends a stream; what was submitted for it is dropped. */
  close(handle) {
    const member = this.get(handle);
    if (member.layout) {
      this.order = this.order.filter((other, i) => other !== member && i < this.waiting);
      this.waiting--;
    }
    this.#open.delete(handle);
    this.#places[member.place] = null;
    this.#free.push(member.place);
    member.batch = member.layout = null;
  }

  get(handle) {
    const member = this.#open.get(handle);
    if (!member) throw new StreamError(`no stream ${shown(handle)} is open`);
    return member;
  }

  /** A stream for which nothing was submitted yet. */
  unfed(handle) {
    const member = this.get(handle);
    if (member.layout) throw new StreamError(`stream ${handle} has feeds for this tick already`);
    return member;
  }

  /** The same of many, each named once. */
  allUnfed(handles) {
    if (typeof handles?.[Symbol.iterator] !== "function") throw new StreamError("submitMany: handles are a list");
    const members = Array.from(handles, (handle) => this.unfed(handle));
    if (new Set(members).size < members.length) throw new StreamError("submitMany: a stream is named twice");
    return members;
  }

  /** A stream of which no feeds wait, for a call that they would be lost in. */
  idle(handle, call) {
    const member = this.get(handle);
    if (member.layout) throw new StreamError(`${call}: stream ${handle} has feeds for the next tick, call tick() before`);
    return member;
  }

  some(test) {
    for (const member of this.#open.values()) if (test(member)) return true;
    return false;
  }

  submitted(member, layout) {
    member.layout = layout;
    this.order[this.waiting++] = member;
  }

  /** Finds the layouts of what was submitted, each with its members in the order of their places: how many there are. */
  group() {
    const places = this.#places;
    let found = 0;
    for (let i = 0; i < this.waiting; i++) this.order[i].layout.n = -1;
    for (let i = 0, left = this.waiting; left > 0; i++) {
      const layout = places[i]?.layout;
      if (!layout) continue;
      left--;
      if (layout.n < 0) {
        layout.n = 0;
        this.layouts[found++] = layout;
      }
      layout.members[layout.n++] = places[i];
    }
    return found;
  }

  endTick() {
    for (let i = 0; i < this.waiting; i++) this.order[i].layout = null;
    this.waiting = 0;
  }
}
