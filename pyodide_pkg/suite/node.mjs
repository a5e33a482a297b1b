// node node.mjs DISTRIBUTION BUNDLE.zip RESULTS.json [PYTEST ARGUMENT ...]: runs the tests of a bundle in Pyodide.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { runSuite } from "./enter.mjs";

const [folder, bundle, results, ...rest] = process.argv.slice(2);
const say = (line) => process.stderr.write(line + "\n");
try {
  const { loadPyodide } = await import(pathToFileURL(path.join(folder, "pyodide.mjs")));
  const pyodide = await loadPyodide({ indexURL: folder });
  fs.writeFileSync(results, await runSuite(pyodide, new Uint8Array(fs.readFileSync(bundle)), rest, say));
} catch (error) {
  say(String(error.message ?? error)); // node itself would print the line of the source, which is 1 MB long
  process.exit(1);
}
