// What is seen before anybody presses play: runtime/webrnn/demo/preview.py has computed it.

import { download } from "../page/files.js";

/** {before, after: {levels, highs, columns, rows}, voice: [{time, value}]} of the file. */
export async function loadPreview({ file, columns, rows, seconds, probabilities }) {
  const bytes = await download(file);
  let at = 0;
  const take = (count) => bytes.subarray(at, (at += count));
  const picture = () => ({ levels: take(columns * rows), highs: take(columns), columns, rows });
  const [before, after] = [picture(), picture()];
  const values = take(probabilities);
  if (values.length < probabilities) throw new Error(`${file} ends before its data do`);
  const voice = Array.from(values, (value, i) => ({ time: ((i + 1) * seconds) / probabilities, value: value / 255 }));
  return { before, after, voice };
}
