// Controls with a label above them.

import { el } from "../page/dom.js";

const labelled = (label, ...controls) => el("label", { class: "field" }, el("span", { text: label }), ...controls);

/** A select; `options` are [value, text]. */
export function choice(label, options, change) {
  const select = el(
    "select",
    { change },
    options.map(([value, text]) => el("option", { value, text })),
  );
  return { select, element: labelled(label, select) };
}

/** A slider in decibels, with its value beside the label; `change(decibels)` is called as it moves. */
export function decibels(label, { min, max, value }, change) {
  const text = el("output", { text: `${value} dB` });
  const input = el("input", {
    type: "range",
    min: String(min),
    max: String(max),
    step: "1",
    value: String(value),
    "aria-label": label,
    "aria-valuetext": `${value} dB`,
    input: () => {
      text.textContent = `${input.value} dB`;
      input.setAttribute("aria-valuetext", text.textContent);
      change(Number(input.value));
    },
  });
  return { input, element: el("label", { class: "field slider" }, el("span", {}, `${label} `, text), input) };
}
