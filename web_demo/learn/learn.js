// Part 3: a small network learns gestures from a dozen examples, in this page, on the bare VM.

import { el, problem, tile } from "../page/dom.js";
import { save } from "../page/files.js";
import { bytes, duration, percent, significant } from "../page/format.js";
import { KINDS, drawn, features, randomOf } from "./gestures.js";
import { Learner, likeliest } from "./learner.js";
import { LossCurve, Pad, thumbnail } from "./pictures.js";

const GUESS = KINDS.length;
const OF_EACH = 4; // built-in examples
const [FEWEST_STEPS, MOST_STEPS] = [100, 400]; // of one press of the button
const ENOUGH = 0.01; // a loss
const FRAME_MS = 12; // of learning between two frames of the page
const MOST_EXAMPLES = 60;
const SEED = 7;

class Learn {
  #place;
  #site;
  #learner = null;
  #examples = []; // {kind, points, steps}
  #losses = [];
  #msOfSteps = 0;
  #random = randomOf(SEED);
  #isLearning = false;
  #problems = el("div", { class: "stack" });
  #said = el("p", { class: "note", role: "status" });
  #pad = new Pad("A pad to draw gestures on", (points) => this.#drawn(points));
  #curve = new LossCurve("The loss of each step");
  #kinds = [...KINDS, "Guess"].map((name, kind) =>
    el("input", { type: "radio", name: "learn-kind", value: String(kind), checked: kind === GUESS, id: `learn-kind-${kind}` }),
  );
  #galleries = KINDS.map(() => el("div", { class: "thumbnails" }));
  #counts = KINDS.map(() => el("span", { class: "note" }));
  #bars = KINDS.map((name) => {
    const fill = el("i");
    const figure = el("span", { class: "mono", text: "–" });
    const meter = el(
      "div",
      { class: "share", role: "meter", "aria-label": `${name}: how likely`, "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": "0" },
      fill,
    );
    return { fill, figure, meter };
  });
  #buttons = {
    learn: el("button", { class: "button primary", type: "button", text: "Learn", click: () => this.#learn() }),
    examples: el("button", { class: "button", type: "button", text: "Add a dozen examples", click: () => this.#addDozen() }),
    show: el("button", { class: "button", type: "button", text: "Draw one to guess", click: () => this.#show() }),
    reset: el("button", { class: "button", type: "button", text: "Start anew", click: () => this.#reset() }),
    save: el("button", { class: "button", type: "button", text: "Save as ONNX", click: () => this.#save() }),
  };
  #figures = Object.fromEntries(
    ["loss", "steps", "right", "step", "size"].map((name) => [name, el("b", { "data-figure": name, text: "–" })]),
  );

  constructor(place, site) {
    this.#place = place;
    this.#site = site;
    const { loss, steps, right, step, size } = this.#figures;
    size.textContent = bytes(site.learn.bytes + site.learn.runtime_bytes);
    place.replaceChildren(
      el(
        "div",
        { class: "row spread" },
        el("div", { class: "row" }, this.#buttons.learn, this.#buttons.examples),
        el("div", { class: "row" }, this.#buttons.show, this.#buttons.reset, this.#buttons.save),
      ),
      this.#problems,
      el("div", { class: "learn-board" }, this.#drawing(), this.#classes()),
      this.#said,
      el("figure", { class: "learn-curve" }, el("figcaption", { class: "note", text: "Loss" }), this.#curve.element),
      el(
        "dl",
        { class: "tiles" },
        tile("Loss", loss, "cross entropy, of all examples"),
        tile("Steps", steps, "of Adam, each with all examples"),
        tile("Told apart", right, "of the examples"),
        tile("One step", step, "forwards, backwards, update"),
        tile("Loaded", size, "both plans, WebAssembly and its host"),
      ),
    );
    this.#say("Draw each kind some times, or add a dozen examples. Then press Learn.");
    this.#refresh("idle");
  }

  #drawing() {
    const labels = [...KINDS, "Guess"].map((name, i) =>
      el("label", { class: "learn-kind", for: `learn-kind-${i}` }, this.#kinds[i], i === GUESS ? "Guess what I draw" : `This is a ${name.toLowerCase()}`),
    );
    return el(
      "div",
      { class: "stack" },
      el("fieldset", { class: "learn-kinds" }, el("legend", { text: "What you draw" }), labels),
      this.#pad.element,
    );
  }

  #classes() {
    return el(
      "div",
      { class: "stack" },
      KINDS.map((name, kind) =>
        el(
          "section",
          { class: "learn-class", "aria-label": name },
          el("div", { class: "row spread" }, el("h3", { text: name }), this.#counts[kind], this.#bars[kind].figure),
          this.#bars[kind].meter,
          this.#galleries[kind],
        ),
      ),
    );
  }

  #say(text) {
    this.#said.textContent = text;
  }

  #refresh(state) {
    this.#place.dataset.state = state;
    const isLearning = state === "learning";
    const counts = KINDS.map((_, kind) => this.#examples.filter((example) => example.kind === kind).length);
    counts.forEach((count, kind) => (this.#counts[kind].textContent = `${count} example${count === 1 ? "" : "s"}`));
    this.#buttons.learn.textContent = isLearning ? "Stop" : this.#losses.length ? "Learn on" : "Learn";
    this.#buttons.learn.disabled = !isLearning && counts.filter((count) => count > 0).length < 2;
    for (const name of ["examples", "reset"]) this.#buttons[name].disabled = isLearning;
    for (const name of ["show", "save"]) this.#buttons[name].disabled = isLearning || !this.#losses.length;
    const last = this.#losses.at(-1);
    this.#figures.loss.textContent = last === undefined ? "–" : significant(last);
    this.#figures.steps.textContent = String(this.#losses.length);
    this.#figures.step.textContent = this.#losses.length ? duration(this.#msOfSteps / this.#losses.length) : "–";
    if (!this.#losses.length) this.#figures.right.textContent = "–";
    this.#curve.show(this.#losses);
  }

  #kind() {
    return this.#kinds.findIndex(({ checked }) => checked);
  }

  /** A path that was drawn: an example, or something to guess. */
  #drawn(points) {
    if (this.#isLearning) return;
    const steps = features(points);
    if (!steps) return this.#say("That was too short: draw a larger one, without lifting.");
    const kind = this.#kind();
    if (kind !== GUESS) {
      this.#add(kind, points, steps);
      this.#say(`Example ${this.#examples.length} is a ${KINDS[kind].toLowerCase()}.`);
      this.#refresh(this.#losses.length ? "learned" : "idle");
    } else if (!this.#losses.length) {
      this.#say("Nothing is learned yet: say what you draw, or add examples, and press Learn.");
    } else {
      this.#guess(steps);
    }
  }

  #add(kind, points, steps) {
    if (this.#examples.length >= MOST_EXAMPLES) this.#examples.shift();
    this.#examples.push({ kind, points, steps });
    this.#galleries[kind].append(thumbnail(points, KINDS[kind]));
    while (this.#galleries[kind].children.length > 8) this.#galleries[kind].firstChild.remove();
  }

  #addDozen() {
    for (let i = 0; i < OF_EACH; i++) {
      KINDS.forEach((_, kind) => {
        const points = drawn(kind, this.#random);
        this.#add(kind, points, features(points));
      });
    }
    this.#say("Examples that the page has drawn. Press Learn.");
    this.#refresh(this.#losses.length ? "learned" : "idle");
  }

  #show() {
    const kind = Math.floor(this.#random() * KINDS.length);
    const points = drawn(kind, this.#random);
    this.#pad.show(points);
    this.#guess(features(points));
  }

  #guess(steps) {
    const shares = this.#learner.guess(steps);
    shares.forEach((share, kind) => {
      const { fill, figure, meter } = this.#bars[kind];
      fill.style.width = percent(share);
      figure.textContent = percent(share);
      meter.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    });
    this.#place.dataset.guess = likeliest(shares);
    this.#say(`That is a ${likeliest(shares).toLowerCase()}: ${percent(Math.max(...shares))}.`);
  }

  async #learn() {
    if (this.#isLearning) {
      this.#isLearning = false;
      return;
    }
    this.#isLearning = true;
    this.#problems.replaceChildren();
    this.#refresh("learning");
    try {
      this.#learner ??= await Learner.load(this.#site.learn);
      this.#say("Learning, in this page. Nothing is sent anywhere.");
      const examples = [...this.#examples];
      let taken = 0;
      const isDone = () => taken >= MOST_STEPS || (taken >= FEWEST_STEPS && this.#losses.at(-1) < ENOUGH);
      while (this.#isLearning && !isDone()) {
        const start = performance.now();
        do {
          this.#losses.push(this.#learner.learn(examples));
          taken++;
        } while (!isDone() && performance.now() - start < FRAME_MS);
        this.#msOfSteps += performance.now() - start;
        this.#refresh("learning");
        await new Promise(requestAnimationFrame);
      }
      const right = this.#learner.right(examples);
      this.#figures.right.textContent = `${right} of ${examples.length}`;
      this.#say(`${right} of ${examples.length} examples are told apart. Draw one, and it guesses.`);
      this.#kinds[GUESS].checked = true;
      this.#isLearning = false;
      this.#refresh("learned");
    } catch (error) {
      this.#isLearning = false;
      this.#problems.replaceChildren(problem("It cannot learn:", error, "reload the page."));
      this.#refresh("failed");
    }
  }

  #reset() {
    this.#learner?.reset();
    [this.#examples, this.#losses, this.#msOfSteps] = [[], [], 0];
    this.#random = randomOf(SEED);
    for (const gallery of this.#galleries) gallery.replaceChildren();
    for (const { fill, figure, meter } of this.#bars) {
      fill.style.width = "0";
      figure.textContent = "–";
      meter.setAttribute("aria-valuenow", "0");
    }
    this.#pad.show([]);
    delete this.#place.dataset.guess;
    this.#problems.replaceChildren();
    this.#say("All is forgotten. Draw each kind some times, or add a dozen examples.");
    this.#refresh("idle");
  }

  async #save() {
    try {
      save(await this.#learner.onnx(), "gestures.onnx");
      this.#say("gestures.onnx has what was learned; part 4 of this page, and any ONNX runtime, runs it.");
    } catch (error) {
      this.#problems.replaceChildren(problem("It could not be saved:", error));
    }
  }
}

/** The part, or null if this site has nothing that learns. */
export function mount(place, site) {
  if (site.learn) return new Learn(place, site);
  place.replaceChildren(el("p", { class: "quiet", text: "This site was put together without a network that learns." }));
  return null;
}
