"""Speech, and models from the checkout's cache."""

import numpy as np
import pytest

from tests.models.fetch import CACHE, Unavailable, speech_path
from webrnn.audio import read_wav

RATE = 16000


@pytest.fixture(autouse=True)
def models_of_the_checkout(monkeypatch):
    monkeypatch.setenv("WEBRNN_MODELS", str(CACHE))


@pytest.fixture(scope="session")
def speech() -> np.ndarray:
    """60 s at 16 kHz."""
    try:
        samples, rate = read_wav(speech_path())
    except Unavailable as error:
        pytest.skip(str(error))
    assert rate == RATE
    return samples
