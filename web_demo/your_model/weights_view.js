// A choice of the form of weights, with the size of the plan beside each, and what stays float32.

import { el } from "../page/dom.js";
import { bytes as bytesText } from "../page/format.js";

const TITLES = { f32: "float32", f16: "float16", int16: "int16", int8: "int8" };
const FEWEST_FOLDED = 4; // nodes; fewer are listed at once

/** The size of the plan as it is; those with other weights are not quite exact. */
function sizeText(sizes, form, chosen) {
  if (sizes[form] === undefined) return null;
  return el("span", { class: "quiet", text: ` ${form === chosen ? "" : "≈ "}${bytesText(sizes[form])}` });
}

function keptList(kept) {
  const list = el(
    "ul",
    { class: "kept-list" },
    kept.map(({ name, op, reason }) =>
      el(
        "li",
        {},
        el("b", { text: op }),
        " ",
        el("code", { text: name }),
        el("span", { class: "quiet", text: `: ${reason}` }),
      ),
    ),
  );
  if (kept.length < FEWEST_FOLDED) return list;
  return el("details", {}, el("summary", { text: `${kept.length} nodes stay float32` }), list);
}

function said({ form, nodes, kept, bytes: [before, after] }) {
  if (form === "f32")
    return "Smaller weights are a smaller download, and quicker where a model is large. Results change a little.";
  const small = nodes - kept.length;
  const stays = kept.length > 0 ? ` ${kept.length === 1 ? "One stays" : `${kept.length} stay`} float32:` : "";
  const sizes = `${bytesText(before)} became ${bytesText(after)}`;
  return `The weights of ${small} of ${nodes} nodes are ${TITLES[form]}: ${sizes}.${stays}`;
}

/** `weights` is what `open` of workbench.py says of them; `onChoose(form)` opens the model again. */
export function weightsView(weights, onChoose) {
  const { form: chosen, sizes, kept } = weights;
  return el(
    "section",
    { class: "stack weights" },
    el("h3", { text: "Weights" }),
    el(
      "div",
      { class: "chips", role: "group", "aria-label": "Weights, and the size of the plan" },
      Object.entries(TITLES).map(([form, title]) =>
        el(
          "button",
          {
            class: "chip",
            type: "button",
            "aria-pressed": String(form === chosen),
            "data-weights": form,
            click: () => form !== chosen && onChoose(form),
          },
          title,
          sizeText(sizes, form, chosen),
        ),
      ),
    ),
    el("p", { class: "note", role: "status", text: said(weights) }),
    kept.length > 0 && keptList(kept),
  );
}
