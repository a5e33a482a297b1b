// The same as webrnn.mjs, as a stream: states stay in wasm memory, results are borrowed. For models of one step.

import { planUrl, storedFeeds } from "./webrnn.mjs";

export default {
  name: "webrnn-stream",

  async init() {
    this.webrnn = await import("./webrnn.js");
    this.version = this.webrnn.supportedVariants()[0];
  },

  async create(entry, env) {
    const outputs = new Set(entry.outputs.map(({ name }) => name));
    const states = entry.inputs.filter(({ name }) => outputs.has(`${name}_n`));
    if (entry.group !== "t1" || !states.length) throw new Error("not a model of one step with states");
    const model = await this.webrnn.Model.load(planUrl(entry));
    const stream = model.stream({ carry: Object.fromEntries(states.map(({ name }) => [name, `${name}_n`])) });
    const feeds = await storedFeeds(entry, env);
    stream.load(Object.fromEntries(states.map(({ name }) => [name, feeds[name]])));
    for (const { name } of states) delete feeds[name];
    const options = { borrow: true };
    const step = () => stream.step(feeds, options);
    // The first results are checked: with them, what the states became.
    let run = () => {
      run = step;
      const results = { ...step() };
      for (const [name, state] of Object.entries(stream.state)) results[`${name}_n`] = state;
      return results;
    };
    return { run: () => run() };
  },
};
