// Horizontal bars on one linear scale. What would dwarf all others is cut, and says so.

import { el } from "../page/dom.js";
import { ratio, time } from "../page/format.js";

/** `bars` are {label, ms, isBusy, className, note}, the first one is what the others are compared with. */
export function barChart(title, bars) {
  const known = bars
    .filter(({ ms }) => ms)
    .map(({ ms }) => ms)
    .toSorted((a, b) => a - b);
  const longest = scaleOf(known);
  const summary = bars
    .filter(({ ms }) => ms)
    .map(({ label, ms, isBusy }) => `${label}: ${time(ms, isBusy)}`)
    .join("; ");
  return el(
    "div",
    { class: "bars", role: "img", "aria-label": `${title}. ${summary}` },
    bars.map((bar) => row(bar, bars[0], longest)),
  );
}

/** The longest bar that is shown whole: the last one, unless it dwarfs the one before. */
function scaleOf(sorted) {
  const last = sorted.at(-1) ?? 1;
  if (sorted.length < 3) return last;
  const before = sorted.at(-2);
  return last > 2.5 * before ? before * 1.25 : last;
}

function row({ label, ms, isBusy, className, note }, first, longest) {
  const bar = el("i", { class: className });
  bar.style.width = ms ? `${Math.min((100 * ms) / longest, 100)}%` : "0";
  if (ms > longest) bar.classList.add("cut");
  const compared = ms && first.ms && ms !== first.ms ? ratio(ms / first.ms) : "";
  return el(
    "div",
    { class: "bar" },
    el("span", { class: "name", text: label }),
    el("span", { class: "track" }, bar),
    el(
      "span",
      { class: "value" },
      ms ? el("b", { text: time(ms, isBusy) }) : el("span", { class: "quiet", text: note ?? "" }),
      compared && el("span", { class: "quiet", text: compared }),
    ),
  );
}
