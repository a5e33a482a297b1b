// Unpacks a bundle in a running Pyodide and runs its tests; the same in Node and in a worker of a browser.
export async function runSuite(pyodide, bundle, pytestArguments, say) {
  await pyodide.loadPackage(["numpy", "webrnn"], { messageCallback: () => {} });
  pyodide.unpackArchive(bundle, "zip", { extractDir: "/suite" });
  pyodide.runPython('import sys; sys.path[:0] = ["/suite", "/suite/site"]');
  return pyodide.pyimport("pyodide_pkg.suite.inside").main(pytestArguments, say);
}
