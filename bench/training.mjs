// Runs a plan as often as each line of the input says, and prints the shortest time of the processor in ms.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [, , host, wasm, plan] = process.argv;
const { Model } = await import(new URL("webrnn.js", host));
const model = await Model.load(readFileSync(plan), { wasm: readFileSync(new URL(wasm)), variant: "relaxed" });
const feeds = {};
for (const { name, shape } of model.inputs) {
  const count = shape.reduce((all, size) => all * size, 1);
  feeds[name] = Float32Array.from({ length: count }, (_, i) => (((i * 7919) % 1000) / 1000 - 0.5) * 0.2);
}
const spent = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e3;
};

for await (const line of createInterface({ input: process.stdin })) {
  let best = Infinity;
  for (let i = 0; i < Number(line); i++) {
    const start = spent();
    model.run(feeds, { borrow: true });
    best = Math.min(best, spent() - start);
  }
  console.log(best);
}
