// A guitar that the page plays itself: plucked strings after Karplus and Strong, always the same.

const BEAT = 60 / 104; // seconds
const RIFF = [
  // beat, length in beats, notes as semitones above the low E (82.4 Hz), how hard
  [0, 1.9, [0, 7, 12], 1],
  [2, 0.9, [0, 7, 12], 0.8],
  [3, 0.9, [3, 10, 15], 0.9],
  [4, 1.9, [5, 12, 17], 1],
  [6, 0.45, [15], 0.6],
  [6.5, 0.45, [17], 0.6],
  [7, 0.9, [19], 0.7],
  [8, 1.9, [0, 7, 12], 1],
  [10, 0.45, [22], 0.6],
  [10.5, 0.45, [19], 0.6],
  [11, 0.45, [17], 0.6],
  [11.5, 0.45, [15], 0.6],
  [12, 3.8, [0, 7, 12, 19, 24], 0.9],
];
const BEATS = 16;
const LOSS = 0.996; // of a string, each time around
const PEAK = 0.5;

/** The same numbers from -1 to 1 each time. */
function noise(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
}

/** A string is plucked: noise runs around in it and loses its high frequencies, until a finger stops it. */
function pluck(signal, start, { frequency, seconds, strength, rate, seed }) {
  const next = noise(seed);
  const period = rate / frequency - 0.5; // the mean of two neighbours delays by half a sample
  const length = Math.floor(period);
  const share = period - length;
  const string = new Float32Array(length + 1);
  let dull = 0;
  for (let i = 0; i < string.length; i++) string[i] = dull = 0.6 * dull + 0.4 * next();
  const [held, released] = [Math.floor(seconds * rate), Math.floor(0.03 * rate)];
  let [at, before] = [0, 0];
  for (let i = 0; i < held + released; i++) {
    const [here, there] = [string[at], string[(at + 1) % string.length]];
    const sample = here + share * (there - here);
    string[at] = (LOSS * (sample + before)) / 2;
    before = sample;
    at = (at + 1) % string.length;
    const fade = i < held ? 1 : 1 - (i - held) / released;
    signal[(start + i) % signal.length] += strength * fade * sample;
  }
}

/** Nine seconds at this rate; what rings at the end goes on at the beginning, so that it can be repeated. */
export function guitar(rate) {
  const signal = new Float32Array(Math.round(BEATS * BEAT * rate));
  let seed = 1;
  for (const [beat, beats, notes, strength] of RIFF) {
    notes.forEach((note, string) => {
      const start = Math.round((beat * BEAT + 0.012 * string) * rate); // from the low strings to the high ones
      const frequency = 82.4069 * 2 ** (note / 12);
      pluck(signal, start, { frequency, seconds: beats * BEAT, strength, rate, seed: seed++ });
    });
  }
  const peak = signal.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
  return signal.map((sample) => (PEAK * sample) / peak);
}
