import * as webrnn from "./webrnn.js";
import { checkLimits } from "./webrnn_limits.js";

const { Model } = webrnn;

class Processor extends AudioWorkletProcessor {
  constructor({ processorOptions: { plan, wasm, carry } }) {
    super();
    try {
      this.stream = Model.loadSync(plan, { wasm }).stream({ carry });
      Model.load(plan, { wasm }).catch((error) => this.port.postMessage(String(error)));
    } catch (error) {
      this.port.postMessage(String(error));
    }
    this.feeds = { x: new Float32Array(128) };
    this.options = { borrow: true };
  }

  process([[input]], [[output]]) {
    if (input) this.feeds.x.set(input);
    else this.feeds.x.fill(0);
    output.set(this.stream.step(this.feeds, this.options).y);
    return true;
  }
}

class LimitsProcessor extends AudioWorkletProcessor {
  constructor({ processorOptions: { plans, wasm } }) {
    super();
    const load = (file, limits) => Model.loadSync(plans[file], { wasm, limits });
    checkLimits(webrnn, load).then(
      (found) => this.port.postMessage(found),
      (error) => this.port.postMessage([String(error)]),
    );
  }

  process() {
    return true;
  }
}

registerProcessor("webrnn", Processor);
registerProcessor("webrnn-limits", LimitsProcessor);
