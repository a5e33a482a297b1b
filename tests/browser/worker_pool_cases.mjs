// What pools in workers are held to, in Node and in a page; each function gives what was wrong.

import { decodeAll, differences } from "./webrnn_cases.mjs";

const decodeRows = (rows) => rows.map(([handle, tensors]) => [handle, decodeAll(tensors)]);
const shapesOf = (expected) => Object.fromEntries(Object.entries(expected).map(([name, { shape }]) => [name, shape]));
const frame = (seed) => Float32Array.from({ length: 4 }, (_, i) => Math.sin(seed * 31 + i * 7));
const same = (a, b) => a.length === b.length && a.every((element, i) => Object.is(element, b[i]));

/** Does what was done with a pool in Python. */
export async function check(load, name, read) {
  const found = [];
  const pool = await load(`pool_${name}`, { workers: 2, maxStreams: 6 });
  const events = JSON.parse(new TextDecoder().decode(await read(`pool_${name}.json`)));
  for (const [at, { open, close, flush, feeds, results, states }] of events.entries()) {
    if (open !== undefined) {
      if (pool.open() !== open) found.push(`event ${at}: another handle`);
    } else if (close !== undefined) pool.close(close);
    else if (flush !== undefined) {
      const expected = decodeAll(results);
      found.push(...differences(await pool.flush(flush), shapesOf(expected), expected).map((text) => `flush, event ${at}: ${text}`));
    } else {
      for (const [handle, feed] of decodeRows(feeds)) pool.submit(handle, feed);
      const given = await pool.tick();
      if ([...given.keys()].join() !== results.map(([handle]) => handle).join()) found.push(`event ${at}: ${[...given.keys()]}`);
      for (const [handle, expected] of decodeRows(results)) {
        const wrong = differences(given.get(handle) ?? {}, shapesOf(expected), expected);
        found.push(...wrong.map((text) => `stream ${handle}, event ${at}: ${text}`));
      }
      for (const [handle, expected] of decodeRows(states)) {
        const state = await pool.state(handle);
        for (const [key, { data }] of Object.entries(expected)) if (!same(state[key], data)) found.push(`state, event ${at}`);
      }
    }
  }
  if (Math.max(...pool.loads) - Math.min(...pool.loads) > 2) found.push(`loads are ${pool.loads}`);
  if (pool.restarts) found.push(`${pool.restarts} restarts`);
  pool.dispose();
  return found;
}

/** The worker that was started last is ended by `kill`. Its streams go on from their last snapshots, the others from where
 * they are. */
export async function dies(load, { Model }, read, kill) {
  const found = [];
  const pool = await load("pool_gru", { workers: 2, maxStreams: 4, snapshotEvery: 2 });
  const model = await Model.load(await read("pool_gru.rnn"));
  const handles = [0, 1, 2, 3].map(() => pool.open());
  const streams = handles.map(() => model.stream());
  const [, onLast] = [0, 1].map((worker) => handles.filter((handle) => handle % 2 === worker));
  let kept = [];
  const tick = async (number) => {
    for (const handle of handles) pool.submit(handle, { x: frame(number + handle) });
    const results = await pool.tick();
    for (const handle of handles) {
      const { y } = streams[handle].step({ x: frame(number + handle) });
      if (!results.has(handle)) found.push(`tick ${number}: nothing of ${handle}`);
      else if (!same(results.get(handle).y, y)) found.push(`tick ${number}: ${handle} differs`);
    }
    if (number % 2 === 1) kept = streams.map((stream) => stream.state);
  };
  for (let number = 0; number < 5; number++) await tick(number);
  const restarted = new Promise((resolve) => pool.addEventListener("restart", ({ detail }) => resolve(detail)));
  kill();
  const { worker, streams: lost } = await restarted;
  if (worker !== 1 || pool.restarts !== 1) found.push(`worker ${worker}, ${pool.restarts} restarts`);
  const expected = onLast.map((handle) => ({ handle, lostTicks: 1, hasSnapshot: true }));
  if (JSON.stringify(lost) !== JSON.stringify(expected)) found.push(JSON.stringify(lost));
  for (const handle of onLast) streams[handle].load(kept[handle]);
  for (let number = 5; number < 8; number++) await tick(number);
  // In the middle of a tick: the others get their results.
  for (const handle of handles) pool.submit(handle, { x: frame(9 + handle) });
  const again = new Promise((resolve) => pool.addEventListener("restart", resolve));
  const ticked = pool.tick();
  kill();
  const [results] = await Promise.all([ticked, again]);
  for (const handle of handles.filter((each) => !onLast.includes(each))) if (!results.has(handle)) found.push(`nothing of ${handle}`);
  pool.dispose();
  return found;
}

export async function misuse(load, { ShapeError, StreamError }) {
  const found = [];
  const raises = async (act, kind, text) => {
    try {
      await act();
      found.push(`nothing was raised, but for ${text}`);
    } catch (error) {
      if (!(error instanceof kind) || !text.test(error.message)) found.push(`${error.name}: ${error.message}, but for ${text}`);
    }
  };
  await raises(() => load("pool_gru", { workers: 0 }), ShapeError, /workers is a number from 1/);
  await raises(() => load("pool_gru", { streams: 4 }), ShapeError, /there is no streams/);
  await raises(() => load("pool_gru", { timeout: 0 }), ShapeError, /timeout is a number of ms/);
  const pool = await load("pool_gru", { workers: 1, maxStreams: 2, maxTicks: 2 });
  const [first, second] = [pool.open(), pool.open()];
  await raises(() => pool.open(), StreamError, /the pool is full: 2 streams/);
  await raises(() => pool.submit(7, { x: frame(1) }), StreamError, /no stream 7 is open/);
  await raises(() => pool.submit(first, { x: [1, 2] }), ShapeError, /'x' takes a typed array/);
  await raises(() => pool.submit(first, { X: frame(1) }), ShapeError, /^no input 'X'; there is 'x'$/);
  await raises(() => pool.submit(first, {}), ShapeError, /^input 'x' is missing; there is 'x'$/);
  await raises(() => pool.submit(first, frame(1)), ShapeError, /^inputs are given by name, not as Float32Array; there is 'x'$/);
  await raises(() => pool.submitMany([first], { x: frame(1), h_in: frame(1) }), ShapeError, /^no input 'h_in'; there is 'x'$/);
  pool.submit(first, { x: frame(1) });
  await raises(() => pool.submit(first, { x: frame(1) }), StreamError, /already/);
  await raises(() => pool.state(first), StreamError, /tick\(\) before/);
  await raises(() => pool.submitMany([second, first], { x: frame(1) }), StreamError, /already/);
  await raises(() => pool.submitMany([second, second], { x: frame(1) }), StreamError, /named twice/);
  await raises(() => pool.submitMany([second], { x: 5 }), ShapeError, /'x' takes a typed array/);
  pool.submit(second, { x: new Float32Array(5) });
  const before = await pool.tick().catch((error) => error);
  if (!(before instanceof ShapeError) || [...before.results.keys()].join() !== `${first}`) found.push(`${before}`);
  await raises(() => pool.flush(first), StreamError, /there are no frames/);
  await raises(() => pool.load(first, { h_in: frame(1) }), ShapeError, /'h_in' has 4 elements/);
  // Arrays to fill
  for (let tick = 0; tick < 3; tick++) {
    if (tick < 2) for (const handle of [second, first]) pool.submit(handle, { x: frame(handle) });
    else pool.submitMany([second, first], { x: Float32Array.from([...frame(second), ...frame(first)]) });
    const out = { y: new Float32Array(40) };
    const mine = tick ? await pool.tick({ out }) : await pool.tick();
    if (tick && mine !== out) found.push("another object");
    if (tick && !same(out.y.slice(20), (await pool.state(first)).h_in)) found.push("out has something else");
  }
  for (const out of [{ y: new Float32Array(39) }, { y: new Float64Array(20) }, { q: new Float32Array(20) }]) {
    pool.submit(first, { x: frame(1) });
    await raises(() => pool.tick({ out }), ShapeError, /needs a Float32Array of 20 elements|no output 'q'; there is 'y'/);
  }
  // A bounded number of ticks under way
  const ticks = [0, 1].map(() => {
    pool.submit(first, { x: frame(1) });
    return pool.tick();
  });
  pool.submit(first, { x: frame(1) });
  await raises(() => pool.tick(), StreamError, /2 ticks are under way/);
  await pool.ready();
  const third = await pool.tick();
  const sizes = [...(await Promise.all(ticks)), third].map(({ size }) => size);
  if (sizes.join() !== "1,1,1") found.push(`${sizes} results`);
  pool.dispose();
  pool.dispose();
  await raises(() => pool.open(), StreamError, /disposed/);
  await raises(() => pool.tick(), StreamError, /disposed/);
  return found;
}
