// A line that says what is being done, and how far it is.

import { el } from "./dom.js";

export class Progress {
  #bar = el("i");
  #text = el("p", { role: "status" });

  constructor(label) {
    this.track = el(
      "div",
      { class: "track", role: "progressbar", "aria-label": label, "aria-valuemin": "0", "aria-valuemax": "100" },
      this.#bar,
    );
    this.element = el("div", { class: "progress", hidden: true }, this.track, this.#text);
  }

  /** `fraction` is from 0 to 1, or null where nobody knows. */
  show(text, fraction = null) {
    this.element.hidden = false;
    this.element.classList.toggle("waiting", fraction === null);
    this.#text.textContent = text;
    if (fraction === null) {
      this.track.removeAttribute("aria-valuenow");
    } else {
      const percent = Math.round(100 * Math.min(Math.max(fraction, 0), 1));
      this.#bar.style.width = `${percent}%`;
      this.track.setAttribute("aria-valuenow", percent);
    }
  }

  hide() {
    this.element.hidden = true;
    this.#bar.style.width = "0";
  }
}
