// Pools in several workers, in a page; each function gives what was wrong.

import { check, dies, misuse } from "./worker_pool_cases.js";

const started = [];
const { Worker: Plain } = globalThis;
globalThis.Worker = class extends Plain {
  constructor(...given) {
    super(...given);
    started.push(this);
  }

  postMessage(message, transfer) {
    if (message.act === "load") this.isShared = message.plan.buffer instanceof SharedArrayBuffer;
    super.postMessage(message, transfer);
  }
};
if (!globalThis.SharedArrayBuffer) globalThis.SharedArrayBuffer = class {}; // nothing is one

const { WorkerPool } = await import("./worker_pool.js");
const webrnn = await import("./webrnn.js");
const url = (file) => new URL(`cases/${file}`, import.meta.url);
const read = async (file) => new Uint8Array(await (await fetch(url(file))).arrayBuffer());
const load = (name, options) => WorkerPool.load(url(`${name}.rnn`), options);

export async function results() {
  const found = [];
  for (const name of ["gru", "strided", "plain"]) found.push(...(await check(load, name, read)));
  const isShared = started.every((worker) => worker.isShared === crossOriginIsolated);
  if (!isShared) found.push(`isolated: ${crossOriginIsolated}, shared: ${started.map((worker) => worker.isShared)}`);
  return found;
}

export const terminated = () => dies(load, webrnn, read, () => started.at(-1).terminate());

/** Its script raises where nothing catches it. */
export const broken = () =>
  dies(load, webrnn, read, () => {
    const worker = started.at(-1);
    worker.dispatchEvent(new ErrorEvent("error", { message: "out of memory" }));
  });

export const misused = () => misuse(load, webrnn);
