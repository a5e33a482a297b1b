// The search: every section of every page, looked through in the browser. The index is loaded when somebody begins.

const MOST = 12;
const AROUND = 70;

const root = new URL("../", import.meta.url);
let loading = null;

const index = () =>
  (loading ??= fetch(new URL("static/search.json", root))
    .then((response) => {
      if (!response.ok) throw new Error(`search.json: ${response.status}`);
      return response.json();
    })
    .then((rows) =>
      rows.map(([page, title, heading, anchor, text]) => ({
        page,
        title,
        heading,
        anchor,
        text,
        inHeading: heading.toLowerCase(),
        inTitle: title.toLowerCase(),
        inText: text.toLowerCase(),
      })),
    )
    .catch((error) => {
      loading = null; // the next letter tries again
      throw error;
    }));

/** How well a section fits: each word has to be somewhere; the beginning of a word in a heading counts most. */
export function score(section, words) {
  let sum = 0;
  for (const word of words) {
    const start = new RegExp(`(^|[^\\p{L}\\p{N}])${RegExp.escape?.(word) ?? word.replace(/[^\w\s]/g, "\\$&")}`, "u");
    let found = 0;
    if (start.test(section.inHeading)) found += section.inHeading === word ? 40 : 12;
    else if (section.inHeading.includes(word)) found += 6;
    if (start.test(section.inTitle)) found += 5;
    if (start.test(section.inText)) found += 3;
    else if (section.inText.includes(word)) found += 1;
    if (!found) return 0;
    sum += found;
  }
  return section.page.startsWith("changelog") || section.page === "docs/notes.html" ? sum / 3 : sum;
}

export const find = (sections, text) => {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  return sections
    .map((section) => [score(section, words), section])
    .filter(([points]) => points > 0)
    .toSorted(([a], [b]) => b - a)
    .slice(0, MOST)
    .map(([, section]) => ({ ...section, ...excerpt(section, words) }));
};

/** A few words around the first place where one is found, cut so that it can be marked. */
function excerpt({ text, inText }, words) {
  const places = words.map((word) => [inText.indexOf(word), word]).filter(([at]) => at >= 0);
  if (!places.length) return { before: text.slice(0, 2 * AROUND), marked: "", after: "" };
  const [at, word] = places[0];
  const from = at <= AROUND ? 0 : text.indexOf(" ", at - AROUND) + 1;
  return {
    before: (from ? "… " : "") + text.slice(from, at),
    marked: text.slice(at, at + word.length),
    after: text.slice(at + word.length, at + word.length + AROUND),
  };
}

function row({ page, title, heading, anchor, before, marked, after }) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = new URL(`${page}${anchor ? `#${anchor}` : ""}`, root);
  const head = document.createElement("b");
  head.textContent = heading || title;
  const where = document.createElement("span");
  where.className = "where";
  where.textContent = heading === title ? "" : title;
  const text = document.createElement("span");
  text.className = "text";
  const mark = document.createElement("mark");
  mark.textContent = marked;
  text.append(before, mark, after);
  link.append(head, where, text);
  item.append(link);
  return item;
}

export function search(input, list, status) {
  const close = () => (list.hidden = true);
  const show = async () => {
    const text = input.value;
    if (!text.trim()) {
      status.textContent = "";
      return close();
    }
    try {
      const found = find(await index(), text);
      if (text !== input.value) return;
      list.replaceChildren(...found.map(row));
      status.textContent = found.length ? `${found.length} sections found` : "Nothing found";
      if (!found.length) {
        const none = document.createElement("li");
        none.className = "none";
        none.textContent = `Nothing found for “${text}”`;
        list.append(none);
      }
    } catch (error) {
      status.textContent = `The search did not load: ${error.message}`;
    }
    list.hidden = false;
  };
  const links = () => [...list.querySelectorAll("a")];
  const move = (step) => {
    const all = [input, ...links()];
    all.at((all.indexOf(document.activeElement) + step + all.length) % all.length).focus();
  };
  input.addEventListener("focus", () => void index().catch(() => {}));
  input.addEventListener("input", show);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") links()[0]?.click();
  });
  input.parentElement.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Escape") {
      close();
      input.focus();
    } else return;
    event.preventDefault();
  });
  list.addEventListener("click", close);
  document.addEventListener("pointerdown", (event) => {
    if (!input.parentElement.contains(event.target)) close();
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, [contenteditable]");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      input.focus();
    }
  });
}
