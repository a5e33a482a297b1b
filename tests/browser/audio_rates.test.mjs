// The audio processor in Node at other rates than those of plans, and with several channels: node audio_rates.test.mjs <folder>

import assert from "node:assert/strict";
import { test } from "node:test";
import { Worklet, assertSame, base, bytes, floats, results, wasm } from "./audio_worklet.mjs";

const FADE = 256;
const latencies = JSON.parse(new TextDecoder().decode(await bytes("audio/latencies.json")));
const RATES = Object.keys(latencies).map(Number);
const read = async (rate, ...names) => Promise.all(names.map((name) => floats(`audio/${name}_${rate}.f32`)));

/** That a signal is another one, so many samples later. */
function assertLate(output, expected, latency, from = 0) {
  const begin = latency + from;
  const count = Math.min(output.length - begin, expected.length - from);
  assert.ok(count > 5000);
  assertSame(output.subarray(begin, begin + count), expected.subarray(from, from + count));
}

/** The samples of the context at which chunks at 16 kHz end. */
const ends = (count, rate) => Array.from({ length: count }, (_, i) => Math.floor((512 * (i + 1) * rate) / 16000));

for (const rate of RATES) {
  for (const size of [1, 37, 128, 160, 1000]) {
    test(`${rate} Hz, blocks of ${size}: the bits and the latency of Python`, async () => {
      const [left, right, clean, speaking] = await read(rate, "left", "right", "dtln", "silero");
      const worklet = new Worklet(size, { rate });
      await worklet.load("denoise", "dtln");
      await worklet.load("vad", "silero", { listens: "input" });
      const latency = worklet.ask("latency");
      assert.equal(latency, latencies[rate].dtln[size]);
      const outputs = worklet.runChannels([left, right], [size]);
      assert.equal(worklet.ask("latency"), latency, "it is constant");
      assertSame(outputs[1], outputs[0]);
      assertLate(outputs[0], clean, latency);
      assert.ok(outputs[0].subarray(0, latency).every((sample) => sample === 0));
      const found = results(worklet);
      assertSame(Float32Array.from(found, ({ values }) => values[0]), speaking.subarray(0, found.length));
      assert.ok(speaking.length - found.length <= 1);
      assert.deepEqual(found.map(({ sample }) => sample), ends(found.length, rate));
    });
  }

  test(`${rate} Hz, blocks of changing sizes: one gap at most`, async () => {
    const [left, clean] = await read(rate, "left", "left_dtln");
    const worklet = new Worklet(128, { rate });
    await worklet.load("denoise", "dtln");
    const output = worklet.run(left, [128, 100, 1, 7, 128, 127]);
    const latency = worklet.ask("latency");
    assert.ok(latency <= latencies[rate].dtln[128] + 127);
    assertLate(output, clean, latency, 20000);
  });

  test(`${rate} Hz, each channel: streams of their own`, async () => {
    const [left, right, ...clean] = await read(rate, "left", "right", "left_dtln", "right_dtln");
    const [speaking] = await read(rate, "silero");
    const worklet = new Worklet(128, { rate, channels: 2 });
    await worklet.load("denoise", "dtln");
    await worklet.load("vad", "silero", { listens: "input" });
    const outputs = worklet.runChannels([left, right], [128]);
    outputs.forEach((output, channel) => assertLate(output, clean[channel], latencies[rate].dtln[128]));
    const found = results(worklet);
    assertSame(Float32Array.from(found, ({ values }) => values[0]), speaking.subarray(0, found.length));
  });

  test(`${rate} Hz, what is bypassed or mixed is as late, and nothing of it is lost`, async () => {
    const [left, clean] = await read(rate, "left", "left_dtln");
    const worklet = new Worklet(128, { rate });
    await worklet.load("denoise", "dtln");
    const latency = worklet.ask("latency");
    worklet.ask("bypass", { name: "denoise", isOn: true }); // before anything is heard: at once
    const halves = [left.subarray(0, 25600), left.subarray(25600, 51200)];
    assertLate(worklet.run(halves[0], [128]), left, latency);
    worklet.ask("mix", { name: "denoise", share: 0.25 });
    worklet.ask("bypass", { name: "denoise", isOn: false });
    const [output] = worklet.runChannels([halves[1]], [128], 25600);
    let share = 0;
    const expected = Float32Array.from(output, (_, i) => {
      const [dry, wet] = [left, clean].map((signal) => signal[25600 + i - latency]);
      share = Math.min(0.25, share + 0.25 / FADE);
      return dry + share * (wet - dry);
    });
    assertSame(output, expected);
  });

  test(`${rate} Hz, filters of one rate share a resampling`, async () => {
    const [left, clean] = await read(rate, "left", "left_dtln");
    const alone = new Worklet(128, { rate });
    await alone.load("copied");
    assert.equal(alone.ask("latency"), latencies[rate].copied[128]);
    const worklet = new Worklet(128, { rate });
    await worklet.load("denoise", "dtln");
    await worklet.load("copied");
    const latency = worklet.ask("latency");
    assert.ok(latency < latencies[rate].dtln[128] + 128 * 3, "no second resampling");
    assertLate(worklet.run(left, [128]), clean, latency);
    await assert.rejects(worklet.load("copied", "8k"), { name: "PlanError", message: /shares a resampling to 16000 Hz with 'denoise'/ });
    await worklet.load("copied", "double");
    worklet.ask("remove", { name: "denoise" });
    worklet.ask("remove", { name: "copied" });
    worklet.run(left, [128]);
    assert.equal(worklet.ask("latency"), 0);
    assertSame(worklet.run(left, [128]), left);
    await worklet.load("copied");
    worklet.run(left, [128]);
    assert.equal(worklet.ask("latency"), latencies[rate].copied[128], "alone, it begins anew");
  });
}

test("a filter joins others of its rate while they play, without a click", async () => {
  const worklet = new Worklet(128, { rate: 48000 });
  const tone = Float32Array.from({ length: 48000 }, (_, i) => Math.sin(i / 50));
  await worklet.load("copied");
  const first = worklet.runChannels([tone.subarray(0, 12800)], [128])[0];
  await worklet.load("double");
  const [second] = worklet.runChannels([tone.subarray(12800, 25600)], [128], 12800);
  const output = Float32Array.from([...first.subarray(6000), ...second]);
  assert.ok(output.every((sample, i) => i === 0 || Math.abs(sample - output[i - 1]) < 0.06), "no click");
  const latency = worklet.ask("latency");
  for (let i = 6000; i < 12800; i++) assert.ok(Math.abs(second[i] - 2 * tone[12800 + i - latency]) < 1e-3);
});

test("filters that share a resampling are bypassed one by one, and all of them leave the signal as it was", async () => {
  const [left, clean] = await read(44100, "left", "left_dtln");
  const expected = { denoise: null, copied: clean, both: left };
  for (const [bypassed, signal] of Object.entries(expected)) {
    const worklet = new Worklet(128, { rate: 44100 });
    await worklet.load("denoise", "dtln");
    await worklet.load("copied");
    for (const name of ["denoise", "copied"]) {
      if (bypassed === name || bypassed === "both") worklet.ask("bypass", { name, isOn: true });
    }
    const output = worklet.run(left, [128]);
    if (signal) assertLate(output, signal, worklet.ask("latency"));
    else assert.ok(output.subarray(5000).some((sample, i) => sample !== left[5000 + i - worklet.ask("latency")]));
    worklet.ask("mix", { name: "denoise", share: 0.5 });
    worklet.ask("mix", { name: "copied", share: 0 });
    worklet.ask("bypass", { name: "denoise", isOn: false });
    const again = worklet.run(left, [128]).subarray(2000); // half of the signal, half of DTLN's
    assert.ok(again.some((sample) => sample !== 0) && again.every(Number.isFinite));
  }
});

test("one of several filters is exchanged for one with another latency, without a click", async () => {
  for (const rate of RATES) {
    const worklet = new Worklet(128, { rate });
    const tone = Float32Array.from({ length: 51200 }, (_, i) => Math.sin((i * 3) / 160));
    await worklet.load("first", "overlapping");
    await worklet.load("second", "copied");
    const before = worklet.ask("latency");
    const outputs = [];
    const play = (from, to) => outputs.push(...worklet.runChannels([tone.subarray(from, to)], [128], from)[0]);
    play(0, 12800);
    await worklet.load("first", "copied");
    play(12800, 25600);
    const between = worklet.ask("latency");
    assert.ok(Math.abs(before - between - ((384 - 96) * rate) / 16000) <= 1, "by the latency of the first, to a sample");
    for (let i = 20000; i < 25600; i++) assert.ok(Math.abs(outputs[i] - tone[i - between]) < 0.02);
    await worklet.load("first", "overlapping");
    play(25600, 38400);
    assert.equal(worklet.ask("latency"), before);
    worklet.ask("bypass", { name: "first", isOn: true });
    worklet.ask("bypass", { name: "second", isOn: true });
    play(38400, 51200);
    for (let i = 45000; i < 51200; i++) assert.equal(outputs[i], tone[i - before]);
    for (let i = 6000; i < 51200; i++) assert.ok(Math.abs(outputs[i] - outputs[i - 1]) < 0.06, `a click at ${i}`);
  }
});

test("plans of several rates in one node", async () => {
  const worklet = new Worklet(128, { rate: 48000 });
  for (const name of ["48k", "8k", "copied"]) await worklet.load(name);
  const tone = Float32Array.from({ length: 48000 }, (_, i) => Math.sin(i / 50));
  const output = worklet.run(tone, [128]);
  const latency = worklet.ask("latency");
  for (let i = 10000; i < 48000; i++) assert.ok(Math.abs(output[i] - tone[i - latency]) < 1e-3);
});

test("an exchange for a plan of another rate", async () => {
  const worklet = new Worklet(128, { rate: 48000 });
  const tone = Float32Array.from({ length: 48000 }, (_, i) => Math.sin(i / 50));
  await worklet.load("f", "8k");
  const [before] = worklet.runChannels([tone.subarray(0, 24064)], [128]);
  let latency = worklet.ask("latency");
  for (let i = 10000; i < 24064; i++) assert.ok(Math.abs(before[i] + tone[i - latency]) < 1e-3);
  await worklet.load("f", "48k");
  const [after] = worklet.runChannels([tone.subarray(24064)], [128], 24064);
  latency = worklet.ask("latency");
  assert.equal(latency, 0);
  for (let i = 2000; i < after.length; i++) assert.equal(after[i], -tone[24064 + i]);
});

test("a filter that fails leaves the signal as it came in", async () => {
  for (const channels of [0, 2]) {
    const worklet = new Worklet(128, { rate: 48000, channels });
    await worklet.load("picky");
    const signal = new Float32Array(12800).fill(0.5);
    signal.fill(100, 6000, 6500);
    const [output] = worklet.runChannels([signal, signal], [128]);
    const errors = worklet.port.sent.filter(({ type }) => type === "error");
    assert.deepEqual(errors.map(({ name, error }) => [name, error.name]), [["picky", "ShapeError"]], "once");
    const latency = worklet.ask("latency");
    assertSame(output.subarray(9000), signal.subarray(9000 - latency, 12800 - latency));
    await worklet.load("picky", "copied");
  }
});

test("rates that cannot be resampled are refused", async () => {
  const worklet = new Worklet(128, { rate: 48000 });
  const message = /audio at 48000 Hz cannot be brought to 15999 Hz/;
  await assert.rejects(worklet.load("f", "odd_rate"), { name: "PlanError", message });
  for (const share of [-0.1, 1.1, NaN, "1", undefined]) {
    assert.throws(() => worklet.ask("mix", { name: "f", share }), { name: "PlanError" });
  }
  await worklet.load("f", "copied");
  assert.throws(() => worklet.ask("mix", { name: "f", share: 2 }), { name: "PlanError", message: /from 0 to 1/ });
  const other = new Worklet(128, { rate: 44100.5 });
  await assert.rejects(other.load("f", "copied"), { name: "PlanError", message: /cannot be brought to 16000 Hz/ });
});

test("exchanges give their memory back", async () => {
  const [{ Filters }, { ResamplerKernels }, { Model }, { audioOf }] = await Promise.all(
    ["audio_filters.js", "audio_resampler.js", "webrnn.js", "audio_runner.js"].map((file) => import(new URL(file, base))),
  );
  const kernels = new ResamplerKernels(wasm);
  const filters = new Filters({ rate: 44100, block: 128, channels: 2, kernels: () => kernels, tell: assert.fail });
  const model = Model.loadSync(await bytes("audio/copied.rnn"), { wasm });
  const signals = [new Float32Array(128), new Float32Array(128)];
  const pages = [];
  for (let i = 0; i < 30; i++) {
    if (i % 3 === 2) filters.remove("f");
    else filters.load("f", model, audioOf(model, 44100));
    for (let quantum = 0; quantum < (i % 2 ? 30 : 1); quantum++) filters.process(signals, 128);
    pages.push(kernels.heap.memory.buffer.byteLength);
  }
  assert.equal(pages.at(-1), pages[8]);
});

test("channels are mixed down in their order, in float32", async () => {
  const { mixDown } = await import(new URL("audio_mixer.js", base));
  const channels = [[1e8, 0.1], [1, 0.2], [-1e8, 0.3]].map((values) => Float32Array.from(values));
  const mean = new Float32Array(2);
  mixDown(channels, 0, mean, 2);
  assertSame(mean, Float32Array.from([0, Math.fround(Math.fround(Math.fround(0.1) + Math.fround(0.2)) + Math.fround(0.3)) / 3]));
  mixDown([], 0, mean, 2);
  assertSame(mean, new Float32Array(2));
});
