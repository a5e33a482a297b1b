// The states of streams that are in no batch: in the memory of the VM, a row for each place of the pool.

import { sameShape } from "./slot.js";

/** For how many places room is made when one is needed. */
export const capacityFor = (place, most) => Math.min(most, 2 ** Math.ceil(Math.log2(place + 1)));

export class Bank {
  rows = []; // of each state
  isThere = false;
  #heap;
  #most;
  #blocks = [];
  #capacity = 0;

  constructor(heap, most) {
    this.#heap = heap;
    this.#most = most;
  }

  /** Lets it hold states of these rows. Those of others are lost. */
  become(rows) {
    if (this.isThere && rows.every(({ shape }, i) => sameShape(shape, this.rows[i].shape))) return;
    this.dispose();
    this.rows = rows;
    this.isThere = true;
  }

  /** Makes room for a place. */
  reserve(place) {
    if (place < this.#capacity) return;
    const capacity = capacityFor(place, this.#most);
    this.rows.forEach(({ bytes }, i) => {
      const larger = this.#heap.allocate(capacity * bytes);
      if (this.#blocks[i]) this.#heap.move(larger.address, this.#blocks[i].address, this.#capacity * bytes);
      this.#heap.release(this.#blocks[i]);
      this.#blocks[i] = larger;
    });
    this.#capacity = capacity;
  }

  address(i, place) {
    return this.#blocks[i].address + place * this.rows[i].bytes;
  }

  view(i, place) {
    const { slot, count } = this.rows[i];
    return this.#heap.view(slot.Array, this.address(i, place), count);
  }

  write(i, place, data) {
    const view = this.view(i, place);
    if (this.rows[i].slot.type !== "bool") view.set(data);
    else for (let j = 0; j < view.length; j++) view[j] = data[j] ? 1 : 0;
  }

  dispose() {
    for (const block of this.#blocks) this.#heap.release(block);
    this.#blocks = [];
    this.#capacity = 0;
  }
}
