// Only one part of the page is heard at a time.

/** Stops what else is heard; `owner` is any object. */
export const takeTurn = (owner) => document.dispatchEvent(new CustomEvent("soundturn", { detail: owner }));

/** `stop()` is called when somebody else is to be heard. */
export function onOthersTurn(owner, stop) {
  document.addEventListener("soundturn", ({ detail }) => detail !== owner && stop());
}
