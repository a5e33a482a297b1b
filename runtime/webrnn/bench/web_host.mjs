// The engines of `webrnn bench` in Node and in a page: prepares models, and says how long n runs take. In Node it is a process
// that answers a line of JSON with a line of JSON; in a page `globalThis.answer` is called.

const IS_NODE = typeof process !== "undefined" && !!process.versions?.node;
const WARM_UP_MS = 400; // until the optimizing compiler has taken over
const TYPES = {
  float16: globalThis.Float16Array ?? Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  bool: Uint8Array,
};

const file = (name) => new URL(name, import.meta.url);

async function bytes(name) {
  if (IS_NODE) return new Uint8Array(await (await import("node:fs/promises")).readFile(file(name)));
  const response = await fetch(file(name));
  if (!response.ok) throw new Error(`${name}: HTTP ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

async function described(model) {
  const description = JSON.parse(new TextDecoder().decode(await bytes(`models/${model}.json`)));
  const { buffer } = await bytes(`models/${model}.bin`).then((data) => data.slice());
  description.feeds = description.inputs.map(({ name, type, shape, offset }) => {
    const length = shape.reduce((a, b) => a * b, 1);
    return { name, type, shape, data: new TYPES[type](buffer, offset, length) };
  });
  return description;
}

/** Feeds of a stream, one object a frame; what one who carries states by hand starts from; and inputs that stay. */
async function describedStream(model) {
  const description = JSON.parse(new TextDecoder().decode(await bytes(`models/${model}.json`)));
  const { buffer } = await bytes(`models/${model}.bin`).then((data) => data.slice());
  const arrays = (rows) =>
    rows.map(({ name, type, shape, offset }) => {
      const length = shape.reduce((a, b) => a * b, 1);
      return { name, type, shape, data: new TYPES[type](buffer, offset, length) };
    });
  return {
    ...description,
    frames: description.frames.map(arrays),
    states: arrays(description.states),
    fixed: arrays(description.fixed),
  };
}

const base64 = (array) => {
  const data = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  if (IS_NODE) return Buffer.from(data).toString("base64");
  let text = "";
  for (let i = 0; i < data.length; i += 8192) text += String.fromCharCode(...data.subarray(i, i + 8192));
  return btoa(text);
};

// --- engines: each gives {run, results} for a model ------------------------------------------------------------------------

async function vm({ feeds }, { plan, variant }) {
  const { Model } = await import("./webrnn.js");
  const loaded = await Model.load(file(`models/${plan}`), { variant });
  const given = Object.fromEntries(feeds.map(({ name, shape, data }) => [name, { data, shape }]));
  return {
    run: () => loaded.run(given, { borrow: true }),
    results: () => loaded.run(given),
    engine: loaded.variant,
  };
}

let ort = null;

async function ortSession(model) {
  if (!ort) {
    ort = await import(file("onnxruntime-web/ort.wasm.min.mjs"));
    ort.env.wasm.numThreads = 1;
    ort.env.wasm.proxy = false;
    ort.env.wasm.wasmPaths = file("onnxruntime-web/").href;
  }
  const options = { executionProviders: ["wasm"], graphOptimizationLevel: "all", intraOpNumThreads: 1 };
  return ort.InferenceSession.create(await bytes(`models/${model}.onnx`), options);
}

async function onnxruntimeWeb({ feeds }, { model }) {
  const session = await ortSession(model);
  const given = Object.fromEntries(feeds.map(({ name, type, shape, data }) => [name, new ort.Tensor(type, data, shape)]));
  return {
    run: () => session.run(given),
    results: async () => Object.fromEntries(Object.entries(await session.run(given)).map(([name, { data }]) => [name, data])),
    dispose: () => session.release(),
    engine: ort.env.versions.web,
  };
}

let python = null;

async function startPython() {
  const { loadPyodide, version } = await import(file("pyodide/pyodide.mjs"));
  const folder = file("pyodide/");
  const pyodide = await loadPyodide({ indexURL: IS_NODE ? (await import("node:url")).fileURLToPath(folder) : folder.href });
  await pyodide.loadPackage("webrnn", { messageCallback: () => {} });
  pyodide.FS.writeFile("/home/pyodide/bench_inside.py", await bytes("inside_pyodide.py"));
  return { pyodide, version, inside: pyodide.pyimport("bench_inside") };
}

async function inPython({ feeds }, { model, backend, disable = [] }) {
  const { pyodide, version, inside } = await (python ??= startPython());
  const kinds = pyodide.toPy(feeds.map(({ name, type, shape }) => [name, type, shape]));
  const arrays = pyodide.toPy(feeds.map(({ data }) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength)));
  const switches = pyodide.toPy(disable);
  const made = inside.Prepared(await bytes(`models/${model}.onnx`), backend, kinds, arrays, switches);
  for (const proxy of [kinds, arrays, switches]) proxy.destroy();
  return {
    seconds: (times) => made.seconds(times),
    results: () => {
      const found = made.results();
      const shown = found.toJs({ dict_converter: Object.fromEntries });
      found.destroy();
      return shown;
    },
    dispose: () => made.destroy(),
    engine: `Pyodide ${version}, ${made.backend}`,
  };
}

const ENGINES = { vm, onnxruntimeWeb, inPython };

// --- engines of streams: each gives {tick, reset}; a tick takes the number of its frame ------------------------------------

const BORROW = { borrow: true };

async function vmStream({ frames }, { plan, carry, variant }) {
  const { Model } = await import("./webrnn.js");
  const loaded = await Model.load(file(`models/${plan}`), { variant });
  const stream = loaded.stream(carry ? { carry } : {});
  const fed = frames.map((frame) => Object.fromEntries(frame.map(({ name, shape, data }) => [name, { data, shape }])));
  return {
    tick: (number) => stream.step(fed[number], BORROW),
    reset: () => stream.reset(),
    engine: loaded.variant,
  };
}

/** With states that are fed back by hand: an output of a run is the tensor that the next one is given. */
async function onnxruntimeWebStream({ frames, states, fixed, pairs }, { model }) {
  const session = await ortSession(model);
  const tensors = (arrays) =>
    Object.fromEntries(arrays.map(({ name, type, shape, data }) => [name, new ort.Tensor(type, data, shape)]));
  const fed = frames.map((frame) => ({ ...tensors(frame), ...tensors(fixed) }));
  const carried = Object.entries(pairs);
  let now = tensors(states);
  return {
    async tick(number) {
      const results = await session.run({ ...fed[number], ...now });
      const next = {};
      for (const [to, from] of carried) next[to] = results[from];
      now = next;
      return results;
    },
    reset: () => (now = tensors(states)),
    dispose: () => session.release(),
    engine: ort.env.versions.web,
  };
}

const STREAM_ENGINES = { vmStream, onnxruntimeWebStream };

/** Seconds of each of so many ticks. One that is not a promise is not waited for. */
async function tickTimes(made, count) {
  const seconds = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const number = made.next++ % made.nFrames;
    const start = performance.now();
    const result = made.tick(number);
    if (result instanceof Promise) await result;
    seconds[i] = (performance.now() - start) / 1e3;
  }
  return seconds;
}

/** The smallest step of the clock, in milliseconds. */
function clockStep() {
  let least = Infinity;
  for (let i = 0; i < 50; i++) {
    const start = performance.now();
    let now = start;
    while (now === start) now = performance.now();
    least = Math.min(least, now - start);
  }
  return least;
}

// --- what the host asks for ------------------------------------------------------------------------------------------------

const prepared = new Map();
let next = 1;

async function timed(made, times) {
  if (made.seconds) return made.seconds(times);
  const start = performance.now();
  for (let i = 0; i < times; i++) {
    const result = made.run();
    if (result instanceof Promise) await result;
  }
  return (performance.now() - start) / 1e3;
}

const REQUESTS = {
  async about() {
    const name = IS_NODE ? `Node ${process.versions.node}, V8 ${process.versions.v8}` : navigator.userAgent;
    return { name, isolated: IS_NODE || crossOriginIsolated, clockStepMs: clockStep() };
  },

  async prepare({ engine, warmUpMs = WARM_UP_MS, ...options }) {
    const description = await described(options.model);
    const made = await ENGINES[engine](description, options);
    const results = await made.results();
    const shown = description.outputs.map((name) => base64(results[name]));
    const end = performance.now() + warmUpMs;
    while (performance.now() < end) await timed(made, 1);
    prepared.set(next, made);
    return { id: next++, results: shown, engine: made.engine };
  },

  /** The results are those of the last of all frames. */
  async prepareStream({ engine, warmUpMs = WARM_UP_MS, ...options }) {
    const description = await describedStream(options.model);
    const made = { ...(await STREAM_ENGINES[engine](description, options)), next: 0, nFrames: description.frames.length };
    let results = null;
    for (let number = 0; number < made.nFrames; number++) results = await made.tick(number);
    const shown = description.outputs.map((name) => base64(results[name].data ?? results[name]));
    made.reset();
    const end = performance.now() + warmUpMs;
    while (performance.now() < end) await tickTimes(made, 10);
    prepared.set(next, made);
    return { id: next++, results: shown, engine: made.engine };
  },

  /** Another process had the caches since the last turn: some ticks are made untimed. */
  async ticks({ id, count }) {
    const made = prepared.get(id);
    await tickTimes(made, Math.ceil(count / 4));
    return { seconds: base64(await tickTimes(made, count)) };
  },

  /** Short runs are first made untimed: another process had the caches since the last turn. */
  async seconds({ id, times }) {
    if (times > 1) await timed(prepared.get(id), Math.ceil(times / 4));
    return { seconds: await timed(prepared.get(id), times) };
  },

  async dispose({ id }) {
    prepared.get(id)?.dispose?.();
    prepared.delete(id);
    return {};
  },
};

globalThis.answer = async ({ what, ...request }) => {
  try {
    return await REQUESTS[what](request);
  } catch (error) {
    return { error: String(error?.message ?? error) };
  }
};

if (IS_NODE) {
  const { createInterface } = await import("node:readline");
  for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(`\n${JSON.stringify(await globalThis.answer(JSON.parse(line)))}\n`);
  }
} else {
  globalThis.isReady = true;
}
