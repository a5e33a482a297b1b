// Part 4: a model or a plan is dropped, looked at, run and saved.

import { el, problem } from "../page/dom.js";
import { download, save } from "../page/files.js";
import { bytes as bytesText } from "../page/format.js";
import { Progress } from "../page/progress.js";
import { Remote } from "../page/remote.js";
import { pythonRemote } from "../python/python.js";
import { adviceFor, titleFor } from "./advice.js";
import { elementType, ARRAYS } from "./arrays.js";
import { audioOffer, requireHop } from "./audio_offer.js";
import { InputsView } from "./inputs_view.js";
import { factsView, reportView } from "./report_view.js";
import { compareOutputs, resultsView } from "./results_view.js";
import { fillOf, lengthOf, shapesFor, sizeGuesses } from "./size_guesses.js";
import { statesView } from "./states_view.js";
import { weightsView } from "./weights_view.js";

const MAGIC = "WRNN";
const KINDS = ".onnx,.rnn,.nam,.json,.aidax";
const MOST_BYTES = 512 * 2 ** 20;

const isPlan = (bytes) => String.fromCharCode(...bytes.subarray(0, 4)) === MAGIC;

class YourModel {
  #place;
  #site;
  #listening; // part 1, or null
  #python = null;
  #vm = null;
  #model = null; // {name, file, kind, inputs, outputs, states, unsure, weights, planFor, plan}
  #progress = new Progress("Opening the model");
  #problems = el("div", { class: "stack", "aria-live": "polite" });
  #facts = el("div");
  #report = el("div");
  #runner = el("div", { class: "stack" });
  #results = el("div", { "aria-live": "polite" });
  #picker = el("input", {
    type: "file",
    accept: KINDS,
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
      el("strong", { text: "Drop a model here" }),
      el("span", { class: "quiet small", text: ".onnx, .rnn, .nam, or .json of RTNeural and AIDA-X" }),
      el("span", { class: "quiet small", text: "or press to choose a file. It stays in this browser." }),
    );
    place.replaceChildren(
      zone,
      this.#picker,
      site.bundled.length > 0 &&
        el("div", { class: "row try" }, el("span", { class: "quiet small", text: "Or try" }), this.#chips),
      el("div", { class: "row spread busy" }, this.#progress.element, this.#stop),
      this.#problems,
      this.#facts,
      this.#runner,
      this.#results,
      this.#report,
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
  async #busy(title, work, advice = "") {
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
          problem(title(error), error, adviceFor(error, advice)),
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
    for (const part of [this.#facts, this.#report, this.#runner, this.#results]) part.replaceChildren();
    for (const chip of this.#chips.children) chip.setAttribute("aria-pressed", "false");
  }

  #openBundled(model) {
    return this.#busy(
      (error) => titleFor(error, model.title),
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
      (error) => titleFor(error, file.name),
      async () => {
        this.#forget();
        if (file.size > MOST_BYTES)
          throw new Error(`it has ${bytesText(file.size)}, this page takes ${bytesText(MOST_BYTES)}`);
        const bytes = new Uint8Array(await file.arrayBuffer());
        if (!bytes.length) throw new Error("the file is empty");
        await this.#open(file.name, bytes, {});
      },
      "Choose another file, or one of the models below.",
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
    this.#facts.replaceChildren(
      el(
        "p",
        { class: "plan-facts" },
        el("strong", { text: name }),
        ` is a plan of ${bytesText(bytes.length)}: it was verified and runs on the ${variant} VM, without Python. It gives ${outputs.map(port).join(", ")}.`,
      ),
    );
    await this.#offerSizes({});
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
    this.#facts.replaceChildren(factsView(name, opened));
    this.#report.replaceChildren(weightsView(opened.weights, onWeights), reportView(opened));
    if (unknown)
      this.#runner.replaceChildren(
        el("p", {
          class: "note",
          text: `Input '${unknown.name}' takes ${unknown.type}, which this page cannot make up.`,
        }),
      );
    else await this.#offerSizes(shapes, (input, value) => this.#again({ fixed: { ...fixed, [input]: value } }));
  }

  /** Offers to run it with shapes that are known, or else with the first guess with which it runs; Python guesses for models. */
  async #offerSizes(shapes, onFix) {
    const { inputs, states, kind } = this.#model;
    if (kind === "onnx") {
      const { shapes: found, fills, problem: met } = await this.#onPython("guess", { shapes, states });
      this.#model.fills = fills;
      return this.#offerRun(found, onFix, met);
    }
    const guesses = sizeGuesses(inputs, states);
    const isGuessed = guesses.length > 0 && Object.keys(guesses[0]).length > 0 && !Object.keys(shapes).length;
    if (!isGuessed) return this.#offerRun(shapes, onFix);
    const tries = guesses.map((sizes) => shapesFor(inputs, sizes));
    const { place, problem: why } = await this.#onVm("fits", { tries: tries.map((each) => this.#madeUp(each)) });
    this.#offerRun(tries[place ?? 0], onFix, place === null ? why : null);
  }

  /** What a worker is to make up for the inputs. */
  #madeUp(shapes) {
    const { inputs, states } = this.#model;
    const numbers = { random: null, zeros: 0, ones: 1, length: lengthOf(inputs, shapes) };
    return inputs.map((input) => {
      const { name, type, shape } = input;
      const fill = !shape.length && /^(sr|rate|sample_?rate)$/i.test(name) ? 16000 : numbers[fillOf(input, name in states)];
      return { name, type, shape: shapes[name], fill };
    });
  }

  /** Opens the model again, with an input fixed or other weights. */
  #again(changed) {
    const { name, file, fixed, shapes, weights } = { ...this.#model, ...changed };
    return this.#busy(
      (error) => titleFor(error, name),
      () => this.#openOnnx(name, file, fixed, shapes, weights),
    );
  }

  /** `met` is what the first guess met, if there is none with which it runs. */
  #offerRun(shapes, onFix, met = null) {
    const { inputs, states, audio, fills } = this.#model;
    const view = new InputsView(inputs, { states, shapes, fills, onFix });
    const button = (text, click, className = "button") => el("button", { class: className, type: "button", text, click });
    const onStates = (pairs) =>
      this.#busy(
        () => "These are no states of it:",
        async () => {
          this.#model.states = pairs();
          this.#model.planFor = null;
          this.#offerRun(shapes, onFix);
        },
      );
    this.#runner.replaceChildren(
      el(
        "div",
        { class: "row spread run-row" },
        el("h3", { text: "Run it" }),
        el(
          "div",
          { class: "row" },
          view.hasSizes && button("Find sizes", () => this.#findSizes(onFix)),
          button("Save the plan (.rnn)", () => this.#save(view)),
          button("Run", () => this.#run(view), "button primary"),
        ),
      ),
      view.element,
      statesView(this.#model, onStates),
      audio && this.#listening ? audioOffer(this.#model, (chosen) => this.#listen(chosen)) : "",
    );
    const said = `No sizes were found with which it runs: fill in those that it was made for. With the first guess: ${met}`;
    if (met !== null) this.#runner.firstChild.after(el("p", { class: "notice", text: said }));
    this.#results.replaceChildren();
  }

  #findSizes(onFix) {
    return this.#busy(
      () => "Sizes could not be tried:",
      () => this.#offerSizes({}, onFix),
    );
  }

  #listen(audio) {
    return this.#busy(
      () => "It cannot run on the audio thread:",
      async () => {
        const { name, kind, states, plan } = this.#model;
        if (kind === "onnx") requireHop(audio);
        const bytes =
          kind === "plan" ? plan : (await this.#onPython("plan", { audio, carry: states })).buffers[0].slice();
        this.#say("Loading it on the audio thread", null);
        await this.#listening.exchange(bytes, audio.kind, name);
      },
    );
  }

  #run(view) {
    const title = () => "It could not be run:";
    const work = async () => {
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
    };
    return this.#busy(title, work, "Choose other sizes or data, and run it again.");
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
