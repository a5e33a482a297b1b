// A module worker: runs the tests of the bundle beside it in the Pyodide below /pyodide/.
import { loadPyodide } from "/pyodide/pyodide.mjs";
import { runSuite } from "./enter.mjs";

onmessage = async ({ data: pytestArguments }) => {
  try {
    const pyodide = await loadPyodide({ indexURL: "/pyodide/", stdout: () => {}, stderr: () => {} });
    const bundle = new Uint8Array(await (await fetch("bundle.zip")).arrayBuffer());
    const say = (line) => postMessage({ line });
    postMessage({ results: await runSuite(pyodide, bundle, pytestArguments, say) });
  } catch (error) {
    postMessage({ error: String(error.message ?? error) });
  }
};
