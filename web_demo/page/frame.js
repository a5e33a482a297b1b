// The bar at the top: light or dark, and the part that is in view.

import { symbol } from "./dom.js";

const THEMES = {
  system: ["Colours: as the system has them", "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18"],
  light: [
    "Colours: light",
    "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4",
  ],
  dark: ["Colours: dark", "M20 14.5A8 8 0 0 1 9.500 4a8 8 0 1 0 10.500 10.500z"],
};

function stored() {
  try {
    const theme = localStorage.getItem("theme");
    return Object.hasOwn(THEMES, theme) ? theme : "system";
  } catch {
    return "system"; // storage is switched off
  }
}

export function themeButton(button) {
  const show = (theme) => {
    const [label, path] = THEMES[theme];
    button.replaceChildren(symbol(path));
    button.setAttribute("aria-label", label);
    button.title = label;
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    document.dispatchEvent(new Event("themechange"));
  };
  let theme = stored();
  show(theme);
  button.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    theme = names[(names.indexOf(theme) + 1) % names.length];
    show(theme);
    try {
      localStorage.setItem("theme", theme);
    } catch {
      // it holds until the page is left
    }
  });
}

export function markCurrentPart() {
  const links = new Map([...document.querySelectorAll(".top li a")].map((link) => [link.hash.slice(1), link]));
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) links.get(target.id).setAttribute("aria-current", "true");
        else links.get(target.id).removeAttribute("aria-current");
      }
    },
    { rootMargin: "-45% 0px -50% 0px" },
  );
  for (const id of links.keys()) observer.observe(document.getElementById(id));
}
