// A one-layer GRU put together from kernels: what prepare.py runs natively, call for call.

const NO_CLIP = [Infinity, 0, 0, 0, 0]; // clip threshold, then alpha and beta of both activations

export class Gru {
  #input;
  #recurrent;
  #steps;

  /** `model` is model.json, `weights` the Float32Array that its tensors are in. */
  constructor(kernels, model, weights) {
    const { hidden, inputs, steps, tensors, activations } = model;
    const { gemm, gemv, gru_cell, pack_panels } = kernels.call;
    const gates = 3 * hidden;
    const load = (name) => {
      const { start, length } = tensors[name];
      if (start + length > weights.length) throw new RangeError(`the weights end before tensor ${name} does`);
      return kernels.buffer(weights.subarray(start, start + length));
    };
    const pack = (name, columns) => {
      const packed = kernels.empty(model.packed[name]);
      pack_panels(load(name), packed, gates, columns, columns, 1);
      return packed;
    };
    const [x, w, r, wb, rb] = [load("x"), pack("w", inputs), pack("r", hidden), load("wb"), load("rb")];
    const [params, xw, hw] = [kernels.buffer(NO_CLIP), kernels.empty(steps * gates), kernels.empty(gates)];
    this.states = kernels.empty(steps * hidden);

    let h = kernels.empty(hidden);
    this.#steps = [];
    for (let t = 0; t < steps; t++) {
      const next = this.states.part(t * hidden, hidden);
      this.#steps.push([xw.part(t * gates, gates), h, next]);
      h = next;
    }
    this.#input = () => gemm(x, w, wb, xw, steps, gates, inputs, inputs, gates, 0, 0, 0);
    this.#recurrent = (xwAtStep, state, next) => {
      gemv(r, state, rb, hw, gates, hidden);
      gru_cell(xwAtStep, hw, state, next, 1, hidden, activations, params);
    };
  }

  /** One run over all steps; `states.array` then holds the state after each. */
  run() {
    this.#input();
    for (const step of this.#steps) this.#recurrent(...step);
  }
}
