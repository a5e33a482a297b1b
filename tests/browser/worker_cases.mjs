// What a model in a worker is held to, in Node and in a page; each function gives what was wrong.

import { differences, readCase } from "./webrnn_cases.mjs";

const same = (a, b) => a.length === b.length && a.every((element, i) => Object.is(element, b[i]));
const x = (seed) => Float32Array.from({ length: 12 }, (_, i) => Math.sin(seed * 31 + i * 7));

/** The same bits as in Python, also for outputs whose sizes are known when they are there. */
export async function results({ ModelWorker }, names, read) {
  const found = [];
  for (const name of names) {
    const model = await ModelWorker.load(await read(`${name}.rnn`));
    const { carry, runs, results: expected } = await readCase(name, model.variant, read);
    const carried = Object.values(carry);
    const stream = carried.length ? await model.stream({ carry }) : null;
    for (const [index, feeds] of runs.entries()) {
      const given = stream ? await stream.step(feeds) : await model.run(feeds);
      const shown = Object.fromEntries(Object.entries(expected[index]).filter(([key]) => !carried.includes(key)));
      found.push(...differences(given, (stream ?? model).shapes, shown).map((text) => `${name}, run ${index}: ${text}`));
    }
    model.terminate();
  }
  return found;
}

/** Streams, states and arrays, beside a model in this thread. */
export async function streams({ ModelWorker }, { Model }, read) {
  const found = [];
  const expect = (what, isSo) => isSo || found.push(what);
  const plan = await read("stream.rnn");
  const [model, own] = await Promise.all([ModelWorker.load(plan), Model.load(plan)]);
  expect("the plan is still there", plan.byteLength > 0);
  for (const key of ["inputs", "outputs", "carry", "about", "timing", "variant", "isPool"]) {
    expect(key, JSON.stringify(model[key]) === JSON.stringify(own[key]));
  }
  const [stream, other] = [await model.stream(), await model.stream()];
  const beside = own.stream();
  expect("delay and stride", stream.delay === beside.delay && stream.stride === beside.stride);
  for (let i = 0; i < 3; i++) expect(`step ${i}`, same((await stream.step({ x: x(i) })).y, beside.step({ x: x(i) }).y));
  const state = await stream.state;
  expect("state", same(state.h, beside.state.h));

  const large = new Float32Array(36);
  large.set(x(3), 12);
  const kept = beside.state;
  const { y } = beside.step({ x: x(3) });
  expect("a part of an array", same((await stream.step({ x: large.subarray(12, 24) })).y, y) && large.length === 36);
  await other.load(state);
  const sent = { data: x(3), shape: [1, 1, 12] };
  expect("transferred", same((await other.step({ x: sent }, { transfer: true })).y, y) && sent.data.length === 0);
  await other.load(kept);
  const out = { y: new Float32Array(20) };
  expect("out", (await other.step({ x: x(3) }, { out })) === out && same(out.y, y));
  expect("shapes", other.shapes.y.join() === beside.shapes.y.join());
  await other.reset();
  beside.reset();
  expect("reset", same((await other.step({ x: x(1) })).y, beside.step({ x: x(1) }).y));
  const many = await Promise.all([5, 6, 7].map((i) => other.step({ x: x(i) })));
  for (const [i, each] of many.entries()) expect("in order", same(each.y, beside.step({ x: x(5 + i) }).y));
  await other.dispose();
  await other.dispose();
  const h = new Float32Array(20).fill(0.5);
  expect("run", same((await model.run({ x: x(1), h })).y, own.run({ x: x(1), h }).y));
  model.terminate();
  return found;
}

export async function misuse({ ModelWorker }, webrnn, read) {
  const found = [];
  const { LimitError, PlanError, ShapeError, StreamError } = webrnn;
  const raises = async (act, kind, text) => {
    try {
      await act();
      found.push(`nothing was raised, but for ${text}`);
    } catch (error) {
      const isSo = error instanceof kind && error.name === kind.name && text.test(error.message);
      if (!isSo) found.push(`${error.name}: ${error.message}, but for ${text}`);
    }
  };
  const plan = await read("stream.rnn");
  await raises(() => ModelWorker.load(plan.slice(0, 50)), PlanError, /./);
  await raises(() => ModelWorker.load(new Uint8Array(0)), PlanError, /not a plan file/);
  await raises(() => ModelWorker.load(plan, { workers: 2 }), ShapeError, /there is no workers, only variant/);
  await raises(() => ModelWorker.load(plan, { maxCalls: 0 }), ShapeError, /maxCalls is a number from 1/);
  await raises(() => ModelWorker.load(plan, { limits: { steps: 1 } }), webrnn.WebrnnError, /there is no steps/);
  await raises(() => ModelWorker.load(5), TypeError, /not number/);
  const model = await ModelWorker.load(plan, { maxCalls: 2 });
  await raises(() => model.stream({ carry: { q: "y" } }), ShapeError, /carry: there is no input 'q'/);
  await raises(() => model.stream({ carry: { h: () => 1 } }), ShapeError, /cannot be sent/);
  const stream = await model.stream();
  await stream.step({ x: x(1) });
  const before = (await stream.state).h;
  await raises(() => stream.step({ X: x(1) }), ShapeError, /^no input 'X'; there is 'x'$/);
  await raises(() => stream.step({}), ShapeError, /^input 'x' is missing; there is 'x'$/);
  await raises(() => stream.step(x(1)), ShapeError, /given by name, not as Float32Array/);
  await raises(() => stream.step({ x: [1] }), ShapeError, /'x' takes a typed array/);
  await raises(() => stream.step({ x: new Float64Array(12) }), ShapeError, /'x' takes a Float32Array.* not Float64Array/);
  await raises(() => stream.step({ x: x(1).subarray(1) }), ShapeError, /'x' has 11 elements/);
  await raises(() => stream.step({ x: x(1) }, { borrow: true }), ShapeError, /cannot be borrowed/);
  await raises(() => stream.step({ x: x(1) }, { transfer: ["x"] }), ShapeError, /transfer is true or false/);
  await raises(() => stream.step({ x: x(1) }, { out: { y: [] } }), ShapeError, /'y' needs a typed array/);
  await raises(() => stream.step({ x: x(1) }, { out: { y: new Float32Array(3) } }), ShapeError, /needs a Float32Array of 20 elements/);
  await raises(() => stream.step({ x: x(1) }, { out: { q: new Float32Array(3) } }), ShapeError, /^no output 'q'; there is 'y'$/);
  await raises(() => stream.load({ h: x(1) }), ShapeError, /'h' has 12 elements/);
  await raises(() => stream.flush(), StreamError, /there are no frames/);
  const gone = x(1);
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  for (const transfer of [false, true]) await raises(() => stream.step({ x: gone }, { transfer }), ShapeError, /has 0 elements|cannot be sent/);
  if (!same((await stream.state).h, before)) found.push("a call that was refused changed the state");
  // A bounded number of calls under way
  const calls = [stream.step({ x: x(1) }), stream.step({ x: x(2) })];
  await raises(() => stream.step({ x: x(3) }), StreamError, /2 calls are under way/);
  await model.ready();
  calls.push(stream.step({ x: x(3) }));
  const lengths = (await Promise.all(calls)).map(({ y }) => y.length);
  if (lengths.join() !== "20,20,20") found.push(`${lengths}`);
  const disposed = await model.stream();
  await disposed.dispose();
  await raises(() => disposed.step({ x: x(1) }), StreamError, /disposed/);
  await raises(() => disposed.state, StreamError, /disposed/);
  const last = stream.step({ x: x(1) });
  const refused = raises(() => last, StreamError, /terminated/);
  model.terminate();
  model.terminate();
  await refused;
  await raises(() => stream.step({ x: x(1) }), StreamError, /terminated/);
  await raises(() => model.run({ x: x(1) }), StreamError, /terminated/);
  const limited = await ModelWorker.load(await read("loop.rnn"), { limits: { loopSteps: 5 } });
  try {
    await limited.run({ n: BigInt64Array.of(100n), x: new Float32Array(4) });
    found.push("no limit");
  } catch (error) {
    if (!(error instanceof LimitError) || error.limit !== "loopSteps") found.push(`${error.name} ${error.limit}`);
  }
  limited.terminate();
  return found;
}

/** A plan that the first module cannot run. */
export async function otherModules({ ModelWorker }, read) {
  const model = await ModelWorker.load(await read("determinants.rnn"));
  const { y } = await model.run({ x: Float32Array.from([2, 0, 0, 0, 3, 0, 0, 0, 4]) });
  model.terminate();
  return same(y, [24]) ? [] : [`${y}`];
}
