// Sizes that a plan leaves open, for a page without Python: what they may be, the most plausible first. Whoever runs the plan tries
// them. Of models Python guesses, which sees the graph: runtime/webrnn/guesses.

const SECOND = 16000; // samples, as most models of speech have them
const LENGTHS = {
  samples: [SECOND, 10 * SECOND, 5 * SECOND, 3 * SECOND, 2 * SECOND, 1 << 14, SECOND / 2, 1536, 1024, 576, 512, 256, 128, 20],
  block: [512, 576, 256, 128, 1024, 480, 160, 320, 640, 1280, SECOND], // of samples, for a model that carries states
  frames: [200, 100, 50, 16, 300, 1000, 76, 8, 4, 1],
  tokens: [20, 16, 50, 8, 128, 2, 1],
  image: [32, 64, 224, 320, 128, 160],
  past: [1, 0, 8, 16],
  one: [1, 2],
};
const MOST_TRIES = 40;

const BATCH = /batch|^bs$|stream/i;
const FIRST = /^[nb]$/i; // a batch if it is the first axis
const CHANNELS = /chan|^c$/i;
const PAST = /past|cache|memory/i;
const TIME = /time|seq|frame|len|^t$/i;
const SOUND = /wav|audio|sample|signal|speech|pcm|sound/i;
const isFloat = (type) => type.startsWith("float");
const isOpen = (size) => typeof size !== "number";

/** One name for each open size; a size without a name is one of its own. */
export const sizeKey = ({ name, shape }, axis) => shape[axis] ?? `${name}, axis ${axis}`;

/** What kind of size an open axis is, by its name and by what is beside it. */
function kindOf(input, axis, states) {
  const { name, type, shape } = input;
  const called = shape[axis] ?? "";
  const others = shape.filter((_, i) => i !== axis);
  const isFirst = axis === 0 && (shape.length > 1 || FIRST.test(called));
  const isBatch = isFirst && !SOUND.test(called) && (shape.slice(1).some(isOpen) || !TIME.test(called));
  if (BATCH.test(called) || CHANNELS.test(called) || name in states || (isBatch && !PAST.test(called))) return "one";
  if (PAST.test(called) || PAST.test(name)) return "past";
  if (!isFloat(type)) return shape.length > 1 ? "tokens" : "one";
  const isImage = shape.length === 4 && others.filter(isOpen).length > 1;
  if (isImage) return axis === 1 ? "one" : "image";
  const known = others.filter((size) => typeof size === "number" && size > 1);
  const isLast = axis === shape.length - 1;
  if (SOUND.test(called) || (isLast && !known.length)) return Object.keys(states).length ? "block" : "samples";
  return known.length || shape.length === 1 ? "frames" : "one";
}

/** [{key, kind}] of all open sizes of a model, each once. `states` is {input: output}. */
function openSizes(inputs, states) {
  const kinds = new Map();
  for (const input of inputs) {
    input.shape.forEach((size, axis) => {
      const key = sizeKey(input, axis);
      if (isOpen(size) && (kinds.get(key) ?? "one") === "one") kinds.set(key, kindOf(input, axis, states));
    });
  }
  return [...kinds].map(([key, kind]) => ({ key, kind }));
}

/**
 * What to try, one after the other: {key: size} of every open size. First all sizes take their first guess, then all their
 * second one, and so on; then each one alone takes all of its guesses while the others keep their first.
 */
export function sizeGuesses(inputs, states = {}) {
  const open = openSizes(inputs, states);
  const at = (place) => Object.fromEntries(open.map(({ key, kind }) => [key, LENGTHS[kind][place(key, LENGTHS[kind].length)]]));
  const longest = Math.max(0, ...open.map(({ kind }) => LENGTHS[kind].length));
  const tries = [];
  for (let level = 0; level < longest; level++) tries.push(at((_, count) => (count > 2 ? Math.min(level, count - 1) : 0)));
  for (const { key, kind } of open) {
    for (let own = 1; own < LENGTHS[kind].length; own++) tries.push(at((other) => (other === key ? own : 0)));
  }
  const seen = new Set();
  const isNew = (sizes) => !seen.has(JSON.stringify(sizes)) && seen.add(JSON.stringify(sizes));
  return tries.filter(isNew).slice(0, MOST_TRIES);
}

/** The shapes of the inputs for some sizes. */
export const shapesFor = (inputs, sizes) =>
  Object.fromEntries(
    inputs.map((input) => [input.name, input.shape.map((size, axis) => (isOpen(size) ? sizes[sizeKey(input, axis)] : size))]),
  );

/** What an input is filled with unless a person says otherwise: "random", "zeros", "ones" or "length". */
export function fillOf({ name, type, shape }, isState) {
  if (isState) return "zeros";
  if (/mask/i.test(name)) return "ones";
  if (!isFloat(type) && shape.length <= 1 && /len/i.test(name)) return "length";
  return "random";
}

/** How many frames or samples there are, by the largest size that the model leaves open. */
export function lengthOf(inputs, shapes) {
  const open = inputs.flatMap(({ name, shape }) => shapes[name].filter((_, axis) => isOpen(shape[axis])));
  return Math.max(1, ...open);
}
