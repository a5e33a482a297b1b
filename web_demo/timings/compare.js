// Results of an engine beside those that were recorded natively.

/** Arrays one after the other in memory of their own. */
export function joined(arrays) {
  const all = new Float32Array(arrays.reduce((total, array) => total + array.length, 0));
  let at = 0;
  for (const array of arrays) {
    all.set(array, at);
    at += array.length;
  }
  return all;
}

/** The largest difference to `expected`, and which native builds gave the same bits. */
export async function compare(found, expected, digests) {
  if (found.length !== expected.length) throw new Error(`${found.length} numbers came out, not ${expected.length}`);
  const difference = found.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i])), 0);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", found));
  const digest = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const twins = Object.keys(digests).filter((spec) => digests[spec] === digest);
  return { difference, twins };
}
