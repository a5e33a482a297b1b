// Data that is dropped on an input: .npy, .wav and .json become {values, shape}.

import { count } from "./arrays.js";

const NUMPY_TYPES = {
  "<f4": Float32Array,
  "<f8": Float64Array,
  "|i1": Int8Array,
  "<i2": Int16Array,
  "<i4": Int32Array,
  "<i8": BigInt64Array,
  "|u1": Uint8Array,
  "<u2": Uint16Array,
  "<u4": Uint32Array,
  "|b1": Uint8Array,
};

/** What the bytes of a data file hold. */
export function readData(name, bytes) {
  const suffix = name.split(".").at(-1).toLowerCase();
  const read = { npy: readNpy, wav: readWav, json: readJson }[suffix];
  if (!read) throw new Error(`${name} is neither .npy nor .wav nor .json`);
  try {
    return read(bytes);
  } catch (error) {
    throw new Error(`${name} could not be read: ${error.message}`, { cause: error });
  }
}

function readNpy(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 12 || String.fromCharCode(...bytes.subarray(1, 6)) !== "NUMPY")
    throw new Error("it has no header of numpy's");
  const wide = bytes[6] > 1;
  const start = wide ? 12 : 10;
  const length = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  const header = new TextDecoder("latin1").decode(bytes.subarray(start, start + length));
  const descr = /'descr':\s*'([^']+)'/.exec(header)?.[1];
  const shape = /'shape':\s*\(([^)]*)\)/.exec(header)?.[1].match(/\d+/g)?.map(Number) ?? [];
  if (/'fortran_order':\s*True/.test(header))
    throw new Error("it is in Fortran order: save numpy.ascontiguousarray(x)");
  const Type = NUMPY_TYPES[descr];
  if (!Type) throw new Error(`elements of type ${descr} are not read here`);
  const data = bytes.slice(start + length);
  if (data.length < count(shape) * Type.BYTES_PER_ELEMENT) throw new Error("it ends before its data do");
  return { values: new Type(data.buffer, 0, count(shape)), shape };
}

function readWav(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const tag = (at) => String.fromCharCode(...bytes.subarray(at, at + 4));
  if (bytes.length < 44 || tag(0) !== "RIFF" || tag(8) !== "WAVE") throw new Error("it has no header of a wav file");
  let format = null;
  for (let at = 12; at + 8 <= bytes.length;) {
    const size = view.getUint32(at + 4, true);
    if (tag(at) === "fmt ") {
      const code = view.getUint16(at + 8, true);
      format = {
        code: code === 0xfffe ? view.getUint16(at + 32, true) : code,
        channels: view.getUint16(at + 10, true),
        rate: view.getUint32(at + 12, true),
        bits: view.getUint16(at + 22, true),
      };
    } else if (tag(at) === "data") {
      if (!format) throw new Error("its data come before their format");
      const values = samples(view, at + 8, Math.min(size, bytes.length - at - 8), format);
      return { values, shape: [values.length], rate: format.rate };
    }
    at += 8 + size + (size % 2);
  }
  throw new Error("it has no samples");
}

/** The first channel, full scale is 1. */
function samples(view, start, size, { code, channels, bits }) {
  const width = bits / 8;
  const read = {
    "1/16": (at) => view.getInt16(at, true) / 2 ** 15,
    "1/24": (at) => (view.getUint16(at, true) + view.getInt8(at + 2) * 2 ** 16) / 2 ** 23,
    "1/32": (at) => view.getInt32(at, true) / 2 ** 31,
    "3/32": (at) => view.getFloat32(at, true),
  }[`${code}/${bits}`];
  if (!read || !channels) throw new Error(`samples of ${bits} bits in format ${code} are not read here`);
  return Float32Array.from({ length: Math.floor(size / (width * channels)) }, (_, i) =>
    read(start + i * width * channels),
  );
}

function readJson(bytes) {
  const parsed = JSON.parse(new TextDecoder().decode(bytes));
  if (parsed && typeof parsed === "object" && Array.isArray(parsed.data)) {
    const values = parsed.data.flat(Infinity);
    return { values, shape: parsed.shape ?? shapeOf(parsed.data) };
  }
  const shape = shapeOf(parsed);
  const values = [parsed].flat(Infinity);
  if (values.some((value) => typeof value !== "number" && typeof value !== "boolean"))
    throw new Error("it is no array of numbers");
  return { values, shape };
}

function shapeOf(nested) {
  if (!Array.isArray(nested)) return [];
  const inner = nested.map(shapeOf);
  if (inner.some((shape) => String(shape) !== String(inner[0]))) throw new Error("its rows differ in length");
  return [nested.length, ...(inner[0] ?? [])];
}

/**
 * `values` in the shape of an input: sizes that the model leaves open (null or a name) are taken from the data, or from `sizes`
 * where the data have fewer axes. Of a recording that is longer than what is fixed, step 0 takes the beginning, step 1 goes on
 * where that ends.
 */
export function fitted({ values, shape }, input, sizes, step = 0) {
  const known = (size) => (typeof size === "number" ? size : null);
  const fits = (size, axis) => known(input.shape[axis]) === null || input.shape[axis] === size;
  if (shape.length === input.shape.length && shape.every(fits)) return { values, shape, note: "" };
  const wanted = input.shape.map((size, axis) => known(size) ?? sizes[axis]);
  const needed = count(wanted);
  const end = needed * (step + 1);
  if (values.length < end) {
    const many = step ? `${step + 1} steps of '${input.name}' take ${end}` : `'${input.name}' takes ${needed}`;
    throw new Error(`${many} numbers in [${wanted}], the file has ${values.length} in [${shape}]`);
  }
  const [used, all] = [end, values.length].map((number) => number.toLocaleString("en"));
  return {
    values: values.slice(end - needed, end),
    shape: wanted,
    note: used === all ? "" : `the first ${used} of ${all} numbers`,
  };
}
