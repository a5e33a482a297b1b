// Downloads that say how far they are.

/** The bytes of a file of this site; `progress(text, fraction)` is called as they come. */
export async function download(path, progress = () => {}) {
  const name = path.split("/").at(-1);
  const response = await fetch(new URL(`../${path}`, import.meta.url));
  if (!response.ok) throw new Error(`${name} could not be loaded: HTTP ${response.status}`);
  const total = Number(response.headers.get("Content-Length"));
  const parts = [];
  let received = 0;
  for await (const part of chunks(response.body)) {
    parts.push(part);
    received += part.length;
    progress(`Downloading ${name}`, total ? received / total : null);
  }
  const bytes = new Uint8Array(received);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

async function* chunks(body) {
  const reader = body.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
}

export async function downloadJson(path) {
  const bytes = await download(path);
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    throw new Error(`${path} is not valid JSON: ${error.message}`, { cause: error });
  }
}

/** Hands a file to the person in front of the page. */
export function save(bytes, name) {
  const url = URL.createObjectURL(new Blob([bytes]));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
