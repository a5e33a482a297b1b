import { Model } from "./webrnn.js";

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

registerProcessor("webrnn", Processor);
