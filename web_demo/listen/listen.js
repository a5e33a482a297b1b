// Part 1: a recording or the microphone through two networks on the audio thread, seen and heard.

import { el, problem, symbol, tile } from "../page/dom.js";
import { download } from "../page/files.js";
import { bytes, duration, percent } from "../page/format.js";
import { Progress } from "../page/progress.js";
import { Average } from "../sound/average.js";
import { isRefusedRate } from "../sound/devices.js";
import { Scope, Trace } from "../sound/scope.js";
import { onOthersTurn, takeTurn } from "../sound/turns.js";
import { loadPreview } from "./preview.js";
import { Settings } from "./settings.js";
import { Sound } from "./sound.js";

const PLAY = "M8 5v14l11-7z";
const STOP = "M7 6h10v12H7z";
const MICROPHONE =
  "M12 14a3 3 0 0 0 3-3V6a3 3 0 0 0-6 0v5a3 3 0 0 0 3 3zm5-3a5 5 0 0 1-10 0H5a7 7 0 0 0 6 6.900V21h2v-3.100A7 7 0 0 0 19 11z";
const SPEECH = 0.5; // the probability from which on somebody speaks
const LEAST_BUDGET = 4; // ms of a quantum that a clock of whole milliseconds can tell something of
const STILL = "A still of the clip: speech with a fan, mains hum and a keyboard, and what DTLN makes of it.";
const SAID = {
  clip: "Speech with a fan, mains hum and a keyboard. Switch between A and B while it plays.",
  microphone: "Your microphone. Use headphones, or the loudspeaker is heard again.",
};

class Listen {
  #place;
  #site;
  #files;
  #sound = null;
  #source = null; // "clip" or "microphone" while it plays
  #given = {}; // plans of a person's own, by place
  #plans = new Map(); // bytes by file
  #lastFrame = 0;
  #progress = new Progress("Loading the models");
  #problems = el("div", { class: "stack" });
  #buttons = {
    clip: el("button", { class: "button primary", type: "button", click: () => this.#toggle("clip") }),
    microphone: el("button", { class: "button", type: "button", click: () => this.#toggle("microphone") }),
  };
  #denoise = el("input", {
    type: "checkbox",
    role: "switch",
    checked: true,
    "aria-label": "Denoise",
    change: () => this.#switch(),
  });
  #settings;
  #said = el("p", { class: "note" });
  #speech = el("span", { class: "speech" });
  #before = new Scope("Spectrum and waveform of what comes in", "before");
  #after = new Scope("Spectrum and waveform of what goes out", "accent");
  #voice = new Trace("Probability that somebody speaks");
  #load = new Average(15);
  #models = el("p", { class: "note", role: "status" });
  #figures = Object.fromEntries(
    ["load", "budget", "missed", "latency", "size"].map((name) => [name, el("b", { "data-figure": name, text: "–" })]),
  );

  constructor(place, site) {
    this.#place = place;
    this.#site = site;
    this.#files = site.listen;
    this.#settings = new Settings(this.#files.denoisers, {
      onPlan: () => this.#exchanged(),
      onContext: () => this.#begin(this.#source),
    });
    const { load, budget, missed, latency, size } = this.#figures;
    place.replaceChildren(
      el(
        "div",
        { class: "row spread" },
        el("div", { class: "row" }, this.#buttons.clip, this.#buttons.microphone),
        el(
          "label",
          { class: "switch ab" },
          el("span", { "aria-hidden": "true", text: "A · as it is" }),
          this.#denoise,
          el("span", { "aria-hidden": "true", text: "B · denoised" }),
        ),
      ),
      this.#settings.element,
      this.#progress.element,
      this.#problems,
      this.#models,
      el(
        "div",
        { class: "scopes" },
        figure("In", this.#before.element),
        figure("Out", this.#after.element),
        figure("Voice", this.#voice.element, this.#speech),
      ),
      this.#said,
      el(
        "dl",
        { class: "tiles" },
        tile("Time in each quantum", load, el("span", {}, budget, ", both networks")),
        tile("Missed quanta", missed, "that came too late to be heard"),
        tile("Delay", latency, "between in and out, A or B"),
        tile("Loaded", size, "both models, WebAssembly and its host"),
      ),
    );
    budget.className = "plain";
    budget.textContent = "of some ms";
    this.#show("idle");
    this.#countBytes();
    onOthersTurn(this, () => this.#source && this.#stop());
    loadPreview(this.#files.preview).then(
      (still) => !this.#source && this.#showStill(still),
      () => (this.#said.textContent = ""), // the page works without it
    );
  }

  #showStill({ before, after, voice }) {
    this.#before.show(before);
    this.#after.show(after);
    this.#voice.show(voice);
    this.#said.textContent = STILL;
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
    const isLoading = state === "loading";
    for (const button of Object.values(this.#buttons)) button.disabled = isLoading;
    this.#settings.disabled = isLoading;
    if (!isLoading) this.#progress.hide();
    if (state === "playing") this.#said.textContent = SAID[this.#source];
    else this.#say(null);
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
    if (wasOn !== source) await this.#begin(source, false);
  }

  /** Plays a source, on a new audio thread unless the one that there is will do; without a source it only forgets that. */
  async #begin(source, isNew = true) {
    this.#problems.replaceChildren();
    this.#source = null;
    this.#show("loading");
    try {
      if (isNew) await this.#end();
      if (!source) return this.#show("idle");
      takeTurn(this);
      await this.#ready();
      if (source === "microphone") this.#progress.show("Waiting for the microphone: your browser may ask", null);
      await this.#sound.play(source, this.#files.clip, {
        report: (report) => this.#report(report),
        gone: () => this.#lost(),
      });
      for (const part of [this.#before, this.#after, this.#voice]) part.clear();
      this.#source = source;
      this.#show("playing");
      this.#lastFrame = performance.now();
      requestAnimationFrame((now) => this.#frame(now));
    } catch (error) {
      if (isRefusedRate(error) && this.#settings.takeDeviceRate()) return this.#begin(source);
      const title = source === "microphone" ? "The microphone cannot be used:" : "It cannot be played:";
      this.#problems.replaceChildren(problem(title, error, error.next));
      this.#show("failed");
    }
  }

  async #ready() {
    if (this.#sound) return;
    this.#progress.show("Starting the audio thread", null);
    const sound = await Sound.start(this.#settings.context); // first of all: browsers want it close to the press
    try {
      await this.#loadPlans(sound);
      this.#sound = sound;
    } catch (error) {
      await sound.close();
      throw error;
    }
  }

  /** The chosen plans, or a person's own, onto the audio thread. */
  async #loadPlans(sound) {
    const denoiser = this.#given.denoiser ?? (await this.#plan(this.#settings.plan));
    const detector = this.#given.detector ?? (await this.#plan(this.#files.detector));
    this.#progress.show("Compiling the models on the audio thread", null);
    sound.denoising = this.#denoise.checked;
    await sound.load({ denoiser, detector });
  }

  async #plan({ file }) {
    if (!this.#plans.has(file)) this.#plans.set(file, await download(file, (...state) => this.#progress.show(...state)));
    this.#countBytes();
    return this.#plans.get(file);
  }

  /** What this part has to load, or has loaded by now. */
  #countBytes() {
    const { plan } = this.#settings;
    this.#figures.size.textContent = bytes(plan.bytes + this.#files.detector.bytes + this.#site.runtime_bytes);
  }

  async #end() {
    const sound = this.#sound;
    this.#sound = null;
    await sound?.close();
  }

  /** Another denoiser was chosen: it is faded in where one plays. */
  async #exchanged() {
    delete this.#given.denoiser;
    this.#models.replaceChildren();
    this.#countBytes();
    if (!this.#sound) return;
    try {
      await this.#loadPlans(this.#sound);
    } catch (error) {
      this.#problems.replaceChildren(problem("It cannot run on the audio thread:", error, error.next));
    } finally {
      this.#progress.hide();
    }
  }

  /** Takes an audio plan in the place of the denoiser or the detector, while they run or before. */
  async exchange(plan, kind, name) {
    const place = kind === "analyser" ? "detector" : "denoiser";
    const before = { ...this.#given };
    this.#given[place] = plan;
    try {
      if (this.#sound) await this.#loadPlans(this.#sound);
      else await this.#ready();
    } catch (error) {
      this.#given = before;
      throw error;
    } finally {
      this.#progress.hide();
    }
    const back = el("button", { class: "chip", type: "button", text: "Put it back", click: () => this.#restore() });
    const replaced = place === "detector" ? "Silero" : this.#settings.denoiser.title;
    this.#models.replaceChildren(`${name} is on the audio thread, in the place of ${replaced}. `, back);
    this.#place.scrollIntoView({ block: "center" });
  }

  async #restore() {
    this.#given = {};
    await this.#exchanged();
  }

  async #stop() {
    this.#source = null;
    await this.#sound?.stop();
    this.#show("idle");
  }

  /** The device is gone, or something else has taken it. */
  async #lost() {
    await this.#stop();
    const next = "check that the device is connected and free, then press again.";
    this.#problems.replaceChildren(problem("It was stopped:", "the audio device is gone or was taken away", next));
  }

  #switch() {
    if (this.#sound) this.#sound.denoising = this.#denoise.checked;
  }

  #report({ ms, budget, worst, missed, latencyMs, probability, error }) {
    if (error) this.#problems.replaceChildren(problem("The audio thread says:", error));
    if (ms !== undefined) {
      const mean = this.#load.add(ms);
      const isCoarse = Number.isInteger(worst) && budget < LEAST_BUDGET;
      this.#figures.load.textContent = isCoarse ? "–" : duration(mean);
      this.#figures.budget.textContent = isCoarse
        ? `of ${duration(budget)}: too short for this browser's clock`
        : `${percent(mean / budget)} of ${duration(budget)}`;
      this.#figures.missed.textContent = String(missed);
      this.#figures.latency.textContent = duration(latencyMs);
    }
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

/** The part, or null if this site has nothing to listen to. */
export function mount(place, site) {
  if (site.listen) return new Listen(place, site);
  place.replaceChildren(
    el("p", {
      class: "quiet",
      text: "This site was put together without the models and the recording that this part needs.",
    }),
  );
  return null;
}
