// Making and finding elements.

export const byId = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";

/** An element: attributes by name, functions as listeners ({click: ...}), `text`, and children (nodes, strings, or nothing). */
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else if (key === "text") element.textContent = value;
    else if (key in element && typeof value !== "string") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A small symbol from a path of a 24 x 24 square. */
export const symbol = (path) => svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: path }));

/** A figure with its title above it and a note below. */
export const tile = (title, value, note) =>
  el("div", { class: "tile" }, el("dt", { text: title }), el("dd", {}, value), el("dd", { class: "note" }, note));

/** A message that a person can act on: what did not work, why, and what to try next. */
export function problem(title, error, next = "") {
  return el(
    "div",
    { class: "problem", role: "alert" },
    el("p", {}, el("strong", { text: title }), ` ${error.message ?? error}`),
    next && el("p", { class: "next" }, el("b", { text: "Try next: " }), next),
  );
}
