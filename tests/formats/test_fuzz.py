"""Files that are nearly models are read or refused with a typed error, and what is read runs."""

import json
import os
from collections import Counter

import numpy as np

import webrnn
from webrnn.formats import read

from .mutations import mutated
from .test_nam import NAMES, RECORDED
from .test_rtneural_layers import MODELS
from .test_state_dicts import proteus

CASES = int(os.environ.get("WEBRNN_FUZZ_CASES", "2000"))
"""`make fuzz-formats` takes more."""
RUN_EVERY = 40


def test_mutated_files() -> None:
    seeds = [json.loads((RECORDED / f"{name}.nam").read_bytes()) for name in NAMES]
    seeds += [*MODELS.values(), proteus(), proteus(2)]
    seed = int(os.environ.get("WEBRNN_FUZZ_SEED", "23"))
    rng, outcomes = np.random.default_rng(seed), Counter[str]()
    for case in range(CASES):
        data = mutated(rng, seeds[case % len(seeds)])
        try:
            read(data)
            outcomes["read"] += 1
            if case % RUN_EVERY == 0:
                run(data)
        except webrnn.Error as error:
            outcomes[type(error).__name__] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}, case {case}: {data[:2000]!r}") from error
    assert outcomes["read"] > CASES // 20
    assert outcomes["ModelError"] > CASES // 4
    assert outcomes["UnsupportedOp"] > CASES // 40


def run(data: bytes) -> None:
    session = webrnn.InferenceSession(data)
    x = np.zeros((6, *(session.inputs[0].shape or ())[1:]), np.float32)
    assert len(session.run(None, {"x": x})[0]) <= 6
