// What is measured: in which worker, and how it is shown.

import { supportedVariants } from "../host/webrnn.js";

const ENGINES = [
  { id: "relaxed", label: "wasm, relaxed SIMD", where: "wasm" },
  { id: "simd", label: "wasm, SIMD", where: "wasm" },
  { id: "scalar", label: "wasm, scalar", where: "wasm" },
  { id: "pyodide", label: "webrnn in Pyodide", where: "python" },
  { id: "numpy", label: "numpy in Pyodide", where: "python" },
  { id: "peer", label: "onnxruntime-web", where: "wasm" },
];

/** The engines that can run here, and for the others why not. */
export function enginesOf(site) {
  const variants = supportedVariants();
  const reason = ({ id, where }) => {
    if (where === "python" && !site.pyodide) return "Pyodide is not part of this site";
    if (id === "peer") return site.peer ? null : "not installed";
    if (where === "wasm" && !variants.includes(id)) return "not supported by this browser";
    return null;
  };
  return ENGINES.map((engine) => ({ ...engine, missing: reason(engine) }));
}
