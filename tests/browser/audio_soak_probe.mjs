// The AudioWorkletProcessor "probe": for each second of sound a sum over the bits of each channel that comes to it, and how
// large the WebAssembly memories of this thread are. It has to be added before what makes the memories.

const memories = [];
WebAssembly.Memory = class extends WebAssembly.Memory {
  constructor(...given) {
    super(...given);
    memories.push(this);
  }
};

class Probe extends AudioWorkletProcessor {
  #seconds;
  #channels;
  #sums; // one a channel
  #at = 0; // in this second
  #message;

  constructor({ processorOptions: { channels, seconds } }) {
    super();
    this.#seconds = seconds;
    this.#channels = channels;
    this.#sums = new Int32Array(channels);
    this.#message = { sums: this.#sums, pages: 0, memories: 0 };
  }

  process(inputs) {
    if (!this.#seconds) return false;
    const given = inputs[0];
    const length = given[0]?.length ?? 128; // nothing comes before the source begins
    for (let channel = 0; channel < this.#channels; channel++) {
      if (given[channel]) this.#sums[channel] = this.#sum(this.#sums[channel], given[channel]);
    }
    this.#at += length;
    if (this.#at >= sampleRate) this.#post();
    return true;
  }

  #bits = null;
  #samples = null;

  /** Words times odd numbers: no other bit in one word leaves the sum as it is. */
  #sum(sum, samples) {
    if (this.#samples?.length !== samples.length) {
      this.#samples = new Float32Array(samples.length);
      this.#bits = new Int32Array(this.#samples.buffer);
    }
    this.#samples.set(samples);
    let factor = 2 * this.#at + 1;
    for (let i = 0; i < this.#bits.length; i++, factor += 2) sum = (sum + Math.imul(this.#bits[i], factor)) | 0;
    return sum;
  }

  #post() {
    let bytes = 0;
    for (let i = 0; i < memories.length; i++) bytes += memories[i].buffer.byteLength;
    this.#message.pages = bytes / 65536;
    this.#message.memories = memories.length;
    this.port.postMessage(this.#message);
    this.#sums.fill(0);
    this.#at = 0;
    this.#seconds--;
  }
}

registerProcessor("probe", Probe);
