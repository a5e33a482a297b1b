// A model in a worker, in a page; each function gives what was wrong.

import * as webrnn from "./webrnn.js";
import * as worker from "./worker.js";
import * as cases from "./worker_cases.js";

const read = async (file) => new Uint8Array(await (await fetch(new URL(`cases/${file}`, import.meta.url))).arrayBuffer());

export const results = async () => cases.results(worker, JSON.parse(new TextDecoder().decode(await read("cases.json"))), read);
export const streams = () => cases.streams(worker, webrnn, read);
export const misuse = () => cases.misuse(worker, webrnn, read);
export const otherModules = () => cases.otherModules(worker, read);

/** Files in another folder, or in none. */
export async function elsewhere() {
  const found = [];
  const plan = await read("stream.rnn");
  webrnn.setFiles(new URL("files", import.meta.url));
  (await worker.ModelWorker.load(plan, { variant: "scalar" })).terminate(); // no other test has compiled that here
  webrnn.setFiles("/nowhere/");
  const error = await worker.ModelWorker.load(plan, { variant: "simd" }).catch((each) => each);
  if (!/\/nowhere\/.* could not be loaded/.test(error.message)) found.push(error.message);
  webrnn.setFiles(null);
  for (const wrong of [undefined, 5, {}]) {
    try {
      webrnn.setFiles(wrong);
      found.push(`${wrong} was taken`);
    } catch (each) {
      if (!(each instanceof TypeError)) found.push(each.name);
    }
  }
  return found;
}
