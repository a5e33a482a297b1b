// A model in a worker, in Node: node worker.test.mjs <as webrnn.test.mjs>

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { misuse, otherModules, results, streams } from "./worker_cases.mjs";

const base = process.argv[2];
const worker = await import(new URL("worker.js", base));
const webrnn = await import(new URL("webrnn.js", base));
const read = async (file) => new Uint8Array(await readFile(new URL(`cases/${file}`, base)));
const names = JSON.parse(await readFile(new URL("cases/cases.json", base)));

test("a worker gives what Python gives", async () => assert.deepEqual(await results(worker, names, read), []));
test("streams", async () => assert.deepEqual(await streams(worker, webrnn, read), []));
test("misuse", async () => assert.deepEqual(await misuse(worker, webrnn, read), []));
test("a plan that needs the full module", async () => assert.deepEqual(await otherModules(worker, read), []));
test("Node's buffers share memory, which stays", async () => {
  const model = await worker.ModelWorker.load(await read("every_type.rnn"));
  const pooled = Buffer.from([1, 2, 3]);
  await model.run({ q: pooled }).catch(() => {});
  assert.equal(pooled.length, 3);
  model.terminate();
});
