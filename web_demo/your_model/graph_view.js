// A graph as a listing: one line a node in the order in which they run, loops and branches as blocks.

import { el } from "../page/dom.js";
import { shape } from "../page/format.js";

const LONGEST_RUN = 6; // of one kind of lines that say little, before they are folded

function line(node) {
  const name = node.label.startsWith("-> ") ? node.label.slice(3) : node.label;
  return el(
    "li",
    { class: `node ${node.kind}${node.leaves ? " leaves" : ""}` },
    el("b", { text: node.op }),
    el("span", { class: "label", title: name, text: name.split("/").slice(-2).join("/") }),
    node.leaves && el("span", { class: "badge left", text: "leaves the loop" }),
    node.shape && el("code", { title: shape(node.shape), text: shape(node.shape) }),
  );
}

function block(node) {
  const loops = node.kind === "loop";
  return el(
    "li",
    { class: `block ${node.kind}` },
    el(
      "p",
      { class: "block-title" },
      el("b", { text: loops ? "Loop" : "If" }),
      el("span", { class: "label", title: node.label, text: node.label.split("/").slice(-2).join("/") }),
    ),
    node.blocks.map(({ title, nodes }) =>
      el("div", {}, el("p", { class: "small quiet", text: title }), listing(nodes)),
    ),
  );
}

/** Long runs of ops that only rearrange are one line that opens. */
function listing(nodes) {
  const items = [];
  for (let i = 0; i < nodes.length;) {
    let end = i;
    while (end < nodes.length && nodes[end].kind === "shape" && !nodes[end].leaves) end++;
    if (end - i > LONGEST_RUN) {
      items.push(
        el(
          "li",
          { class: "node folded" },
          el(
            "details",
            {},
            el("summary", { text: `${end - i} ops that rearrange` }),
            el("ul", {}, nodes.slice(i, end).map(line)),
          ),
        ),
      );
      i = end;
    } else {
      items.push(nodes[i].blocks ? block(nodes[i]) : line(nodes[i]));
      i++;
    }
  }
  return el("ul", { class: "graph" }, items);
}

/** One of the two columns. */
export function graphView(title, graph) {
  return el(
    "section",
    { class: "listing", "aria-label": `Graph ${title.toLowerCase()}` },
    el("header", {}, el("h4", { text: title }), el("span", { class: "quiet small", text: `${graph.total} ops` })),
    el(
      "div",
      { class: "listing-body", tabindex: "0", role: "group", "aria-label": `Ops ${title.toLowerCase()}` },
      listing(graph.nodes),
      graph.hidden > 0 && el("p", { class: "note", text: `and ${graph.hidden} more` }),
    ),
  );
}
