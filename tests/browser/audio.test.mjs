// The audio processor in Node, on blocks of any size: node audio.test.mjs <file URL of a folder with the host, and audio/ in it>

import assert from "node:assert/strict";
import { Session } from "node:inspector/promises";
import { test } from "node:test";
import { Worklet, assertSame, base, bytes, floats, results } from "./audio_worklet.mjs";

// --- tests ------------------------------------------------------------------------------------------------------------

const noisy = (await floats("audio/noisy.f32")).subarray(0, 16000);
const clean = await floats("audio/dtln.f32");
const speaking = await floats("audio/silero.f32");

const greatestCommonDivisor = (a, b) => (b ? greatestCommonDivisor(b, a % b) : a);

for (const size of [1, 37, 64, 100, 128, 160, 256, 480, 512, 1000, 4096]) {
  test(`blocks of ${size}`, async () => {
    const worklet = new Worklet(size);
    await worklet.load("denoise", "dtln");
    await worklet.load("vad", "silero", { listens: "input" });
    const output = worklet.run(noisy, [size]);
    const latency = worklet.ask("latency");
    assert.equal(latency, 512 - greatestCommonDivisor(128, size), "no more than these blocks need");
    assertSame(output.subarray(latency), clean.subarray(0, noisy.length - latency));
    assert.ok(output.subarray(0, latency).every((sample) => sample === 0));
    const found = results(worklet);
    assert.deepEqual(found.map(({ sample }) => sample), Array.from({ length: 31 }, (_, i) => 512 * (i + 1)));
    assertSame(Float32Array.from(found, ({ values }) => values[0]), speaking.subarray(0, 31));
  });
}

test("blocks of changing sizes: one gap at most, then everything as it should be", async () => {
  const worklet = new Worklet(128);
  await worklet.load("denoise", "dtln");
  const output = worklet.run(noisy, [128, 100, 300, 1, 7, 128]);
  const latency = worklet.ask("latency");
  assert.equal(latency, 511);
  assertSame(output.subarray(2000), clean.subarray(2000 - latency, noisy.length - latency));
});

for (const [name, hop] of [["held", 160], ["held_shortly", 4], ["held_by_64", 64]]) {
  test(`${name}: steps of ${hop} samples, results 12 samples behind`, async () => {
    const whole = await floats(`audio/${name}.f32`);
    for (const size of [1, 37, 64, 128, 160, 1000]) {
      const worklet = new Worklet(size);
      const { delay } = await worklet.load("f", name);
      assert.equal(delay, 12);
      const output = worklet.run(noisy, [size]);
      const latency = worklet.ask("latency");
      assert.equal(latency, hop - greatestCommonDivisor(hop, size) + 12);
      assertSame(output.subarray(latency), whole.subarray(0, noisy.length - latency));
      assert.ok(output.subarray(0, latency).every((sample) => sample === 0));
    }
    const worklet = new Worklet(128);
    await worklet.load("f", name);
    const output = worklet.run(noisy, [128, 100, 300, 1, 7, 128]);
    assertSame(output.subarray(2000), whole.subarray(2000 - worklet.ask("latency"), noisy.length - worklet.ask("latency")));
  });
}

test("an analyser with a delay says of which sample it speaks", async () => {
  const worklet = new Worklet(128);
  await worklet.load("levels", "levels", { listens: "input" });
  worklet.run(noisy, [128]);
  const found = results(worklet);
  const whole = await floats("audio/levels.f32");
  assertSame(Float32Array.from(found.flatMap(({ values }) => [...values])), whole.subarray(0, 4000 - 2));
  assert.deepEqual(found.slice(0, 3).map(({ sample, values }) => [sample, values.length]), [[8, 2], [24, 4], [40, 4]]);
});

test("a filter with a delay begins anew behind what is not finite, and stays where it is", async () => {
  for (const bad of [5, 800, 801]) {
    const signal = noisy.slice(0, 4000);
    signal[bad] = NaN;
    const begin = 160 * Math.ceil((bad + 1) / 160);
    const [worklet, other] = [new Worklet(128), new Worklet(128)];
    for (const each of [worklet, other]) await each.load("f", "held");
    const latency = worklet.ask("latency");
    const output = worklet.run(signal, [128]).subarray(latency + begin);
    const anew = other.run(noisy.subarray(begin, 4000), [128]).subarray(latency);
    assertSame(output, anew.subarray(0, output.length));
  }
});

test("plans with frames that cannot be run", async () => {
  const worklet = new Worklet(128);
  const refuses = (name, message) => assert.rejects(worklet.load("f", name), { name: "PlanError", message });
  await refuses("wrong_stride", /frames of 6 every 6 samples/);
  await refuses("wrong_step", /frames of 8 every 4 samples/);
  await refuses("wrong_rate", /does not give frames of 4 as 'y'/);
});

test("without an input there is silence, and the filter goes on", async () => {
  const worklet = new Worklet(128);
  await worklet.load("double");
  const output = new Float32Array(128).fill(1);
  worklet.processor.process([[]], [[output]]);
  assert.ok(output.every((sample) => sample === 0));
});

test("all channels of the output are the signal", async () => {
  const worklet = new Worklet(128);
  const outputs = [new Float32Array(128), new Float32Array(128)];
  worklet.processor.process([[noisy.subarray(0, 128)]], [outputs]);
  for (const output of outputs) assertSame(output, noisy.slice(0, 128));
});

test("a second exchange during a fade waits for its end", async () => {
  const worklet = new Worklet(128);
  await worklet.load("f", "double");
  const signal = new Float32Array(128).fill(1);
  worklet.run(signal, [128]);
  await worklet.load("f", "overlapping"); // 384 samples until it is heard
  worklet.run(new Float32Array(384).fill(1), [128]);
  const fading = worklet.run(signal, [128]);
  assert.ok(fading[0] < 2 && fading[127] > 1 && fading[127] < 1.6, "half way");
  await worklet.load("f", "double");
  const output = worklet.run(new Float32Array(1024).fill(1), [128]);
  assert.ok(output.every((sample, i) => i === 0 || Math.abs(sample - output[i - 1]) < 0.01), "no click");
  assert.equal(output[127], 1, "the first exchange");
  assert.equal(output[1023], 2, "the second one");
});

test("a closed processor ends", () => {
  const worklet = new Worklet(128);
  worklet.ask("close");
  assert.equal(worklet.processor.process([[]], [[new Float32Array(128)]]), false);
});

test("requests that there are not, and damaged ones", () => {
  const worklet = new Worklet(128);
  assert.throws(() => worklet.ask("nonsense"), { name: "TypeError" });
  assert.throws(() => worklet.ask("plan", { name: "x" }), Error);
  assert.throws(() => worklet.ask("wasm", { wasm: new Uint8Array(4) }), { name: "CompileError" });
});

test("reports", async () => {
  const worklet = new Worklet(128, { interval: 0.08 });
  await worklet.load("denoise", "dtln");
  worklet.run(noisy.subarray(0, 12800), [128]);
  const reports = worklet.port.sent.filter(({ type }) => type === "load");
  assert.deepEqual(reports.map(({ quanta }) => quanta), Array(10).fill(10));
  for (const { ms, worst, budget, load, missed } of reports) {
    assert.equal(budget, 8);
    assert.ok(ms > 0 && ms <= worst && load === ms / budget, `${ms} of at most ${worst} ms, load ${load}`);
    assert.equal(missed, 0, "nothing is played here");
  }
});

const SAMPLING = {
  samplingInterval: 64,
  includeObjectsCollectedByMinorGC: true,
  includeObjectsCollectedByMajorGC: true,
};

for (const rate of [16000, 48000]) test(`a quantum at ${rate} Hz allocates nothing`, async () => {
  const worklet = new Worklet(128, { rate });
  worklet.port.postMessage = () => {};
  const plans = [["a", "overlapping"], ["b", "double"], ["c", "held"], ["sums", "sums"]];
  for (const [name, file] of plans) {
    const plan = await bytes(`audio/${file}.rnn`);
    worklet.port.onmessage({ data: { type: "plan", id: 0, name, plan, listens: "output" } });
  }
  const [inputs, outputs] = [[[noisy.slice(0, 128)]], [[new Float32Array(128)]]];
  const quanta = (count) => {
    for (let i = 0; i < count; i++) worklet.processor.process(inputs, outputs);
  };
  const session = new Session();
  session.connect();
  const total = ({ selfSize, children }) => children.reduce((sum, child) => sum + total(child), selfSize);
  let least = Infinity; // on a busy machine it takes a while until all code is optimized, which boxes numbers before
  for (let attempt = 0; attempt < 4 && least >= 25_000; attempt++) {
    quanta(20_000);
    await session.post("HeapProfiler.startSampling", SAMPLING);
    quanta(50_000);
    const { profile } = await session.post("HeapProfiler.stopSampling");
    least = Math.min(least, total(profile.head));
  }
  session.disconnect();
  assert.ok(least < 25_000, `${least} bytes in 50,000 quanta`);
});

// --- the load, with a clock of steps of 1 ms -----------------------------------------------------------------------------

async function withCoarseClock(action) {
  const { performance, Date } = globalThis;
  const time = { now: 5000 };
  Object.defineProperty(globalThis, "performance", { value: undefined, configurable: true });
  globalThis.Date = { now: () => Math.floor((time.now += 0.001)) };
  try {
    const { Load } = await import(new URL(`audio_load.js?${Math.random()}`, base));
    return action(Load, time);
  } finally {
    globalThis.Date = Date;
    Object.defineProperty(globalThis, "performance", { value: performance, configurable: true, writable: true });
  }
}

/** Quanta of 8 ms that always begin at the same place of a step of the clock. */
function play(load, time, quanta, { work, first = 0, late = 0 }) {
  for (let quantum = first; quantum < first + quanta; quantum++) {
    time.now = Math.max(time.now, 6000.3 + 8 * quantum + late);
    load.begin(128 * quantum, 128);
    time.now += work(quantum);
    load.end();
  }
  return load.take();
}

for (const each of [0.1, 0.65]) {
  test(`${each} ms a quantum are seen with a clock of 1 ms`, async () => {
    const { ms, load } = await withCoarseClock((Load, time) => {
      const measured = new Load(16000, true);
      return { ...play(measured, time, 500, { work: (quantum) => each * (quantum % 4 ? 1 : 2) }) };
    });
    assert.ok(Math.abs(ms - 1.25 * each) < 0.02, `${ms} ms`);
    assert.equal(load, ms / 8);
  });
}

test("quanta that are too long, and those that were missed, are counted", async () => {
  await withCoarseClock((Load, time) => {
    const load = new Load(16000, true);
    const calm = { work: () => 0.5 };
    assert.equal(play(load, time, 500, calm).missed, 0);
    assert.equal(play(load, time, 250, { ...calm, first: 500, late: 24 }).missed, 3, "3 x 8 ms behind for good");
    assert.equal(load.report.overruns, 0);
    const rare = { work: (quantum) => (quantum === 800 ? 9 : 0.5), first: 750, late: 24 };
    const report = play(load, time, 400, rare);
    assert.equal(report.overruns, 1);
    assert.equal(report.missed, 3, "one that is made up for is not missed");
    load.rebase();
    assert.equal(play(load, time, 400, { ...calm, first: 1150, late: 9000 }).missed, 3, "it was suspended");
  });
});
