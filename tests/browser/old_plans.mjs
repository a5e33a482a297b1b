// Plans of all versions on webrnn.js: node old_plans.mjs <folder of the host, a URL> <file of cases>. A case is {file, carry,
// steps: [{name: {type, shape, data}}]}, data in base 64; what it prints has the results of each case in the same way.

import { readFileSync } from "node:fs";

const [, , base, casesFile] = process.argv;
const { Model } = await import(new URL("webrnn.js", base));
const ARRAYS = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array, bool: Uint8Array };

const read = ({ type, shape, data }) => ({ data: new ARRAYS[type](new Uint8Array(Buffer.from(data, "base64")).buffer), shape });
const written = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("base64");

const found = [];
for (const { file, carry, isStream, steps } of JSON.parse(readFileSync(casesFile, "utf8"))) {
  const model = await Model.load(readFileSync(file));
  const stream = isStream ? model.stream(carry ? { carry } : {}) : null;
  const rows = steps.map((feeds) => {
    const arrays = Object.fromEntries(Object.entries(feeds).map(([name, feed]) => [name, read(feed)]));
    const results = stream ? stream.step(arrays) : model.run(arrays);
    return Object.values(results).map(written);
  });
  found.push({ variant: model.variant, about: model.about, rows });
}
console.log(JSON.stringify(found));
