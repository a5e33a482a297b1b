// Examples that can be run: the code can be changed, and its output stands below it. Python and JavaScript run in workers.

const RUNNERS = { python: "Python", javascript: "JavaScript" };
const remotes = new Map();

/** One worker for each language, for all examples of the page. */
async function remote(runner) {
  if (!remotes.has(runner)) {
    const { Remote } = await import("../playground/page/remote.js");
    remotes.set(runner, new Remote(new URL(`./live/${runner}.js`, import.meta.url)));
  }
  return remotes.get(runner);
}

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function live(block) {
  const { runner } = block.dataset;
  const code = block.querySelector("code");
  const original = code.innerHTML;
  const text = code.textContent;
  const box = block.querySelector("pre");
  box.removeAttribute("tabindex");
  for (const [name, value] of Object.entries({
    contenteditable: "plaintext-only",
    role: "textbox",
    "aria-multiline": "true",
    "aria-label": `${RUNNERS[runner]} example, can be changed`,
    spellcheck: "false",
    tabindex: "0",
    autocapitalize: "off",
  }))
    code.setAttribute(name, value);
  const run = element("button", { type: "button", class: "run" }, "Run");
  const reset = element("button", { type: "button", class: "reset", hidden: "" }, "Reset");
  const state = element("span", { class: "state", role: "status" }, RUNNERS[runner]);
  const output = element("pre", { class: "output", hidden: "", tabindex: "0", "aria-label": "Output", role: "region" });
  block.append(element("div", { class: "bar" }, state, reset, run), output);

  code.addEventListener("input", () => (reset.hidden = code.textContent === text));
  code.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.shiftKey || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run.click();
    }
  });
  reset.addEventListener("click", () => {
    code.innerHTML = original;
    reset.hidden = true;
  });

  let worker = null;
  const stop = () => {
    worker?.end();
    remotes.delete(runner);
  };
  run.addEventListener("click", async () => {
    if (block.dataset.state === "running") return stop();
    block.dataset.state = "running";
    run.textContent = "Stop";
    output.hidden = true;
    output.replaceChildren();
    const write = (written, kind = "") => {
      output.append(kind ? element("span", { class: kind }, written) : written);
      output.hidden = false;
    };
    const progress = (kind, told) => {
      if (kind === "output") write(told);
      else state.textContent = told;
    };
    try {
      worker = await remote(runner);
      const { error } = await worker.call("run", { code: code.innerText }, { progress });
      if (error) write(error, "error");
      else if (output.hidden) write("(no output)", "quiet");
      block.dataset.state = error ? "failed" : "done";
    } catch (error) {
      stop();
      write(error.name === "AbortError" ? "stopped" : error.message, "error");
      block.dataset.state = "failed";
    } finally {
      worker = null;
      state.textContent = RUNNERS[runner];
      run.textContent = "Run";
    }
  });
}

for (const block of document.querySelectorAll(".live")) live(block);
