// The plans that the helpers use: where they are, and what is made ready before it is needed.

import { fileUrl } from "./files.js";
import { bytesOf, compile, planBytes, supportedVariants } from "./instance.js";
import { warmUpAhead, warmUpResamplers } from "./audio_warmup.js";

const PLANS = {
  dtln: {
    int8: () => fileUrl("plans/dtln_int8.rnn", () => new URL("./plans/dtln_int8.rnn", import.meta.url)),
    int16: () => fileUrl("plans/dtln_int16.rnn", () => new URL("./plans/dtln_int16.rnn", import.meta.url)),
  },
  gtcrn: { float32: () => fileUrl("plans/gtcrn.rnn", () => new URL("./plans/gtcrn.rnn", import.meta.url)) },
  nsnet2: { int8: () => fileUrl("plans/nsnet2_int8.rnn", () => new URL("./plans/nsnet2_int8.rnn", import.meta.url)) },
  silero: {
    int16: () => fileUrl("plans/silero_int16.rnn", () => new URL("./plans/silero_int16.rnn", import.meta.url)),
    int8: () => fileUrl("plans/silero_int8.rnn", () => new URL("./plans/silero_int8.rnn", import.meta.url)),
    float32: () => fileUrl("plans/silero.rnn", () => new URL("./plans/silero.rnn", import.meta.url)),
  },
  wake_word_front: {
    int16: () => fileUrl("plans/wake_word_front_int16.rnn", () => new URL("./plans/wake_word_front_int16.rnn", import.meta.url)),
    int8: () => fileUrl("plans/wake_word_front_int8.rnn", () => new URL("./plans/wake_word_front_int8.rnn", import.meta.url)),
  },
};

const isAddress = (source) => typeof source === "string" || typeof source?.href === "string";

/**
 * The plan of a name, or one's own: {key, source, variant}. `weights` is one of those that the name has, by default the first;
 * `variant` is the module that runs it, if that is known.
 */
export function choosePlan(who, model, weights) {
  const forms = typeof model === "string" && Object.hasOwn(PLANS, model) ? PLANS[model] : null;
  if (!forms) {
    if (typeof model === "string" && !/[./]/.test(model)) {
      throw new TypeError(`${who}: there is no model '${model}'; there are ${Object.keys(PLANS).join(", ")}, or the address of a plan`);
    }
    if (weights !== undefined) throw new TypeError(`${who}: weights are chosen when a plan of your own is exported`);
    return { key: isAddress(model) ? String(model) : model, source: model };
  }
  const form = weights ?? Object.keys(forms)[0];
  if (!Object.hasOwn(forms, form)) {
    throw new TypeError(`${who}: ${model} has no weights '${form}'; it has ${Object.keys(forms).join(", ")}`);
  }
  const file = form === "float32" ? model : `${model}_${form}`;
  // What has small weights runs on builds without fused multiply-adds: no need to load another one first.
  const variant = form === "float32" ? undefined : supportedVariants().find((each) => each !== "relaxed");
  return { key: `${model} ${form}`, source: fileUrl(`plans/${file}.rnn`, forms[form]), variant };
}

const loaded = new Map(); // key -> promise of bytes

/** The bytes of a plan that was chosen, loaded once. */
export function planOf({ key, source }) {
  if (!isAddress(source)) return Promise.resolve(bytesOf(source)).then(planBytes);
  if (!loaded.has(key)) {
    const bytes = bytesOf(source).then(planBytes);
    bytes.catch(() => loaded.delete(key));
    loaded.set(key, bytes);
  }
  return loaded.get(key);
}

/** Loads a plan and the module that runs it, and runs it until the engine has compiled it well, at the rate of a context. */
export async function prepare(chosen, rate) {
  const variant = chosen.variant ?? supportedVariants()[0];
  const [plan, wasm] = await Promise.all([planOf(chosen), compile({ variant, isFull: false })]);
  if (!isAddress(chosen.source)) return;
  const audio = await warmUpAhead(plan, wasm).catch(() => null); // if this module cannot run it, another one will
  if (audio && rate) warmUpResamplers(wasm, audio, rate);
}
