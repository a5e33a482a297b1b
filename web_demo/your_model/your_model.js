// Part 2: a model or a plan is dropped, looked at, run and saved.

import { el, problem } from "../page/dom.js";
import { download, save } from "../page/files.js";
import { bytes as bytesText } from "../page/format.js";
import { Progress } from "../page/progress.js";
import { Remote } from "../page/remote.js";
import { pythonRemote } from "../python/python.js";
import { elementType, ARRAYS } from "./arrays.js";
import { InputsView } from "./inputs_view.js";
import { reportView } from "./report_view.js";
import { compareOutputs, resultsView } from "./results_view.js";
import { weightsView } from "./weights_view.js";

const MAGIC = "WRNN";
const MOST_BYTES = 512 * 2 ** 20;

const isPlan = (bytes) => String.fromCharCode(...bytes.subarray(0, 4)) === MAGIC;

/** A title for an error, by what kind Python or the VM says it is. */
function titleOf(kind, name) {
  if (kind === "UnsupportedOp") return `${name} uses something that webrnn does not support:`;
  if (kind === "PlanError") return `${name} is not a plan that can be run:`;
  if (kind === "ModelError") return `${name} is not an ONNX model that can be read:`;
  return `${name} could not be opened:`;
}

class YourModel {
  #place;
  #site;
  #listening; // part 1, or null
  #python = null;
  #vm = null;
  #model = null; // {name, file, kind, inputs, outputs, states, unsure, weights, planFor, plan}
  #progress = new Progress("Opening the model");
  #problems = el("div", { class: "stack", "aria-live": "polite" });
  #report = el("div");
  #runner = el("div", { class: "stack" });
  #results = el("div", { "aria-live": "polite" });
  #picker = el("input", {
    type: "file",
    accept: ".onnx,.rnn",
    hidden: true,
    change: () => this.#openFile(this.#picker.files[0]),
  });
  #stop = el("button", {
    class: "button",
    type: "button",
    text: "Stop",
    hidden: true,
    click: () => this.#endWorkers(),
  });
  #chips;

  constructor(place, site, listening) {
    this.#place = place;
    this.#site = site;
    this.#listening = listening;
    this.#chips = el(
      "div",
      { class: "chips", role: "group", "aria-label": "Models to try" },
      site.bundled.map((model) =>
        el("button", {
          class: "chip",
          type: "button",
          title: `${model.what}, ${bytesText(model.bytes)}`,
          "aria-pressed": "false",
          "data-model": model.name,
          text: model.title,
          click: () => this.#openBundled(model),
        }),
      ),
    );
    const zone = el(
      "button",
      { class: "dropzone", type: "button", click: () => this.#picker.click() },
      el("strong", { text: "Drop an .onnx or .rnn file here" }),
      el("span", { class: "quiet small", text: "or press to choose one. It stays in this browser." }),
    );
    place.replaceChildren(
      zone,
      this.#picker,
      site.bundled.length > 0 &&
        el("div", { class: "row try" }, el("span", { class: "quiet small", text: "Or try" }), this.#chips),
      el("div", { class: "row spread busy" }, this.#progress.element, this.#stop),
      this.#problems,
      this.#report,
      this.#runner,
      this.#results,
    );
    this.#acceptDrops(place, zone);
    place.dataset.state = "idle";
  }

  #acceptDrops(place, zone) {
    place.addEventListener("dragover", (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
    place.addEventListener("dragleave", () => zone.classList.remove("over"));
    place.addEventListener("drop", (event) => {
      event.preventDefault();
      zone.classList.remove("over");
      this.#openFile(event.dataTransfer.files[0]);
    });
  }

  #say = (text, fraction) => this.#progress.show(text, fraction);

  /** Does something that takes a while; what it throws is shown below `title(error)`. */
  async #busy(title, work) {
    if (this.#place.dataset.state === "busy") return;
    this.#place.dataset.state = "busy";
    this.#problems.replaceChildren();
    this.#stop.hidden = false;
    try {
      await work();
      this.#place.dataset.state = "ready";
    } catch (error) {
      this.#place.dataset.state = "failed";
      if (error.name === "AbortError") this.#place.dataset.state = "stopped";
      else
        this.#problems.replaceChildren(
          problem(title(error), error),
          error.details ? el("pre", { class: "small", text: error.details }) : "",
        );
    } finally {
      this.#progress.hide();
      this.#stop.hidden = true;
    }
  }

  #endWorkers() {
    this.#python?.end();
    this.#vm?.end();
    this.#python = this.#vm = null;
    this.#forget();
  }

  #forget() {
    this.#model = null;
    for (const part of [this.#report, this.#runner, this.#results]) part.replaceChildren();
    for (const chip of this.#chips.children) chip.setAttribute("aria-pressed", "false");
  }

  #openBundled(model) {
    return this.#busy(
      (error) => titleOf(error.kind, model.title),
      async () => {
        this.#forget();
        this.#chips.querySelector(`[data-model="${model.name}"]`).setAttribute("aria-pressed", "true");
        const file = await download(model.file, this.#say);
        await this.#open(`${model.name}.onnx`, file, model);
      },
    );
  }

  #openFile(file) {
    if (!file) return;
    this.#picker.value = "";
    return this.#busy(
      (error) => titleOf(error.kind, file.name),
      async () => {
        this.#forget();
        if (file.size > MOST_BYTES)
          throw new Error(`it has ${bytesText(file.size)}, this page takes ${bytesText(MOST_BYTES)}`);
        const bytes = new Uint8Array(await file.arrayBuffer());
        if (!bytes.length) throw new Error("the file is empty");
        await this.#open(file.name, bytes, {});
      },
    );
  }

  async #open(name, bytes, { fixed = {}, shapes = {} }) {
    if (isPlan(bytes)) await this.#openPlan(name, bytes);
    else await this.#openOnnx(name, bytes, fixed, shapes);
  }

  async #openPlan(name, bytes) {
    this.#say("Checking the plan", null);
    const { inputs, outputs, variant, carry, about } = await this.#onVm("open", { bytes });
    this.#model = { name, kind: "plan", inputs, states: carry, plan: bytes, audio: about?.audio };
    const port = ({ name: label, type, shape }) => `${label} ${type}[${shape.map((size) => size ?? "?").join(", ")}]`;
    this.#report.replaceChildren(
      el(
        "p",
        { class: "plan-facts" },
        el("strong", { text: name }),
        ` is a plan of ${bytesText(bytes.length)}: it was verified and runs on the ${variant} VM, without Python. It gives ${outputs.map(port).join(", ")}.`,
      ),
    );
    this.#offerRun({});
  }

  async #openOnnx(name, bytes, fixed, shapes, weights = "f32") {
    if (!this.#site.pyodide)
      throw new Error("this site was put together without Pyodide, which reads ONNX files; .rnn files run");
    const opened = await this.#onPython("open", { bytes, fixed, weights });
    const inputs = opened.inputs.map((port) => ({ ...port, type: elementType(port.type) }));
    const unknown = inputs.find(({ type }) => !ARRAYS[type]);
    this.#model = {
      name,
      kind: "onnx",
      file: bytes,
      fixed,
      shapes,
      weights,
      inputs,
      outputs: opened.outputs,
      states: Object.fromEntries(opened.states),
      unsure: opened.unsure,
      plan: null,
      audio: opened.audio,
    };
    const onWeights = (form) => this.#again({ weights: form });
    this.#report.replaceChildren(reportView(opened), weightsView(opened.weights, onWeights));
    if (unknown)
      this.#runner.replaceChildren(
        el("p", {
          class: "note",
          text: `Input '${unknown.name}' takes ${unknown.type}, which this page cannot make up.`,
        }),
      );
    else this.#offerRun(shapes, (input, value) => this.#again({ fixed: { ...fixed, [input]: value } }));
  }

  /** Opens the model again, with an input fixed or other weights. */
  #again(changed) {
    const { name, file, fixed, shapes, weights } = { ...this.#model, ...changed };
    return this.#busy(
      (error) => titleOf(error.kind, name),
      () => this.#openOnnx(name, file, fixed, shapes, weights),
    );
  }

  #offerRun(shapes, onFix) {
    const { inputs, states } = this.#model;
    const view = new InputsView(inputs, { states, shapes, onFix });
    this.#runner.replaceChildren(
      el("h3", { text: "Run it" }),
      view.element,
      this.#askForStates(shapes, onFix),
      el(
        "div",
        { class: "row" },
        el("button", { class: "button primary", type: "button", text: "Run", click: () => this.#run(view) }),
        el("button", { class: "button", type: "button", text: "Save the plan (.rnn)", click: () => this.#save(view) }),
      ),
      this.#audioOffer(),
    );
    this.#results.replaceChildren();
  }

  /** Where it is not sure which output becomes which input: why, and a field to name the pairs. */
  #askForStates(shapes, onFix) {
    const { unsure, states } = this.#model;
    if (!unsure) return "";
    const text = Object.entries(states).map((pair) => pair.join("="));
    const field = el("input", { type: "text", value: text.join(" "), placeholder: "h_in=h_out", "aria-label": "States" });
    const use = () =>
      this.#busy(
        () => "These are no states of it:",
        async () => {
          this.#model.states = this.#pairs(field.value);
          this.#model.planFor = null;
          this.#offerRun(shapes, onFix);
        },
      );
    return el(
      "div",
      { class: "stack unsure" },
      el("p", { class: "note", text: unsure }),
      el(
        "div",
        { class: "row" },
        field,
        el("button", { class: "button", type: "button", text: "Carry these", click: use }),
      ),
    );
  }

  /** {input: output} of "h_in=h_out c_in=c_out". */
  #pairs(text) {
    const named = (ports, name) => ports.some((port) => port.name === name);
    const pairs = text.split(/[\s,]+/).filter(Boolean).map((pair) => pair.split("="));
    for (const [before, after] of pairs) {
      if (!named(this.#model.inputs, before)) throw new Error(`there is no input '${before}'`);
      if (!named(this.#model.outputs, after)) throw new Error(`there is no output '${after}'`);
    }
    return Object.fromEntries(pairs);
  }

  /** For a model of frames of numbers: it can run on samples, in the place of a model of part 1. */
  #audioOffer() {
    const { audio, kind } = this.#model;
    if (!audio || !this.#listening) return "";
    const hop = el("input", {
      type: "number",
      min: "1",
      max: String(audio.frame),
      value: String(audio.hop ?? Math.max(audio.frame >> 2, 1)),
      disabled: kind === "plan",
      "aria-label": "Samples from one frame to the next",
    });
    return el(
      "div",
      { class: "row audio-offer" },
      el(
        "span",
        { class: "small" },
        `Frames of ${audio.frame} samples, one every `,
        hop,
        ` at ${audio.sample_rate / 1000} kHz`,
      ),
      el("button", {
        class: "button",
        type: "button",
        text: "Put it on the audio thread",
        click: () => this.#listen({ ...audio, hop: Number(hop.value) }),
      }),
    );
  }

  #listen(audio) {
    return this.#busy(
      () => "It cannot run on the audio thread:",
      async () => {
        const { name, kind, states, plan } = this.#model;
        if (kind === "onnx" && !(Number.isInteger(audio.hop) && audio.hop >= 1 && audio.hop <= audio.frame))
          throw new Error(`a frame every ${audio.hop} samples is not possible`);
        const bytes =
          kind === "plan" ? plan : (await this.#onPython("plan", { audio, carry: states })).buffers[0].slice();
        this.#say("Loading it on the audio thread", null);
        await this.#listening.exchange(bytes, audio.kind, name);
      },
    );
  }

  #run(view) {
    const title = () => "It could not be run:";
    return this.#busy(title, async () => {
      const { kind, states: carry } = this.#model;
      const { steps } = view;
      const feeds = view.feeds(steps);
      const runs = [];
      let first = null;
      if (kind === "onnx") {
        const { outputs, buffers, ms } = await this.#onPython("run", { feeds, steps, carry });
        first = outputs.map((output, i) => ({ ...output, data: new ARRAYS[output.type](buffers[i].slice().buffer) }));
        runs.push({ label: "webrnn in Python, in this page", ms });
        await this.#makePlan(view);
      }
      this.#say("Running the plan without Python", null);
      const second = await this.#onVm("run", { feeds, steps, carry });
      runs.push({ label: "the plan on the bare VM", ms: second.ms });
      for (const run of runs) if (steps > 1) run.label += ", a step";
      this.#results.replaceChildren(
        resultsView(first ?? second.outputs, runs, first && compareOutputs(first, second.outputs)),
      );
    });
  }

  /** The plan, checked by the VM, for the shapes that are chosen. */
  async #makePlan(view) {
    const shapes = Object.fromEntries(view.feeds().map(({ name, shape }) => [name, shape]));
    const key = JSON.stringify(shapes);
    if (this.#model.planFor === key) return;
    const { buffers } = await this.#onPython("plan", { shapes, carry: this.#model.states });
    this.#model.plan = buffers[0].slice();
    await this.#onVm("open", { bytes: this.#model.plan });
    this.#model.planFor = key;
  }

  #save(view) {
    return this.#busy(
      () => "There is no plan to save:",
      async () => {
        if (this.#model.kind === "onnx") await this.#makePlan(view);
        save(this.#model.plan, this.#model.name.replace(/\.\w+$/, "") + ".rnn");
      },
    );
  }

  #onPython(name, value) {
    this.#python ??= pythonRemote();
    return this.#python.call(name, value, { progress: this.#say });
  }

  async #onVm(name, value) {
    this.#vm ??= new Remote(new URL("./vm_worker.js", import.meta.url));
    return this.#vm.call(name, value);
  }
}

export function mount(place, site, listening) {
  return new YourModel(place, site, listening);
}
