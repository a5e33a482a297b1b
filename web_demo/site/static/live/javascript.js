// JavaScript for the examples of the docs: the code runs as a module of this worker, on the VM that the playground has.

import { answer } from "../../playground/page/remote.js";

const HOST = new URL("../../playground/host/", import.meta.url);
const ENTRIES = { webrnn: "webrnn.js", "webrnn/pool": "pool.js" };
const SHOWN = 12;

function text(value) {
  if (typeof value === "string") return value;
  if (ArrayBuffer.isView(value)) {
    const items = [...value.subarray(0, SHOWN)].map((item) => (Number.isInteger(item) ? item : Number(item.toPrecision(6))));
    return `${value.constructor.name}(${value.length}) [${items.join(", ")}${value.length > SHOWN ? ", …" : ""}]`;
  }
  if (value instanceof Map) return `Map ${text(Object.fromEntries(value))}`;
  if (Array.isArray(value)) return `[${value.map(text).join(", ")}]`;
  if (value && typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype)
    return `{ ${Object.entries(value)
      .map(([key, item]) => `${key}: ${text(item)}`)
      .join(", ")} }`;
  return String(value);
}

/** The package's names become addresses: a worker has no import map. */
const addressed = (code) =>
  code.replace(/(\bfrom\s*)"(webrnn[\w/]*)"/g, (found, from, name) =>
    ENTRIES[name] ? `${from}"${new URL(ENTRIES[name], HOST)}"` : found,
  );

answer({
  async run({ code }, progress) {
    progress("state", "Running");
    const write = (...values) => progress("output", `${values.map(text).join(" ")}\n`);
    for (const name of ["log", "info", "warn", "error"]) console[name] = write;
    const address = URL.createObjectURL(new Blob([addressed(code)], { type: "text/javascript" }));
    try {
      await import(address);
      return {};
    } catch (error) {
      return { error: `${error.name}: ${error.message}` };
    } finally {
      URL.revokeObjectURL(address);
    }
  },
});
