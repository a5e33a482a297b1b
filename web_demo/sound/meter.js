// How loud something is: a bar in decibels that rises at once and falls slowly.

import { el } from "../page/dom.js";

const LOWEST = -60;
const FALL = 20; // dB in a second
const SAID_EVERY = 0.5; // seconds

export class Meter {
  #bar = el("i");
  #level = LOWEST;
  #samples = new Float32Array(0);
  #untilSaid = 0;

  constructor(label) {
    this.element = el(
      "div",
      { class: "meter", role: "meter", "aria-label": label, "aria-valuemin": String(LOWEST), "aria-valuemax": "0" },
      this.#bar,
    );
    this.#show(true);
  }

  /** Moves on by `seconds`, to the peak of what the analyser hears. */
  draw(analyser, seconds) {
    if (this.#samples.length !== analyser.fftSize) this.#samples = new Float32Array(analyser.fftSize);
    analyser.getFloatTimeDomainData(this.#samples);
    let peak = 0;
    for (const sample of this.#samples) peak = Math.max(peak, Math.abs(sample));
    this.#level = Math.max(20 * Math.log10(Math.max(peak, 1e-6)), this.#level - FALL * seconds, LOWEST);
    this.#untilSaid -= seconds;
    this.#show(this.#untilSaid <= 0);
  }

  clear() {
    this.#level = LOWEST;
    this.#show(true);
  }

  #show(isSaid) {
    this.#bar.style.width = `${Math.min(100, 100 - (100 * this.#level) / LOWEST)}%`;
    this.#bar.classList.toggle("clips", this.#level >= 0);
    if (!isSaid) return;
    this.#untilSaid = SAID_EVERY;
    this.element.setAttribute("aria-valuenow", String(Math.round(Math.min(this.#level, 0))));
    this.element.setAttribute("aria-valuetext", `${Math.round(this.#level)} dB`);
  }
}
