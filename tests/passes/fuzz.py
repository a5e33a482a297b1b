"""Random graphs without end: `make fuzz-passes`, or `python -m tests.passes.fuzz --seed 7` to begin at a seed.

It stops at the first graph on which something does not hold, and says which seed it was and, where one rewrite is to
blame, which: the first one with which the results are wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections.abc import Sequence

from tests.passes.differential import BY_NAME, assert_same_results
from tests.passes.examine import EXAMINATIONS
from tests.passes.random_graphs import RandomGraph, random_graph
from webrnn.passes import Pass, run_passes

SECONDS_BETWEEN_LINES = 10


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Passes on random graphs, without end.")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9), help="of the first graph")
    parser.add_argument("--count", type=int, help="how many graphs; without it there is no end")
    options = parser.parse_args(argv)
    print(f"from seed {options.seed}", flush=True)
    started = last = time.monotonic()
    done = 0
    while options.count is None or done < options.count:
        seed = options.seed + done
        if not examine(seed):
            return 1
        done += 1
        if time.monotonic() - last > SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            print(f"{done} graphs, {done / (last - started):.1f} a second, last seed {seed}", flush=True)
    print(f"{done} graphs, nothing found")
    return 0


def examine(seed: int) -> bool:
    """Whether all holds for the graph of a seed; prints what does not."""
    for name, examination in EXAMINATIONS.items():
        try:
            examination(random_graph(seed))
        except KeyboardInterrupt:
            raise
        except BaseException:
            traceback.print_exc()
            print(f"seed {seed}: {name}")
            print(blame(random_graph(seed)))
            return False
    return True


def blame(case: RandomGraph) -> str:
    """The rewrite that makes a result wrong, in the pipeline or in a pass alone."""
    pipelines: list[tuple[str, list[Pass] | None]] = [("all passes", None)]
    pipelines += [(name, [BY_NAME["infer_shapes"], step]) for name, step in BY_NAME.items()]
    for what, passes in pipelines:
        found = first_wrong_rewrite(case, passes)
        if found is not None:
            count, rewrite = found
            return f"{what}, stop_after={count} is the first with a wrong result: {rewrite}"
    return "no single rewrite makes a result wrong"


def first_wrong_rewrite(case: RandomGraph, passes: list[Pass] | None) -> tuple[int, str] | None:
    """The smallest number of rewrites with which the result is wrong, and the last of them."""
    low, high = 0, count_rewrites(case, passes)
    if not is_wrong(case, passes, high):
        return None
    while low < high:
        middle = (low + high) // 2
        if is_wrong(case, passes, middle):
            high = middle
        else:
            low = middle + 1
    rewrites: list[str] = []
    try:
        graph = case.graph.copy()
        run_passes(
            graph,
            passes,
            stop_after=high,
            observe=lambda step, result, _: rewrites.extend(f"{step.name}: {what}" for what in result.fired),
        )
    except Exception as error:
        return high, f"{type(error).__name__}: {error}"
    return high, rewrites[-1] if rewrites else "none"


def count_rewrites(case: RandomGraph, passes: list[Pass] | None) -> int:
    """How many rewrites there are before the end, or before a pass raises."""
    fired: list[str] = []
    try:
        run_passes(case.graph.copy(), passes, observe=lambda step, result, graph: fired.extend(result.fired))
    except Exception:
        return len(fired) + 1000
    return len(fired)


def is_wrong(case: RandomGraph, passes: list[Pass] | None, stop_after: int) -> bool:
    graph = case.graph.copy()
    try:
        run_passes(graph, passes, stop_after=stop_after, check=True)
        assert_same_results(case.graph, graph, case.arguments, bits=False)
    except Exception:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
