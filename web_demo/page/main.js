// The page: its frame, and the start of the three parts.

import { supportedVariants } from "../webrnn.js";
import { byId, el, problem } from "./dom.js";
import { bytes } from "./format.js";
import { markCurrentPart, themeButton } from "./frame.js";

const VARIANTS = { relaxed: "relaxed SIMD", simd: "SIMD, 128 bits", scalar: "scalar WebAssembly" };

/** What the server has for this page: see runtime/webrnn/web/site.py. */
async function siteDescription() {
  const response = await fetch(new URL("../site.json", import.meta.url));
  if (!response.ok) throw new Error(`site.json could not be loaded: HTTP ${response.status}`);
  return response.json();
}

function showFacts(site) {
  const facts = [
    ["WebAssembly and its host, compressed", bytes(site.runtime_bytes)],
    ["This browser runs it with", VARIANTS[supportedVariants()[0]]],
    ["Recorded natively on", site.processor],
  ];
  byId("facts").replaceChildren(
    ...facts.filter(([, value]) => value).map(([name, value]) => el("div", {}, el("dt", { text: name }), el("dd", { text: value }))),
  );
  byId("version").textContent = site.version;
}

async function start(name, site) {
  const place = byId(`${name}-app`);
  try {
    const { mount } = await import(`../${name.replace("-", "_")}/${name.replace("-", "_")}.js`);
    mount(place, site);
  } catch (error) {
    place.replaceChildren(problem("This part could not start:", error));
  }
}

themeButton(byId("theme"));
markCurrentPart();
try {
  const site = await siteDescription();
  showFacts(site);
  await Promise.all(["listen", "your-model", "timings"].map((name) => start(name, site)));
  document.documentElement.dataset.ready = "true";
} catch (error) {
  byId("listen-app").replaceChildren(problem("The page could not start:", error));
}
