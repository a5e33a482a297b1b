// Errors on their way from one thread to another.

import { ERROR_KINDS } from "./plan_file.js";

const KINDS = { ...ERROR_KINDS, TypeError, RangeError };

/** What is sent of an error. */
export const described = ({ name, message, node, limit }) => ({ name, message, node, limit });

/** The error that another thread described. */
export function errorOf({ name, message, node, limit }) {
  const Kind = Object.hasOwn(KINDS, name) ? KINDS[name] : Error;
  return Object.assign(new Kind(message), node !== undefined && { node }, limit !== undefined && { limit });
}
