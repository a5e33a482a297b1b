// Runs the cases that webrnn_cases.py has written, in Node and in a page.

const ARRAYS = {
  float: Float32Array, double: Float64Array, float16: globalThis.Float16Array ?? Uint16Array, bfloat16: Uint16Array,
  int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array, uint8: Uint8Array, uint16: Uint16Array,
  uint32: Uint32Array, uint64: BigUint64Array,
}; // others are bytes

export function decode({ dtype, shape, bytes }) {
  const raw = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
  return { data: new (ARRAYS[dtype] ?? Uint8Array)(raw.buffer), shape };
}

export const decodeAll = (tensors) =>
  Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name, decode(tensor)]));

/** The case with typed arrays: {carry, about, runs, results}. `read(file)` gives bytes. */
export async function readCase(name, variant, read) {
  const { carry, about, runs, results } = JSON.parse(new TextDecoder().decode(await read(`${name}.json`)));
  return { carry, about, runs: runs.map(decodeAll), results: results[variant].map(decodeAll) };
}

/** How results differ from the expected ones; empty if they have the same bits. */
export function differences(results, shapes, expected) {
  const found = [];
  if (Object.keys(results).join() !== Object.keys(expected).join()) found.push(`outputs are ${Object.keys(results)}`);
  for (const [name, { data, shape }] of Object.entries(expected)) {
    const bits = (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength).join();
    if (results[name]?.constructor !== data.constructor) found.push(`${name} is a ${results[name]?.constructor.name}`);
    else if (bits(results[name]) !== bits(data)) found.push(`${name} has other bits`);
    if (shapes[name]?.join() !== shape.join()) found.push(`${name} has shape ${shapes[name]}`);
  }
  return found;
}

const without = (tensors, names) =>
  Object.fromEntries(Object.entries(tensors).filter(([name]) => !names.includes(name)));

/** Every difference between what this variant computes and what was expected of it. */
export async function check({ Model }, names, variant, options, read) {
  const found = [];
  for (const name of names) {
    const { carry, runs, results } = await readCase(name, variant, read);
    const model = await Model.load(await read(`${name}.rnn`), { variant, ...options });
    const stream = Object.keys(carry).length ? model.stream({ carry }) : null;
    for (const [index, feeds] of runs.entries()) {
      for (const borrow of stream ? [false] : [false, true]) {
        const given = stream ? stream.step(feeds, { borrow }) : model.run(feeds, { borrow });
        const wrong = differences(given, (stream ?? model).shapes, without(results[index], Object.values(carry)));
        found.push(...wrong.map((text) => `${name}, run ${index}, ${variant}${borrow ? ", borrowed" : ""}: ${text}`));
      }
    }
  }
  return found;
}
