"""A sound device for browsers on a machine without one: a PulseAudio daemon of the tests' own.

It has a sink that nobody hears, and a microphone, which hears what is played to the sink `to_microphone`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .processes import started, until

RATE = 48000


@dataclass(frozen=True)
class SoundDevice:
    environment: dict[str, str]
    """What programs that use the device need."""

    @contextmanager
    def speaking(self, file: Path) -> Iterator[None]:
        """The microphone hears samples, float32 of one channel at 48 kHz, again and again."""
        play = f"while :; do cat '{file}'; done"
        options = f"--raw --format=float32le --rate={RATE} --channels=1 --latency-msec=50 --device=to_microphone"
        with started(["bash", "-c", f"({play}) | pacat --playback {options}"], self.environment):
            yield


@contextmanager
def sound_device() -> Iterator[SoundDevice]:
    """For as long as it is needed. Nothing of the machine's own sound is touched."""
    folder = Path(tempfile.mkdtemp(prefix="pulse"))
    socket = folder / "native"
    modules = (
        f"module-null-sink sink_name=nobody_hears rate={RATE}",
        f"module-null-sink sink_name=to_microphone rate={RATE} channels=1",
        f"module-remap-source source_name=microphone master=to_microphone.monitor rate={RATE} channels=1",
        # A null sink takes two seconds of sound at a time, unless somebody is in a hurry.
        "module-loopback source=microphone sink=nobody_hears latency_msec=20",
        f"module-native-protocol-unix socket={socket} auth-anonymous=1",  # the last: with it, all are there
    )
    environment = {
        "PULSE_SERVER": f"unix:{socket}",
        "PULSE_COOKIE": str(folder / "cookie"),
        "XDG_RUNTIME_DIR": str(folder),
        "HOME": str(folder),
    }
    command = ["pulseaudio", "-n", "--daemonize=no", "--use-pid-file=no", "--exit-idle-time=-1", "--disable-shm=yes"]
    try:
        daemon = [*command, *(f"--load={module}" for module in modules)]
        with started(daemon, {**environment, "PULSE_STATE_PATH": str(folder)}) as program:
            until(program, socket.exists, "its socket")
            client = {name: environment[name] for name in ("PULSE_SERVER", "PULSE_COOKIE")}
            yield SoundDevice({**client, "PULSE_SINK": "nobody_hears", "PULSE_SOURCE": "microphone"})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
