import { limits, page } from "./webrnn_page.js";

Promise.all([page(), limits()]).then((found) => postMessage(found.flat()), (error) => postMessage([String(error)]));
