// Inside a worker: calls of the thread that started it, each answered with a result or an error.

import { described } from "./thread_errors.js";

const port = globalThis.process?.getBuiltinModule?.("node:worker_threads").parentPort ?? globalThis;

function buffersOf(part, found = []) {
  if (ArrayBuffer.isView(part)) found.push(part.buffer);
  else if (part && typeof part === "object") for (const each of Object.values(part)) buffersOf(each, found);
  return found;
}

/** Answers {number, act, ...given} with what `acts[act](given)` returns; its arrays are sent without a copy. */
export function answer(acts, { number, act, ...given }) {
  let reply;
  try {
    reply = { number, result: acts[act](given) };
  } catch (error) {
    reply = { number, error: described(error) };
  }
  port.postMessage(reply, [...new Set(buffersOf(reply.result))]);
}

/** Calls `hear` with each message. */
export function listen(hear) {
  if (port === globalThis) globalThis.onmessage = ({ data }) => hear(data);
  else port.on("message", hear);
}
