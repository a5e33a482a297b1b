// Where the files of this package are: modules of kernels, scripts of workers and of the audio thread, plans.
//
// Each is named once, as a URL of its name, spelled out, and import.meta.url: bundlers look for exactly this form, copy the file
// and put its new address there. Scripts among the files import nothing, so a copy runs wherever it is.

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
  if (folder) return new URL(name, folder);
  try {
    // Vite up to version 7 has packages in a folder of its own while it develops, and leaves their files where they are.
    return new URL(beside().href.replace("/.vite/deps/", "/webrnn/"));
  } catch {
    return new URL(name, script ?? globalThis.location?.href);
  }
}
