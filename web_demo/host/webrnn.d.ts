import type { PoolOptions, StreamPool } from "./pool.js";

export type { PoolOptions, StreamPool, TickOptions } from "./pool.js";

export type Data =
  | Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array | Uint8Array | Uint16Array
  | Uint32Array | BigUint64Array;

/** A typed array, with its shape where the plan's has names in it. The array for int64 is a BigInt64Array, for bool a
 * Uint8Array, for float16 a Float16Array where there is one; bfloat16, and float16 elsewhere, are bits in a Uint16Array,
 * and smaller types are bits in a Uint8Array, a byte for each element. */
export type Feed = Data | { data: Data; shape?: readonly number[] };
export type Feeds = Readonly<Record<string, Feed>>;
export type Results = Record<string, Data>;
/** Typed arrays by name: what a model gives, or takes, if that is known: `Model.load<{ y: Float32Array }>(...)`. */
export type Arrays<Named> = { [Name in keyof Named]: Data };
/** Feeds for inputs with these arrays. */
export type FeedsOf<In> = { readonly [Name in keyof In]: In[Name] | { data: In[Name]; shape?: readonly number[] } };

/** Where a file is, or what it holds. */
export type Source = string | URL | ArrayBuffer | ArrayBufferView;

export type Variant = "relaxed" | "simd" | "scalar";

export interface Port {
  readonly name: string;
  readonly type:
    | "float16" | "bfloat16" | "float32" | "float64" | "int8" | "int16" | "int32" | "int64" | "uint8" | "uint16"
    | "uint32" | "uint64" | "bool" | "float8e4m3fn" | "float8e4m3fnuz" | "float8e5m2" | "float8e5m2fnuz" | "float8e8m0"
    | "float6e2m3" | "float6e3m2" | "float4e2m1" | "int4" | "uint4" | "int2" | "uint2";
  /** Sizes that are known when the model runs have a name; null is the number of steps that a loop will take. */
  readonly shape: readonly (number | string | null)[];
}

export interface StepOptions {
  /** Results are views of the VM's memory instead of copies, and nothing is allocated; they are valid until the next
   * call on this model or one of its streams. The returned object is the same each time. */
  borrow?: boolean;
  /** Results are copied into these arrays, by the names of outputs, and nothing is allocated. Outputs that are left out
   * are not copied; this very object is returned. Arrays that were borrowed are refused. */
  out?: Results;
  /** Numbers for named sizes, instead of shapes. */
  sizes?: Readonly<Record<string, number>>;
}

/** What one run or step may take before it raises a LimitError; Infinity is no limit. Time is looked at between
 * instructions and between the steps of loops. */
export interface Limits {
  /** Steps of one loop: 10,000,000 unless given. */
  loopSteps?: number;
  /** Steps of all loops together, those inside others included: 1,000,000,000 unless given. */
  runSteps?: number;
  /** Infinity unless given. */
  seconds?: number;
}

/** How far the downloads of a model and its kernels are, in bytes; `total` is null if a server does not say it. */
export interface Progress {
  readonly loaded: number;
  readonly total: number | null;
}

/** A step takes a multiple of `stride` frames and gives `rate` frames of an output for each stride. Results are `delay`
 * frames of the inputs behind, or `delay` frames of the output itself. The whole run has `extra` frames more than that. */
export interface Timing {
  readonly stride: number;
  readonly delay: number;
  readonly inputs: readonly { readonly name: string; readonly axis: number }[];
  readonly outputs: readonly {
    readonly name: string;
    readonly axis: number;
    readonly rate: number;
    readonly delay: number;
    readonly extra: number;
  }[];
}

/** A call that raises leaves the stream as it was. */
export interface Stream<Out extends Arrays<Out> = Results, In extends Arrays<In> = Results> {
  /** One run, from the states that the last one left: the outputs that are not carried. Frames that are not ready are not
   * among them: in the first steps of a stream with a `delay` results are shorter, and may be empty. */
  step<Target extends Partial<Out>>(feeds: FeedsOf<In>, options: StepOptions & { out: Target & Results }): Target;
  step(feeds: FeedsOf<In>, options?: StepOptions): Out;
  /** Ends the sequence: the frames that are left, new arrays, so that all steps and this are the whole run. The next step
   * begins a new sequence, as after `reset`. Raises StreamError before the first step, and for plans without frames. */
  flush(): Out;
  /** By how many frames of the inputs the outputs are behind. */
  readonly delay: number;
  /** A step takes a multiple of so many frames. */
  readonly stride: number;
  /** Copies of the states by the names of their inputs; before the first step what they start from. */
  readonly state: Results;
  /** Goes on from these states; all that are carried. Raises if they do not fit the plan or each other. Where several sizes
   * of a state are open and other ones than before, it needs {data, shape}. */
  load(states: Feeds): void;
  /** Back to what the states start from: zeros, unless the plan says otherwise. Afterwards states may have other sizes. */
  reset(): void;
  /** The shapes of the last results. */
  readonly shapes: Record<string, number[]>;
  /** Gives its memory back to the model. Any other call raises StreamError then. */
  dispose(): void;
}

/** `Out` are the outputs that a stream gives, `In` the inputs that it takes, if you know them. */
export class Model<Out extends Arrays<Out> = Results, In extends Arrays<In> = Results> {
  private constructor();

  /**
   * Loads a plan file from a URL, a Blob, a Response or its bytes, and checks it. In Node a string may be a path.
   *
   * `variant` is by default the fastest that this engine supports. Its core module is fetched from beside this file, or
   * with `module: "training"` the one for plans that learn, and another one if the plan needs it, unless `wasm` gives one:
   * a compiled module, its bytes or a URL. That other one is the full one, or for plans with small weights the simd one in
   * place of the relaxed one. `onProgress` hears of every piece that is downloaded.
   * `limits` are those of each run of the model and each step of its streams.
   */
  static load<Out extends Arrays<Out> = Results, In extends Arrays<In> = Results>(
    source: Source | Blob | Response,
    options?: {
      variant?: Variant;
      module?: "core" | "training";
      wasm?: WebAssembly.Module | Source;
      onProgress?: (progress: Progress) => void;
      limits?: Limits;
    },
  ): Promise<Model<Out, In>>;

  /** The same without waiting, for the constructor of an AudioWorkletProcessor. */
  static loadSync<Out extends Arrays<Out> = Results, In extends Arrays<In> = Results>(
    plan: ArrayBuffer | ArrayBufferView,
    options: { wasm: WebAssembly.Module | ArrayBuffer | ArrayBufferView; variant?: Variant; limits?: Limits },
  ): Model<Out, In>;

  /** The variant that runs the plan; undefined if only `wasm` was given. */
  readonly variant: Variant | undefined;
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  /** The states that were chosen at export: { name of an input: name of an output }; empty if none were. */
  readonly carry: Readonly<Record<string, string>>;
  /** How the frames of its streams relate to those of the whole run; null if the plan does not say it. */
  readonly timing: Timing | null;
  /** What the exporter said about the model (`session.export(..., about={...})`); empty if nothing. */
  readonly about: Readonly<Record<string, unknown>>;
  /** One run that keeps no state. */
  run<Target extends Partial<Out>>(feeds: FeedsOf<In> & Feeds, options: StepOptions & { out: Target & Results }): Target;
  run(feeds: FeedsOf<In> & Feeds, options?: StepOptions): Out;
  /** The shapes of the last run's results. */
  readonly shapes: Record<string, number[]>;

  /** Runs in which outputs become inputs of the next one, in the VM's memory: those of `carry`, { name of an input:
   * name of an output }, by default the plan's. `sizes` gives numbers for named sizes, so that feeds need no shapes. */
  stream(options?: {
    carry?: Readonly<Record<string, string>>;
    sizes?: Readonly<Record<string, number>>;
  }): Stream<Out, In>;

  /** Whether the plan runs many streams side by side: it was exported with pool=True. */
  readonly isPool: boolean;
  /** Many streams, one run a tick. If the plan is for one stream, they run one after the other; then, and where import() is
   * not allowed, "webrnn/pool" has to be imported before, or this raises StreamError. */
  pool(options?: PoolOptions): StreamPool<Out, In>;
}

/** Where the files of this package are, other scripts and modules of kernels: the address of a folder. null, and before: they
 * are where the bundler has put them, or beside this script. */
export function setFiles(folder: string | URL | null): void;

/** The variants that this engine can run, fastest first. */
export function supportedVariants(): Variant[];

/** Base of the errors of plans; `node` names the part of the model, where that is known. */
export class WebrnnError extends Error {
  readonly node?: string;
}
/** A plan is malformed, of another version, failed verification, needs more memory than there is, or another module. */
export class PlanError extends WebrnnError {}
/** An input, or a value inside the model, has the wrong type or size. */
export class ShapeError extends WebrnnError {}
/** The model does what it must not, such as looping without end. */
export class ModelError extends WebrnnError {}
/** A stream cannot be called now: it was disposed of, or a getter of what is given to it calls it. */
export class StreamError extends WebrnnError {}
/** A run would take more than `limits` allow. The states of a stream are as they were before the step. */
export class LimitError extends ModelError {
  /** The name of the limit that it reached. */
  readonly limit: keyof Limits;
}
