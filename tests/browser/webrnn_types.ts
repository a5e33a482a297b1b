// Uses of webrnn that compile, and some that must not.

import { Model, ModelError, PlanError, ShapeError, WebrnnError, setFiles, supportedVariants } from "webrnn";
import type { Data, Feeds, Port, Progress, Results, Stream, Variant } from "webrnn";
import type { StreamPool } from "webrnn/pool";
import { openPool } from "webrnn/pool";
import { WorkerPool } from "webrnn/worker_pool";
import { ModelWorker } from "webrnn/worker";
import type { WorkerStream } from "webrnn/worker";
import { AudioModels } from "webrnn/audio";

export async function use(bytes: ArrayBuffer, file: File): Promise<void> {
  const model: Model = await Model.load(new URL("m.rnn", import.meta.url), {
    variant: "simd",
    onProgress: ({ loaded, total }: Progress) => console.log(total === null ? loaded : loaded / total),
  });
  await Model.load("m.rnn");
  await Model.load(file, { wasm: bytes, limits: { loopSteps: 1, runSteps: 2, seconds: 0.5 } });
  await Model.load(new Uint8Array(bytes), { wasm: await WebAssembly.compile(bytes) });
  const ports: readonly Port[] = [...model.inputs, ...model.outputs];
  const [size]: readonly (number | string | null)[] = ports[0].shape;
  const carry: Readonly<Record<string, string>> = model.carry;
  const hop = (model.about.audio as { hop: number }).hop;
  const stream: Stream = model.stream();
  model.stream({ carry, sizes: { batch: 1 } });
  const feeds: Feeds = { x: new Float32Array(hop), n: { data: new BigInt64Array(1), shape: [1] } };
  const y: Data = stream.step(feeds).y;
  const out = { y: new Float32Array(y.length) };
  stream.step(feeds, { out });
  const results: Results = stream.step(feeds, { borrow: true });
  stream.load(stream.state);
  stream.reset();
  const rest: Results = stream.flush();
  const late: number = stream.delay * stream.stride + (model.timing?.outputs[0].rate ?? rest.y.length);
  stream.dispose();
  const pool: StreamPool = model.pool({ maxStreams: 8, maxBatch: 4, sizes: { steps: 1 } });
  const handle: number = pool.open();
  pool.submit(handle, feeds);
  pool.submitMany([handle], { x: new Float32Array(hop) });
  const lent: Results | undefined = pool.tick({ borrow: true }).get(handle);
  const filled: Float32Array = pool.tick({ out }).y;
  pool.load(handle, pool.state(handle));
  console.log(lent, filled, pool.batched, pool.reason, pool.size, pool.shapes(handle).y, pool.flush(handle).y, model.isPool);
  pool.close(handle);
  openPool(model, { maxStreams: 2 }).dispose();
  const workers: WorkerPool = await WorkerPool.load("m.rnn", { workers: 2, maxStreams: 8, snapshotEvery: 4, maxTicks: 2, timeout: 1000 });
  workers.addEventListener("restart", ({ detail }) => console.log(detail.worker, detail.streams[0].lostTicks));
  const number: number = workers.open();
  workers.submit(number, feeds);
  workers.submitMany([number], feeds);
  await workers.ready();
  const given: Map<number, Results> = await workers.tick();
  const whole: Float32Array = (await workers.tick({ out })).y;
  console.log(whole);
  await workers.load(number, await workers.state(number));
  console.log(given, workers.restarts, workers.loads, (await workers.flush(number)).y);
  workers.dispose();
  const shapes: number[] = model.shapes.y;
  const variants: Variant[] = supportedVariants();
  const context = new AudioContext();
  const audio = await AudioModels.create(context, { channels: "each", channelCount: 2 });
  await audio.mix("denoise", 0.5);
  audio.node.connect(context.destination);
  console.log(size, late, results, shapes, variants, model.variant);
  try {
    Model.loadSync(bytes, { wasm: bytes }).run(feeds, { sizes: { n: 1 } });
  } catch (error) {
    if (error instanceof WebrnnError) console.log(error.node, error instanceof PlanError, error instanceof ShapeError);
    if (error instanceof ModelError) throw error;
  }
}

interface Named {
  y: Float32Array;
  picked: BigInt64Array;
}

/** Results have the types of their arrays where somebody says which they are. */
export async function typed(bytes: ArrayBuffer, x: Float32Array): Promise<void> {
  setFiles("/webrnn/");
  setFiles(null);
  const model = await Model.load<{ y: Float32Array }>("m.rnn");
  const y: Float32Array = model.stream().step({ x }).y;
  const named = await Model.load<Named, { x: Float32Array }>("m.rnn");
  const stream: Stream<Named, { x: Float32Array }> = named.stream();
  const picked: bigint = stream.step({ x: { data: x, shape: [1, x.length] } }).picked[0];
  const mine: Float32Array = stream.step({ x }, { out: { y } }).y;
  const both: Float32Array = named.run({ x, h: x }).y;
  const last: Float32Array = stream.flush().y;
  const pooled: Float32Array | undefined = named.pool().tick().get(0)?.y;
  const opened: Float32Array | undefined = openPool(named).tick().get(0)?.y;
  const sync: Float32Array = Model.loadSync<Named>(bytes, { wasm: bytes }).run({ x }).y;
  const pool = await WorkerPool.load<Named>("m.rnn");
  const ticked: Float32Array | undefined = (await pool.tick()).get(0)?.y;
  const worker = await ModelWorker.load<Named>("m.rnn", { maxCalls: 4, variant: "simd", limits: { seconds: 1 } });
  const apart: WorkerStream<Named> = await worker.stream({ sizes: { n: 1 } });
  const given: Float32Array = (await apart.step({ x }, { transfer: true })).y;
  const into: Float32Array = (await apart.step({ x }, { out: { y } })).y;
  const anything: Data = (await (await ModelWorker.load(bytes)).run({ x })).z;
  await apart.load(await apart.state);
  await worker.ready();
  console.log(picked, mine, both, last, pooled, opened, sync, ticked, given, into, anything, worker.about, apart.shapes.y);
  await apart.dispose();
  worker.terminate();
  // @ts-expect-error: there is no such output
  console.log(named.run({ x }).z);
  // @ts-expect-error: there is no such input
  stream.step({ X: x });
  // @ts-expect-error: it is of another type
  stream.step({ x: new Float64Array(1) });
  // @ts-expect-error: outputs are arrays
  await Model.load<{ y: number }>("m.rnn");
  // @ts-expect-error: what is in a worker cannot be borrowed
  await apart.step({ x }, { borrow: true });
}

export function misuse(model: Model, stream: Stream): void {
  // @ts-expect-error: feeds are typed arrays
  stream.step({ x: [1, 2, 3] });
  // @ts-expect-error: no such type of elements
  stream.step({ x: new DataView(new ArrayBuffer(4)) });
  // @ts-expect-error: a step is synchronous
  stream.step({}).then();
  // @ts-expect-error: states are pairs of names
  model.stream({ carry: "auto" });
  // @ts-expect-error: handles are numbers
  model.pool().submit("1", {});
  // @ts-expect-error: no such option
  model.pool({ streams: 3 });
  // @ts-expect-error: no such variant
  void Model.load("m.rnn", { variant: "avx2" });
  // @ts-expect-error: models are loaded, not made
  void new Model();
  // @ts-expect-error: it cannot be changed
  model.carry = {};
}
