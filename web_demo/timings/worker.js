// Measures plans on the VM, and models on onnxruntime-web, outside the page's own thread.

import { answer } from "../page/remote.js";
import { Model } from "../host/webrnn.js";
import { timed, warmUp } from "./clock.js";
import { joined } from "./compare.js";

const contestants = new Map(); // engine -> {run, count}

async function onVm({ engine, plan, feeds }) {
  const model = await Model.load(plan, { variant: engine });
  const named = Object.fromEntries(feeds.map(({ name, data }) => [name, data]));
  const options = { borrow: true };
  return { run: () => model.run(named, options), results: (found, names) => names.map((name) => found[name].slice()) };
}

let peer = null;

async function onPeer({ onnx, feeds }) {
  const folder = new URL("../onnxruntime-web/", import.meta.url);
  if (!peer) {
    peer = await import(new URL("ort.wasm.min.mjs", folder));
    Object.assign(peer.env.wasm, { numThreads: 1, wasmPaths: folder.href });
  }
  const session = await peer.InferenceSession.create(onnx, { executionProviders: ["wasm"] });
  const named = Object.fromEntries(
    feeds.map(({ name, shape, data }) => [name, new peer.Tensor("float32", data, shape)]),
  );
  return {
    run: () => session.run(named),
    results: (found, names) => names.map((name) => found[name].data),
    end: () => session.release(),
  };
}

answer({
  /** Loads, runs once and warms up; the results of the run are returned. */
  async prepare({ engine, names, pace, ...model }, progress) {
    progress(engine === "peer" && !peer ? "Downloading and compiling onnxruntime-web" : "Compiling and warming up");
    const contestant = engine === "peer" ? await onPeer({ ...model }) : await onVm({ engine, ...model });
    const results = joined(contestant.results(await contestant.run(), names));
    contestant.count = await warmUp(contestant.run, pace);
    contestants.set(engine, contestant);
    return { results };
  },

  async slice({ engine }) {
    const { run, count } = contestants.get(engine);
    await run(); // its weights are in the caches again
    return { ms: (await timed(run, count)) / count };
  },

  async clear() {
    for (const { end } of contestants.values()) await end?.();
    contestants.clear();
  },
});
