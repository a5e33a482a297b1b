// What a run gave: each output in figures and as a picture, how long it took, and whether Python and the bare VM agree.

import { el } from "../page/dom.js";
import { difference, duration, shape, significant } from "../page/format.js";
import { heatmapOf, lineOf, range } from "../page/plots.js";
import { count } from "./arrays.js";

const MOST_PIXELS = 2 ** 20;
const FEWEST_ROWS = 8; // of a picture; fewer are one line

/** The largest difference between two sets of outputs, and whether all bits are the same. */
export function compareOutputs(a, b) {
  let most = 0;
  let identical = a.length === b.length;
  for (const [i, { data, name }] of a.entries()) {
    const other = b[i];
    if (other?.name !== name || other.data.length !== data.length) return { difference: Infinity, identical: false };
    const bytes = (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    const [mine, theirs] = [bytes(data), bytes(other.data)];
    identical &&= mine.length === theirs.length && mine.every((byte, at) => byte === theirs[at]);
    for (let at = 0; at < data.length; at++) most = Math.max(most, Math.abs(Number(data[at]) - Number(other.data[at])));
  }
  return { difference: most, identical };
}

function picture({ name, data, shape: sizes }) {
  if (data.length < 2 || data.length > MOST_PIXELS) return null;
  const columns = sizes.at(-1) ?? 1;
  const rows = count(sizes) / columns;
  if (rows >= FEWEST_ROWS && columns > 1)
    return heatmapOf(data, rows, columns, `${name}: ${rows} rows of ${columns} values`);
  return lineOf(data, `${name}: ${data.length} values`);
}

function outputView(output) {
  const { name, type, data, shape: sizes } = output;
  const figures = () => {
    const { low, high, mean } = range(data);
    return `${significant(low)} to ${significant(high)}, mean ${significant(mean)}`;
  };
  const text = data.length === 0 ? "empty" : data.length === 1 ? significant(Number(data[0])) : figures();
  return el(
    "li",
    { class: "output" },
    el(
      "div",
      { class: "row spread" },
      el(
        "span",
        {},
        el("code", { class: "port", text: name }),
        el("span", { class: "quiet small", text: ` ${type} ${shape(sizes)}` }),
      ),
      el("span", { class: "small mono", text }),
    ),
    picture(output),
  );
}

/** `runs` are {label, ms}; `agreement` is what compareOutputs gave, or null if there is only one run. */
export function resultsView(outputs, runs, agreement) {
  const times = runs.map(({ label, ms }) =>
    el("div", { class: "tile" }, el("dt", { text: label }), el("dd", {}, el("b", { text: duration(ms) }))),
  );
  const verdict =
    agreement &&
    el(
      "div",
      { class: "tile", "data-identical": String(agreement.identical) },
      el("dt", { text: "Both results" }),
      el(
        "dd",
        {},
        el("b", {
          class: agreement.difference < 1e-3 ? "good-text" : "bad-text",
          text: agreement.identical
            ? "the same bits"
            : agreement.difference < 1e-3
              ? `agree to ${difference(agreement.difference)}`
              : `differ by ${difference(agreement.difference)}`,
        }),
      ),
    );
  return el(
    "div",
    { class: "stack" },
    el("dl", { class: "tiles" }, times, verdict),
    el("ul", { class: "outputs" }, outputs.map(outputView)),
  );
}
