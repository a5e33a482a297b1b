// Which frames a step of a stream takes, and which frames of its results are shown. What a plan says of it: plan_file.js.

import { ShapeError } from "./plan_file.js";
import { count } from "./slot.js";

export class Frames {
  constructor(timing, fed, returned) {
    Object.assign(this, timing);
    for (const slot of fed) slot.timed = timing.inputs.find(({ name }) => name === slot.name);
    for (const slot of returned) slot.timed = timing.outputs.find(({ name }) => name === slot.name);
    const [size] = fed.flatMap(({ axes, timed }) => (timed ? axes[timed.axis] : []));
    /** Of a step of a flush. */
    this.flushFrames = typeof size === "number" ? size : this.flushStrides * this.stride;
    /** Whether a flush gives what has no frames as the last step gave it, since it runs nothing. */
    this.keepsResults = !this.flushStrides && returned.some(({ timed }) => !timed);
  }

  /** Raises unless inputs have whole strides of frames, as many each; `sizeOf` says how large what has a name is. */
  check(fed, sizeOf) {
    let other;
    for (const { label, axes, timed } of fed) {
      if (!timed) continue;
      const frames = sizeOf(axes[timed.axis]) ?? axes[timed.axis];
      other ??= frames;
      if (frames === other && !(frames % this.stride) && (frames || (this.end === null && !this.delay))) continue;
      const takes = frames === other ? `a positive multiple of ${this.stride}` : "as many of each input";
      throw new ShapeError(`${label} has ${frames} frames along axis ${timed.axis}; a step takes ${takes}`);
    }
  }

  /** Says what a step behind so many strides does not show, and returns whether there is anything. */
  hide(returned, strides) {
    for (const slot of returned) if (slot.timed) slot.hidden = Math.max(0, slot.timed.delay - strides * slot.timed.rate);
    return returned.some(({ hidden }) => hidden);
  }

  /** Zeros, and what was fed last where there are no frames. */
  feedZeros(fed) {
    for (const slot of fed) {
      slot.given = slot.timed ? slot.withFrames(slot.shape, this.flushFrames) : slot.shape;
      slot.data = slot.timed ? new slot.Array(count(slot.given)) : slot.view.slice();
    }
  }

  /** What a flush gives of an output whose last result has a shape: {data, shape}, and a function that takes what a step of it
   * gives, `done` strides behind its first. */
  rest(slot, last, strides) {
    slot.hidden = 0;
    if (!slot.timed) return { data: slot.kept, shape: last, take(view) { this.data = view.slice(); } };
    const { rate, delay, extra } = slot.timed;
    const before = strides * rate;
    const first = Math.max(0, delay - before);
    const frames = delay + Math.max(0, before + extra) - before - first;
    const shape = slot.withFrames(last, frames);
    const data = new slot.Array(count(shape));
    return { data, shape, take: (view, given, done) => slot.copyFrames(view, given, data, frames, first - done * rate) };
  }
}
