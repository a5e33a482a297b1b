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

async function onnxruntimeWeb({ feeds }, { model }) {
  if (!ort) {
    ort = await import(file("onnxruntime-web/ort.wasm.min.mjs"));
    ort.env.wasm.numThreads = 1;
    ort.env.wasm.proxy = false;
    ort.env.wasm.wasmPaths = file("onnxruntime-web/").href;
  }
  const options = { executionProviders: ["wasm"], graphOptimizationLevel: "all", intraOpNumThreads: 1 };
  const session = await ort.InferenceSession.create(await bytes(`models/${model}.onnx`), options);
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
    return { name, isolated: IS_NODE || crossOriginIsolated };
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
