"""Options that several commands have."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from webrnn.engine.feeds import checked_feed
from webrnn.engine.session import InferenceSession
from webrnn.errors import OptionError
from webrnn.guesses import Guesses, bound_sizes, open_sizes
from webrnn.ir import Graph
from webrnn.names import unknown_name
from webrnn.passes import run_passes
from webrnn.passes.small_weights import make_weights_small
from webrnn.passes.weight_forms import BYTES, EVERY, F32, WeightForms, WeightReport, weight_forms
from webrnn.tables import shortened


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """How a model is read and optimized."""
    parser.add_argument(
        "--fixed",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="bind an input: a number, a list or a .npy file",
    )
    parser.add_argument("--disable", default="", metavar="PASS,...", help='passes not to run; "all" is every one')


def add_weight_options(parser: argparse.ArgumentParser, default: str = F32) -> None:
    """In which form weights are."""
    parser.add_argument(
        "--weights",
        action="append",
        default=[],
        metavar="FORM",
        help=f"of weights: {', '.join(BYTES)} (default: {default}), or NODE=FORM for those of one node",
    )
    parser.add_argument(
        "--keep", nargs="+", action="extend", default=[], metavar="NODE", help="nodes whose weights stay f32"
    )


def weights_asked_for(arguments: argparse.Namespace, default: str = F32) -> WeightForms | None:
    """None if they are to stay as they are.

    >>> weights_asked_for(argparse.Namespace(weights=["int8", "lstm=int16"], keep=["head"]))
    WeightForms(default='int8', by_name={'head': 'f32', 'lstm': 'int16'})
    """
    forms = [item for item in arguments.weights if "=" not in item]
    if len(forms) > 1:
        raise OptionError(f"--weights has one form, not {' and '.join(forms)}; NODE=FORM is one for a node")
    named = dict(pairs([item for item in arguments.weights if "=" in item]))
    found = weight_forms({EVERY: forms[0] if forms else default, **named}, arguments.keep)
    return None if found.default == F32 and not found.by_name else found


def weight_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """What InferenceSession takes."""
    forms = weights_asked_for(arguments)
    return {} if forms is None else {"weights": {EVERY: forms.default, **forms.by_name}}


def refuse_options_of_models(arguments: argparse.Namespace) -> None:
    """For a plan: what is done when it is exported."""
    if arguments.fixed:
        raise OptionError("inputs are fixed when a plan is exported, not when it is loaded")
    if weights_asked_for(arguments) is not None:
        raise OptionError("weights are made small when a plan is exported, not when it is loaded")


def optimized(graph: Graph, disable: Collection[str], forms: WeightForms | None) -> WeightReport | None:
    """Run the passes on a graph and make its weights small, as a session does it."""
    run_passes(graph, disable=disable)
    if forms is None:
        return None
    report = make_weights_small(graph, forms)
    report.require_names(forms)
    return report


def pairs(items: Sequence[str]) -> list[tuple[str, str]]:
    """
    >>> pairs(["x:0=a.npy", "y=3"])
    [('x:0', 'a.npy'), ('y', '3')]
    """
    found = []
    for item in items:
        name, sign, rest = item.rpartition("=")
        if not sign:
            raise OptionError(f"{item!r} is not of the form NAME=VALUE")
        found.append((name, rest))
    return found


def add_size_options(parser: argparse.ArgumentParser) -> None:
    """How large inputs are; what is not given is guessed."""
    parser.add_argument(
        "--size",
        "--sizes",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=N",
        help="of a size that the model leaves open, by its name; INPUT.AXIS if it has none (default: guessed)",
    )
    parser.add_argument(
        "--shape",
        nargs="+",
        action="extend",
        default=[],
        metavar="INPUT=1x16x256",
        help="of an input (default: guessed)",
    )


def add_input_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="an input: a .npy file, a number or a list (default: made up)",
    )


def given_inputs(session: InferenceSession, items: Sequence[str]) -> dict[str, Any]:
    """Arrays of the types that the model declares."""
    found, values = {}, {value.name: value for value in session.inputs}
    for name, array in fixed_inputs(items).items():
        if name not in values:
            raise OptionError(unknown_name("input", name, values))
        found[name] = array if isinstance(array, np.ndarray) else checked_feed(values[name], array, {})
    return found


def guesses_for(
    session: InferenceSession, arguments: argparse.Namespace, given: dict[str, Any], is_step: bool = False
) -> Guesses:
    """Inputs of the sizes that options say."""
    return session.guesses(sizes(arguments.size), input_shapes(arguments.shape), given, is_step)


def shapes_asked_for(session: InferenceSession, arguments: argparse.Namespace) -> dict[str, tuple[int, ...]] | None:
    """The shapes of all inputs, if options say a size of one; what they leave open is guessed."""
    if not arguments.size and not arguments.shape:
        return None
    return next(guesses_for(session, arguments, {}).tries()).shapes


def with_sizes(graph: Graph, arguments: argparse.Namespace) -> Graph:
    """A graph whose inputs have the sizes that options say; others stay open."""
    bound = bound_sizes(graph.inputs, sizes(arguments.size), input_shapes(arguments.shape))
    if not bound and not arguments.shape:
        return graph
    found, given = graph.copy(), input_shapes(arguments.shape)
    for value in found.inputs:
        if value.name in given and value.shape is None:
            value.shape = tuple(given[value.name])
        names = open_sizes(value)
        value.shape = value.shape and tuple(
            bound.get(names[axis], dim) if axis in names else dim for axis, dim in enumerate(value.shape)
        )
    return found


def add_stream_options(parser: argparse.ArgumentParser) -> None:
    """How a model for whole sequences runs by frames."""
    parser.add_argument(
        "--time",
        nargs="+",
        action="extend",
        default=[],
        metavar="INPUT=AXIS",
        help="which axis of an input is time, where the model does not say it",
    )
    parser.add_argument("--running", action="store_true", help="statistics over all frames become those so far")
    parser.add_argument("--lookback", type=int, metavar="N", help="attention over all frames sees the last N")


def by_frames(arguments: argparse.Namespace) -> dict[str, Any]:
    """What `session.stream` takes.

    >>> by_frames(argparse.Namespace(time=["x=2", "z=-1"], running=False, lookback=None))
    {'time': {'x': 2, 'z': -1}, 'running': False, 'lookback': None}
    """
    axes = pairs(arguments.time)
    for _, axis in axes:
        if not axis.removeprefix("-").isdecimal():
            raise OptionError(f"{axis!r} is not an axis, such as 2")
    time = {name: int(axis) for name, axis in axes}
    return {"time": time or None, "running": arguments.running, "lookback": arguments.lookback}


def input_shapes(items: Sequence[str]) -> dict[str, list[int]]:
    """
    >>> input_shapes(["x=1x512", "y=[1, 512]", "sr="])
    {'x': [1, 512], 'y': [1, 512], 'sr': []}
    """
    found = {}
    for name, text in pairs(items):
        inside = text.strip("[]() ").lower()
        numbers = [size.strip() for size in inside.replace("x", ",").split(",")] if inside not in ("", "scalar") else []
        if not all(size.isdecimal() for size in numbers):
            raise OptionError(f"{text!r} is not a shape, such as 1x512")
        found[name] = [_size(size) for size in numbers]
    return found


def sizes(items: Sequence[str]) -> dict[str, int]:
    """
    >>> sizes(["steps=100"])
    {'steps': 100}
    """
    return {name: _size(text) for name, text in pairs(items)}


def _size(text: str) -> int:
    if not text.isdecimal():
        raise OptionError(f"{text!r} is not a size, such as 16")
    if len(text) > 10 or int(text) >= 2**31:
        raise OptionError(f"a size of {shortened(text, 24)} is too large: it is less than 2^31")
    return int(text)


def loaded(file: str) -> np.ndarray:
    try:
        return np.load(file, allow_pickle=False)
    except OSError as error:
        raise OptionError(f"cannot read {file!r}: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise OptionError(f"cannot read {file!r}: {error}") from None


def fixed_inputs(items: Sequence[str]) -> dict[str, Any]:
    """A number, a list of numbers, True or False, or the path of an array.

    >>> fixed_inputs(["sr=16000", "gain=[0.5, 1]"])
    {'sr': 16000, 'gain': [0.5, 1]}
    """
    return {name: loaded(text) if text.endswith(".npy") else _literal(text) for name, text in pairs(items)}


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise OptionError(
            f"{shortened(text, 60)!r} is neither a number, nor a list of them, nor the path of a .npy file"
        ) from None


def pass_names(text: str) -> list[str]:
    """
    >>> pass_names("fold_constants,merge_common")
    ['fold_constants', 'merge_common']
    """
    return [name for name in text.split(",") if name]


def number_or_auto(text: str) -> int | str:
    """
    >>> number_or_auto("2"), number_or_auto("auto")
    (2, 'auto')
    """
    if text == "auto" or text.removeprefix("-").isdecimal():
        return text if text == "auto" else int(text)
    raise argparse.ArgumentTypeError(f'{text!r} is neither a number nor "auto"')


def add_seed_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=_seed, default=0, metavar="N", help="of the random inputs")


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 on")
    return int(text)


def require_another_file(model: str, output: Path | None) -> None:
    """A model is never written over."""
    if output is not None and output.exists() and Path(model).exists() and output.samefile(model):
        raise OptionError(f"{str(output)!r} is the model itself: say with -o where the plan goes")
