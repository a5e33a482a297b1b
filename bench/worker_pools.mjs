// How many frames of streams one worker and two take in a second, in a page. Rounds are interleaved.

import { WorkerPool } from "./worker_pool.js";

const STREAMS = 256;

/** Frames a second of a pool that always has ticks under way. */
async function rate(pool, handles, feeds, { output, length }, seconds) {
  const start = performance.now();
  const end = start + 1000 * seconds;
  let ticks = 0;
  const under = [];
  const outs = Array.from({ length: 4 }, () => ({ [output]: new Float32Array(handles.length * length) }));
  while (performance.now() < end) {
    await pool.ready();
    pool.submitMany(handles, feeds);
    under.push(pool.tick({ out: outs[ticks % outs.length] }));
    ticks++;
  }
  await Promise.all(under);
  return (ticks * handles.length * 1000) / (performance.now() - start);
}

export async function compare({ name, plan, input, output }, rounds, seconds) {
  const feedsOf = (n) => {
    const data = new Float32Array(n * input.shape.at(-1)).fill(0.1);
    return { [input.name]: { data, shape: input.shape.map((size) => (size === "streams" ? 1 : size)) } };
  };
  const pools = [];
  for (const workers of [1, 2]) {
    const pool = await WorkerPool.load(new URL(plan, import.meta.url), { workers, maxStreams: STREAMS, maxTicks: 4, snapshotEvery: 0 });
    pools.push([pool, Array.from({ length: STREAMS }, () => pool.open())]);
  }
  pools[0][0].submit(0, feedsOf(1));
  const [first] = (await pools[0][0].tick()).values();
  const feeds = feedsOf(STREAMS);
  const result = { output, length: first[output].length };
  for (const [pool, handles] of pools) await rate(pool, handles, feeds, result, 0.5);
  const rates = [];
  for (let round = 0; round < rounds; round++) {
    const pair = [];
    for (const [pool, handles] of pools) pair.push(await rate(pool, handles, feeds, result, seconds));
    rates.push(pair);
  }
  for (const [pool] of pools) pool.dispose();
  const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];
  const [one, two] = [0, 1].map((i) => Math.round(median(rates.map((pair) => pair[i]))));
  return { name, streams: STREAMS, one, two, ratio: median(rates.map(([a, b]) => b / a)) };
}
