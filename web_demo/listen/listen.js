import { el } from "../page/dom.js";
export function mount(place) {
  place.replaceChildren(el("p", { text: "…" }));
}
