// The AudioWorkletProcessor "recorder": posts what comes to its inputs, sample by sample.

const QUANTA = 32; // in one message

class Recorder extends AudioWorkletProcessor {
  #samples = null;
  #filled = 0;

  process(inputs, outputs) {
    const size = outputs[0][0].length;
    this.#samples ??= { frame: currentFrame, channels: inputs.map(() => new Float32Array(QUANTA * size)) };
    inputs.forEach(([channel], i) => channel && this.#samples.channels[i].set(channel, this.#filled));
    this.#filled += size;
    if (this.#filled === QUANTA * size) {
      this.port.postMessage(this.#samples);
      this.#samples = null;
      this.#filled = 0;
    }
    return true;
  }
}

registerProcessor("recorder", Recorder);
