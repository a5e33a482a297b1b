// What is heard, by choice: the denoiser, the form of its weights, the rate of the audio thread and its channels.

import { el } from "../page/dom.js";
import { bytes } from "../page/format.js";

const RATES = [["16000", "16 kHz"], ["", "of this device"], ["44100", "44.1 kHz"], ["48000", "48 kHz"]];
const CHANNELS = [["1", "mono"], ["2", "stereo"]];

/** A select with a label above it; `options` are [value, text]. */
export function field(label, options, change) {
  const select = el(
    "select",
    { change },
    options.map(([value, text]) => el("option", { value, text })),
  );
  return { select, element: el("label", { class: "field" }, el("span", { text: label }), select) };
}

export class Settings {
  #denoisers;
  #fields;

  /** `onPlan()` is called when another plan is chosen, `onContext()` when the audio thread has to begin anew. */
  constructor(denoisers, { onPlan, onContext }) {
    this.#denoisers = new Map(denoisers.map((each) => [each.name, each]));
    const titles = denoisers.map(({ name, title }) => [name, title]);
    const chosen = () => {
      this.#offerWeights();
      onPlan();
    };
    this.#fields = {
      denoiser: field("Denoiser", titles, chosen),
      weights: field("Weights", [], onPlan),
      rate: field("Audio thread", RATES, onContext),
      channels: field("Channels", CHANNELS, onContext),
    };
    this.#offerWeights();
    this.element = el(
      "div",
      { class: "settings" },
      Object.values(this.#fields).map(({ element }) => element),
    );
  }

  /** The forms that there are of this denoiser, the chosen one still if it is among them. */
  #offerWeights() {
    const { select } = this.#fields.weights;
    const before = select.value;
    const forms = Object.entries(this.denoiser.plans);
    select.replaceChildren(
      ...forms.map(([form, plan]) => el("option", { value: form, text: `${form}, ${bytes(plan.bytes)}` })),
    );
    if (forms.some(([form]) => form === before)) select.value = before;
  }

  get denoiser() {
    return this.#denoisers.get(this.#fields.denoiser.select.value);
  }

  /** {file, bytes} of the chosen plan. */
  get plan() {
    return this.denoiser.plans[this.#fields.weights.select.value];
  }

  /** `rate` is null for that of the device. */
  get context() {
    return { rate: Number(this.#fields.rate.select.value) || null, channels: Number(this.#fields.channels.select.value) };
  }

  set disabled(isDisabled) {
    for (const { select } of Object.values(this.#fields)) select.disabled = isDisabled;
  }
}
