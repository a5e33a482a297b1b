// How long something takes, by a clock that browsers round.

export const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** Milliseconds of `count` runs; `run` may be asynchronous. */
export async function timed(run, count) {
  const start = performance.now();
  for (let i = 0; i < count; i++) {
    const result = run();
    if (result instanceof Promise) await result;
  }
  return performance.now() - start;
}

/** Runs until the optimizing compiler has taken over; returns how many runs fill a slice. */
export async function warmUp(run, { warmUpMs, sliceMs }) {
  const end = performance.now() + warmUpMs;
  let runs = 1;
  let elapsed = 0;
  do {
    elapsed = await timed(run, runs);
    if (elapsed < sliceMs) runs *= 2;
  } while (performance.now() < end);
  return Math.max(1, Math.round((runs * sliceMs) / Math.max(elapsed, 0.1)));
}
