"""Sites with the host, the cases that it is held to, and what pages run of the tests: for every browser the same."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import audio_cases, pool_cases, timed_cases, webrnn_cases

HERE = Path(__file__).parent
WEBRNN = ("webrnn_cases.mjs", "webrnn_limits.mjs", "webrnn_page.mjs", "webrnn_worker.mjs", "webrnn_processor.mjs")
WORKERS = ("webrnn_cases.mjs", "worker_pool_cases.mjs", "worker_pool_page.mjs")


def _site(host: Path, folder: Path, scripts: tuple[str, ...]) -> Path:
    shutil.copytree(host, folder)
    (folder / "cases").mkdir()
    (folder / "empty.html").write_text('<link rel="icon" href="data:,">')  # the server sends the demo's policy with it
    (folder / "package.json").write_text('{"type": "module"}')  # Node 20.18 does not find that out by itself
    for file in scripts:
        text = (HERE / file).read_text().replace(".mjs", ".js")
        (folder / file).with_suffix(".js").write_text(text)
    return folder


def webrnn_site(host: Path, folder: Path) -> Path:
    """Plans, streams and their limits."""
    _site(host, folder, WEBRNN)
    webrnn_cases.write(folder / "cases", webrnn_cases.all_cases())
    timed_cases.write(folder / "cases")
    pool_cases.write(folder / "cases")
    return folder


def workers_site(host: Path, folder: Path, is_fused: bool = True) -> Path:
    """Pools, with the bits of relaxed SIMD if they are fused, otherwise those of plain SIMD."""
    _site(host, folder, WORKERS)
    pool_cases.write(folder / "cases", "wasm:relaxed" if is_fused else "wasm:simd")
    return folder


def audio_site(host: Path, folder: Path, is_fused: bool = True) -> Path:
    return audio_cases.write_site(host, folder, is_fused)
