// A form with the inputs of a model: their sizes, and where their data come from.

import { el } from "../page/dom.js";
import { shape as shapeText } from "../page/format.js";
import { converted, count, made } from "./arrays.js";
import { fitted, readData } from "./data_files.js";
import { fillOf, lengthOf, sizeGuesses, sizeKey } from "./size_guesses.js";

const MOST_ELEMENTS = 2 ** 24;
const MOST_STEPS = 5000;

const FILLS = { random: "random", zeros: "zeros", ones: "ones", length: "the length", number: "a number", file: "from a file …" };
const MOST_STATES = 2; // that are shown; more are folded

class Input {
  file = null; // {name, values, shape}

  constructor(port, sizes, { state, guess, onFix }) {
    Object.assign(this, port, { state });
    this.sizes = sizes;
    this.guess = guess ?? { fill: fillOf(port, Boolean(state)) };
    const { fill } = this.guess;
    this.source = el(
      "select",
      { "aria-label": `Data for ${this.name}`, change: () => this.#choose() },
      Object.entries(FILLS)
        .filter(([value]) => !["length", "number"].includes(value) || fill === value)
        .map(([value, text]) => el("option", { value, text })),
    );
    this.source.value = fill;
    this.picker = el("input", {
      type: "file",
      accept: ".npy,.wav,.json",
      hidden: true,
      change: () => this.#pick(this.picker.files[0]),
    });
    this.note = el("span", { class: "note" });
    this.isScalar = !this.shape.length && !this.type.startsWith("float");
    this.value = el("input", {
      type: "number",
      value: String(Number(this.guess.number ?? (/^(sr|rate|sample_?rate)$/i.test(this.name) ? 16000 : 0))),
      title: this.guess.why ?? "",
      "aria-label": `Value of ${this.name}`,
    });
    const fix =
      onFix &&
      el("button", {
        class: "chip",
        type: "button",
        text: "Fix it and optimize again",
        click: () => onFix(this.name, Number(this.value.value)),
      });
    this.element = el(
      "li",
      { class: "input" },
      el(
        "div",
        {},
        el("code", { class: "port", text: this.name }),
        el("span", { class: "quiet small", text: `${this.type} ${shapeText(this.shape)}` }),
        state && el("span", { class: "badge good", title: `comes back as ${state}`, text: `state → ${state}` }),
      ),
      el("div", { class: "row" }, this.isScalar ? [this.value, fix] : this.source, this.picker, this.note),
    );
    for (const type of ["dragover", "drop"]) this.element.addEventListener(type, (event) => this.#drag(event));
  }

  #choose() {
    if (this.source.value === "file") this.picker.click();
    else this.note.textContent = "";
  }

  #drag(event) {
    event.preventDefault();
    event.stopPropagation();
    if (event.type === "drop") this.#pick(event.dataTransfer.files[0]);
  }

  async #pick(file) {
    if (!file) return;
    try {
      this.file = { name: file.name, ...readData(file.name, new Uint8Array(await file.arrayBuffer())) };
      this.source.value = "file";
      this.note.textContent = `${file.name}, ${shapeText(this.file.shape)}`;
      this.note.classList.remove("wrong");
    } catch (error) {
      this.file = null;
      this.source.value = "random";
      this.note.textContent = error.message;
      this.note.classList.add("wrong");
    }
  }

  /** Arrays for so many steps, one after the other in memory. */
  feeds(seed, steps) {
    const each = Array.from({ length: steps }, (_, step) => this.#feed(seed + 1000 * step, step));
    if (steps === 1) return each[0];
    const { length } = each[0].data;
    if (length * steps > MOST_ELEMENTS) throw new Error(`${steps} steps of '${this.name}' are too many at once`);
    const data = new each[0].data.constructor(length * steps);
    each.forEach((feed, step) => data.set(feed.data, step * length));
    return { ...each[0], data };
  }

  #feed(seed, step) {
    const { name, type } = this;
    if (this.isScalar) return { name, type, shape: [], data: converted([Number(this.value.value)], type) };
    const wanted = this.wanted();
    if (count(wanted) > MOST_ELEMENTS)
      throw new Error(`'${name}' would have ${count(wanted).toLocaleString("en")} elements: choose smaller sizes`);
    if (this.source.value === "file") {
      if (!this.file) throw new Error(`no file was chosen for '${name}'`);
      const { values, shape, note } = fitted(this.file, this, wanted, step);
      this.note.textContent = `${this.file.name}${note ? `: ${note}` : ""}`;
      return { name, type, shape, data: converted(values, type) };
    }
    return { name, type, shape: wanted, data: made(this.source.value, type, wanted, this.sizes.length(), seed, this.guess) };
  }

  /** Its shape with the sizes that are chosen. */
  wanted() {
    return this.shape.map((size, axis) => (typeof size === "number" ? size : this.sizes.of(this, axis)));
  }
}

/** Numbers for the sizes that a model leaves open; a size with a name is asked for once. */
class Sizes {
  fields = new Map();
  #inputs;

  constructor(inputs, shapes, guesses) {
    this.#inputs = inputs;
    for (const input of inputs) {
      input.shape.forEach((size, axis) => {
        const label = sizeKey(input, axis);
        if (typeof size === "number" || this.fields.has(label)) return;
        const value = shapes[input.name]?.[axis] ?? guesses[label];
        this.fields.set(label, el("input", { type: "number", min: "0", value: String(value), "aria-label": `Size ${label}` }));
      });
    }
  }

  of(input, axis) {
    const label = sizeKey(input, axis);
    const field = this.fields.get(label);
    const size = Number(field.value);
    if (!field.value || !Number.isInteger(size) || size < 0) throw new Error(`${label} is no size`);
    return size;
  }

  /** Of the sequence: what inputs are to hold that say how long it is. */
  length() {
    const sized = (input) => input.shape.map((size, axis) => (typeof size === "number" ? size : this.of(input, axis)));
    return lengthOf(this.#inputs, Object.fromEntries(this.#inputs.map((input) => [input.name, sized(input)])));
  }
}

/** `states` is {input: output}; `shapes` are those to begin with, `fills` what Python would fill inputs with; `onFix(name, value)` is offered for scalars. */
export class InputsView {
  #steps = el("input", { type: "number", min: "1", max: String(MOST_STEPS), value: "1", "aria-label": "Steps" });

  constructor(ports, { states, shapes = {}, fills = {}, onFix }) {
    const sizes = new Sizes(ports, shapes, sizeGuesses(ports, states)[0] ?? {});
    this.hasSizes = sizes.fields.size > 0;
    const stateOf = new Map(Object.entries(states));
    this.inputs = ports.map((port) => new Input(port, sizes, { state: stateOf.get(port.name), guess: fills[port.name], onFix }));
    const labelled = (text, field) => el("label", {}, el("code", { text }), field);
    const fields = [...sizes.fields].map(([label, field]) => labelled(label, field));
    const hasStates = Object.keys(states).length > 0;
    const [carried, fed] = [true, false].map((isState) => this.inputs.filter(({ state }) => Boolean(state) === isState));
    const isFolded = carried.length > MOST_STATES;
    const list = (inputs) => el("ul", { class: "inputs" }, inputs.map(({ element }) => element));
    this.element = el(
      "div",
      { class: "stack" },
      fields.length > 0 && el("div", { class: "sizes" }, fields),
      list(isFolded ? fed : this.inputs),
      isFolded && el("details", {}, el("summary", { text: `${carried.length} states, which begin as zeros` }), list(carried)),
      hasStates &&
        el(
          "div",
          { class: "sizes" },
          labelled("steps", this.#steps),
          el("span", {
            class: "note",
            text: "More than one are a stream: the state goes from each to the next, from zeros on.",
          }),
        ),
    );
  }

  get steps() {
    const steps = Number(this.#steps.value);
    if (!Number.isInteger(steps) || steps < 1 || steps > MOST_STEPS)
      throw new Error(`the number of steps is from 1 to ${MOST_STEPS}`);
    return steps;
  }

  /** An array for each input; for several steps without the states, and one array after the other. */
  feeds(steps = 1) {
    const fed = steps > 1 ? this.inputs.filter(({ state }) => !state) : this.inputs;
    return fed.map((input, i) => input.feeds(i + 1, steps));
  }
}
