// A network that learns on the bare VM: one plan is a step of training, the other one the network itself.

import { Model } from "../host/webrnn.js";
import { download } from "../page/files.js";
import { KINDS, STEPS } from "./gestures.js";

export class Learner {
  #train;
  #predict;
  #names; // of the parameters
  #lr;
  #file; // the ONNX file, and where the parameters are in it
  steps = 0;

  constructor(train, predict, about, file) {
    this.#train = train.stream();
    this.#predict = predict.stream();
    this.#names = about.parameters;
    this.#lr = Float32Array.of(about.lr);
    this.#file = file;
  }

  /** `learn` is what site.json says of this part. */
  static async load(learn) {
    const [train, predict] = await Promise.all(
      [learn.train, learn.predict].map(async (path) => Model.load((await download(path)).buffer, { module: "training" })),
    );
    return new Learner(train, predict, train.about.trainer, learn.onnx);
  }

  /** One step on all examples, {kind, steps}; the loss before it. */
  learn(examples) {
    const x = new Float32Array(examples.length * 2 * STEPS);
    examples.forEach(({ steps }, i) => x.set(steps, i * steps.length));
    const target = Int32Array.from(examples, ({ kind }) => kind);
    const feeds = { x: { data: x, shape: [examples.length, STEPS, 2] }, target, lr: this.#lr };
    const { loss } = this.#train.step(feeds);
    this.steps++;
    return loss[0];
  }

  /** Of each kind how likely the network takes a gesture for it. */
  guess(steps) {
    this.#predict.load(this.#parameters());
    const { scores } = this.#predict.step({ x: { data: steps, shape: [1, STEPS, 2] } });
    const most = Math.max(...scores);
    const powers = Array.from(scores, (score) => Math.exp(score - most));
    const total = powers.reduce((sum, power) => sum + power);
    return powers.map((power) => power / total);
  }

  /** How many of the examples it takes for what they are. */
  right(examples) {
    return examples.filter(({ kind, steps }) => {
      const shares = this.guess(steps);
      return shares.indexOf(Math.max(...shares)) === kind;
    }).length;
  }

  #parameters() {
    const state = this.#train.state;
    return Object.fromEntries(this.#names.map((name) => [name, state[name]]));
  }

  reset() {
    this.#train.reset();
    this.steps = 0;
  }

  /** The network as an ONNX file, with what it has learned in the place of the parameters. */
  async onnx() {
    const bytes = await download(this.#file.file);
    for (const [name, array] of Object.entries(this.#parameters())) {
      bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), this.#file.offsets[name]);
    }
    return bytes;
  }
}

export const likeliest = (shares) => KINDS[shares.indexOf(Math.max(...shares))];
