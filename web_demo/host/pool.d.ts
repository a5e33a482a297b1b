import type { Arrays, Feeds, FeedsOf, Model, Results } from "./webrnn.js";

/** Importing this module makes `model.pool()` work. `Model.load` imports it by itself for plans that were exported with
 * pool=True; import it yourself for other plans, and where import() is not allowed: in an AudioWorklet and in a service
 * worker. */

export interface PoolOptions {
  /** So many streams may be open: 64 unless given. */
  maxStreams?: number;
  /** More streams than this are run in several batches; as many as `maxStreams` unless given. */
  maxBatch?: number;
  /** Numbers for named sizes, so that feeds need no shapes. */
  sizes?: Readonly<Record<string, number>>;
}

export interface TickOptions {
  /** Results are views instead of copies, and nothing is allocated; they are valid until the next call on this model, its
   * streams and pools. The returned map and its objects are the same each time. */
  borrow?: boolean;
  /** Results are copied into these arrays, by the names of outputs: those of one stream after those of another, in the
   * order in which they were submitted. Outputs that are left out are not copied; this very object is returned. */
  out?: Results;
}

/** Streams that come and go, one run a tick. What a stream gets does not depend on the others, bit for bit. A call that
 * raises leaves all streams as they were; a tick that raises has dropped what was submitted for it. */
export interface StreamPool<Out extends Arrays<Out> = Results, In extends Arrays<In> = Results> {
  /** A new stream: its handle. Raises StreamError if the pool is full. */
  open(): number;
  /** Ends a stream; what was submitted for it is dropped. */
  close(handle: number): void;
  /** Hands in what a stream gets in the next tick, as for `Stream.step`. It is copied. */
  submit(handle: number, feeds: FeedsOf<In>): void;
  /** The same for many streams, which get as many elements each: one array for each input, in which the elements of one
   * stream follow those of another. A shape is that of one stream. */
  submitMany(handles: Iterable<number>, feeds: FeedsOf<In>): void;
  /** Runs all streams that have feeds: the results of each, in the order of submission, as of `Stream.step`. */
  tick(options?: { borrow?: boolean; out?: undefined }): Map<number, Out>;
  tick<Target extends Results>(options: { out: Target }): Target;
  /** Ends the sequence of a stream, as `Stream.flush`. The stream stays open, and begins anew. */
  flush(handle: number): Out;
  /** Copies of the states of a stream by the names of their inputs; empty before its first tick, unless loaded. */
  state(handle: number): Results;
  /** Lets a stream go on from these states; from none it begins anew. */
  load(handle: number, states: Feeds): void;
  /** The shapes of the last results of a stream. */
  shapes(handle: number): Record<string, number[]>;
  /** How many streams are open. */
  readonly size: number;
  readonly maxStreams: number;
  /** Whether streams run together. If not, `reason` says why they run one after the other. */
  readonly batched: boolean;
  readonly reason: string;
  /** By how many frames of the inputs the outputs are behind. */
  readonly delay: number;
  /** What is submitted has a multiple of so many frames. */
  readonly stride: number;
  /** Gives its memory back to the model. Any other call raises StreamError then. */
  dispose(): void;
}

/** The same as `model.pool(options)`, for all plans and everywhere: it comes with this module. */
export function openPool<Out extends Arrays<Out> = Results, In extends Arrays<In> = Results>(
  model: Model<Out, In>,
  options?: PoolOptions,
): StreamPool<Out, In>;
