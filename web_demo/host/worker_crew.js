// The workers of a WorkerPool: where each stream is, what is under way, and what happens when a worker dies.

import { fileUrl } from "./files.js";
import { StreamError } from "./plan_file.js";
import { errorOf } from "./thread_errors.js";
import { Waiting } from "./worker_feeds.js";
import { startWorker } from "./workers.js";

const SCRIPT = () => new URL("./worker_pool_worker.js", import.meta.url);
const LOAD_TIMEOUT = 60_000; // ms
const MOST_DEATHS = 3; // in a row, without anything answered between them

const ASKED = ["flush", "state", "loadState"]; // what somebody waits for

/** One place for a worker; if the worker dies, another one takes the place. */
class Seat {
  streams = new Map(); // by handle: {id, seat, snapshot, ticks}
  #crew;
  #worker = null;
  #pending = new Map();
  #waiting = new Waiting(); // feeds for the next tick
  #number = 0;
  #back = []; // arrays that the worker may use again
  #deaths = 0;
  #wasLoaded = false;
  #lockName = null;
  #lock = null; // ends the wait for the worker's lock

  constructor(crew, index) {
    this.#crew = crew;
    this.index = index;
  }

  start() {
    const worker = startWorker(
      fileUrl("worker_pool_worker.js", SCRIPT),
      (message) => worker === this.#worker && this.#hear(message),
      (reason) => worker === this.#worker && this.#die(reason),
    );
    this.#worker = worker;
    const locks = globalThis.Worker && globalThis.navigator?.locks;
    this.#lockName = locks ? `webrnn-${crypto.randomUUID()}` : null;
    return this.ask("load", { ...this.#crew.order, lock: this.#lockName });
  }

  /** A worker has a lock as long as it lives. Nothing else says that it was terminated. */
  #watch(lock) {
    const worker = this.#worker;
    this.#lock = new AbortController();
    const ended = () => worker === this.#worker && this.#die("it has ended");
    navigator.locks.request(lock, { signal: this.#lock.signal }, ended).catch(() => {}); // nobody waits any more
  }

  ask(act, given, transfer = []) {
    const number = this.#number++;
    return new Promise((resolve, reject) => {
      // Until it is loaded, nothing says that a worker has ended.
      const timeout = act === "load" ? Math.min(LOAD_TIMEOUT, this.#crew.options.timeout) : this.#crew.options.timeout;
      const late = () => this.#pending.has(number) && this.#die(`it did not answer within ${timeout} ms`);
      const timer = timeout === Infinity ? null : setTimeout(late, timeout);
      this.#pending.set(number, { act, resolve, reject, timer });
      this.#worker.postMessage({ number, act, ...given }, transfer);
    });
  }

  #hear({ number, result, error }) {
    const { act, resolve, reject, timer } = this.#pending.get(number);
    this.#pending.delete(number);
    clearTimeout(timer);
    if (error) {
      reject(errorOf(error));
      return;
    }
    if (act === "load") {
      this.#wasLoaded = true;
      if (this.#lockName) this.#watch(this.#lockName);
    }
    if (act === "tick") {
      this.#deaths = 0;
      this.#waiting.spare.add(result.read);
    }
    for (const [id, snapshot] of result?.snapshots ?? []) {
      const stream = this.streams.get(id);
      if (stream) Object.assign(stream, { snapshot, ticks: 0 });
    }
    resolve(result);
  }

  #leave() {
    this.#lock?.abort();
    this.#worker?.terminate();
    this.#worker = null;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { timer } of pending) clearTimeout(timer);
    return pending;
  }

  /** Lets another worker take the place; streams go on from their last snapshots. */
  #die(reason) {
    const pending = this.#leave();
    const text = `worker ${this.index} has died: ${reason}`;
    if (!this.#wasLoaded || ++this.#deaths > MOST_DEATHS) {
      this.#crew.fail(new StreamError(this.#wasLoaded ? `${text}, ${this.#deaths} times in a row` : text));
      for (const { reject } of pending) reject(this.#crew.failure);
      return;
    }
    this.start().catch((error) => this.#crew.fail(error));
    const streams = [...this.streams.values()].map((stream) => {
      const { id, snapshot, ticks } = stream;
      stream.ticks = 0;
      this.#tell("open", { id, state: snapshot });
      return { handle: id, lostTicks: ticks, hasSnapshot: snapshot !== null };
    });
    for (const { act, resolve, reject } of pending) {
      if (ASKED.includes(act)) reject(new StreamError(text));
      else resolve({}); // of a tick: the results of its streams are lost
    }
    this.#crew.restarted({ worker: this.index, reason, streams });
  }

  /** Asks for what nobody waits for. */
  #tell(act, given) {
    this.ask(act, given).catch((error) => this.#worker && this.#crew.fail(error));
  }

  open(id) {
    const stream = { id, seat: this, snapshot: null, ticks: 0 };
    this.streams.set(id, stream);
    this.#tell("open", { id, state: null });
    return stream;
  }

  close({ id }) {
    this.streams.delete(id);
    this.#waiting.remove(id);
    this.#tell("close", { id });
  }

  /** Lets the worker use arrays of results again. */
  giveBack(arrays) {
    this.#back.push(...arrays);
  }

  submit(stream, feeds) {
    this.#waiting.add(stream.id, feeds);
  }

  submitRow(stream, row, feeds, lengths) {
    this.#waiting.addRow(stream.id, row, feeds, lengths);
  }

  /** A tick of the streams that wait, null if none does; what is wrong with all of it comes as {error}. */
  tick() {
    const { groups, buffers } = this.#waiting.take();
    if (!groups.length) return null;
    for (const { ids } of groups) for (const id of ids) this.streams.get(id).ticks++;
    const back = this.#back.splice(0);
    const asked = this.ask("tick", { groups, back }, [...buffers, ...back.map(({ buffer }) => buffer)]);
    return asked.then((part) => ({ ...part, seat: this }), (error) => ({ error }));
  }

  end(error) {
    for (const { reject } of this.#leave()) reject(error);
  }
}

export class Crew {
  restarts = 0;
  onRestart = () => {};
  failure = null; // why nothing works any more
  #seats;

  /** `order` is what each worker loads. */
  constructor(order, options) {
    this.order = order;
    this.options = options;
    this.#seats = Array.from({ length: options.workers }, (_, index) => new Seat(this, index));
  }

  /** What the workers say of their pools. */
  async start() {
    const [first] = await Promise.all(this.#seats.map((seat) => seat.start()));
    return first;
  }

  get loads() {
    return this.#seats.map(({ streams }) => streams.size);
  }

  check() {
    if (this.failure) throw this.failure;
  }

  fail(error) {
    if (this.failure) return;
    this.failure = error;
    for (const seat of this.#seats) seat.end(error);
  }

  restarted(detail) {
    this.restarts++;
    this.onRestart(detail);
  }

  /** A new stream, where there are fewest. */
  place(id) {
    const least = this.#seats.reduce((best, seat) => (seat.streams.size < best.streams.size ? seat : best));
    return least.open(id);
  }

  remove(stream) {
    stream.seat.close(stream);
  }

  /** A promise for each worker that has something to do. */
  tick() {
    return this.#seats.map((seat) => seat.tick()).filter(Boolean);
  }

  async ask(stream, act, given) {
    const result = await stream.seat.ask(act, { id: stream.id, ...given });
    // From here on it would go on from what it is now.
    if (act === "flush") Object.assign(stream, { snapshot: null, ticks: 0 });
    if (act === "loadState") Object.assign(stream, { snapshot: given.state, ticks: 0 });
    return result;
  }

  dispose() {
    this.fail(new StreamError("the pool has been disposed of"));
  }
}
