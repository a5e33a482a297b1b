// node run_python.mjs PYODIDE_FOLDER PACKAGE,... SCRIPT.py [ARGUMENT ...]: runs the script in Pyodide, after loading the
// packages (none: ""); the host's root is mounted at /host.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, packages, script, ...rest] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(path.join(folder, "pyodide.mjs")));
const pyodide = await loadPyodide({ indexURL: folder });
if (packages) await pyodide.loadPackage(packages.split(","), { messageCallback: () => {} });
pyodide.FS.mkdir("/host");
pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, { root: "/" }, "/host");
const sys = pyodide.pyimport("sys");
sys.argv = pyodide.toPy([script, ...rest.map((a) => (path.isAbsolute(a) ? "/host" + a : a))]);
await pyodide.runPythonAsync(fs.readFileSync(script, "utf8"), { filename: script });
