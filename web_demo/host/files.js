// Where the files of this package are: modules of kernels, scripts of workers and of the audio thread, plans.
//
// Each is named once, as a URL of its name, spelled out, and import.meta.url: bundlers look for exactly this form, copy the file
// and put its new address there. Scripts among the files import nothing, so a copy runs wherever it is.

const IS_OURS = { isOurs: true };
let folder = null;
const script = globalThis.document?.currentScript?.src; // of a bundle that is no module: import.meta has no URL there

/** The files are in this folder; null: beside the script. */
export function setFiles(url) {
  if (url !== null && typeof url !== "string" && typeof url?.href !== "string") {
    throw new TypeError(`setFiles: the address of a folder is expected, or null, not ${typeof url}`);
  }
  folder = url === null ? null : new URL(String(url).replace(/\/?$/, "/"), globalThis.location?.href);
}

/** The address of a file, `beside()` if nobody has said where files are. */
export function fileUrl(name, beside) {
  const page = globalThis.location?.href;
  if (folder) return Object.assign(new URL(name, folder), IS_OURS);
  try {
    // Vite up to version 7 has packages in a folder of its own while it develops, and leaves their files where they are.
    // Turbopack's addresses are paths.
    return Object.assign(new URL(beside().href.replace("/.vite/deps/", "/webrnn/"), page), IS_OURS);
  } catch {
    return Object.assign(new URL(name, script ?? page), IS_OURS);
  }
}

/** Why something could not be loaded from an address, and what to do if it is a file of this package. */
export const notLoaded = (url, why) =>
  `${url.pathname} could not be loaded: ${why}${url.isOurs ? "; does your bundler copy no files? `npx webrnn-files` does, setFiles() says where they are" : ""}`;
