// A plugin of the peer benchmark for Node and Chromium: the plan on webrnn.js, without Python. See README.md.
// It runs from the folder that `python -m bench.peers.prepare` writes, which has webrnn.js and the plans beside it.

export const planUrl = (entry) => new URL(`plans/${entry.name}.rnn`, import.meta.url);

export async function storedFeeds(entry, env) {
  const feeds = {};
  for (const { name, file, shape } of entry.inputs) feeds[name] = { data: await env.f32(file), shape };
  return feeds;
}

export default {
  name: "webrnn",

  async init() {
    this.webrnn = await import("./webrnn.js");
    this.version = this.webrnn.supportedVariants()[0];
  },

  async create(entry, env) {
    const [model, feeds] = await Promise.all([this.webrnn.Model.load(planUrl(entry)), storedFeeds(entry, env)]);
    return { run: () => model.run(feeds) };
  },
};
