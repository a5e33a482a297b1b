// Arrays of many streams: what callers give for all of them, and what they get, one stream after the other.

import { ShapeError } from "./plan_file.js";
import { refuseOthers } from "./slot.js";

const typedArray = Object.getPrototypeOf(Uint8Array.prototype);
const getter = (key) => Object.getOwnPropertyDescriptor(typedArray, key).get;
const [getBuffer, getOffset] = [getter("buffer"), getter("byteOffset")];
const { set } = typedArray;

/** How many elements each of so many streams has in what was read for all of them; a shape is that of one. */
export function rowLength(slot, streams) {
  if (slot.length % streams) throw new ShapeError(`${slot.label} has ${slot.length} elements for ${streams} streams`);
  return slot.length / streams;
}

/** A part of what was read: a view. */
export function part({ data, Array: Type }, start, length) {
  return length ? new Type(getBuffer.call(data), getOffset.call(data) + start * Type.BYTES_PER_ELEMENT, length) : new Type(0);
}

/** Reads which outputs are to be filled: an array each. */
export function readTargets(out, returned) {
  let found = 0;
  for (let i = 0; i < returned.length; i++) {
    returned[i].target = returned[i].of(out);
    if (returned[i].target !== undefined) found++;
  }
  refuseOthers(out, returned, found);
}

/** Fills these arrays with the results of `n` streams, one after the other; `resultsOf(i)` are those of one. */
export function fillTargets(returned, n, resultsOf, memory) {
  for (let i = 0; i < returned.length; i++) {
    const slot = returned[i];
    if (slot.target === undefined) continue;
    slot.hidden = slot.count = 0;
    for (let j = 0; j < n; j++) slot.count += resultsOf(j)[slot.name].length;
    slot.checkTarget(memory);
  }
  for (let i = 0; i < returned.length; i++) {
    const { target, name } = returned[i];
    if (target === undefined) continue;
    for (let j = 0, at = 0; j < n; j++) {
      const view = resultsOf(j)[name];
      if (view.length) set.call(target, view, at);
      at += view.length;
    }
  }
}
