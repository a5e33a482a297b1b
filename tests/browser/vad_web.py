"""@ricky0123/vad-web: what webrnn/vad stands in for."""

from __future__ import annotations

from pathlib import Path

from .npm_packages import unpacked

VERSION = "0.0.31"
SHA256 = "d1a211cf1a2ed26297da52cc08de79e75d79838a274bfc6de546feb1f828c940"


def vad_web() -> Path:
    """The folder of its scripts."""
    return unpacked("@ricky0123/vad-web", VERSION, SHA256) / "dist"
