"""`run` and `export` without options take real models, whose sizes, rates and lengths are guessed."""

import json

import pytest

from tests.models.fetch import model_path
from tests.models.real_models import CASES
from webrnn.cli import main

EXPORTED = ("silero_v6", "tashkeel_gru", "wespeaker_scan", "ppocr_v2_rec", "thai2rom_enc")
"""Of each kind one: rates, lengths, samples, images."""


@pytest.mark.parametrize("name", CASES)
def test_run_without_options(name, capsys):
    assert main(["run", str(model_path(name)), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert all(output["mean"] is not None for output in found["outputs"] if 0 not in output["shape"])


@pytest.mark.parametrize("name", EXPORTED)
def test_export_without_options(name, tmp_path, capsys):
    assert main(["export", str(model_path(name)), "-o", str(tmp_path / "m.rnn"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert not [note for note in found["notes"] if "not tried" in note]
    assert main(["run", str(tmp_path / "m.rnn"), "--json"]) == 0
