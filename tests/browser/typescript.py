"""The TypeScript compiler."""

from __future__ import annotations

from pathlib import Path

from .npm_packages import unpacked

VERSION = "5.9.3"
SHA256 = "10e108c9cf7d5f2879053dff18515fb405abf2ccef63eaaf017d9c571687a1d3"


def compiler() -> Path:
    """The script `tsc`, to be run by Node."""
    return unpacked("typescript", VERSION, SHA256) / "bin" / "tsc"
