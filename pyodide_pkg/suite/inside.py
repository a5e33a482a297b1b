"""Runs pytest inside Pyodide, in the folder of an unpacked bundle.

`main` is called by enter.mjs; what it returns is JSON: outcomes, the failures with their text, the reasons of skips
with their counts, and seconds by file.
"""

from __future__ import annotations

import json
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from .absent import reason, reason_of
from .selection import chosen, left_out

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = 20
"""Of hypothesis, for tests that do not say how many they want."""


class Reporter:
    """A plugin: decides what is run, and keeps what became of it."""

    def __init__(self, say: Callable[[str], None]):
        self.outcomes: Counter[str] = Counter()
        self.skips: Counter[str] = Counter()
        self.thinned_out = 0
        self.failures: list[dict[str, str]] = []
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._say, self._last = say, time.monotonic()

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        path = collection_path.relative_to(ROOT).as_posix()
        why = left_out(path)
        if why is None:
            return None
        self.skips[f"{path}: {why}"] += 1
        return True

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        kept = chosen([item.nodeid for item in items])
        self.thinned_out = len(items) - len(kept)
        items[:] = [item for item in items if item.nodeid in kept]

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: Any) -> Generator[None, Any, Any]:
        report = yield
        why = reason(str(report.longrepr)) if report.failed else None
        if why:
            report.outcome, report.longrepr = "skipped", (collector.nodeid, None, why)
            self.skips[f"{collector.nodeid}: {why}"] += 1
        elif report.failed:
            self.failures.append({"id": collector.nodeid, "text": str(report.longrepr)})
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        why = reason_of(call.excinfo.value) if report.failed and call.excinfo else None
        if why:
            report.outcome, report.longrepr = "skipped", (item.nodeid, 0, f"Skipped: {why}")
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid.split("::")[0]] += report.duration
        if report.failed:
            self.failures.append({"id": report.nodeid, "text": report.longreprtext})
            lines = report.longreprtext.splitlines()
            self._say("\n    ".join([f"failed: {report.nodeid}", *lines[-8:]]))
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.outcome] += 1
        if report.skipped:
            text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.skips[text.removeprefix("Skipped: ")] += 1
        if time.monotonic() - self._last > 5:
            self._last = time.monotonic()
            self._say(f"{sum(self.outcomes.values())} tests, {len(self.failures)} failures, at {report.nodeid}")


def main(arguments: Sequence[str], say: Callable[[str], None] = print) -> str:
    (ROOT / "pytest.ini").write_text(_settings())
    sys.dont_write_bytecode = True
    hypothesis.settings.register_profile("inside", max_examples=EXAMPLES, deadline=None, database=None)
    hypothesis.settings.load_profile("inside")
    reporter = Reporter(say)
    quiet = ["-q", "--no-header", "--no-summary", "--tb=short", "--color=no", "--continue-on-collection-errors"]
    without = ["-p", "no:cacheprovider", "-p", "no:faulthandler"]
    status = pytest.main(["-c", str(ROOT / "pytest.ini"), *quiet, *without, *arguments], plugins=[reporter])
    return json.dumps(
        {
            "status": int(status),
            "outcomes": {**reporter.outcomes, "thinned out": reporter.thinned_out},
            "skips": reporter.skips,
            "failures": reporter.failures,
            "seconds": {path: round(seconds, 2) for path, seconds in _longest_first(reporter.seconds)},
        }
    )


def _longest_first(seconds: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: -item[1])


def _settings() -> str:
    """Those of pyproject.toml, without what needs plugins that are not in the bundle."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    del options["timeout"]
    options["markers"].append("timeout: of pytest-timeout")
    options["pythonpath"] = [str(ROOT)]
    lines = []
    for key, value in options.items():
        lines.append(f"{key} = " + ("\n  ".join(["", *value]) if isinstance(value, list) else str(value)))
    return "\n".join(["[pytest]", *lines, ""])
