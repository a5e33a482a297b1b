// node install_wheel.mjs PYODIDE_FOLDER WAY ADDRESS ...: installs the wheels at the addresses one after the other and says,
// as JSON, what came of each. WAY: "loadPackage" or "micropip".
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, way, ...addresses] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(path.join(folder, "pyodide.mjs")));
const pyodide = await loadPyodide({ indexURL: folder });
const said = [];
const options = { messageCallback: () => {}, errorCallback: (text) => said.push(text) };
const outcomes = [];

for (const address of addresses) {
  try {
    if (way === "loadPackage") await pyodide.loadPackage(["numpy", address], options);
    else {
      await pyodide.loadPackage("micropip", options);
      await pyodide.pyimport("micropip").install(address);
    }
    pyodide.runPython(`
from importlib import metadata
import webrnn
webrnn.InferenceSession
found = [metadata.version("webrnn"), metadata.version("numpy")]
`);
    outcomes.push({ found: pyodide.globals.get("found").toJs(), said });
  } catch (error) {
    outcomes.push({ error: error.message.trim().split("\n").at(-1), said });
  }
}
console.log(JSON.stringify(outcomes));
