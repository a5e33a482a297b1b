// For a model of frames of numbers: it can run on samples, in the place of a model of part 1.

import { el } from "../page/dom.js";

/** `onListen(audio)` gets what the plan is to say of its audio. */
export function audioOffer({ audio, kind }, onListen) {
  const hop = el("input", {
    type: "number",
    min: "1",
    max: String(audio.frame),
    value: String(audio.hop ?? Math.max(audio.frame >> 2, 1)),
    disabled: kind === "plan",
    "aria-label": "Samples from one frame to the next",
  });
  return el(
    "div",
    { class: "row audio-offer" },
    el(
      "span",
      { class: "small" },
      `Frames of ${audio.frame} samples, one every `,
      hop,
      ` at ${audio.sample_rate / 1000} kHz`,
    ),
    el("button", {
      class: "button",
      type: "button",
      text: "Put it on the audio thread",
      click: () => onListen({ ...audio, hop: Number(hop.value) }),
    }),
  );
}

/** Raises if a model cannot be called this often. */
export function requireHop({ hop, frame }) {
  if (!(Number.isInteger(hop) && hop >= 1 && hop <= frame)) throw new Error(`a frame every ${hop} samples is not possible`);
}
