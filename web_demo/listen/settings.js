// What is heard, by choice: the denoiser, the form of its weights, the rate of the audio thread and its channels.

import { el } from "../page/dom.js";
import { bytes } from "../page/format.js";
import { choice } from "../sound/field.js";

const MODELS_RATE = 16000;
const RATES = [["auto", "automatic"], ["", "of this device"], ["16000", "16 kHz"], ["44100", "44.1 kHz"], ["48000", "48 kHz"]];
const CHANNELS = [["1", "mono"], ["2", "stereo"]];

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
      denoiser: choice("Denoiser", titles, chosen),
      weights: choice("Weights", [], onPlan),
      rate: choice("Audio thread", RATES, onContext),
      channels: choice("Channels", CHANNELS, onContext),
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

  /** Of the audio thread: that of the models, unless a person has chosen another; null is that of the device. */
  get context() {
    const { value } = this.#fields.rate.select;
    const rate = value === "auto" ? MODELS_RATE : Number(value) || null;
    return { rate, channels: Number(this.#fields.channels.select.value) };
  }

  /** Takes the rate of the device where it was left to the page; returns whether that is another one. */
  takeDeviceRate() {
    const { select } = this.#fields.rate;
    if (select.value !== "auto") return false;
    select.value = "";
    return true;
  }

  set disabled(isDisabled) {
    for (const { select } of Object.values(this.#fields)) select.disabled = isDisabled;
  }
}
