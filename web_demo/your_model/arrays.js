// Element types of tensors as numpy, ONNX and JavaScript have them, and arrays of made-up numbers.

export const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  bool: Uint8Array,
};

const ONNX_NAMES = { float: "float32", double: "float64" };

/** "tensor(float)" -> "float32". */
export function elementType(onnxType) {
  const inner = /^tensor\((\w+)\)$/.exec(onnxType)?.[1];
  return inner ? (ONNX_NAMES[inner] ?? inner) : onnxType;
}

export const count = (shape) => shape.reduce((a, b) => a * b, 1);

/** Numbers of any kind as an array of elements of this type. */
export function converted(values, type) {
  const Type = ARRAYS[type];
  if (!Type) throw new Error(`this page cannot make elements of type ${type}`);
  if (values instanceof Type) return values;
  if (type === "int64")
    return BigInt64Array.from(values, (value) =>
      typeof value === "bigint" ? value : BigInt(Math.trunc(Number(value))),
    );
  if (type === "bool") return Uint8Array.from(values, (value) => (value ? 1 : 0));
  return Type.from(values, Number);
}

/** Values as audio and features have them: normally distributed; integers are below `below`. The same seed gives the same values. */
export function random(type, shape, seed = 1, below = 2) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0; // mulberry32
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const normal = () => 0.5 * Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  const isFloat = type.startsWith("float");
  return converted(Array.from({ length: count(shape) }, isFloat ? normal : () => Math.floor(below * uniform())), type);
}

/** All elements are this number. */
export const filled = (type, shape, number) => converted(Array.from({ length: count(shape) }).fill(number), type);

/** An array by the word for its contents; `length` is the number that "length" means, `number` that of "number". */
export function made(fill, type, shape, length, seed, { number = 0, below } = {}) {
  if (fill === "random") return random(type, shape, seed, below ?? 2);
  return filled(type, shape, { zeros: 0, ones: 1, length, number }[fill]);
}
