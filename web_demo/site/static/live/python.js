// Python for the examples of the docs: Pyodide with numpy and webrnn, which the playground has. Each run has names of its own.

import { answer } from "../../playground/page/remote.js";

const FOLDER = new URL("../../playground/pyodide/", import.meta.url);

async function boot(progress) {
  progress("state", "Loading Python");
  const { loadPyodide } = await import(new URL("pyodide.mjs", FOLDER));
  const pyodide = await loadPyodide({ indexURL: FOLDER.href });
  progress("state", "Loading numpy and webrnn");
  await pyodide.loadPackage("webrnn", { messageCallback: () => {} });
  return pyodide;
}

let booting = null;

answer({
  async run({ code }, progress) {
    booting ??= boot(progress).catch((error) => {
      booting = null;
      throw error;
    });
    const pyodide = await booting;
    progress("state", "Running");
    const decoder = new TextDecoder();
    const write = (bytes) => {
      progress("output", decoder.decode(bytes, { stream: true }));
      return bytes.length;
    };
    pyodide.setStdout({ write });
    pyodide.setStderr({ write });
    const names = pyodide.runPython('{"__name__": "__main__"}');
    try {
      const value = await pyodide.runPythonAsync(code, { globals: names, filename: "example.py" });
      if (value !== undefined) {
        progress("output", `${pyodide.globals.get("repr")(value)}\n`);
        value?.destroy?.();
      }
      return {};
    } catch (error) {
      // from the example's own lines on
      const at = error.message.indexOf('  File "example.py"');
      return { error: at < 0 ? error.message : `Traceback (most recent call last):\n${error.message.slice(at)}` };
    } finally {
      names.destroy();
    }
  },
});
