#!/usr/bin/env node
// npx webrnn-files FOLDER [PLAN ...]: copies what webrnn loads by its address into a folder, for bundlers that do not.

import { copyFile, mkdir, readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const USAGE = `Usage: webrnn-files FOLDER [PLAN ...]

Copies the files that webrnn loads by their address into the folder of your bundle: modules of kernels, scripts of workers
and of the audio thread, and plans; all of these, or those that you name (dtln_int8 silero_int16), or none ("no-plans").
esbuild and Rollup do not copy them; Vite, webpack, Next and Parcel do.`;

const here = fileURLToPath(new URL(".", import.meta.url));
const [folder, ...asked] = process.argv.slice(2);

function fail(message) {
  console.error(message);
  process.exit(1);
}

if (!folder || folder.startsWith("-")) fail(USAGE);
const { exports } = JSON.parse(await readFile(join(here, "package.json"), "utf8"));
const files = Object.values(exports).filter((target) => typeof target === "string" && /\.(js|wasm)$/.test(target));
const plans = (await readdir(join(here, "plans"))).map((name) => name.replace(/\.rnn$/, ""));
const named = asked[0] === "no-plans" ? [] : asked.length ? asked.map((name) => name.replace(/\.rnn$/, "")) : plans;
const unknown = named.find((name) => !plans.includes(name));
if (unknown !== undefined) fail(`there is no plan ${unknown}; there are ${plans.join(", ")}`);
const all = [...files, ...named.map((name) => `plans/${name}.rnn`), ...(named.length ? ["NOTICE"] : [])];
await mkdir(join(folder, named.length ? "plans" : "."), { recursive: true });
await Promise.all(all.map((file) => copyFile(join(here, file), join(folder, file === "NOTICE" ? "plans/NOTICE" : file))));
console.log(`${folder}: ${all.length} files of webrnn`);
