// The streams of a pool one after the other, for plans that take one at a time.

import { fillTargets, part, readTargets, rowLength } from "./pool_arrays.js";
import { NOTHING, Roster } from "./pool_roster.js";
import { Slot, allocated, readAll } from "./slot.js";


export class Alone {
  batched = false;
  reason = "the plan was exported for one stream: export it with pool=True";
  #model;
  #sizes;
  #roster;
  #fed;
  #returned;
  #memory;
  #streams = new Map(); // by handle, from the first tick on

  constructor(model, vm, { maxStreams, sizes }) {
    this.#model = model;
    this.#sizes = sizes;
    this.#roster = new Roster(maxStreams);
    this.#newStream().dispose(); // or raise
    const given = Object.values(model.carry);
    this.#fed = vm.file.inputs.filter(({ name }) => !Object.hasOwn(model.carry, name)).map((port) => new Slot(port, "input"));
    const returned = vm.file.outputs.filter(({ name }) => !given.includes(name));
    this.#returned = [...new Map(returned.map((port) => [port.name, new Slot(port, "output")])).values()];
    this.#memory = vm.heap.memory;
  }

  #newStream() {
    return this.#model.stream({ sizes: this.#sizes });
  }

  get size() {
    return this.#roster.size;
  }

  get maxStreams() {
    return this.#roster.max;
  }

  get stride() {
    return this.#model.timing?.stride ?? 1;
  }

  get delay() {
    return this.#model.timing?.delay ?? 0;
  }

  #call(act) {
    this.#roster.enter();
    try {
      return act();
    } finally {
      for (const slot of [...this.#fed, ...this.#returned]) slot.forget();
      this.#roster.leave();
    }
  }

  open() {
    return this.#call(() => this.#roster.open());
  }

  close(handle) {
    this.#call(() => {
      this.#roster.close(handle);
      this.#streams.get(handle)?.dispose();
      this.#streams.delete(handle);
    });
  }

  submit(handle, feeds) {
    this.#call(() => {
      readAll(feeds ?? NOTHING, this.#fed);
      const member = this.#roster.unfed(handle);
      const copied = (slot) => (slot.given ? { data: slot.copied(), shape: slot.given } : slot.copied());
      this.#roster.submitted(member, allocated(() => Object.fromEntries(this.#fed.map((slot) => [slot.name, copied(slot)]))));
    });
  }

  submitMany(handles, feeds) {
    this.#call(() => {
      const members = this.#roster.allUnfed(handles);
      if (!members.length) return;
      readAll(feeds ?? NOTHING, this.#fed);
      const lengths = this.#fed.map((slot) => rowLength(slot, members.length));
      const row = (slot, i, number) => {
        const data = part(slot, number * lengths[i], lengths[i]).slice();
        return slot.given ? { data, shape: slot.given } : data;
      };
      const rows = allocated(() =>
        members.map((_, number) => Object.fromEntries(this.#fed.map((slot, i) => [slot.name, row(slot, i, number)]))));
      members.forEach((member, number) => this.#roster.submitted(member, rows[number]));
    });
  }

  tick(options) {
    return this.#call(() => {
      const { out } = options ?? NOTHING;
      const before = [];
      try {
        if (out) readTargets(out, this.#returned);
        const results = new Map();
        const { order, waiting } = this.#roster;
        for (let i = 0; i < waiting; i++) results.set(order[i].handle, this.#step(order[i], before));
        const given = [...results.values()];
        if (out) fillTargets(this.#returned, waiting, (i) => given[i], this.#memory);
        return out ?? results;
      } catch (error) {
        for (const { handle, state } of before) this.#goBack(handle, state);
        throw error;
      } finally {
        this.#roster.endTick();
      }
    });
  }

  #step({ handle, layout: feeds }, before) {
    const stream = this.#streams.get(handle);
    before.push({ handle, state: stream?.state ?? null });
    if (!stream) this.#streams.set(handle, this.#newStream());
    return this.#streams.get(handle).step(feeds);
  }

  #goBack(handle, state) {
    if (state) {
      this.#streams.get(handle).load(state);
    } else {
      this.#streams.get(handle)?.dispose();
      this.#streams.delete(handle);
    }
  }

  flush(handle) {
    return this.#call(() => {
      this.#roster.idle(handle, "flush");
      return (this.#streams.get(handle) ?? this.#newStream()).flush();
    });
  }

  state(handle) {
    return this.#call(() => {
      this.#roster.get(handle);
      return this.#streams.get(handle)?.state ?? {};
    });
  }

  load(handle, states) {
    this.#call(() => {
      this.#roster.idle(handle, "load");
      if (Object.keys(states ?? NOTHING).length === 0) {
        this.#goBack(handle, null);
        return;
      }
      const stream = this.#streams.get(handle) ?? this.#newStream();
      stream.load(states);
      this.#streams.set(handle, stream);
    });
  }

  shapes(handle) {
    return this.#call(() => {
      this.#roster.get(handle);
      return this.#streams.get(handle)?.shapes ?? {};
    });
  }

  dispose() {
    if (!this.#roster.isOver) this.#roster.end();
    for (const stream of this.#streams.values()) stream.dispose();
    this.#streams.clear();
  }
}
