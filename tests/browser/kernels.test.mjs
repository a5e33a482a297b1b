// kernels.js in Node: node kernels.test.mjs <file URL of the demo's folder>

import assert from "node:assert/strict";
import { test } from "node:test";

const base = process.argv[2];
const { Kernels } = await import(new URL("kernels.js", base));
const { supportedVariants } = await import(new URL("instance.js", base));

test("the fastest variant is taken", async () => {
  assert.deepEqual(supportedVariants(), ["relaxed", "simd", "scalar"]);
  assert.equal((await Kernels.load(base)).variant, "relaxed");
});

for (const variant of supportedVariants()) {
  test(`${variant}: kernels are called by name`, async () => {
    const kernels = await Kernels.load(base, variant);
    const [x, y] = [kernels.buffer([0, 1, -1]), kernels.empty(3)];
    kernels.call.exp(x, y, 3);
    for (const [i, power] of [0, 1, -1].entries()) assert.ok(Math.abs(y.array[i] - Math.exp(power)) < 1e-6);
  });

  test(`${variant}: buffers survive growth of the memory`, async () => {
    const kernels = await Kernels.load(base, variant);
    const small = kernels.buffer([1, 2, 3]);
    const stale = small.array;
    const large = kernels.empty(8 << 20);
    assert.equal(stale.length, 0);
    assert.deepEqual([...small.array], [1, 2, 3]);
    assert.equal(large.array.length, 8 << 20);
    kernels.call.fill(large, large.length, 4);
    assert.deepEqual([...small.array, large.array[0], large.array.at(-1)], [1, 2, 3, 4, 4]);
  });
}

test("buffers are aligned, apart, and of the type asked for", async () => {
  const kernels = await Kernels.load(base);
  const [a, b] = [kernels.empty(1, Uint8Array), kernels.buffer([7, 8, 9], Int32Array)];
  assert.equal(b.address - a.address, 64);
  assert.equal(b.address % 64, 0);
  assert.deepEqual([...b.part(1, 2).array], [8, 9]);
  assert.throws(() => b.part(2, 2), /outside a buffer of 3/);
});

test("bad arguments raise", async () => {
  const kernels = await Kernels.load(base);
  const other = await Kernels.load(base, "scalar");
  const { exp, fill } = kernels.call;
  const x = kernels.empty(2);
  assert.throws(() => exp(x, x), /exp takes 3 arguments, not 2/);
  assert.throws(() => exp(x, x, undefined), /exp: n must be an integer, not undefined/);
  assert.throws(() => exp(x, x, 1.5), /exp: n must be an integer, not 1.5/);
  assert.throws(() => fill(x, 2, "1"), /fill: value must be a number, not 1/);
  assert.throws(() => exp(other.empty(2), x, 2), /exp: x must be null or a buffer of these kernels/);
  assert.throws(() => exp(x.array, x, 2), /exp: x must be null or a buffer of these kernels/);
  assert.throws(() => kernels.empty(2 ** 31), /bytes do not fit into WebAssembly memory/);
});

test("what cannot be loaded is named", async () => {
  await assert.rejects(Kernels.load(base, "avx2"), /unknown variant avx2: expected one of relaxed, simd, scalar/);
  await assert.rejects(Kernels.load(new URL("missing/", base)), /missing\/\S+ could not be loaded/);
});
