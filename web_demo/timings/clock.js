// How long something takes, by a clock that browsers round.

const CALM_SHARE = 1 / 10;
const FEWEST_CALM = 3;
const BUSY = 1.25;

const median = (sorted) => sorted[sorted.length >> 1];

/**
 * What rounds say of a run, as `webrnn bench` reads them: its time in the calmest ones, and whether the machine did other
 * things meanwhile, so that most took longer or not even the calmest agree.
 */
export function calmest(samples) {
  const sorted = samples.toSorted((a, b) => a - b);
  const calm = sorted.slice(0, Math.max(FEWEST_CALM, Math.round(CALM_SHARE * sorted.length)));
  const ms = median(calm);
  return { ms, isBusy: median(sorted) > BUSY * ms || calm.at(-1) > BUSY * calm[0] };
}

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
