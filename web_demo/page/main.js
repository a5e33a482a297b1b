// The page: its frame, and the start of its parts.

import { supportedVariants } from "../host/webrnn.js";
import { byId, el, problem } from "./dom.js";
import { downloadJson } from "./files.js";
import { bytes } from "./format.js";
import { markCurrentPart, themeButton } from "./frame.js";

const VARIANTS = { relaxed: "relaxed SIMD", simd: "SIMD, 128 bits", scalar: "scalar WebAssembly" };

function showFacts(site) {
  const facts = [
    ["WebAssembly and its host, compressed", bytes(site.runtime_bytes)],
    ["This browser runs it with", VARIANTS[supportedVariants()[0]]],
    ["Recorded natively on", site.processor],
  ];
  byId("facts").replaceChildren(
    ...facts
      .filter(([, value]) => value)
      .map(([name, value]) => el("div", {}, el("dt", { text: name }), el("dd", { text: value }))),
  );
  byId("version").textContent = site.version;
}

/** Starts a part, with what it needs of others; returns what its `mount` does. */
async function start(name, site, ...others) {
  const place = byId(`${name}-app`);
  try {
    const folder = name.replace("-", "_");
    const { mount } = await import(`../${folder}/${folder}.js`);
    return mount(place, site, ...others);
  } catch (error) {
    place.replaceChildren(problem("This part could not start:", error));
    return null;
  }
}

themeButton(byId("theme"));
markCurrentPart();
try {
  const site = await downloadJson("site.json"); // what there is: see runtime/webrnn/demo/site.py
  showFacts(site);
  const listening = await start("listen", site);
  await Promise.all([start("amp", site), start("learn", site), start("your-model", site, listening), start("timings", site)]);
  document.documentElement.dataset.ready = "true";
} catch (error) {
  byId("listen-app").replaceChildren(problem("The page could not start:", error));
}
