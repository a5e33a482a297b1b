// The page: starts a measurement in a worker, shows its progress, then the results as a chart and a table.

import { barChart } from "./chart.js";

const byId = (id) => document.getElementById(id);
let worker = null;

function element(name, text, className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function setState(state, status, fraction = 0) {
  document.body.dataset.state = state;
  byId("status").textContent = status;
  byId("progress").value = fraction;
  byId("run").textContent = state === "running" ? "Stop" : "Run again";
}

function finish(state, status) {
  worker.terminate();
  worker = null;
  setState(state, status);
}

const complain = (message) => byId("problems").append(element("p", message));

function fail(message) {
  complain(message);
  finish("failed", "Failed");
}

function start() {
  byId("problems").replaceChildren();
  setState("running", "Starting");
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }) => {
    if (data.progress) setState("running", data.progress.text, data.progress.fraction);
    if (data.error) fail(data.error);
    if (data.results) {
      show(data.results);
      finish(data.results.rows.some((row) => row.ms) ? "done" : "failed", "");
    }
  };
  worker.onerror = (event) => fail(`The worker could not run: ${event.message || "a file of the page is missing"}`);
}

const specOf = (row) => `wasm:${row.variant}`;
const perStep = (ms, model) => (ms * 1000) / model.steps;

function show({ model, native, rows }) {
  for (const row of rows) if (row.error) complain(`${specOf(row)}: ${row.error}`);
  const reference = native.builds[0];
  const measured = rows.filter((row) => row.ms);
  byId("intro").textContent =
    `A GRU, ${model.hidden} wide, ${model.steps} steps, on the same C kernels compiled natively and to WebAssembly.`;
  byId("processor").textContent = ` on ${native.processor}`;
  byId("legend").hidden = byId("results").hidden = false;
  byId("chart").replaceChildren(chart(model, native.builds, measured));
  byId("head").replaceChildren(
    line([
      heading("build"),
      heading("ms per run", "col", "charted"),
      heading("µs per step", "col", "charted"),
      heading("× native"),
      heading("max difference"),
      heading("same bits as native"),
    ]),
  );
  byId("rows").replaceChildren(...rows.map((row) => line(cells(row, model, reference))));
}

function chart(model, builds, measured) {
  const value = (ms) => `${ms.toFixed(2)} ms · ${perStep(ms, model).toFixed(1)} µs/step`;
  return barChart("Milliseconds of one run", [
    ...builds.map(({ spec, ms, call_ms: calls }) => ({
      label: spec,
      value: value(ms),
      parts: [{ size: ms - calls, className: "native" }, { size: calls, className: "calls" }],
    })),
    ...measured.map((row) => ({
      label: specOf(row),
      value: value(row.ms),
      parts: [{ size: row.ms, className: "wasm" }],
    })),
  ]);
}

function line(children) {
  const row = document.createElement("tr");
  row.append(...children);
  return row;
}

function heading(text, scope = "col", className = "") {
  const cell = element("th", text, className);
  cell.scope = scope;
  return cell;
}

function cells(row, model, reference) {
  const name = heading(specOf(row), "row");
  if (!row.ms) {
    const reason = element("td", row.unsupported ? "this browser does not support it" : "failed");
    reason.colSpan = 5;
    return [name, reason];
  }
  const { difference } = row.against.find(({ spec }) => spec === reference.spec);
  const twins = row.against.filter(({ identical }) => identical).map(({ spec }) => spec.split(":")[1]);
  return [
    name,
    element("td", row.ms.toFixed(2), "charted"),
    element("td", perStep(row.ms, model).toFixed(1), "charted"),
    element("td", (row.ms / (reference.ms - reference.call_ms)).toFixed(2)),
    element("td", difference === 0 ? "0" : difference.toExponential(1)),
    twins.length ? element("td", `✓ ${twins.join(", ")}`, "good") : element("td", "none"),
  ];
}

byId("run").addEventListener("click", () => (worker ? finish("stopped", "Stopped") : start()));
start();
