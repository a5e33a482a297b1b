// Runs that are ended by their limits, in Node, a page, a worker and an AudioWorklet.

const MANY = 2n ** 31n - 1n;

/** What was wrong; `load(file, limits)` gives a model. */
export async function checkLimits({ LimitError, ModelError }, load) {
  const found = [];
  const expect = (what, given, wanted) => {
    if (given !== wanted) found.push(`${what}: ${given}, not ${wanted}`);
  };
  const ended = (what, run, limit, nodes) => {
    try {
      run();
      found.push(`${what}: it came to an end`);
    } catch (error) {
      expect(what, error instanceof LimitError && error instanceof ModelError, true);
      expect(what, `${error.name} ${error.limit}`, `LimitError ${limit}`);
      expect(what, nodes.includes(error.node), true);
      expect(what, error.message.endsWith(`limits: { ${limit} } allow more`), true);
    }
  };
  const ANY = { loopSteps: Infinity, runSteps: Infinity };
  for (const file of ["nested_loops", "endless_sequence"]) {
    for (const [limits, limit] of [
      [undefined, "loopSteps"],
      [{ loopSteps: Infinity, runSteps: 500_000_000 }, "runSteps"],
      [{ loopSteps: Infinity, runSteps: 5 }, "runSteps"],
      [{ ...ANY, seconds: 0.05 }, "seconds"],
    ]) {
      const model = await load(file, limits);
      for (const time of ["first", "second"]) ended(`${file}, ${limit}, ${time}`, () => model.run({}), limit, ["endless"]);
    }
  }

  // [n, 4] loops that add 1 in each step of the inner one
  for (const [limits, most, limit] of [
    [{ loopSteps: Infinity, runSteps: 15 }, 3n, "runSteps"],
    [{ loopSteps: 4 }, 4n, "loopSteps"],
    [{ ...ANY, seconds: 0.05 }, 5n, "seconds"],
  ]) {
    const stream = (await load("counted_loops", limits)).stream({ carry: { x: "y" } });
    const step = (n) => stream.step({ n0: BigInt64Array.of(n) });
    step(most);
    for (const n of limit === "seconds" ? [MANY] : [most + 1n, MANY]) {
      ended(`stream, ${limit}, ${n}`, () => step(n), limit, ["loop0", "loop1"]);
      expect("state", stream.state.x[0], 4 * Number(most));
    }
    step(most);
    expect("state afterwards", stream.state.x[0], 8 * Number(most));
  }
  for (const limits of [{ steps: 1 }, { loopSteps: 0 }, { runSteps: 1.5 }, { seconds: -1 }, { seconds: NaN }, { seconds: "1" }]) {
    const refused = await Promise.resolve()
      .then(() => load("nested_loops", limits))
      .then(() => "taken", (error) => error.name);
    expect(JSON.stringify(limits), refused, "WebrnnError");
  }
  return found;
}
