// Pools in several workers, in Node: node worker_pool.test.mjs <as webrnn.test.mjs>

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";
import threads from "node:worker_threads";

import { check, dies, misuse } from "./worker_pool_cases.mjs";

const base = process.argv[2];
const { WorkerPool } = await import(new URL("worker_pool.js", base));
const webrnn = await import(new URL("webrnn.js", base));
const read = async (file) => new Uint8Array(await readFile(new URL(`cases/${file}`, base)));
const pools = [];
const load = async (name, options) => {
  const pool = await WorkerPool.load(await read(`${name}.rnn`), options);
  pools.push(pool);
  return pool;
};
after(() => pools.forEach((pool) => pool.dispose()));

const started = [];
const { Worker } = threads;
threads.Worker = class extends Worker {
  constructor(...given) {
    super(...given);
    started.push(this);
  }
};

for (const name of ["gru", "strided", "plain"]) {
  test(`workers give what Python's pool of ${name} gives`, async () => assert.deepEqual(await check(load, name, read), []));
}

test("a worker that dies is replaced", async () => assert.deepEqual(await dies(load, webrnn, read, () => started.at(-1).terminate()), []));

test("misuse", async () => assert.deepEqual(await misuse(load, webrnn), []));

test("a plan that needs the full module", async () => {
  const pool = await load("determinants_pool", { workers: 1 });
  const handle = pool.open();
  pool.submit(handle, { x: Float32Array.from([2, 0, 0, 0, 3, 0, 0, 0, 4]) });
  assert.deepEqual([...(await pool.tick()).get(handle).y], [24]);
});

test("a file that is no plan is refused", async () => {
  await assert.rejects(WorkerPool.load(new Uint8Array(100)), webrnn.PlanError);
  await assert.rejects(WorkerPool.load("/no/such/file.rnn"), /could not be loaded/);
});

test("a worker that does not answer is replaced", async () => {
  const pool = await load("pool_gru", { workers: 1, timeout: 1000 });
  const handle = pool.open();
  const restarted = new Promise((resolve) => pool.addEventListener("restart", ({ detail }) => resolve(detail.reason)));
  const worker = started.at(-1);
  worker.postMessage = () => {}; // lost on its way
  pool.submit(handle, { x: new Float32Array(4) });
  assert.equal((await pool.tick()).size, 0);
  assert.equal(await restarted, "it did not answer within 1000 ms");
  pool.submit(handle, { x: new Float32Array(4) });
  assert.equal((await pool.tick()).size, 1);
});
