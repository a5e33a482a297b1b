"""What is wrong with a signal or a sound file."""

from __future__ import annotations

from webrnn.errors import Error


class AudioError(Error):
    """A signal or a sound file is not one that can be used here."""
