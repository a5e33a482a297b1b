// Which numbers named sizes are, and how much memory inputs, outputs and states need then.

import { ShapeError, shown, within } from "./plan_file.js";
import { count } from "./slot.js";

const MOST_STEPS = 0x7fffffff;

/** Finds the sizes of a plan from what was read into its slots. */
export class Sizing {
  /** `states` are the inputs that are carried, `fed` the others. */
  constructor(file, inputs, states, fed) {
    Object.assign(this, { file, inputs, states, fed });
  }

  /** The numbers of the symbols, undefined where nothing says it. States have sizes of their own, or begin. */
  resolve(sizes, haveStates, begin) {
    const { file } = this;
    const found = new Map(Object.entries(sizes));
    const name = ({ axes }, shape) =>
      shape.forEach((number, axis) => typeof axes[axis] === "string" && found.set(axes[axis], number));
    if (haveStates) for (const slot of this.states) name(slot, slot.shape);
    for (const slot of this.inputs) if (slot.given) name(slot, slot.given);
    for (const slot of [...this.states, ...this.fed]) if (slot.data && !slot.given) this.#fromLength(slot, found);
    if (begin) this.#fromOutputs(found);
    const symbols = file.symbols.map((symbol) => found.get(symbol));
    const wrong = symbols.findIndex((number) => number !== undefined && !within(number, 0, MOST_STEPS));
    if (wrong >= 0) throw new ShapeError(`${shown(symbols[wrong])} is not a size`);
    return symbols;
  }

  /** Symbols of which none may be undefined. */
  whole(symbols) {
    const missing = this.file.symbols.filter((_, i) => symbols[i] === undefined);
    if (missing.length) throw new ShapeError(`how large is ${missing.join(", ")}? Pass {data, shape}, or sizes`);
    return symbols;
  }

  /** A plain array says how large the only axis is that nothing else says. */
  #fromLength({ axes, length }, found) {
    const open = axes.filter((axis) => typeof axis === "string" && !found.has(axis));
    if (open.length !== 1) return;
    const others = count(axes.filter((axis) => axis !== open[0]).map((axis) => found.get(axis) ?? axis));
    if (others > 0 && length % others === 0) found.set(open[0], length / others);
  }

  /** States that begin are as large as they will be after the step; what that leaves open is 1: one stream. */
  #fromOutputs(found) {
    const { file } = this;
    const isFed = (name) => this.fed.some(({ axes }) => axes.includes(name));
    const isOpen = (axis) => typeof axis === "string" && !found.has(axis) && !isFed(axis);
    let open = this.states.flatMap(({ axes, partner }) => axes.map((axis, i) => [axis, partner.sizes[i]]));
    for (open = open.filter(([axis]) => isOpen(axis)); open.length; open = open.filter(([axis]) => isOpen(axis))) {
      const sizes = file.sizes(file.symbols.map((name) => found.get(name) ?? NaN));
      const known = open.filter(([, size]) => !Number.isNaN(sizes[size]));
      for (const [axis, size] of known) if (isOpen(axis)) found.set(axis, sizes[size]);
      if (!known.length) found.set(open[0][0], this.#grows(found, ...open[0]) ? 0 : 1);
    }
  }

  /** Whether a size, in a row of the table, is larger than that of an axis by a number, whatever that is. */
  #grows(found, axis, row) {
    const { file } = this;
    const growth = (size) => {
      const numbers = file.symbols.map((name) => (name === axis ? size : found.get(name) ?? NaN));
      return file.sizes(numbers)[row] - size;
    };
    return growth(0) > 0 && growth(0) === growth(1);
  }
}

/** The externals of next states, and those of the states whose places they have: where a step overwrites nothing that is
 * still needed if it fails. */
export function keptInPlace(states, sizes, needed) {
  const isKept = ({ external, partner: { external: next, over } }) =>
    over?.[0] === external && sizes[over[1]] >= 0 && needed[external] === needed[next];
  return new Map(states.filter(isKept).map(({ external, partner }) => [partner.external, external]));
}

/** Bytes of the block of each external: as many as the program and the host use, and those of a state as many as the other. */
export function neededBytes({ call, file }, states, sizes, shapes, tables) {
  const needed = file.externalBytes(sizes);
  for (const external of file.lateExternals) needed[external] = call.wr_plan_external_bytes(tables.address, external);
  const enlarge = (external, bytes) => (needed[external] = Math.max(needed[external], bytes));
  for (const [slot, shape] of shapes) {
    if (!slot.isLate) enlarge(slot.external, count(shape) * slot.Array.BYTES_PER_ELEMENT);
  }
  for (const { external, partner } of states) {
    enlarge(partner.external, needed[external]);
    enlarge(external, needed[partner.external]);
  }
  return needed;
}
