// The audio processor in Node: what a test of it needs. The first argument is the file URL of a folder with the host, and audio/ in it.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

export const base = process.argv[2];
export const bytes = async (file) => new Uint8Array(await readFile(new URL(file, base)));
export const floats = async (file) => new Float32Array((await bytes(file)).buffer);
export const wasm = await WebAssembly.compile(await bytes("wasm_relaxed.wasm"));

// --- an AudioWorklet's global scope -----------------------------------------------------------------------------------

let Processor;
Object.assign(globalThis, {
  sampleRate: 16000,
  currentFrame: 0,
  registerProcessor: (name, type) => (Processor = type),
  AudioWorkletProcessor: class {
    port = { sent: [], postMessage: (data) => this.port.sent.push(structuredClone(data)) };
  },
});
await import(new URL("audio_processor.js", base));

export class Worklet {
  constructor(quantum, { interval = 1000, rate = 16000, channels = 0 } = {}) {
    globalThis.renderQuantumSize = quantum;
    globalThis.currentFrame = 0;
    globalThis.sampleRate = rate;
    this.processor = new Processor({ processorOptions: { wasm, isPlayed: false, interval, channels } });
    this.port = this.processor.port;
  }

  ask(type, rest) {
    this.port.onmessage({ data: { type, id: 7, ...rest } });
    const { type: kind, id, answer, error } = this.port.sent.pop();
    assert.equal(id, 7);
    if (kind === "failed") throw Object.assign(new Error(error.message), { name: error.name });
    return answer;
  }

  async load(name, file = name, rest = {}) {
    return this.ask("plan", { name, plan: await bytes(`audio/${file}.rnn`), ...rest });
  }

  /** The output for a signal that comes in blocks of these sizes, in turn. */
  run(signal, sizes) {
    return this.runChannels([signal], sizes)[0];
  }

  /** The same with several channels; `began` is the sample that they begin with. */
  runChannels(channels, sizes, began = 0) {
    const [{ length }] = channels;
    const outputs = channels.map(() => new Float32Array(length));
    for (let from = 0, i = 0; from < length; i++) {
      const size = Math.min(sizes[i % sizes.length], length - from);
      globalThis.currentFrame = began + from;
      const blocks = channels.map(() => new Float32Array(size));
      assert.equal(this.processor.process([channels.map((signal) => signal.subarray(from, from + size))], [blocks]), true);
      outputs.forEach((output, channel) => output.set(blocks[channel], from));
      from += size;
    }
    return outputs;
  }
}

/** Not deepEqual, which takes minutes to describe how long arrays differ. */
export function assertSame(given, expected) {
  assert.equal(given.length, expected.length);
  const at = given.findIndex((sample, i) => !Object.is(sample, expected[i]));
  assert.equal(at, -1, `[${at}] is ${given[at]}, not ${expected[at]}`);
}

export const results = (worklet) => worklet.port.sent.filter(({ type }) => type === "result");

