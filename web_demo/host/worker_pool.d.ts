import type { PoolOptions } from "./pool.js";
import type { Arrays, Feeds, FeedsOf, Limits, Results, Source, Variant } from "./webrnn.js";

export interface WorkerPoolOptions extends PoolOptions {
  /** How many workers: as many as there are cores unless given. */
  workers?: number;
  /** After so many ticks of a worker it sends the states of its streams: 32 unless given; 0 is never. If it dies, they go
   * on from there. */
  snapshotEvery?: number;
  /** So many ticks may be under way: 4 unless given. */
  maxTicks?: number;
  /** A worker that does not answer within so many ms is replaced; Infinity unless given. */
  timeout?: number;
  variant?: Variant;
  wasm?: WebAssembly.Module | Source;
  limits?: Limits;
}

/** What a "restart" event says in `detail`: a worker has died, and another one took its place. */
export interface Restart {
  readonly worker: number;
  readonly reason: string;
  /** Its streams. Each goes on from its last snapshot, `lostTicks` ticks ago, or from its start if it has none. */
  readonly streams: readonly { readonly handle: number; readonly lostTicks: number; readonly hasSnapshot: boolean }[];
}

/** Pools of streams in several workers. Workers share one compiled module, and one copy of the plan where SharedArrayBuffer
 * is allowed: in pages that are cross-origin isolated, and in Node. */
export class WorkerPool<Out extends Arrays<Out> = Results, In extends Arrays<In> = Results> extends EventTarget {
  private constructor();
  static load<Out extends Arrays<Out> = Results, In extends Arrays<In> = Results>(
    source: Source | Blob | Response,
    options?: WorkerPoolOptions,
  ): Promise<WorkerPool<Out, In>>;
  /** A new stream, on the worker that has fewest. Raises StreamError if the pool is full. */
  open(): number;
  close(handle: number): void;
  /** Hands in what a stream gets in the next tick. It is copied. */
  submit(handle: number, feeds: FeedsOf<In>): void;
  /** The same for many streams, which get as many elements each, as of a StreamPool. */
  submitMany(handles: Iterable<number>, feeds: FeedsOf<In>): void;
  /** Runs all streams that have feeds. Rejects with StreamError if `maxTicks` are under way; what was submitted stays. If
   * feeds of some streams are wrong, it rejects with that error, and `error.results` are those of the others. Streams whose
   * worker died meanwhile are not among the results.
   *
   * With `out` results are copied into these arrays, by the names of outputs: those of one stream after those of another, in
   * the order of submission. Memory is used again then. If they do not fit, or a worker died, it rejects with
   * `error.results`: the streams have moved on. */
  tick(options?: { out?: undefined }): Promise<Map<number, Out>>;
  tick<Target extends Results>(options: { out: Target }): Promise<Target>;
  /** Resolves as soon as another tick may begin. */
  ready(): Promise<void>;
  /** As those of a StreamPool, when the ticks before are done. */
  flush(handle: number): Promise<Out>;
  state(handle: number): Promise<Results>;
  load(handle: number, state: Feeds): Promise<void>;
  addEventListener(type: "restart", listener: (event: Event & { readonly detail: Restart }) => void): void;
  addEventListener(
    type: string, callback: EventListenerOrEventListenerObject | null, options?: boolean | AddEventListenerOptions,
  ): void;
  /** How often a worker was replaced. */
  readonly restarts: number;
  readonly workers: number;
  /** How many streams are open, and how many each worker has. */
  readonly size: number;
  readonly loads: readonly number[];
  readonly batched: boolean;
  readonly reason: string;
  readonly delay: number;
  readonly stride: number;
  /** Ends the workers. Any other call raises StreamError then. */
  dispose(): void;
}
