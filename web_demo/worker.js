import { measure } from "./measure.js";

const progress = (fraction, text) => postMessage({ progress: { fraction, text } });

measure(new URL("./", import.meta.url), progress).then(
  (results) => postMessage({ results }),
  (error) => postMessage({ error: error.message }),
);
