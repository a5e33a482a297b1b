// Which frames a step of a stream takes, and which frames of its results are shown. Types of what is stored: plan_file.js.

import { ShapeError, StreamError } from "./plan_file.js";
import { count } from "./slot.js";

export class Frames {
  #fed;
  #returned;
  #symbols;

  /** Of a stream with these slots; the plan names its sizes `symbols`. */
  constructor(timing, symbols, fed, returned) {
    Object.assign(this, timing); // stride, delay, end, position, flushStrides
    this.#symbols = symbols;
    const timed = (slots, rows) => {
      for (const slot of slots) slot.timed = rows.find(({ name }) => name === slot.name) ?? null;
      return slots;
    };
    this.#fed = timed(fed, timing.inputs);
    this.#returned = timed(returned, timing.outputs);
    const { axes, timed: { axis } } = fed.find((slot) => slot.timed);
    /** Of a step of a flush. */
    this.flushFrames = typeof axes[axis] === "number" ? axes[axis] : this.flushStrides * this.stride;
    /** Whether a flush gives what has no frames as the last step gave it, since it runs nothing. */
    this.keepsResults = !this.flushStrides && returned.some((slot) => !slot.timed);
  }

  /** Raises unless inputs have whole strides of frames, as many each. */
  check(symbols) {
    let other = null;
    for (const { label, name, axes, timed } of this.#fed) {
      if (!timed) continue;
      const size = axes[timed.axis];
      const frames = symbols[this.#symbols.indexOf(size)] ?? size;
      const found = `${label} has ${frames} frames along axis ${timed.axis}`;
      if (frames % this.stride || !frames) {
        throw new ShapeError(`${found}; a step takes ${frames ? "a multiple of" : "at least"} ${this.stride}`);
      }
      if (other && other.frames !== frames) throw new ShapeError(`${found}, '${other.name}' has ${other.frames}`);
      other = { name, frames };
    }
  }

  /** Says what a step behind so many strides does not show, and returns whether there is anything. */
  hide(strides) {
    let hides = false;
    for (const slot of this.#returned) {
      if (slot.timed) slot.hidden = Math.max(0, slot.timed.delay - strides * slot.timed.rate);
      hides ||= slot.hidden > 0;
    }
    return hides;
  }

  /** What a flush feeds: zeros, and what was fed last where there are no frames. */
  feedZeros(wasFed) {
    for (const slot of this.#fed) {
      const shape = slot.timed ? slot.withFrames(wasFed ? slot.shape : slot.axes, this.flushFrames) : slot.shape;
      if (!wasFed && (!slot.timed || shape.some((size) => typeof size === "string"))) {
        throw new StreamError(`flush: this stream was not fed yet, and how large ${slot.label} is has to be known`);
      }
      slot.data = slot.timed ? new slot.Array(count(shape)) : slot.view.slice();
      slot.given = shape;
    }
  }

  /** The rest of an output behind so many strides: its first frame, counted from the first of the flush, and how many. */
  rest({ timed: { rate, delay, extra } }, strides) {
    const before = strides * rate;
    const first = Math.max(0, delay - before);
    return [first, delay + Math.max(0, before + extra) - before - first];
  }
}
