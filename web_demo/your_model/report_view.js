// What the optimizer did: figures, what left the loops, and each pass.

import { el } from "../page/dom.js";
import { duration } from "../page/format.js";
import { graphView } from "./graph_view.js";

function tile(title, before, after, note = "") {
  const changed = before !== "" && before !== after;
  return el(
    "div",
    { class: "tile" },
    el("dt", { text: title }),
    el(
      "dd",
      {},
      changed && el("s", { text: before }),
      changed && el("span", { class: "arrow", "aria-label": "becomes", text: "→" }),
      el("b", { text: after }),
    ),
    note && el("dd", { class: "note", text: note }),
  );
}

const readable = (flops) => flops.replaceAll("*", " · ");

function tiles({ report, seconds }) {
  const { before, after, flops } = report;
  const nodes = ({ ops }) => Object.values(ops).reduce((a, b) => a + b, 0);
  const short = ([a, b]) => a.length < 24 && b.length < 24;
  const inLoops = before.loops > 0 && short(flops.inside);
  return el(
    "dl",
    { class: "tiles" },
    tile("Ops", String(before.nodes), String(after.nodes)),
    before.loops + after.loops > 0 &&
      tile("Ops inside loops", String(nodes(before.inside)), String(nodes(after.inside))),
    before.ifs + after.ifs > 0 && tile("Branches", String(before.ifs), String(after.ifs)),
    inLoops &&
      flops.inside[0] !== "0" &&
      tile("FLOPs inside loops", readable(flops.inside[0]), readable(flops.inside[1])),
    tile("Read and optimized in", "", duration(seconds * 1000)),
  );
}

function leftList(left) {
  if (!left.length) return null;
  return el(
    "section",
    { class: "stack" },
    el("h3", { text: "What left the loop" }),
    el(
      "ul",
      { class: "left-list" },
      left.map(({ op, label, loop, why }) =>
        el(
          "li",
          {},
          el("b", { text: op }),
          " ",
          el("code", { text: label.replace("-> ", "") }),
          loop && el("span", { class: "quiet", text: ` of ${loop.split("/").at(-1)}` }),
          el("span", { class: "quiet", text: `: ${why}` }),
        ),
      ),
    ),
  );
}

const KINDS = { matrix: "products", cell: "fused cells", leaves: "leaves the loop", arithmetic: "all else" };

function legend() {
  return el(
    "ul",
    { class: "legend", "aria-label": "Colours" },
    Object.entries(KINDS).map(([kind, text]) => el("li", { class: `node ${kind}`, text })),
  );
}

function passes({ steps }) {
  const busy = steps.filter(({ count }) => count > 0);
  const rows = busy.map(({ name, count, fired, seconds }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row", text: name.replaceAll("_", " ") }),
      el("td", { text: String(count) }),
      el("td", { text: duration(seconds * 1000) }),
      el("td", {
        class: "fired",
        title: fired.join("\n"),
        text: fired.slice(0, 3).join(" · ") + (fired.length > 3 ? " …" : ""),
      }),
    ),
  );
  const head = ["pass", "fired", "time", "on"].map((text) => el("th", { scope: "col", text }));
  return el(
    "details",
    {},
    el("summary", { text: `${busy.length} of ${steps.length} passes found something to do` }),
    el(
      "div",
      { class: "scroll" },
      el("table", { class: "passes" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)),
    ),
  );
}

/** What a model is, in figures; `opened` is what `open` of workbench.py returns. */
export const factsView = (name, opened) =>
  el("div", { class: "stack report" }, el("p", {}, el("strong", { class: "file", text: name })), tiles(opened));

/** What became of it. */
export function reportView(opened) {
  return el(
    "div",
    { class: "stack" },
    leftList(opened.left),
    el("div", { class: "columns" }, graphView("Before", opened.before), graphView("After", opened.after)),
    legend(),
    passes(opened.report),
  );
}
