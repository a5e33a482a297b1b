"""Every option of `webrnn bench` applies to what was asked for, or is refused by name."""

from __future__ import annotations

import argparse
import json

import pytest

from webrnn.bench.revision import revision
from webrnn.cli import bench, main
from webrnn.cli.bench_options import (
    AB,
    AGAINST,
    MODES,
    RULES,
    STREAM,
    STREAM_AB,
    STREAM_AGAINST,
    TIMES,
    checked_mode,
    flag,
    given_options,
    measured_with,
    names,
    require_files,
)
from webrnn.errors import OptionError
from webrnn.web.folders import CHECKOUT

ASKS = {
    TIMES: [],
    AB: ["--ab", "x"],
    AGAINST: ["--against", "."],
    STREAM: ["--stream"],
    STREAM_AB: ["--stream", "--ab", "x"],
    STREAM_AGAINST: ["--stream", "--against", "."],
}
"""What asks for a mode."""
VALUES = {
    "model": ["m.onnx"],
    "json": ["--json", "-"],
    "backend": ["--backend", "native"],
    "seconds": ["--seconds", "0"],
    "shape": ["--shape", "x=2x3"],
    "size": ["--size", "n=1"],
    "fixed": ["--fixed", "n=1"],
    "compare": ["--compare", "old.json"],
    "inputs": ["--inputs", "in.npz"],
    "tolerance": ["--tolerance", "0"],
    "peers": ["--peers"],
    "browser": ["--browser"],
    "pyodide": ["--pyodide"],
    "html": ["--html", "a.html"],
    "weights": ["--weights", "int8"],
    "rounds": ["--rounds", "9"],
    "tflite": ["--tflite", "folder"],
    "modules": ["--modules", "folder"],
    "carry": ["--carry", "auto"],
    "depth": ["--depth", "1,8,64,256"],
    "frame_ms": ["--frame-ms", "10"],
    "no_onnxruntime": ["--no-onnxruntime"],
}
"""How each option is given, some with what is its default anyway."""
APPLIES = {
    TIMES: "model json backend seconds size shape fixed compare inputs tolerance peers browser pyodide html weights "
    "rounds tflite modules",
    AB: "model json backend seconds size shape fixed inputs tolerance rounds",
    AGAINST: "model json backend seconds size shape fixed inputs rounds",
    STREAM: "model json backend seconds size shape fixed compare peers browser modules carry depth frame_ms "
    "no_onnxruntime",
    STREAM_AB: "model json backend seconds size shape fixed rounds carry depth",
    STREAM_AGAINST: "model json backend seconds size shape fixed rounds carry depth",
}
PARTNERS = {
    ("tflite", TIMES): ["--peers"],
    ("modules", TIMES): ["--peers", "--browser"],
    ("peers", STREAM): ["--browser"],
    ("modules", STREAM): ["--peers", "--browser"],
}
"""Without which an option does not apply."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    bench.add_arguments(made)
    return made


def parsed(*arguments: str) -> argparse.Namespace:
    return parser().parse_args(arguments)


def test_every_option_has_a_rule_and_nothing_is_given_by_default():
    assert {action.dest for action in parser()._actions} - {"help"} == set(RULES)
    assert given_options(parsed()) == []
    assert set(VALUES) | {"stream", "ab", "against"} == set(RULES)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("option", VALUES)
def test_an_option_applies_or_is_refused(mode, option):
    arguments = [*ASKS[mode], *VALUES[option], *PARTNERS.get((option, mode), [])]
    if option in APPLIES[mode].split():
        assert checked_mode(parsed(*arguments)) == mode
        return
    with pytest.raises(OptionError, match=f"^{flag(option)} does not apply to {mode}.*: it applies to ") as caught:
        checked_mode(parsed(*arguments))
    for other in MODES:
        if other != TIMES:
            named = (
                str(caught.value).partition("it applies to ")[2].replace("(without --stream, --ab and --against)", "")
            )
            assert (other in named.split(", ")) == (option in APPLIES[other].split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tflite", "f"], "--tflite applies only together with --peers"),
        (["--modules", "f"], "--modules applies only together with --peers"),
        (["--modules", "f", "--peers"], "--modules applies only together with --browser or --pyodide"),
        (["--stream", "--peers"], "--peers applies only together with --browser"),
        (["--stream", "--modules", "f", "--browser"], "--modules applies only together with --peers"),
        (["--ab", "x", "--against", "."], "--ab and --against exclude each other"),
        (["--stream", "a.onnx", "b.onnx"], "--stream takes one model, not 2"),
        (["--ab", "help", "--rounds", "3"], "--rounds does not apply"),
        (["--ab", "help", "m.onnx"], "a model does not apply"),
        (["--json", "no/such/folder/a.json"], "--json no/such/folder/a.json: that is no place for a file"),
        (["--html", "."], "--html .: that is no place for a file"),
    ],
)
def test_options_that_need_or_exclude_others(arguments, message):
    with pytest.raises(OptionError, match=message):
        checked_mode(parsed(*arguments))


@pytest.mark.parametrize(
    "arguments",
    [["--seconds", "-1"], ["--seconds", "nan"], ["--seconds", "inf"], ["--tolerance", "-1"], ["--rounds", "0"],
     ["--frame-ms", "0"], ["--rounds", "x"]],
)  # fmt: skip
def test_numbers_out_of_range(arguments, capsys):
    with pytest.raises(SystemExit):
        parsed(*arguments)
    assert arguments[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gru_128_t1", "--size", "n=3"], "--size applies to models from files"),
        (["--fixed", "n=3"], "--fixed applies to models from files"),
        (["--ab", "relaxed", "--inputs", "a.npz"], "--inputs applies to models from files"),
        (["--ab", ""], "--ab names nothing"),
        (["rnn_128", "--backend", ","], "--backend names nothing"),
        (["--ab", "relaxed", "--backend", "native,wasm"], "--ab takes one backend"),
        (["--stream", "--html", "a.html"], "--html does not apply to --stream: it applies to times of models"),
        (["--stream", "--size", "stpes=3"], "the model has no size 'stpes': did you mean 'steps'? It has steps, batch"),
        (["--stream", "nowhere.onnx"], "no file, and no built-in model"),
    ],
)
def test_the_command_says_it_and_fails(arguments, message, capsys):
    assert main(["bench", *arguments]) == 1
    printed = capsys.readouterr()
    assert "OptionError" in printed.err
    assert message in printed.err
    assert not printed.out


def test_sizes_of_a_file_that_it_does_not_have(tmp_path, capsys):
    from webrnn.bench.models import streaming_gru

    (tmp_path / "m.onnx").write_bytes(streaming_gru(4, 5))
    for mode in ([], ["--ab", "relaxed"], ["--against", str(CHECKOUT)]):
        assert main(["bench", str(tmp_path / "m.onnx"), *mode, "--size", "frames=3", "--rounds", "1"]) == 1
        assert "the model has no size 'frames'; it has steps, batch" in capsys.readouterr().err


def test_what_figures_were_measured_with_is_plain_json():
    data = measured_with(parsed("m.onnx", "--rounds", "3", "--inputs", "a.npz"), TIMES, rounds=9, seconds=3.0)
    data = json.loads(json.dumps(data))
    assert data["revision"] == revision().as_data()
    assert set(data["options"]) == {"mode", *RULES}
    chosen = {name: data["options"][name] for name in ("mode", "model", "rounds", "seconds", "inputs", "ab")}
    assert chosen == {
        "mode": TIMES, "model": ["m.onnx"], "rounds": 3, "seconds": 3.0, "inputs": "a.npz", "ab": None,
    }  # fmt: skip


def test_lists_and_files():
    assert names("--backend", "native,wasm,") == ["native", "wasm"]
    require_files(parsed("--size", "n=1"), ["m.onnx"])
    with pytest.raises(OptionError, match="--size applies"):
        require_files(parsed("--size", "n=1"), [])
