// Calls of functions in a worker: {id, name, value} there, {id, value | error} or {id, progress} back.

export class Remote {
  #worker;
  #pending = new Map();
  #next = 0;

  constructor(url) {
    this.#worker = new Worker(url, { type: "module" });
    this.#worker.onmessage = ({ data }) => this.#receive(data);
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#fail(new Error(`${url.pathname} could not run: ${event.message || "a file of the page is missing"}`));
    };
  }

  /** The result of function `name` of the worker; `progress(text, fraction)` is called meanwhile. */
  call(name, value, { transfer = [], progress = () => {} } = {}) {
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#pending.set(id, { resolve, reject, progress });
      this.#worker.postMessage({ id, name, value }, transfer);
    });
  }

  /** Ends the worker, whatever it does. */
  end() {
    this.#worker.terminate();
    this.#fail(new DOMException("stopped", "AbortError"));
  }

  #receive({ id, progress, error, value }) {
    const call = this.#pending.get(id);
    if (!call) return;
    if (progress) return call.progress(...progress);
    this.#pending.delete(id);
    if (error) call.reject(Object.assign(new Error(error.message), error));
    else call.resolve(value);
  }

  #fail(error) {
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}

/** In a worker: answers calls with `functions`, each `(value, progress) => result`, one after the other. */
export function answer(functions) {
  let last = Promise.resolve();
  globalThis.onmessage = ({ data: { id, name, value } }) => {
    const progress = (...state) => postMessage({ id, progress: state });
    last = last.then(async () => {
      try {
        const { transfer = [], ...result } = (await functions[name](value, progress)) ?? {};
        postMessage({ id, value: result }, transfer);
      } catch (error) {
        const { message, name: kind, details } = error;
        postMessage({ id, error: { message, kind: error.kind ?? kind, details } });
      }
    });
  };
}
