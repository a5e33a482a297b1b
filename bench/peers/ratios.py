"""`python -m bench.peers.ratios results.json ours peer`: time of ours ÷ time of a peer on each model, and the bars.

The ratio is the median over the rounds of the ratio within a round, as the rounds interleave the peers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

#: model: at most (natively ÷ onnxruntime's C API, in wasm ÷ onnxruntime-web)
BARS = {
    "rnn_128": (0.60, 0.40), "rnn_256": (0.70, 0.45),
    "gru_128": (0.70, 0.65), "gru_256": (0.80, 0.80), "gru_256x2": (0.80, 0.80),
    "lstm_128": (0.75, 0.65), "lstm_256": (0.85, 0.75), "bilstm_128": (0.75, 0.65),
    "gru_128_t1": (0.50, 0.30), "gru_256_t1": (0.70, 0.55), "dtln_t1": (0.55, 0.40),
    "scan_wlstm_128": (0.30, 0.30), "scan_wlstm_128_prim": (0.30, 0.30), "scan_wlstm_128_body": (0.30, 0.30),
    "loop_accum": (0.30, 0.30),
}  # fmt: skip


def ratios(results: dict[str, Any], ours: str, peer: str) -> dict[str, float | str]:
    """Model -> ratio, or the reason why there is none."""
    rows = {(row["model"], row["peer"]): row for row in results["results"]}
    found: dict[str, float | str] = {}
    for model in dict.fromkeys(row["model"] for row in results["results"]):
        pair = [rows.get((model, name), {"error": "not measured"}) for name in (ours, peer)]
        errors = [f"{name}: {row['error']}" for name, row in zip((ours, peer), pair, strict=True) if "error" in row]
        if errors:
            found[model] = "; ".join(errors)
        else:
            rounds = zip(pair[0]["round_ms"], pair[1]["round_ms"], strict=True)
            found[model] = statistics.median(a / b for a, b in rounds)
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.peers.ratios", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("ours")
    parser.add_argument("peer")
    arguments = parser.parse_args(argv)
    results = json.loads(arguments.results.read_text())
    rows = {(row["model"], row["peer"]): row for row in results["results"]}
    side = 0 if results["meta"]["side"] == "native" else 1
    above = 0
    print(f"{'model':<24}{'ratio':>8}{'bar':>8}{'ms':>10}{'error':>10}")
    for model, ratio in ratios(results, arguments.ours, arguments.peer).items():
        bar = BARS[model][side] if model in BARS else None
        if isinstance(ratio, str):
            print(f"{model:<24}  {ratio}")
            continue
        row = rows[model, arguments.ours]
        missed = bar is not None and ratio > bar
        above += missed
        shown = f"{bar:.2f}" if bar is not None else "-"
        print(
            f"{model:<24}{ratio:>8.3f}{shown:>8}{row['median_ms']:>10.4f}{row['max_abs_err']:>10.1e}"
            f"{'  above the bar' if missed else ''}"
        )
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
