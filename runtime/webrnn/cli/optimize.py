"""`webrnn optimize model.onnx`."""

from __future__ import annotations

import argparse
from pathlib import Path

from webrnn.errors import OptionError
from webrnn.formats import read_model
from webrnn.guesses import bound_sizes
from webrnn.ir import Graph
from webrnn.ir.text import to_text
from webrnn.passes import ALL_PASSES, Pass, PassResult
from webrnn.report import optimize
from webrnn.report.dot import to_dot
from webrnn.report.text import as_data, report_text

from .options import add_model_options, add_size_options, fixed_inputs, input_shapes, pass_names, sizes
from .output import add_json_option, prints_json, show, write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="path of an ONNX file")
    add_model_options(parser)
    parser.add_argument(
        "--semantics", choices=("run", "stream"), default="run", help="whether states live on between calls"
    )
    parser.add_argument("--memory", action="store_true", help="estimate the peak memory, too")
    add_size_options(parser)
    parser.add_argument("--all", action="store_true", help="show each rewrite and each decline")
    add_json_option(parser)
    parser.add_argument(
        "--print-after", metavar="PASS", help="print the graph after each run of this pass that changed something"
    )
    parser.add_argument("--stop-after", type=int, metavar="N", help="make N rewrites and no more")
    parser.add_argument("--dot", type=Path, metavar="FILE", help="write the optimized graph for graphviz")


def main(arguments: argparse.Namespace) -> None:
    known = [step.name for step in ALL_PASSES]
    if arguments.print_after is not None and arguments.print_after not in known:
        raise OptionError(f"there is no pass {arguments.print_after}; there are {', '.join(known)}")
    fixed = fixed_inputs(arguments.fixed)
    graph = read_model(arguments.model, fixed)

    def print_graph(step: Pass, result: PassResult, graph: Graph) -> None:
        if step.name == arguments.print_after and result.rewrites and not prints_json(arguments):
            print(f"after {step.name}: {'; '.join(result.fired)}\n{to_text(graph)}\n")

    report = optimize(
        arguments.model,
        disable=pass_names(arguments.disable),
        fixed=fixed,
        semantics=arguments.semantics,
        stop_after=arguments.stop_after,
        memory=arguments.memory,
        sizes=bound_sizes(graph.inputs, sizes(arguments.size), input_shapes(arguments.shape)),
        observe=print_graph,
    )
    show(arguments, as_data(report), lambda: report_text(report, everything=arguments.all))
    if arguments.dot is not None:
        write_text(arguments.dot, to_dot(report.graph))
