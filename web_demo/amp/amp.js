// Part 2: a guitar through an amp that is a network, on the audio thread, sample by sample.

import { el, problem, symbol, tile } from "../page/dom.js";
import { download } from "../page/files.js";
import { bytes, duration, percent, significant } from "../page/format.js";
import { Progress } from "../page/progress.js";
import { pythonRemote } from "../python/python.js";
import { choice, decibels } from "../sound/field.js";
import { Meter } from "../sound/meter.js";
import { Scope } from "../sound/scope.js";
import { stillOf } from "../sound/spectra.js";
import { onOthersTurn, takeTurn } from "../sound/turns.js";
import { Rig, rendered } from "./rig.js";

const PLAY = "M8 5v14l11-7z";
const STOP = "M7 6h10v12H7z";
const JACK = "M4 11h3V7h6v10H7v-4H4zM14 9h4v6h-4zM19 11h2v2h-2z";
const HIGHEST = 10_000; // Hz that are seen
const KINDS = ".nam,.json,.aidax,.rnn";
const MAGIC = "WRNN";
const MOST_BYTES = 64 * 2 ** 20;
const [DRIVE, LEVEL] = [{ min: -12, max: 24, value: 6 }, { min: -30, max: 6, value: -8 }];
const ADVICE = "take the .nam of a Neural Amp Modeler capture (LSTM or WaveNet), or a .json of AIDA-X or RTNeural with one input and one output.";

class Amp {
  #place;
  #site;
  #models; // {name, title, plan | file, bytes}
  #chosen;
  #rig = null;
  #source = null; // "guitar" or "instrument" while it plays
  #lastFrame = 0;
  #python = null;
  #progress = new Progress("Loading the amp");
  #problems = el("div", { class: "stack" });
  #buttons = {
    guitar: el("button", { class: "button primary", type: "button", click: () => this.#toggle("guitar") }),
    instrument: el("button", { class: "button", type: "button", click: () => this.#toggle("instrument") }),
  };
  #wet = el("input", {
    type: "checkbox",
    role: "switch",
    checked: true,
    "aria-label": "Amp",
    change: () => this.#rig && (this.#rig.wet = this.#wet.checked),
  });
  #choice = choice("Amp", [], () => this.#choose(this.#models[this.#choice.select.selectedIndex]));
  #drive = decibels("Gain", DRIVE, (value) => this.#rig && (this.#rig.drive = value));
  #level = decibels("Level", LEVEL, (value) => this.#rig && (this.#rig.level = value));
  #picker = el("input", { type: "file", accept: KINDS, hidden: true, change: () => this.#open(this.#picker.files[0]) });
  #said = el("p", { class: "note", role: "status" });
  #scopes = [
    new Scope("Spectrum and waveform of the dry guitar", "before", HIGHEST),
    new Scope("Spectrum and waveform behind the amp", "accent", HIGHEST),
  ];
  #meters = [new Meter("Loudness into the amp"), new Meter("Loudness behind the amp")];
  #figures = Object.fromEntries(
    ["load", "budget", "missed", "latency", "size"].map((name) => [name, el("b", { "data-figure": name, text: "–" })]),
  );

  constructor(place, site) {
    this.#place = place;
    this.#site = site;
    this.#models = [...site.amps];
    [this.#chosen] = this.#models;
    this.#offer();
    const { load, budget, missed, latency, size } = this.#figures;
    budget.className = "plain";
    budget.textContent = "to render the guitar";
    const own = el("button", {
      class: "button",
      type: "button",
      text: "Open .nam or .json …",
      click: () => this.#picker.click(),
    });
    place.replaceChildren(
      el(
        "div",
        { class: "row spread" },
        el("div", { class: "row" }, this.#buttons.guitar, this.#buttons.instrument),
        el(
          "label",
          { class: "switch ab" },
          el("span", { "aria-hidden": "true", text: "A · dry" }),
          this.#wet,
          el("span", { "aria-hidden": "true", text: "B · amp" }),
        ),
      ),
      el("div", { class: "settings amp-settings" }, this.#choice.element, own, this.#drive.element, this.#level.element),
      this.#picker,
      this.#progress.element,
      this.#problems,
      el(
        "div",
        { class: "scopes" },
        ["Dry", "Out"].map((label, i) =>
          el("figure", {}, el("figcaption", { text: label }), el("div", {}, this.#scopes[i].element, this.#meters[i].element)),
        ),
      ),
      this.#said,
      el(
        "dl",
        { class: "tiles" },
        tile("Load of one core", load, budget),
        tile("Missed quanta", missed, "that came too late to be heard"),
        tile("Delay", latency, "of the amp itself, A or B"),
        tile("Loaded", size, "the amp, WebAssembly and its host"),
      ),
    );
    this.#acceptDrops(place);
    this.#countBytes();
    this.#show("idle");
    onOthersTurn(this, () => this.#source && this.#stop());
    this.#drawWhenSeen();
  }

  #acceptDrops(place) {
    const over = (isOver) => place.classList.toggle("over", isOver);
    place.addEventListener("dragover", (event) => {
      event.preventDefault();
      over(true);
    });
    place.addEventListener("dragleave", () => over(false));
    place.addEventListener("drop", (event) => {
      event.preventDefault();
      over(false);
      this.#open(event.dataTransfer.files[0]);
    });
  }

  /** A still picture, once the part comes into view: rendered by the amp itself, without a device. */
  #drawWhenSeen() {
    const observer = new IntersectionObserver(async (entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      observer.disconnect();
      await this.#try(this.#chosen).catch(() => {}); // the part works without it
    });
    observer.observe(this.#place);
  }

  /** Renders the guitar with a model, which is tried by that, and shows what it took. */
  async #try(model) {
    const { dry, wet, rate, seconds, ms } = await rendered(await this.#plan(model), DRIVE.value, LEVEL.value);
    // Audio threads have no clock that is fine enough for quanta of 3 ms.
    this.#figures.load.textContent = percent(ms / 1000 / seconds);
    this.#figures.budget.textContent = `${significant(seconds)} s of guitar took ${duration(ms)}`;
    if (this.#source) return;
    [dry, wet].forEach((signal, i) => this.#scopes[i].show(stillOf(signal, rate, HIGHEST)));
    this.#said.textContent = `A still: a guitar that the page plays, and what ${model.title} makes of it.`;
    this.#place.dataset.still = model.name;
  }

  #offer() {
    const { select } = this.#choice;
    select.replaceChildren(...this.#models.map(({ name, title }) => el("option", { value: name, text: title })));
    select.selectedIndex = this.#models.indexOf(this.#chosen);
  }

  #countBytes() {
    this.#figures.size.textContent = bytes(this.#chosen.bytes + this.#site.runtime_bytes);
  }

  #show(state) {
    this.#place.dataset.state = state;
    const label = (name, text, path) =>
      this.#buttons[name].replaceChildren(symbol(this.#source === name ? STOP : path), this.#source === name ? "Stop" : text);
    label("guitar", "Play the guitar", PLAY);
    label("instrument", "Play your own", JACK);
    const isLoading = state === "loading";
    for (const button of Object.values(this.#buttons)) button.disabled = isLoading;
    this.#choice.select.disabled = isLoading;
    if (!isLoading) this.#progress.hide();
    if (state !== "playing") for (const meter of this.#meters) meter.clear();
  }

  async #toggle(source) {
    const wasOn = this.#source;
    await this.#stop();
    if (wasOn === source) return;
    this.#problems.replaceChildren();
    this.#show("loading");
    takeTurn(this);
    try {
      await this.#ready();
      if (source === "instrument") this.#progress.show("Waiting for the input: your browser may ask", null);
      await this.#rig.play(source, { report: (report) => this.#report(report), gone: () => this.#lost() });
      for (const scope of this.#scopes) scope.clear();
      this.#said.textContent =
        source === "guitar"
          ? "Plucked strings, computed by the page. Switch between A and B, turn the gain."
          : "What is connected to the input of this device. Use headphones.";
      this.#source = source;
      this.#show("playing");
      this.#lastFrame = performance.now();
      requestAnimationFrame((now) => this.#frame(now));
    } catch (error) {
      const title = source === "guitar" ? "It cannot be played:" : "The input cannot be used:";
      this.#problems.replaceChildren(problem(title, error, error.next));
      this.#show("failed");
    }
  }

  async #ready() {
    if (this.#rig) return;
    this.#progress.show("Starting the audio thread", null);
    const rig = await Rig.start({ drive: Number(this.#drive.input.value), level: Number(this.#level.input.value) });
    try {
      rig.wet = this.#wet.checked;
      await rig.load(await this.#plan(this.#chosen));
      this.#rig = rig;
    } catch (error) {
      await rig.close();
      throw error;
    }
  }

  async #plan(model) {
    model.plan ??= await download(model.file);
    return model.plan;
  }

  /** Another amp; the one before stays if it cannot run. */
  async #choose(model) {
    const before = this.#chosen;
    this.#problems.replaceChildren();
    try {
      await this.#try(model);
      await this.#rig?.load(await this.#plan(model));
      this.#chosen = model;
    } catch (error) {
      this.#chosen = before;
      this.#problems.replaceChildren(problem(`${model.title} cannot run on the audio thread:`, error, error.next ?? ADVICE));
    }
    this.#offer();
    this.#countBytes();
  }

  /** An amp of somebody's own: Python reads it and writes its plan. */
  async #open(file) {
    if (!file) return;
    this.#picker.value = "";
    this.#problems.replaceChildren();
    const state = this.#place.dataset.state;
    this.#place.dataset.state = "reading";
    try {
      if (file.size > MOST_BYTES) throw new Error(`it has ${bytes(file.size)}, an amp has at most ${bytes(MOST_BYTES)}`);
      const data = new Uint8Array(await file.arrayBuffer());
      const model = await this.#read(file.name, data);
      this.#progress.show("Loading it on the audio thread", null);
      this.#models = [...this.#models.filter(({ name }) => name !== model.name), model];
      await this.#choose(model);
      if (this.#chosen !== model) this.#models = this.#models.filter((each) => each !== model);
      this.#offer();
    } catch (error) {
      this.#problems.replaceChildren(problem(`${file.name} is no amp that can be played:`, error, ADVICE));
    } finally {
      this.#progress.hide();
      this.#place.dataset.opened = file.name;
      this.#place.dataset.state = this.#source ? "playing" : state === "playing" ? "idle" : state;
    }
  }

  async #read(name, data) {
    if (String.fromCharCode(...data.subarray(0, 4)) === MAGIC) return { name, title: name, plan: data, bytes: data.length };
    if (!this.#site.pyodide) throw new Error("this site was put together without Python, which reads it; .rnn files run");
    this.#python ??= pythonRemote();
    const progress = (text, fraction) => this.#progress.show(text, fraction);
    const { title, buffers } = await this.#python.call("effect", { bytes: data, file: name }, { progress });
    return { name, title, plan: buffers[0].slice(), bytes: buffers[0].length };
  }

  async #stop() {
    this.#source = null;
    await this.#rig?.stop();
    this.#show("idle");
  }

  async #lost() {
    await this.#stop();
    const next = "check that the device is connected and free, then press again.";
    this.#problems.replaceChildren(problem("It was stopped:", "the audio device is gone or was taken away", next));
  }

  #report({ missed, latencyMs, error }) {
    if (error) this.#problems.replaceChildren(problem("The audio thread says:", error));
    if (missed === undefined) return;
    this.#figures.missed.textContent = String(missed);
    this.#figures.latency.textContent = latencyMs ? duration(latencyMs) : "none";
  }

  #frame(now) {
    if (!this.#source) return;
    const seconds = (now - this.#lastFrame) / 1000;
    this.#lastFrame = now;
    [this.#rig.before, this.#rig.after].forEach((analyser, i) => {
      this.#scopes[i].draw(analyser, seconds);
      this.#meters[i].draw(analyser, seconds);
    });
    requestAnimationFrame((next) => this.#frame(next));
  }
}

/** The part, or null if this site has no amp. */
export function mount(place, site) {
  if (site.amps?.length) return new Amp(place, site);
  place.replaceChildren(el("p", { class: "quiet", text: "This site was put together without an amp to play." }));
  return null;
}
