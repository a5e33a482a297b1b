// A worker of a WorkerPool: one model, one pool. Messages come and are answered in their order.

import { openPool } from "./pool.js";
import { Model } from "./model.js";
import { described } from "./thread_errors.js";
import { answer, listen } from "./thread_port.js";
import { Spare } from "./worker_feeds.js";

const handles = new Map(); // of the pool, by those of the WorkerPool
let pool = null;
let snapshotEvery = 0;
let ticks = 0;
const spare = new Spare();
const isChanged = new Set(); // streams that ticked since the last snapshot

/** Submits the feeds of streams that have arrays of the same lengths; pushes what is wrong with some of them. */
function submit({ ids, feeds }, failures) {
  try {
    pool.submitMany(ids.map((id) => handles.get(id)), feeds);
    return;
  } catch {
    // Some may still be right.
  }
  const rowOf = ([name, { data, shape }], i) => {
    const length = data.length / ids.length;
    return [name, { data: data.subarray(i * length, (i + 1) * length), shape }];
  };
  ids.forEach((id, i) => {
    try {
      pool.submit(handles.get(id), Object.fromEntries(Object.entries(feeds).map((feed) => rowOf(feed, i))));
    } catch (error) {
      failures.push([id, described(error)]);
    }
  });
}

/** Results one stream after the other, and how long those of each are. */
function packed(results, ids) {
  const rows = ids.map((id) => results.get(handles.get(id)));
  return Object.keys(rows[0] ?? {}).map((name) => {
    const lengths = rows.map((row) => row[name].length);
    const data = spare.take(rows[0][name].constructor, lengths.reduce((a, b) => a + b, 0));
    let at = 0;
    for (const row of rows) {
      data.set(row[name], at);
      at += row[name].length;
    }
    return { name, data, lengths: Uint32Array.from(lengths) };
  });
}

function tick({ groups, back }) {
  spare.add(back);
  const failures = [];
  for (const group of groups) submit(group, failures);
  const failed = new Set(failures.map(([id]) => id));
  const ids = groups.flatMap((group) => group.ids).filter((id) => !failed.has(id));
  const results = pool.tick({ borrow: true });
  const outputs = packed(results, ids);
  for (const id of ids) isChanged.add(id);
  const isDue = snapshotEvery > 0 && ++ticks % snapshotEvery === 0;
  const snapshots = isDue ? [...isChanged].map((id) => [id, pool.state(handles.get(id))]) : [];
  if (isDue) isChanged.clear();
  const read = groups.flatMap(({ feeds }) => Object.values(feeds).map(({ data }) => new data.constructor(data.buffer)));
  return { ids, outputs, failures, snapshots, read };
}

const ACTS = {
  load({ plan, wasm, variant, limits, options, snapshotEvery: every }) {
    snapshotEvery = every;
    const model = Model.loadSync(plan, { wasm, variant, limits });
    pool = openPool(model, options);
    const { batched, reason, delay, stride } = pool;
    const fed = model.inputs.filter(({ name }) => !Object.hasOwn(model.carry, name));
    return { batched, reason, delay, stride, inputs: fed.map(({ name }) => name) };
  },
  open({ id, state }) {
    const handle = pool.open();
    handles.set(id, handle);
    if (state) pool.load(handle, state);
  },
  close({ id }) {
    pool.close(handles.get(id));
    handles.delete(id);
    isChanged.delete(id);
  },
  tick,
  flush: ({ id }) => {
    isChanged.add(id);
    return pool.flush(handles.get(id));
  },
  state: ({ id }) => pool.state(handles.get(id)),
  loadState: ({ id, state }) => {
    pool.load(handles.get(id), state);
    isChanged.add(id);
  },
};

let waiting = null; // messages, until the worker has its lock

/** Holds a lock until the worker ends, however it does: whoever waits for it knows then. Nothing is answered before. */
function hold(lock) {
  const goOn = () => {
    const messages = waiting ?? [];
    waiting = null;
    for (const message of messages) answer(ACTS, message);
  };
  const forever = () => {
    goOn();
    return new Promise(() => {});
  };
  navigator.locks.request(lock, forever).catch(goOn);
}

function hear(message) {
  if (waiting) {
    waiting.push(message);
  } else if (message.lock) {
    waiting = [message];
    hold(message.lock);
  } else {
    answer(ACTS, message);
  }
}

listen(hear);
