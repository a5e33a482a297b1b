// Hosts the VM of webrnn: runs plan files (.rnn) in a page, a worker, an AudioWorklet or Node. Types: webrnn.d.ts.
//
//   const model = await Model.load("denoise.rnn");
//   const { y } = model.run({ x: new Float32Array(256) }); // a new array
//   const stream = model.stream(); // with the states that were chosen at export, or { carry: { h_in: "h_out" } }
//   const { y } = stream.step({ x: frame }, { borrow: true }); // synchronous; a view, overwritten by the next step
//   const pool = model.pool({ maxStreams: 64 }); // many streams in one run, of a plan that was exported with pool=True

import { Heap, imports } from "./heap.js";
import { Progress, chooseVariant, compile, firstModule, place } from "./instance.js";
import { Model, allLimits, pools } from "./model.js";
import { otherModule } from "./plan_file.js";

export { setFiles } from "./files.js";
export { supportedVariants } from "./instance.js";
export { Model } from "./model.js";
export { LimitError, ModelError, PlanError, ShapeError, StreamError, WebrnnError } from "./plan_file.js";

Model.load = async function load(source, { variant, module: kind, wasm, onProgress, limits } = {}) {
  const bounds = allLimits(limits);
  let chosen = firstModule(wasm ? variant : chooseVariant(variant), kind);
  const progress = onProgress && new Progress(onProgress);
  const heap = new Heap();
  const [plan, first] = await Promise.all([place(source, heap, progress), compile(chosen, { wasm, progress })]);
  for (let module = first; ; module = await compile(chosen, { progress })) {
    const instance = await WebAssembly.instantiate(module, imports(heap.memory));
    try {
      const model = new Model(plan, heap, instance, chosen.variant, bounds);
      // Where import() is not allowed, such as in a service worker, pools have to be imported as other modules are.
      if (model.isPool && !pools.make) await import("./pool.js").catch(() => {});
      return model;
    } catch (error) {
      if (wasm) throw error;
      chosen = otherModule(chosen, error);
    }
  }
};
