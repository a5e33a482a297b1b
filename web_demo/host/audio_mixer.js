// From several channels to one, and from one signal to another.

/** Samples that it takes to fade from one signal to another. */
export const FADE = 256;

/**
 * One channel of several: the sum of the channels in their order, each sum rounded to float32, divided by their number, as
 * webrnn.audio.mono does in Python. Without channels it is silence.
 */
export function mixDown(channels, from, output, count) {
  const number = channels?.length ?? 0;
  if (number === 0) {
    for (let i = 0; i < count; i++) output[i] = 0;
    return;
  }
  const first = channels[0];
  for (let i = 0; i < count; i++) output[i] = first[from + i];
  if (number === 1) return;
  for (let c = 1; c < number; c++) {
    const channel = channels[c];
    for (let i = 0; i < count; i++) output[i] += channel[from + i];
  }
  for (let i = 0; i < count; i++) output[i] /= number;
}

/** A share of a signal, 0 to 1, on its way to another one. */
export class Share {
  /** What it is now, and what it changes by in each sample. */
  now = 1;
  change = 0;
  #target = 1;

  to(target, isAtOnce = false) {
    this.#target = target;
    if (isAtOnce) this.now = target;
    this.change = (target - this.now) / FADE;
  }

  get target() {
    return this.#target;
  }

  /** `share` one sample later. */
  next(share) {
    const next = share + this.change;
    if (this.change === 0) return share;
    return this.change > 0 === next < this.#target ? next : this.#target;
  }

  /** So many samples have gone by. */
  advance(count) {
    for (let i = 0; i < count && this.change !== 0; i++) {
      this.now = this.next(this.now);
      if (this.now === this.#target) this.change = 0;
    }
  }
}

/** From one signal (share 0) to another (share 1); whole shares give the bits of that signal. */
export function blend(from, to, output, count, share) {
  let part = share.now;
  for (let i = 0; i < count; i++) {
    part = share.next(part);
    output[i] = part === 1 ? to[i] : part === 0 ? from[i] : from[i] + part * (to[i] - from[i]);
  }
}
