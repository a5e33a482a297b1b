import { page } from "./webrnn_page.js";

page().then(postMessage, (error) => postMessage([String(error)]));
