"""Plans that look for new code, under AddressSanitizer. `make fuzz-plans` does many more."""

from __future__ import annotations

import pytest

from tests.plan import libfuzzer
from tests.plan.fuzzing import LIBFUZZER, compiler

RUNS = 100_000
MOST_CORPUS_BYTES = 300_000

needs_libfuzzer = pytest.mark.skipif(compiler(LIBFUZZER) is None, reason="no compiler here links libFuzzer")


@needs_libfuzzer
def test_plans_that_reach_new_code_do_no_harm(tmp_path):
    assert libfuzzer.fuzz(RUNS, folder=tmp_path) >= RUNS


@needs_libfuzzer
def test_one_byte_too_few_is_seen(tmp_path):
    with pytest.raises(AssertionError, match="heap-buffer-overflow"):
        libfuzzer.fuzz(1_000, folder=tmp_path, missing_bytes=1)


def test_the_corpus_stays_small():
    assert any(libfuzzer.stored())
    assert libfuzzer.CORPUS.stat().st_size < MOST_CORPUS_BYTES
