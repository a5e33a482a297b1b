// Where it is not sure which output becomes which input: why, and a field to name the pairs.

import { el } from "../page/dom.js";

/** {input: output} of "h_in=h_out c_in=c_out". */
function pairsOf(text, { inputs, outputs }) {
  const named = (ports, name) => ports.some((port) => port.name === name);
  const pairs = text.split(/[\s,]+/).filter(Boolean).map((pair) => pair.split("="));
  for (const [before, after] of pairs) {
    if (!named(inputs, before)) throw new Error(`there is no input '${before}'`);
    if (!named(outputs, after)) throw new Error(`there is no output '${after}'`);
  }
  return Object.fromEntries(pairs);
}

/** Nothing for a model whose states are sure; `onChoose(pairs)` gets a function that gives the pairs or raises. */
export function statesView(model, onChoose) {
  const { unsure, states } = model;
  if (!unsure) return "";
  const text = Object.entries(states).map((pair) => pair.join("="));
  const field = el("input", { type: "text", value: text.join(" "), placeholder: "h_in=h_out", "aria-label": "States" });
  const use = () => onChoose(() => pairsOf(field.value, model));
  return el(
    "div",
    { class: "stack unsure" },
    el("p", { class: "note", text: unsure }),
    el("div", { class: "row" }, field, el("button", { class: "button", type: "button", text: "Carry these", click: use })),
  );
}
