import type { Arrays, FeedsOf, Feeds, Limits, Port, Progress, Results, Source, Timing, Variant } from "./webrnn.js";

export interface CallOptions {
  /** Results are copied into these arrays, by the names of outputs; this very object is returned. */
  out?: Results;
  /** Numbers for named sizes, instead of shapes. */
  sizes?: Readonly<Record<string, number>>;
  /** Feeds are sent without a copy: their buffers, whole, belong to the worker then, also if the call rejects. */
  transfer?: boolean;
}

/** A stream in the worker. Calls are done in their order; one that rejects leaves the stream as it was. */
export interface WorkerStream<Out extends Arrays<Out> = Results, In extends Arrays<In> = Results> {
  step<Target extends Partial<Out>>(feeds: FeedsOf<In>, options: CallOptions & { out: Target & Results }): Promise<Target>;
  step(feeds: FeedsOf<In>, options?: CallOptions): Promise<Out>;
  flush(): Promise<Out>;
  /** Copies of the states, as they are behind the calls before. */
  readonly state: Promise<Results>;
  load(states: Feeds): Promise<void>;
  reset(): Promise<void>;
  /** The shapes of the last results that came. */
  readonly shapes: Record<string, number[]>;
  readonly delay: number;
  readonly stride: number;
  /** Gives its memory back. Any other call rejects with StreamError then. */
  dispose(): Promise<void>;
}

/** A Model in a worker of its own: the same calls, each a promise. Results are sent without a copy. Errors are those of a
 * Model. */
export class ModelWorker<Out extends Arrays<Out> = Results, In extends Arrays<In> = Results> {
  private constructor();

  /** As `Model.load`. So many runs and steps may be under way, 16 unless given: a further one rejects with StreamError, and
   * `ready` says when there is room. */
  static load<Out extends Arrays<Out> = Results, In extends Arrays<In> = Results>(
    source: Source | Blob | Response,
    options?: {
      variant?: Variant;
      wasm?: WebAssembly.Module | Source;
      onProgress?: (progress: Progress) => void;
      limits?: Limits;
      maxCalls?: number;
    },
  ): Promise<ModelWorker<Out, In>>;

  readonly variant: Variant | undefined;
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  readonly carry: Readonly<Record<string, string>>;
  readonly timing: Timing | null;
  readonly about: Readonly<Record<string, unknown>>;
  readonly isPool: boolean;
  /** The shapes of the last run's results. */
  readonly shapes: Record<string, number[]>;

  run<Target extends Partial<Out>>(feeds: FeedsOf<In> & Feeds, options: CallOptions & { out: Target & Results }): Promise<Target>;
  run(feeds: FeedsOf<In> & Feeds, options?: CallOptions): Promise<Out>;
  stream(options?: {
    carry?: Readonly<Record<string, string>>;
    sizes?: Readonly<Record<string, number>>;
  }): Promise<WorkerStream<Out, In>>;
  /** Resolves as soon as another run or step may begin. */
  ready(): Promise<void>;
  /** Ends the worker. What is under way, and any other call, rejects with StreamError. */
  terminate(): void;
}
