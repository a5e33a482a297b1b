// Pyodide with webrnn, and workbench.py on top of it: calls go through workbench.call(name, JSON, buffers).

import { download, downloadJson } from "../page/files.js";
import { bytes } from "../page/format.js";
import { answer } from "../page/remote.js";

const FOLDER = new URL("../pyodide/", import.meta.url);

/** Lets `report` know of everything that is fetched, as it comes. */
function watchDownloads(report) {
  const plain = globalThis.fetch;
  let received = 0;
  globalThis.fetch = async (...request) => {
    const response = await plain(...request);
    if (!response.body) return response;
    const counting = new TransformStream({
      transform(part, controller) {
        received += part.length;
        report(received);
        controller.enqueue(part);
      },
    });
    return new Response(response.body.pipeThrough(counting), response);
  };
  return () => (globalThis.fetch = plain);
}

async function boot(progress) {
  const { pyodide: size } = await downloadJson("site.json");
  if (!size) throw new Error("this site was put together without Pyodide");
  const stop = watchDownloads((received) => {
    const done = Math.min(received, size.bytes);
    if (done < size.bytes)
      progress(`Downloading Python: ${bytes(done)} of ${bytes(size.bytes)}`, (0.8 * done) / size.bytes);
  });
  progress("Downloading Python", 0);
  const { loadPyodide } = await import(new URL("pyodide.mjs", FOLDER));
  const pyodide = await loadPyodide({ indexURL: FOLDER.href });
  progress("Loading numpy and webrnn", 0.8);
  await pyodide.loadPackage("webrnn", { messageCallback: () => {} });
  stop();
  progress("Starting webrnn", 0.95);
  pyodide.FS.writeFile("/home/pyodide/workbench.py", await download("python/workbench.py"));
  const workbench = pyodide.pyimport("workbench");
  return { workbench, pyodide };
}

let booting = null;

/** Only one start at a time, and another try after one that failed. */
function started(progress) {
  booting ??= boot(progress).catch((error) => {
    booting = null;
    throw error;
  });
  return booting;
}

async function call(name, request, buffers, progress) {
  const { workbench, pyodide } = await started(progress);
  progress(request.saying ?? "Working", null);
  const given = pyodide.toPy(buffers);
  const returned = workbench.call(name, JSON.stringify(request), given);
  const [text, found] = returned.toJs();
  returned.destroy();
  given.destroy();
  const { error, ...result } = JSON.parse(text);
  if (error) throw Object.assign(new Error(error.message), error);
  return { ...result, buffers: found, transfer: found.map(({ buffer }) => buffer) };
}

const dataOf = (feeds) => feeds.map(({ data }) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
const described = (feeds) => feeds.map(({ name, type = "float32", shape }) => ({ name, type, shape }));

answer({
  start: async (_, progress) => {
    await started(progress);
  },
  open: ({ bytes: file, ...request }, progress) =>
    call("open", { saying: "Reading and optimizing the model", ...request }, [file], progress),
  run: ({ feeds, ...request }, progress) =>
    call("run", { saying: "Running", ...request, feeds: described(feeds) }, dataOf(feeds), progress),
  effect: ({ bytes: file, ...request }, progress) =>
    call("effect", { saying: "Reading the amp and writing its plan", ...request }, [file], progress),
  guess: (request, progress) => call("guess", { saying: "Looking for sizes with which it runs", ...request }, [], progress),
  plan: (request, progress) => call("plan", { saying: "Writing the plan", ...request }, [], progress),

  /** The same as the functions of timings/worker.js. */
  async prepare({ engine, names, pace, plan, onnx, feeds }, progress) {
    const request = { saying: "Warming up", engine, names, pace, feeds: described(feeds) };
    const { buffers } = await call("prepare", request, [engine === "numpy" ? onnx : plan, ...dataOf(feeds)], progress);
    return { results: new Float32Array(buffers[0].slice().buffer) };
  },
  slice: async ({ engine }, progress) => {
    const { ms } = await call("measure", { engine }, [], progress);
    return { ms };
  },
  clear: async (_, progress) => {
    await call("clear", {}, [], progress);
  },
});
