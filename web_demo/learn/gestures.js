// Gestures: paths of points {x, y} in a square of side 1, and what the network sees of them.

export const KINDS = ["Circle", "Zigzag", "Tick"];
export const STEPS = 24; // of the network
const SCALE = 8; // so that steps are numbers around 1

/** Points at equal distances along a path. */
function resampled(points, count) {
  const lengths = [0];
  for (let i = 1; i < points.length; i++) {
    lengths.push(lengths[i - 1] + Math.hypot(points[i].x - points[i - 1].x, points[i].y - points[i - 1].y));
  }
  const total = lengths.at(-1);
  let at = 1;
  return Array.from({ length: count }, (_, i) => {
    const wanted = (total * i) / (count - 1);
    while (at < points.length - 1 && lengths[at] < wanted) at++;
    const part = (wanted - lengths[at - 1]) / (lengths[at] - lengths[at - 1] || 1);
    const [a, b] = [points[at - 1], points[at]];
    return { x: a.x + (b.x - a.x) * Math.min(part, 1), y: a.y + (b.y - a.y) * Math.min(part, 1) };
  });
}

/** Steps along the path, [STEPS, 2], whatever its place, size and speed were; null if it is too short to be one. */
export function features(points) {
  if (points.length < 2) return null;
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  const size = Math.max(Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys));
  if (size < 0.05) return null;
  const path = resampled(points, STEPS + 1);
  const found = new Float32Array(2 * STEPS);
  for (let i = 0; i < STEPS; i++) {
    found[2 * i] = ((path[i + 1].x - path[i].x) / size) * SCALE;
    found[2 * i + 1] = ((path[i + 1].y - path[i].y) / size) * SCALE;
  }
  return found;
}

/** Random numbers in [0, 1) that are the same for the same seed. */
export function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const between = (random, low, high) => low + (high - low) * random();

function circle(random) {
  const [start, turn] = [between(random, -2.2, -1), random() < 0.8 ? 1 : -1];
  const [wide, high] = [between(random, 0.25, 0.38), between(random, 0.25, 0.38)];
  return Array.from({ length: 40 }, (_, i) => {
    const angle = start + turn * (i / 39) * between(random, 6.1, 6.5);
    return { x: 0.5 + wide * Math.cos(angle), y: 0.5 + high * Math.sin(angle) };
  });
}

function corners(points, random) {
  const path = [];
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]];
    for (let part = 0; part < 10; part++) path.push({ x: a.x + ((b.x - a.x) * part) / 10, y: a.y + ((b.y - a.y) * part) / 10 });
  }
  path.push(points.at(-1));
  return path.map(({ x, y }) => ({ x: x + between(random, -0.006, 0.006), y: y + between(random, -0.006, 0.006) }));
}

function zigzag(random) {
  const teeth = 4 + Math.floor(2 * random());
  const [top, bottom] = [between(random, 0.25, 0.38), between(random, 0.62, 0.75)];
  const points = Array.from({ length: teeth + 1 }, (_, i) => ({
    x: 0.12 + (0.76 * i) / teeth + between(random, -0.03, 0.03),
    y: (i % 2 ? top : bottom) + between(random, -0.04, 0.04),
  }));
  return corners(points, random);
}

function tick(random) {
  const middle = { x: between(random, 0.32, 0.42), y: between(random, 0.7, 0.82) };
  const start = { x: between(random, 0.12, 0.22), y: between(random, 0.48, 0.6) };
  return corners([start, middle, { x: between(random, 0.78, 0.9), y: between(random, 0.15, 0.3) }], random);
}

/** A gesture of a kind as a hand might draw it. */
export const drawn = (kind, random) => [circle, zigzag, tick][kind](random);
