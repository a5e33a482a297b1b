"""Random stacks as streams: `make fuzz-streams N=2000 SEED=0`, or `python -m tests.along_time.fuzz --seed 7 --count 1`.

Each stack is judged on native and wasm. What is wrong is listed with its seed and the smallest recipe that is wrong in
the same way; refusals are counted by what they say. One stack in eight has a layer that needs the whole sequence.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence

from webrnn.tables import table

from .judge import Verdict, judge
from .stacks import Recipe, build, recipe_of, smaller
from .whole_layers import NEED_ALL

BACKENDS = ("native", "wasm:relaxed", "wasm:simd")
SECONDS_BETWEEN_LINES = 10
NEEDS_ALL_EVERY = 8


def verdict_of(recipe: Recipe, seed: int, backends: Sequence[str], thorough: bool = True) -> Verdict:
    """What comes of a recipe; an exception that is no refusal is wrong too."""
    needs_all = any(name in NEED_ALL for name, _ in recipe.layers)
    try:
        model = build(recipe)
        more = {"with_file": seed % 5 == 0, "with_pool": seed % 5 == 1}
        verdict = judge(model, backends, seed, thorough, name_time=seed % 3 == 0, **more)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Verdict(wrong=f"{type(error).__name__}: {error} ({last.filename.rsplit('/', 1)[-1]}:{last.lineno})")
    if needs_all and verdict.accepted and verdict.cuttings:
        verdict.wrong = verdict.wrong or "a layer that needs the whole sequence was accepted and was right: look at it"
    return verdict


def reduced(recipe: Recipe, is_wrong: Callable[[Recipe], bool], most: int = 200) -> Recipe:
    """The smallest recipe that is wrong still."""
    tried = 0
    while tried < most:
        for candidate in smaller(recipe):
            tried += 1
            if is_wrong(candidate):
                recipe = candidate
                break
            if tried >= most:
                return recipe
        else:
            return recipe
    return recipe


def kind_of(text: str) -> str:
    """A message without names and numbers."""
    return re.sub(r"'[^']*'|\d+", "…", text)[:110]


def finding(verdict: Verdict) -> str:
    """In which way it is wrong: where numbers differ, by as much as rounding makes or by more."""
    if "differs" in verdict.wrong:
        size = float(verdict.wrong.rsplit(" ", 1)[-1])
        return "differs by rounding" if size < 1e-5 else "differs"
    return kind_of(verdict.wrong.split(": ", 1)[-1] if "steps of" in verdict.wrong else verdict.wrong)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make fuzz-streams")
    parser.add_argument("--seed", type=int, default=0, help="of the first stack")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--findings", type=int, default=10, help="after how many kinds of findings to stop")
    options = parser.parse_args(argv)
    backends = options.backends.split(",")
    refusals: Counter[str] = Counter()
    unplanned: Counter[str] = Counter()
    findings: dict[str, str] = {}
    count: Counter[str] = Counter()
    last = time.monotonic()
    print(f"{options.count} stacks from seed {options.seed} on {', '.join(backends)}", flush=True)
    for seed in range(options.seed, options.seed + options.count):
        needs_all = seed % NEEDS_ALL_EVERY == 0
        recipe = recipe_of(seed, needs_all)
        verdict = verdict_of(recipe, seed, backends)
        count["all"] += 1
        if verdict.wrong:
            count["wrong"] += 1
            kind = finding(verdict)
            if kind not in findings:

                def is_wrong(candidate: Recipe, seed: int = seed, kind: str = kind) -> bool:
                    return finding(verdict_of(candidate, seed, backends)) == kind

                small = reduced(recipe, is_wrong)
                findings[kind] = f"seed {seed}: {verdict_of(small, seed, backends).wrong}\n{small}"
                print(findings[kind], flush=True)
                if len(findings) >= options.findings:
                    break
        elif verdict.refused:
            count["refused, as it has to be" if needs_all else "refused"] += 1
            if not needs_all:
                refusals[kind_of(verdict.refused)] += 1
        else:
            count["exact"] += 1
            count["exact with a stride"] += verdict.stride > 1
            count["exact with a delay"] += verdict.delay > 0
            count["cuttings"] += verdict.cuttings
            if verdict.no_plan:
                count["without a plan for all sizes"] += 1
                unplanned[kind_of(verdict.no_plan)] += 1
        if time.monotonic() - last > SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            print(f"seed {seed}: {dict(count)}", file=sys.stderr, flush=True)
    print(table("stacks", [[name, str(number)] for name, number in count.items()], ["", ""]))
    for title, reasons in (("refused", refusals), ("streams that are no plan for all sizes", unplanned)):
        if reasons:
            print(table(title, [[str(n), text] for text, n in reasons.most_common(25)], ["stacks", "reason"]))
    print(f"{len(findings)} kinds of findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
