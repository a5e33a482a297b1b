// What every page has: colours, the list of pages, and the search.

import { search } from "./search.js";

const THEMES = {
  system: ["Colours: as the system has them", "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18"],
  light: ["Colours: light", "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2.500v2M12 19.500v2M2.500 12h2M19.500 12h2"],
  dark: ["Colours: dark", "M20 14.500A8 8 0 0 1 9.500 4a8 8 0 1 0 10.500 10.500z"],
};

function themeButton(button) {
  const root = document.documentElement;
  const show = () => {
    const [label, path] = THEMES[root.dataset.theme ?? "system"];
    button.innerHTML = `<svg viewBox="0 0 24 24" aria-hidden="true"><path d="${path}"/></svg>`;
    button.setAttribute("aria-label", label);
    button.title = label;
  };
  show();
  button.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    const next = names[(names.indexOf(root.dataset.theme ?? "system") + 1) % names.length];
    if (next === "system") delete root.dataset.theme;
    else root.dataset.theme = next;
    show();
    try {
      localStorage.setItem("theme", next);
    } catch {
      // it holds until the page is left
    }
  });
}

/** On a narrow screen the list of pages is folded. */
function unfold(button) {
  button.addEventListener("click", () => {
    button.setAttribute("aria-expanded", button.getAttribute("aria-expanded") !== "true");
  });
}

/** The heading that is in view, in the list beside the page. */
function markHeading() {
  const links = new Map(
    [...document.querySelectorAll(".contents a")].map((link) => [decodeURIComponent(link.hash.slice(1)), link]),
  );
  if (!links.size) return;
  const seen = new Set();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target.id);
      const first = [...links.keys()].find((id) => seen.has(id));
      if (first === undefined) return;
      for (const [id, link] of links) link.toggleAttribute("aria-current", id === first);
    },
    { rootMargin: "-60px 0px -60% 0px" },
  );
  for (const id of links.keys()) observer.observe(document.getElementById(id));
}

themeButton(document.getElementById("theme"));
unfold(document.getElementById("pages"));
markHeading();
search(document.getElementById("search"), document.getElementById("found"), document.getElementById("found-count"));
document.documentElement.dataset.ready = "true";
