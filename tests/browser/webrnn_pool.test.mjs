// Pools of streams, in Node: node webrnn_pool.test.mjs <as webrnn.test.mjs>

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { withMeta } from "./plan_edits.mjs";
import { decodeAll, differences } from "./webrnn_cases.mjs";

const base = process.argv[2];
const { Model, PlanError, ShapeError, StreamError } = await import(new URL("webrnn.js", base));
const read = async (file) => new Uint8Array(await readFile(new URL(`cases/${file}`, base)));
const load = async (name) => Model.load(await read(`pool_${name}.rnn`));
const eventsOf = async (name) => JSON.parse(await readFile(new URL(`cases/pool_${name}.json`, base)));
const raises = (act, kind, text) => assert.throws(act, (error) => error instanceof kind && text.test(error.message));
const decodeRows = (rows) => rows.map(([handle, tensors]) => [handle, decodeAll(tensors)]);
const arrays = (tensors) => Object.fromEntries(Object.entries(tensors).map(([name, { data }]) => [name, data]));
const copied = (results) => Object.fromEntries(Object.entries(results).map(([name, data]) => [name, data.slice()]));

test("pools need pool.js, which plans for pools load by themselves", async () => {
  const plain = await load("plain");
  raises(() => plain.pool(), StreamError, /import "webrnn\/pool" first/);
  const model = await load("gru");
  assert.equal(model.isPool, true);
  assert.equal(model.pool().batched, true);
  assert.equal(plain.isPool, false);
  assert.equal(plain.pool().batched, false);
});

/** Does what was done in Python, and compares. */
function replay(pool, events, give) {
  for (const [at, { open, close, flush, feeds, results, states }] of events.entries()) {
    if (open !== undefined) assert.equal(pool.open(), open);
    else if (close !== undefined) pool.close(close);
    else if (flush !== undefined) {
      assert.deepEqual(differences(pool.flush(flush), shapesOf(results), decodeAll(results)), [], `flush, event ${at}`);
      assert.deepEqual(pool.state(flush), {});
    } else {
      const given = give(pool, decodeRows(feeds));
      assert.deepEqual([...given.keys()], results.map(([handle]) => handle));
      for (const [handle, expected] of decodeRows(results)) {
        assert.deepEqual(differences(given.get(handle), pool.shapes(handle), expected), [], `stream ${handle}, event ${at}`);
      }
      for (const [handle, expected] of decodeRows(states)) assert.deepEqual(pool.state(handle), arrays(expected), `event ${at}`);
    }
  }
}

const shapesOf = (results) => Object.fromEntries(Object.entries(results).map(([name, { shape }]) => [name, shape]));
const ticked = (options) => (pool, feeds) => {
  for (const [handle, feed] of feeds) pool.submit(handle, feed);
  return pool.tick(options);
};

for (const name of JSON.parse(await readFile(new URL("cases/pools.json", base)))) {
  for (const maxBatch of [6, 2, 1]) {
    test(`a pool of ${name} gives what Python's gives, in batches of ${maxBatch}`, async () => {
      const pool = (await load(name)).pool({ maxStreams: 6, maxBatch });
      replay(pool, await eventsOf(name), ticked());
      assert.equal(pool.batched, name !== "plain", pool.reason);
    });
  }

  test(`a pool of ${name} lends its results`, async () => {
    const pool = (await load(name)).pool({ maxStreams: 6 });
    replay(pool, await eventsOf(name), ticked({ borrow: true }));
  });

  test(`a stream of ${name} alone gives the same`, async () => {
    const model = await load(name);
    const streams = new Map();
    for (const { open, close, flush, feeds, results } of await eventsOf(name)) {
      if (open !== undefined) streams.set(open, model.stream());
      else if (close !== undefined) streams.get(close).dispose();
      else if (flush !== undefined) {
        assert.deepEqual(differences(streams.get(flush).flush(), streams.get(flush).shapes, decodeAll(results)), []);
      } else {
        const expected = new Map(decodeRows(results));
        for (const [handle, feed] of decodeRows(feeds)) {
          const stream = streams.get(handle);
          assert.deepEqual(differences(stream.step(feed), stream.shapes, expected.get(handle)), []);
        }
      }
    }
  });

  test(`streams of ${name} go on in another pool`, async () => {
    const model = await load(name);
    let pool = model.pool({ maxStreams: 6 });
    let names = new Map(); // the handles of Python, and those of the pool
    for (const [at, { open, close, flush, feeds, results }] of (await eventsOf(name)).entries()) {
      if (open !== undefined) names.set(open, pool.open());
      else if (close !== undefined) {
        pool.close(names.get(close));
        names.delete(close);
      } else if (flush !== undefined) {
        pool.load(names.get(flush), {});
      } else {
        for (const [handle, feed] of decodeRows(feeds)) pool.submit(names.get(handle), feed);
        const given = pool.tick();
        for (const [handle, expected] of decodeRows(results)) {
          const mine = names.get(handle);
          assert.deepEqual(differences(given.get(mine), pool.shapes(mine), expected), [], `stream ${handle}, event ${at}`);
        }
      }
      if (at % 4 !== 3) continue;
      const next = model.pool({ maxStreams: 6 });
      names = new Map([...names].toReversed().map(([handle, mine]) => {
        const other = next.open();
        next.load(other, pool.state(mine));
        return [handle, other];
      }));
      pool.dispose();
      pool = next;
    }
  });
}

const frame = (length, seed) => Float32Array.from({ length }, (_, i) => Math.sin(seed * 31 + i * 7));
const X = 4; // inputs of the GRU
const sizes = { batch: 1 }; // which plans for pools need not be told

test("many streams are submitted as one array, and their results are one array", async () => {
  for (const name of ["gru", "plain"]) {
    const model = await load(name);
    const [one, many] = [model.pool({ sizes }), model.pool({ sizes })];
    const handles = [0, 1, 2, 3].map(() => (one.open(), many.open()));
    many.close(handles.splice(1, 1)[0]);
    for (let tick = 0; tick < 3; tick++) {
      const x = frame(3 * 2 * X, tick);
      handles.forEach((handle, i) => one.submit(handle, { x: x.slice(i * 2 * X, (i + 1) * 2 * X) }));
      const expected = [...one.tick().values()].flatMap(({ y }) => [...y]);
      const turned = Float32Array.from([2, 1, 0].flatMap((i) => Array.from(x.slice(i * 2 * X, (i + 1) * 2 * X))));
      many.submitMany(handles.toReversed(), { x: tick ? turned : { data: turned, shape: [2, 1, X] } });
      const out = { y: new Float32Array(expected.length) };
      assert.equal(many.tick({ out }), out);
      const length = expected.length / 3;
      assert.deepEqual([2, 1, 0].flatMap((i) => Array.from(out.y.slice(i * length, (i + 1) * length))), expected);
    }
  }
});

test("more streams than a batch takes, 300 of them, in places that grow", async () => {
  const model = await load("gru");
  const pool = model.pool({ maxStreams: 300, maxBatch: 128 });
  const alone = model.stream();
  const handles = Array.from({ length: 300 }, () => pool.open());
  raises(() => pool.open(), StreamError, /the pool is full: 300 streams are open/);
  for (let tick = 0; tick < 3; tick++) {
    for (const handle of handles) pool.submit(handle, { x: frame(X, handle === 7 ? tick : handle) });
    const { y } = alone.step({ x: frame(X, tick) });
    assert.deepEqual(pool.tick().get(7).y, y);
  }
  assert.equal(pool.size, 300);
});

test("handles", async () => {
  for (const name of ["gru", "plain"]) {
    const pool = (await load(name)).pool({ maxStreams: 2 });
    const [first, second] = [pool.open(), pool.open()];
    raises(() => pool.open(), StreamError, /full/);
    pool.close(first);
    for (const call of ["close", "state", "flush", "shapes"]) raises(() => pool[call](first), StreamError, /no stream 0 is open/);
    raises(() => pool.submit(first, { x: frame(X, 1) }), StreamError, /no stream 0 is open/);
    raises(() => pool.load(first, {}), StreamError, /no stream 0 is open/);
    for (const other of [undefined, "1", null, NaN, {}]) raises(() => pool.close(other), StreamError, /no stream/);
    const third = pool.open();
    assert.notEqual(third, first);
    pool.submit(second, { x: frame(X, 1) });
    raises(() => pool.submit(second, { x: frame(X, 1) }), StreamError, /has feeds for this tick already/);
    raises(() => pool.submitMany([third, third], { x: frame(2 * X, 1) }), StreamError, /named twice/);
    raises(() => pool.load(second, {}), StreamError, /tick\(\) before/);
    pool.close(second); // what was submitted for it is dropped
    assert.equal(pool.tick().size, 0);
    assert.deepEqual(pool.state(third), {});
    raises(() => pool.flush(third), StreamError, /there are no frames|nothing was fed/);
    pool.dispose();
    pool.dispose();
    raises(() => pool.open(), StreamError, /disposed/);
  }
});

test("feeds that do not fit are refused, and change nothing", async () => {
  const pool = (await load("gru")).pool();
  const [first, second] = [pool.open(), pool.open()];
  const good = { x: frame(X, 1) };
  for (let tick = 0; tick < 2; tick++) {
    raises(() => pool.submit(first, {}), ShapeError, /^input 'x' is missing; there is 'x'/);
    raises(() => pool.submit(first, { X: new Float32Array(X) }), ShapeError, /^no input 'X'; there is 'x'/);
    raises(() => pool.submitMany([first], { x: new Float32Array(X), q: new Float32Array(X) }), ShapeError, /^no input 'q'/);
    raises(() => pool.submit(first, { x: new Float64Array(X) }), ShapeError, /takes a Float32Array/);
    raises(() => pool.submit(first, { ...good, h_in: frame(20, 1) }), ShapeError, /^no input 'h_in'; there is 'x'/);
    raises(() => pool.submit(first, { x: frame(X + 1, 1) }), ShapeError, /how large is steps|elements/);
    raises(() => pool.submit(first, { x: { data: frame(2 * X, 1), shape: [1, 2, X] } }), ShapeError, /is of one stream/);
    raises(() => pool.submit(first, { x: { data: frame(X, 1), shape: [2, 1, X] } }), ShapeError, /elements/);
    raises(() => pool.submitMany([first, second], { x: frame(X, 1) }), ShapeError, /how large is steps|elements/);
    raises(() => pool.submitMany([first, second], { x: { data: frame(2 * X, 1), shape: [1, 2, X] } }), ShapeError, /is of one stream/);
    raises(() => pool.submitMany(5, good), StreamError, /handles are a list/);
    pool.submit(first, good);
    pool.submit(second, { x: frame(3 * X, 2) }); // another number of steps
    const results = pool.tick();
    assert.deepEqual([...results.values()].map(({ y }) => y.length), [20, 60]);
  }
  raises(() => pool.load(first, { h_in: frame(19, 1) }), ShapeError, /'h_in' has/);
  raises(() => pool.load(first, { h: frame(20, 1) }), ShapeError, /^no input 'h'; there is 'h_in'/);
  const before = pool.state(first);
  pool.submit(first, good);
  raises(() => pool.tick({ out: { y: new Float32Array(3) } }), ShapeError, /out: output 'y' needs a Float32Array of 20/);
  assert.deepEqual(pool.state(first), before);
  assert.equal(pool.tick().size, 0);
  raises(() => pool.tick({ out: { q: new Float32Array(3) } }), ShapeError, /^no output 'q'; there is 'y'/);
});

test("options that are none are refused", async () => {
  for (const name of ["gru", "plain"]) {
    const model = await load(name);
    for (const options of [{ maxStreams: 0 }, { maxBatch: 1.5 }, { maxStreams: "4" }, { maxStreams: -1 }]) {
      raises(() => model.pool(options), ShapeError, /is a number from 1 to/);
    }
    raises(() => model.pool({ streams: 4 }), ShapeError, /there is no streams, only maxStreams, maxBatch, sizes/);
  }
});

test("a tick that fails changes no stream", async () => {
  for (const name of ["gru", "plain"]) {
    const model = await Model.load(await read(`pool_${name}.rnn`), { limits: { loopSteps: 4 } });
    const pool = model.pool({ maxBatch: 2, sizes });
    const handles = [0, 1, 2].map(() => pool.open());
    const tick = (lengths) => {
      handles.forEach((handle, i) => pool.submit(handle, { x: frame(lengths[i] * X, i) }));
      return pool.tick();
    };
    tick([1, 1, 1]);
    const before = handles.map((handle) => pool.state(handle));
    assert.throws(() => tick([1, 1, 9]), /loopSteps/);
    assert.deepEqual(handles.map((handle) => pool.state(handle)), before);
    const results = tick([2, 2, 2]);
    const other = model.pool({ sizes });
    const mine = handles.map(() => other.open());
    mine.forEach((handle, i) => other.load(handle, before[i]));
    mine.forEach((handle, i) => other.submit(handle, { x: frame(2 * X, i) }));
    assert.deepEqual([...results.values()], [...other.tick().values()]);
  }
});

test("calls from within a call are refused", async () => {
  const pool = (await load("gru")).pool();
  const handle = pool.open();
  const feeds = {
    get x() {
      raises(() => pool.tick(), StreamError, /another call/);
      raises(() => pool.close(handle), StreamError, /another call/);
      return frame(X, 1);
    },
  };
  pool.submit(handle, feeds);
  assert.equal(pool.tick().size, 1);
});

test("what is borrowed can be submitted again, also when memory grows", async () => {
  const model = await load("gru_of_one_step");
  const pool = model.pool({ maxStreams: 4000 });
  const stream = model.stream();
  const first = pool.open();
  pool.submit(first, { x: frame(X, 1) });
  const { y } = pool.tick({ borrow: true }).get(first);
  const x = y.subarray(0, X);
  const expected = x.slice();
  const others = Array.from({ length: 3999 }, () => pool.open());
  pool.submit(others.at(-1), { x }); // its place needs more memory
  stream.step({ x: expected });
  pool.tick();
  assert.deepEqual(pool.state(others.at(-1)), stream.state);
});

test("results that are lent are the same objects, and copies are not", async () => {
  const pool = (await load("gru_of_one_step")).pool();
  const handles = [0, 1, 2].map(() => pool.open());
  const tick = (options) => {
    for (const handle of handles) pool.submit(handle, { x: frame(X, handle) });
    return pool.tick(options);
  };
  const [first, second] = [tick({ borrow: true }), tick({ borrow: true })];
  assert.equal(first, second);
  assert.equal(first.get(1), second.get(1));
  const mine = tick();
  const before = copied(mine.get(1));
  assert.notEqual(tick().get(1), mine.get(1));
  assert.deepEqual(mine.get(1), before);
});

const DAMAGE = {
  "no lists": (pool) => ({ ...pool, inputs: 5 }),
  "a list": () => [],
  "a text": () => "x",
  "too few": (pool) => ({ ...pool, outputs: [] }),
  "another axis": (pool) => ({ ...pool, inputs: pool.inputs.map(() => 0) }),
  "no axis": (pool) => ({ ...pool, inputs: pool.inputs.map(() => null) }),
  "an axis that is not there": (pool) => ({ ...pool, outputs: pool.outputs.map(() => 7) }),
};

test("damaged metadata are refused", async () => {
  const plan = await read("pool_gru.rnn");
  for (const [what, edit] of Object.entries(DAMAGE)) {
    const model = await Model.load(withMeta(plan, (meta) => (meta.pool = edit(meta.pool))));
    raises(() => model.pool(), PlanError, /the metadata of the pool are damaged/, what);
  }
});
