// Part 5: native timings that were recorded, and those of this browser, as bars and as a table.

import { el, problem } from "../page/dom.js";
import { downloadJson } from "../page/files.js";
import { difference, time } from "../page/format.js";
import { Progress } from "../page/progress.js";
import { Remote } from "../page/remote.js";
import { pythonRemote } from "../python/python.js";
import { barChart } from "./bars.js";
import { enginesOf } from "./engines.js";
import { measure } from "./measure.js";

const PACES = {
  quick: { label: "Quick", rounds: 3, warmUpMs: 60, sliceMs: 10 },
  normal: { label: "Normal", rounds: 9, warmUpMs: 250, sliceMs: 25 },
  thorough: { label: "Thorough", rounds: 25, warmUpMs: 400, sliceMs: 50 },
};

const BUSY_SHARE = 1 / 4; // of all times: fewer are marked, and nothing more is said

class Timings {
  #place;
  #engines;
  #recorded = { models: [] };
  #results = {}; // model -> engine -> row
  #chosen;
  #workers = {};
  #stopping = false; // pressed, perhaps while no worker was busy
  #run = el("button", {
    class: "button primary",
    type: "button",
    text: "Measure in this browser",
    click: () => this.#toggle(),
  });
  #pace = el(
    "select",
    { "aria-label": "How thoroughly" },
    Object.entries(PACES).map(([value, { label }]) => el("option", { value, text: label })),
  );
  #progress = new Progress("Measuring");
  #problems = el("div", { class: "stack" });
  #busy = el("p", { class: "notice", role: "status", hidden: true });
  #chips = el("div", { class: "chips", role: "group", "aria-label": "Model that is charted" });
  #chart = el("div");
  #table = el("div", { class: "scroll" });

  constructor(place, site) {
    this.#place = place;
    this.#engines = enginesOf(site);
    this.#pace.value = "normal";
  }

  async start() {
    this.#recorded = await downloadJson("timings/timings.json");
    this.#chosen = (this.#recorded.models.find(({ name }) => name === "gru_256") ?? this.#recorded.models[0]).name;
    this.#chips.append(...this.#recorded.models.map((model) => this.#chip(model)));
    this.#place.replaceChildren(
      el("div", { class: "row" }, this.#run, this.#pace),
      this.#progress.element,
      this.#problems,
      this.#busy,
      this.#chips,
      this.#chart,
      this.#table,
      this.#note(),
    );
    this.#setState("idle");
    this.#draw();
  }

  #chip({ name, title }) {
    return el("button", { class: "chip", type: "button", value: name, text: title, click: () => this.#choose(name) });
  }

  #note() {
    const { processor, native, rounds } = this.#recorded;
    return el("p", {
      class: "note",
      text:
        `Native is ${native.replace("native:", "")} on ${processor}. All times are those of the calmest of many rounds, as webrnn bench takes them: natively there were ${rounds} or more. Small ratios in the table are against native. ` +
        "≈ marks a time that was taken while the machine did other things. " +
        "✓ marks the same bits as a native build: builds with a fused multiply-add (AVX2, AVX-512, relaxed SIMD) round once where others round twice, so each kind has its own. " +
        "All run on one thread; wasm and native run the same plan, onnxruntime-web and numpy run the ONNX file.",
    });
  }

  #setState(state) {
    this.#place.dataset.state = state;
    const running = state === "running";
    this.#run.textContent = running ? "Stop" : state === "idle" ? "Measure in this browser" : "Measure again";
    this.#run.classList.toggle("primary", !running);
    this.#pace.disabled = running;
    if (!running) this.#progress.hide();
    this.#sayHowBusy();
  }

  #worker(where) {
    if (this.#stopping) throw new DOMException("stopped", "AbortError");
    this.#workers[where] ??= where === "python" ? pythonRemote() : new Remote(new URL("./worker.js", import.meta.url));
    return this.#workers[where];
  }

  #endWorkers() {
    for (const worker of Object.values(this.#workers)) worker.end();
    this.#workers = {};
  }

  async #toggle() {
    if (this.#place.dataset.state === "running") {
      this.#stopping = true;
      return this.#endWorkers();
    }
    this.#stopping = false;
    this.#problems.replaceChildren();
    this.#results = {};
    this.#setState("running");
    const workers = { wasm: () => this.#worker("wasm"), python: () => this.#worker("python") };
    const engines = this.#engines.filter(({ missing }) => !missing);
    try {
      const { models } = this.#recorded;
      for (const [i, model] of models.entries()) {
        this.#chosen = model.name;
        const progress = (text, fraction) => this.#progress.show(text, (i + fraction) / models.length);
        const report = (rows) => {
          this.#results[model.name] = rows;
          this.#draw();
        };
        await measure(model, engines, workers, PACES[this.#pace.value], report, progress);
      }
      this.#complain();
      this.#setState("done");
    } catch (error) {
      const stopped = error.name === "AbortError";
      if (!stopped) this.#problems.append(problem("The measurement failed:", error));
      this.#setState(stopped ? "stopped" : "failed");
    } finally {
      this.#endWorkers();
    }
  }

  /** Each message once, with the engines that it is about. */
  #complain() {
    for (const { id, label } of this.#engines) {
      const errors = new Set(Object.values(this.#results).map((rows) => rows[id]?.error));
      errors.delete(undefined);
      for (const error of errors) this.#problems.append(problem(`${label}:`, error));
    }
  }

  /** Whether the machine did other things, here or where the native times were recorded. */
  #sayHowBusy() {
    const { models, load } = this.#recorded;
    const then = models.filter(({ busy }) => busy).length;
    const taken = models.flatMap(({ name }) => Object.values(this.#results[name] ?? {}).filter(({ ms }) => ms));
    const now = taken.filter(({ isBusy }) => isBusy).length;
    const said = [
      then &&
        `${then} of ${models.length} native times were recorded on a busy machine${load ? `, at a load of ${load.toFixed(1)}` : ""}: webrnn serve records them again.`,
      now > BUSY_SHARE * taken.length &&
        `The machine was busy while ${now} of ${taken.length} times were taken here: close what else runs, then measure again.`,
    ].filter(Boolean);
    this.#busy.textContent = said.join(" ");
    this.#busy.hidden = !said.length || this.#place.dataset.state === "running";
  }

  #draw() {
    const { models, native } = this.#recorded;
    for (const chip of this.#chips.children) chip.setAttribute("aria-pressed", String(chip.value === this.#chosen));
    this.#sayHowBusy();
    const model = models.find(({ name }) => name === this.#chosen);
    const rows = this.#results[model.name] ?? {};
    const bars = this.#engines
      .filter(({ id, missing }) => !missing || id !== "peer")
      .map(({ id, label, missing }) => ({
        label,
        ms: rows[id]?.ms,
        isBusy: rows[id]?.isBusy,
        className: id,
        note: missing ?? (rows[id]?.error ? "failed" : "not measured yet"),
      }));
    this.#chart.replaceChildren(
      barChart(`${model.title}, time of one run`, [
        { label: "native", ms: model.native[native], isBusy: model.busy, className: "native" },
        ...bars,
      ]),
    );
    this.#table.replaceChildren(this.#tableOf(models, native));
  }

  #choose(name) {
    this.#chosen = name;
    this.#draw();
  }

  #tableOf(models, native) {
    const engines = this.#engines.filter(({ missing }) => !missing);
    const head = ["model", "native", ...engines.map(({ label }) => label)].map((text) =>
      el("th", { scope: "col", role: "columnheader", text }),
    );
    const body = models.map((model) => {
      const cells = engines.map((engine) => cell(engine, this.#results[model.name]?.[engine.id], model.native[native]));
      const name = el("th", { scope: "row", role: "rowheader", text: model.title });
      return el(
        "tr",
        { role: "row", class: model.name === this.#chosen ? "chosen" : null },
        name,
        el("td", { role: "cell", "data-label": "native", text: time(model.native[native], model.busy) }),
        cells,
      );
    });
    // On a phone it is laid out as a list: roles that are written out keep it a table for screen readers.
    return el(
      "table",
      { role: "table", "aria-label": "All timings" },
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)),
      el("tbody", { role: "rowgroup" }, body),
    );
  }
}

function cell({ label }, row, native) {
  const common = { role: "cell", "data-label": label };
  if (row?.error) return el("td", { ...common, class: "quiet", title: row.error, text: "failed" });
  if (!row?.ms) return el("td", { ...common, class: "quiet empty", text: "·" });
  const builds = row.twins.map((spec) => spec.replace("native:", ""));
  const title = builds.length
    ? `the same bits as ${builds.join(", ")}`
    : `differs from native by at most ${difference(row.difference)}`;
  const mark = builds.length ? el("span", { class: "tick", text: " ✓", "aria-label": title }) : "";
  return el(
    "td",
    { ...common, title, "data-difference": String(row.difference), "data-twins": builds.join(" ") },
    time(row.ms, row.isBusy),
    mark,
    el("small", { text: (row.ms / native).toFixed(2) }),
  );
}

export function mount(place, site) {
  if (!site.has_timings) {
    place.dataset.state = "none";
    const text =
      "This copy of the page has no native times. `webrnn serve` records those of your machine, and measures your browser beside them.";
    place.replaceChildren(el("p", { text }));
    return;
  }
  new Timings(place, site).start().catch((error) => {
    place.dataset.state = "failed";
    place.replaceChildren(problem("There are no timings to show:", error));
  });
}
