"""Firefox and WebKit for tests: which are here, and what each is expected to compute."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from .driven import Driven
from .firefox import firefox
from .sound_device import SoundDevice, sound_device
from .webkit import webkit

SOUND = ("pulseaudio", "pacat")


@dataclass(frozen=True)
class Kind:
    start: Callable[..., AbstractContextManager[Driven]]
    variant: str
    """The fastest build that it runs. Relaxed SIMD has the bits of native FMA."""
    commands: tuple[str, ...]
    """What it needs on this machine."""

    @property
    def is_fused(self) -> bool:
        return self.variant == "relaxed"


KINDS = {
    "firefox": Kind(firefox, "relaxed", ("firefox-esr", *SOUND)),
    "webkit": Kind(webkit, "simd", ("WebKitWebDriver", "Xvfb", *SOUND)),
}


@dataclass(frozen=True)
class Started:
    kind: Kind
    browser: Driven
    device: SoundDevice = field(repr=False)


def missing(name: str) -> list[str]:
    return [command for command in KINDS[name].commands if not shutil.which(command)]


def ask_for(name: str) -> None:
    """Skips where the browser is not there and cannot be; a browser that `make setup` could have installed fails."""
    lacks = ", ".join(missing(name))
    if lacks and os.geteuid() == 0 and shutil.which("apt-get"):
        pytest.fail(f"no {lacks}, though `make setup` could have installed it here")
    if lacks:
        pytest.skip(f"{name} is not covered: no {lacks}, which cannot be installed without root and apt-get")


@contextmanager
def open_browser(name: str, **options: Any) -> Iterator[Started]:
    """With a sound device of its own."""
    kind = KINDS[name]
    with ExitStack() as stack:
        device = stack.enter_context(sound_device())
        yield Started(kind, stack.enter_context(kind.start(device.environment, **options)), device)
