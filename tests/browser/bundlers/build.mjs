// node build.mjs BUNDLER PROJECT OUTPUT: builds a project as its documentation says, with no option for webrnn.

import { execFileSync } from "node:child_process";
import { join } from "node:path";

const [bundler, project, output] = process.argv.slice(2);
const main = join(project, "main.js");
// Bundlers that leave files where they are
const copyFiles = () => execFileSync(process.execPath, [join(project, "node_modules/webrnn/webrnn_files.mjs"), output, "dtln_int8"]);

const BUNDLERS = {
  async vite() {
    const { build } = await import("vite");
    await build({ root: project, logLevel: "error", build: { outDir: output } });
  },
  /** Prints its address, and ends with its input. */
  async vite_dev() {
    const { createServer } = await import("vite");
    const server = await createServer({ root: project, logLevel: "error", server: { port: 0 } });
    await server.listen();
    console.log(`http://localhost:${server.httpServer.address().port}/`);
    process.stdin.resume().on("end", () => process.exit());
  },
  async webpack() {
    const { default: webpack } = await import("webpack");
    const stats = await new Promise((resolve, reject) => {
      const done = (error, result) => (error ? reject(error) : resolve(result));
      webpack({ mode: "production", context: project, entry: main, output: { path: output, filename: "main.js" } }, done);
    });
    if (stats.hasErrors() || stats.compilation.warnings.some(({ message }) => /webrnn/.test(message))) throw new Error(stats.toString());
  },
  async esbuild(format = "esm") {
    const { build } = await import("esbuild");
    await build({ entryPoints: [main], bundle: true, format, minify: true, outdir: output, logLevel: "error" });
    copyFiles();
  },
  esbuild_iife: () => BUNDLERS.esbuild("iife"),
  async rollup() {
    const { rollup } = await import("rollup");
    const { nodeResolve } = await import("@rollup/plugin-node-resolve");
    const bundle = await rollup({ input: main, plugins: [nodeResolve()] });
    await bundle.write({ dir: output, format: "es" });
    copyFiles();
  },
};

await BUNDLERS[bundler]();
