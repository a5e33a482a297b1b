// Part 1: a recording or the microphone through two networks on the audio thread, seen and heard.

import { el, problem, symbol } from "../page/dom.js";
import { bytes, duration } from "../page/format.js";
import { Progress } from "../page/progress.js";
import { Scope, Trace } from "./scope.js";
import { Sound } from "./sound.js";

const PLAY = "M8 5v14l11-7z";
const STOP = "M7 6h10v12H7z";
const MICROPHONE =
  "M12 14a3 3 0 0 0 3-3V6a3 3 0 0 0-6 0v5a3 3 0 0 0 3 3zm5-3a5 5 0 0 1-10 0H5a7 7 0 0 0 6 6.900V21h2v-3.100A7 7 0 0 0 19 11z";
const SPEECH = 0.5; // the probability from which on somebody speaks

/** The mean of the last values. */
class Average {
  #values = [];
  #most;

  constructor(most) {
    this.#most = most;
  }

  add(value) {
    this.#values.push(value);
    if (this.#values.length > this.#most) this.#values.shift();
    return this.#values.reduce((a, b) => a + b) / this.#values.length;
  }
}

class Listen {
  #place;
  #files;
  #sound = null;
  #source = null; // "clip" or "microphone" while it plays
  #lastFrame = 0;
  #progress = new Progress("Loading the models");
  #problems = el("div", { class: "stack" });
  #buttons = {
    clip: el("button", { class: "button primary", type: "button", click: () => this.#toggle("clip") }),
    microphone: el("button", { class: "button", type: "button", click: () => this.#toggle("microphone") }),
  };
  #denoise = el("input", { type: "checkbox", role: "switch", checked: true, change: () => this.#switch() });
  #speech = el("span", { class: "speech", role: "status" });
  #before = new Scope("Spectrum and waveform of what comes in", "before");
  #after = new Scope("Spectrum and waveform of what goes out", "accent");
  #voice = new Trace("Probability that somebody speaks");
  #load = new Average(15);
  #models = el("p", { class: "note", role: "status" });
  #figures = Object.fromEntries(
    ["load", "missed", "latency", "size"].map((name) => [name, el("b", { "data-figure": name, text: "–" })]),
  );

  constructor(place, files) {
    this.#place = place;
    this.#files = files;
    place.replaceChildren(
      el(
        "div",
        { class: "row spread" },
        el("div", { class: "row" }, this.#buttons.clip, this.#buttons.microphone),
        el("label", { class: "switch" }, this.#denoise, el("span", { text: "Denoise" })),
      ),
      this.#progress.element,
      this.#problems,
      this.#models,
      el(
        "div",
        { class: "scopes" },
        figure(
          "In",
          this.#before.element,
          el("span", { class: "hint", text: "Speech, a fan, mains hum and a keyboard" }),
        ),
        figure("Out", this.#after.element),
        figure("Voice", this.#voice.element, this.#speech),
      ),
      el(
        "dl",
        { class: "tiles" },
        tile("Time in each quantum", this.#figures.load, "of 8 ms, both networks"),
        tile("Missed quanta", this.#figures.missed, "that came too late to be heard"),
        tile("Delay", this.#figures.latency, "between in and out"),
        tile("Download", this.#figures.size, `both models, ${files.weights} weights`),
      ),
    );
    this.#figures.size.textContent = bytes(files.bytes);
    this.#show("idle");
  }

  #show(state) {
    this.#place.dataset.state = state;
    const label = (name, text, path) =>
      this.#buttons[name].replaceChildren(
        symbol(this.#source === name ? STOP : path),
        this.#source === name ? "Stop" : text,
      );
    label("clip", "Play the noisy clip", PLAY);
    label("microphone", "Use the microphone", MICROPHONE);
    for (const button of Object.values(this.#buttons)) button.disabled = state === "loading";
    if (state !== "loading") this.#progress.hide();
    if (state !== "playing") this.#say(null);
  }

  #say(probability) {
    const speaks = probability !== null && probability >= SPEECH;
    this.#speech.classList.toggle("on", speaks);
    const text = probability === null ? "" : speaks ? "speech" : "silence";
    if (this.#speech.textContent !== text) this.#speech.textContent = text;
  }

  async #toggle(source) {
    const wasOn = this.#source;
    await this.#stop();
    if (wasOn === source) return;
    this.#problems.replaceChildren();
    this.#show("loading");
    try {
      await this.#ready();
      for (const part of [this.#before, this.#after, this.#voice]) part.clear();
      await this.#sound.start(source, { report: (report) => this.#report(report), ended: () => this.#stop() });
      this.#source = source;
      this.#show("playing");
      this.#lastFrame = performance.now();
      requestAnimationFrame((now) => this.#frame(now));
    } catch (error) {
      this.#problems.replaceChildren(
        problem(source === "microphone" ? "The microphone cannot be used:" : "It cannot be played:", error),
      );
      this.#show("failed");
    }
  }

  async #ready() {
    this.#sound ??= await Sound.load(this.#files, (text, fraction) => this.#progress.show(text, fraction));
    this.#sound.denoising = this.#denoise.checked;
    this.#figures.latency.textContent = duration(this.#sound.latencyMs);
  }

  /** Takes an audio plan in the place of DTLN or Silero, while they run or before. */
  async exchange(plan, kind, name) {
    await this.#ready();
    this.#progress.hide();
    await this.#sound.exchange(plan, kind);
    this.#figures.latency.textContent = duration(this.#sound.latencyMs);
    const back = el("button", { class: "chip", type: "button", text: "Put it back", click: () => this.#restore() });
    this.#models.replaceChildren(
      `${name} is on the audio thread, in the place of ${kind === "analyser" ? "Silero" : "DTLN"}. `,
      back,
    );
    this.#place.scrollIntoView({ block: "center" });
  }

  async #restore() {
    this.#models.replaceChildren();
    await this.#sound.restore();
    this.#figures.latency.textContent = duration(this.#sound.latencyMs);
  }

  async #stop() {
    this.#source = null;
    await this.#sound?.stop();
    this.#show("idle");
  }

  #switch() {
    if (this.#sound) this.#sound.denoising = this.#denoise.checked;
  }

  #report({ msPerQuantum, missed, probability, error }) {
    if (error) this.#problems.replaceChildren(problem("The audio thread says:", error));
    if (msPerQuantum !== undefined) this.#figures.load.textContent = duration(this.#load.add(msPerQuantum));
    if (missed !== undefined) this.#figures.missed.textContent = String(missed);
    if (probability !== undefined) {
      this.#voice.add(performance.now() / 1000, probability);
      this.#say(probability);
    }
  }

  #frame(now) {
    if (!this.#source) return;
    const seconds = (now - this.#lastFrame) / 1000;
    this.#lastFrame = now;
    this.#before.draw(this.#sound.before, seconds);
    this.#after.draw(this.#sound.after, seconds);
    this.#voice.draw(now / 1000);
    requestAnimationFrame((next) => this.#frame(next));
  }
}

const figure = (label, element, extra) =>
  el("figure", {}, el("figcaption", {}, label, extra ? [" ", extra] : []), element);
const tile = (title, value, note) =>
  el("div", { class: "tile" }, el("dt", { text: title }), el("dd", {}, value), el("dd", { class: "note", text: note }));

/** The part, or null if this site has nothing to listen to. */
export function mount(place, site) {
  if (site.listen) return new Listen(place, site.listen);
  place.replaceChildren(
    el("p", {
      class: "quiet",
      text: "This site was put together without the models and the recording that this part needs.",
    }),
  );
  return null;
}
