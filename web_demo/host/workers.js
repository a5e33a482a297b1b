// Workers of a page or of Node.

import { notLoaded } from "./files.js";

/** What a worker may run: a page runs only scripts of its own origin, unless one of these imports the other. */
function scriptOf(url) {
  if (url.origin === globalThis.location?.origin || url.protocol === "file:") return url;
  return URL.createObjectURL(new Blob([`import ${JSON.stringify(url.href)};`], { type: "text/javascript" }));
}

/** A worker that runs the script: `hears(message)`, and `dies(reason)` once. */
export function startWorker(url, hears, dies) {
  if (globalThis.Worker) {
    const script = scriptOf(url);
    const worker = new Worker(script, { type: "module" });
    worker.onmessage = ({ data }) => hears(data);
    worker.onerror = (event) => {
      event.preventDefault?.();
      dies(event.message || `its script ${notLoaded(url, "see the console")}`);
    };
    worker.onmessageerror = () => dies("a message could not be read");
    return worker;
  }
  const { Worker: Thread } = globalThis.process.getBuiltinModule("node:worker_threads");
  const worker = new Thread(url);
  worker.on("message", hears);
  worker.on("error", (error) => dies(error.message));
  worker.on("exit", () => dies("it has ended"));
  return worker;
}
