"""`InferenceSession`: a model, ready to run, with onnxruntime's interface."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, overload

from webrnn.checks.graphs import SizeConditions, checked, checked_again
from webrnn.errors import OptionError, PlanError, ShapeError
from webrnn.formats.reader import read
from webrnn.ir import Dim, Graph, Shape, SymbolicDim, Value
from webrnn.ir.dims import is_late, is_static
from webrnn.names import unknown_name
from webrnn.passes import run_passes
from webrnn.passes.base import Semantics
from webrnn.passes.pipeline import FUSIONS, disabled_switches
from webrnn.passes.weight_forms import EVERY, WeightForms, WeightReport, weight_forms
from webrnn.plan.file import plan_bytes
from webrnn.plan.lower import SAME_BITS
from webrnn.shapes.infer import infer

from .exporting import all_shapes, describe, export_plan, export_pool, export_stream, load_plan
from .feeds import SizeConflict, checked_feed, like_feeds, own
from .forking import new_lock
from .javascript import mapping_of
from .kernels.team import number_of_threads
from .limits import Limits
from .onnxruntime_names import NodeArg, OnnxruntimeCaller, OnnxruntimeMethods, SessionOptions, refuse_if_ended
from .programs.backends import Program, fastest_backend, make_program
from .programs.plan_program import PlanProgram

# Imported where they are needed: a page that runs a whole sequence need not wait for them.
if TYPE_CHECKING:
    from webrnn.guesses import Guesses

    from .streams.batching import Batched
    from .streams.carry import ByFrames, Carry
    from .streams.pool import StreamPool
    from .streams.states import FoundStates
    from .streams.stream import Stream
    from .streams.streaming import StreamingModel


class InferenceSession(OnnxruntimeMethods):
    """Runs one model, given as the path of a file, as its bytes, or as a graph that was built in Python.

    A file is an ONNX model, a plan, or a model of an amp or an effect: see docs/formats.md.

    >>> import numpy as np
    >>> from onnx.parser import parse_model
    >>> model = parse_model('''<ir_version: 8, opset_import: ["": 17]>
    ... double (float[n] x) => (float[n] y) { y = Add(x, x) }''')
    >>> session = InferenceSession(model.SerializeToString())
    >>> session.get_inputs()
    [NodeArg(name='x', type='tensor(float)', shape=['n'])]
    >>> session.run(None, {"x": np.float32([1, 2])})
    [array([2., 4.], dtype=float32)]

    The model is optimized once, here. `disable` names passes that are not to run (["all"] is every one) and ways to run
    ("fused_sequences", "scan_buffers", "side_by_side"), `fixed` binds inputs to arrays or numbers for good, which the
    passes make use of, `limits` bounds what a run may use.

    Callers of onnxruntime change one import: `sess_options`, also as second argument, `providers`,
    `provider_options`, `enable_fallback` and `disabled_optimizers` are accepted, and what of them has a meaning here is
    done: see docs/migrating.md.

    `weights` makes constant weights small: "int16", "int8" or "f16", or a form for each of some nodes, "*" for all
    others: {"lstm": "int8"}. The nodes named in `keep` stay float32. Results change then: see docs/small-weights.md.

    `threads` is how many threads may work on a run of the backend native, the one that calls counted; "auto" is as many
    as this process has processors. Results are the same bits for any number: see docs/threads.md.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes | Graph,
        backend: str | SessionOptions | None = "auto",
        disable: Iterable[str] | None = (),
        fixed: Mapping[str, Any] | None = None,
        *,
        sess_options: SessionOptions | None = None,
        providers: Any = None,
        provider_options: Any = None,
        enable_fallback: Any = None,
        disabled_optimizers: Any = None,
        limits: Limits | None = None,
        weights: str | Mapping[str, str] = "f32",
        keep: Collection[str] = (),
        threads: int | str = 1,
    ):
        model = path_or_bytes
        if not isinstance(backend, str):  # onnxruntime's order: model, sess_options, providers
            sess_options, backend = backend if sess_options is None else sess_options, "auto"
            providers, disable = (disable or None) if providers is None else providers, ()
        caller = OnnxruntimeCaller(sess_options, providers, provider_options)
        self.backend = fastest_backend() if backend == "auto" else backend
        threads, disable = caller.threads(threads, self.backend), caller.disabled(disable or ())
        self._caller = caller
        self.threads = number_of_threads(threads, self.backend)
        self._notes: list[str] = []
        self._disable = disable if isinstance(disable, str) else tuple(disable)
        self._limits = limits or Limits()
        self._forms = None if weights == "f32" and not keep else weight_forms(weights, keep)
        self.weight_report: WeightReport | None = None
        """Which weights became small, if any were to."""
        self._source: Graph | None = None
        """The model as it was read."""
        self.about: dict[str, Any] = {}
        """What a plan file says about itself, see `export`; of a model of an effect what its file says."""
        self._is_effect = False
        """Whether it takes a signal of any length: then "auto" is "internal"."""
        self._lock = new_lock(self)
        self._shown_outputs: list[NodeArg] | None = None
        self._loose: InferenceSession | None = None
        """For inputs that differ in a size that has one name."""
        self._streaming_models: dict[Any, StreamingModel] = {}
        self._batched_models: dict[StreamingModel, Batched | str] = {}
        plan = None if isinstance(model, Graph) else plan_bytes(model)
        if plan is not None:
            if fixed:
                raise PlanError("inputs are fixed when a plan is exported, not when it is loaded")
            if self._forms is not None:
                raise PlanError("weights are made small when a plan is exported, not when it is loaded")
            program = load_plan(plan, self.backend, self._limits, self.threads)
            self.about = program.file.about
            self.inputs, self.outputs = program.signature()
            self._program: Program = program
        else:
            if isinstance(model, Graph):
                self.graph: Graph = _built(model, fixed)
                """Optimized; its values are what passes found out, not what the model declares."""
            else:
                source = read(model, fixed)
                self.graph, self.about, self._is_effect = source.graph, source.about, source.is_effect
                caller.metadata, caller.defaults = source.metadata, source.defaults
            self.inputs = [value.like(value.name) for value in self.graph.inputs]
            self.outputs = inferred_outputs(self.graph)
            optimize = partial(_optimize, disable=self._disable, forms=self._forms)
            conditions = checked(self.graph)
            self._source = self.graph.copy()
            self.weight_report = optimize(self.graph)
            if self._forms is not None and self.weight_report is not None:
                self._notes += self.weight_report.lines()
                self.weight_report.require_names(self._forms)
            self._program = self._make_program(self.graph, optimize, self._source, conditions)
        self._inputs = {value.name: value for value in self.inputs}
        self._output_names = [value.name for value in self.outputs]

    def _after_fork(self, was_held: bool) -> None: ...

    def stream(
        self,
        carry: Carry = "auto",
        check_finite: bool = False,
        time: Mapping[str, int] | None = None,
        running: bool = False,
        lookback: int | None = None,
        starts: Mapping[str, Any] | None = None,
    ) -> Stream:
        """A stream: the state lives between calls of `step`.

        `carry` says which output is which input in the next step: {"h_in": "h_out"}; "auto" finds the pairs by names
        and by the graph, and raises where it is not sure (`stream.carry` says which, `find_states` why); "internal"
        runs a model for whole sequences by frames, and refuses one that cannot give exactly what it gives for the whole
        sequence. `time` says then which axis of an input is time ({"x": 1}), where the model does not say it, and opens
        an axis of fixed size. With `running`, means, sums, extremes and norms over all frames are taken over the frames
        so far, and with `lookback` attention over all frames sees only so many, the last ones: these are other models
        than the one for whole sequences, and their results differ.
        `starts` are arrays from which states start instead of zeros, by the names of their inputs.
        With `check_finite` a step whose results are not finite raises.
        """
        return self._streaming(carry, time, running, lookback, starts).stream(check_finite)

    def find_states(self) -> FoundStates:
        """The pairs that carry="auto" finds, each with its reason, and what it is not sure of."""
        from .streams.states import find_states

        return find_states(self.inputs, self.outputs, self._source)

    def guesses(
        self,
        sizes: Mapping[str, int] | None = None,
        shapes: Mapping[str, Sequence[int]] | None = None,
        given: Mapping[str, Any] | None = None,
        is_step: bool = False,
    ) -> Guesses:
        """Inputs that are worth a try, as the command line and the page make them up: sizes, rates, lengths, indices.

        `sizes` are of open sizes by name, `shapes` of inputs by name, and `given` are arrays of some inputs.
        With `is_step` sequences have one frame, as for a step of a stream.
        """
        from webrnn.guesses import Guesses

        states = [pair.before for pair in self.find_states().pairs]
        takes = self._program.takes if isinstance(self._program, PlanProgram) else None
        return Guesses(self.inputs, self._source, states, sizes, shapes, given, is_step, takes)

    def pool(
        self,
        max_streams: int = 64,
        carry: Carry = "auto",
        max_batch: int | None = None,
        time: Mapping[str, int] | None = None,
        running: bool = False,
        lookback: int | None = None,
    ) -> StreamPool:
        """Many streams, one batched run a tick; `carry`, `time`, `running` and `lookback` as for `stream`.

        More streams than `max_batch` are run in several batches. A model whose streams cannot be put side by side is
        run one stream after the other (`pool.batched` says which, `pool.reason` why).
        """
        from .streams.pool import StreamPool

        model = self._streaming(carry, time, running, lookback)
        return StreamPool(model, max_streams, self._batched(model), max_batch)

    def _streaming(
        self,
        carry: Carry,
        time: Mapping[str, int] | None = None,
        running: bool = False,
        lookback: int | None = None,
        starts: Mapping[str, Any] | None = None,
    ) -> StreamingModel:
        """The model with these states carried. It is made once, so that all its streams share the weights, but for one
        with `starts` of its own."""
        from .streams.carry import ByFrames

        if self._is_effect and carry == "auto":
            carry = "internal"
        by_frames = ByFrames.of(carry, time, running, lookback)
        if starts:
            return self._new_streaming(carry, by_frames, starts)
        key = carry if isinstance(carry, str) else tuple(carry.items()), by_frames
        with self._lock:
            if key not in self._streaming_models:
                self._streaming_models[key] = self._new_streaming(carry, by_frames)
            return self._streaming_models[key]

    def _new_streaming(
        self, carry: Carry, by_frames: ByFrames, starts: Mapping[str, Any] | None = None
    ) -> StreamingModel:
        from .streams.streaming import StreamingModel

        if starts and (carry == "internal" or isinstance(self._program, PlanProgram)):
            raise OptionError(
                "starts= is for models whose states are inputs and outputs; "
                "what others, and plans, start from is in them"
            )
        if isinstance(self._program, PlanProgram):
            return StreamingModel.of_plan(self._program, self.inputs, self.outputs, carry)

        def make_program(graph: Graph) -> Program:
            source = graph.copy()
            self._optimize_stream(graph)
            return self._streaming_program(graph, source)

        assert self._source is not None
        source = self._source.copy()
        return StreamingModel.of_graph(source, carry, make_program, self._disable, self._limits, by_frames, starts)

    def _batched(self, model: StreamingModel) -> Batched | str:
        from .streams.batching import batched_plan

        if model.graph is None:
            return batched_plan(model)
        with self._lock:
            if model not in self._batched_models:
                self._batched_models[model] = self._find_batched(model, model.graph)
            return self._batched_models[model]

    def _find_batched(self, model: StreamingModel, graph: Graph) -> Batched | str:
        from .streams.batching import find_batched

        time = None if model.timing is None else model.timing.inputs
        return find_batched(graph, model.pairs, self._optimize_stream, self._streaming_program, time)

    def _batched_for(self, model: StreamingModel, shapes: Mapping[str, Sequence[int]] | None) -> Batched | str:
        """The same for feeds of given shapes, each that of one stream."""
        if shapes is None:
            return self._batched(model)
        if model.graph is None:
            raise PlanError("a plan that was loaded from a file cannot be given other shapes")
        from .programs.vm_program import with_shapes

        known = all_shapes(model.inputs, {**model.state_shapes(shapes), **shapes})
        return self._find_batched(model, with_shapes(model.graph, known))

    @property
    def _optimize_stream(self) -> Callable[[Graph], Any]:
        """Not a method: programs keep it, and one that has the session would keep all of it in a cycle."""
        return partial(_optimize, disable=self._disable, forms=self._forms, semantics="stream")

    def _streaming_program(self, graph: Graph, source: Graph) -> Program:
        return self._make_program(graph, self._optimize_stream, source)

    def _make_program(
        self, graph: Graph, optimize: Callable[[Graph], Any], source: Graph, conditions: SizeConditions | None = None
    ) -> Program:
        conditions = checked_again(checked(source) if conditions is None else conditions, source, graph)
        options, say = disabled_switches(self._disable), self._notes.append
        if self._forms is not None and self._forms.has_integers:
            options |= {SAME_BITS}
        return make_program(graph, self.backend, self._limits, optimize, source, options, say, conditions, self.threads)

    def export(
        self,
        path: str | os.PathLike[str],
        shapes: Mapping[str, Sequence[int]] | None = None,
        carry: Carry | None = None,
        about: Mapping[str, Any] | None = None,
        time: Mapping[str, int] | None = None,
        running: bool = False,
        lookback: int | None = None,
        pool: bool = False,
        starts: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Write the plan of the model to a file, by convention `.rnn`, which runs without the model and without Python.

        `shapes` gives the shapes of inputs for a model that has no plan for all sizes, or fixes them. With `carry`,
        `time`, `running`, `lookback` and `starts`, as for `stream`, it is the program of a stream, and the file says
        which input takes which output, and from what the states start; with "internal" the states are inputs and
        outputs of the plan. With `pool`, the plan takes any number of such streams in one run, side by side:
        `session.pool()` and `model.pool()` in JavaScript run them together. `shapes` are those of one stream then. A
        model whose streams cannot be put side by side is refused. `about` is any JSON object, for whoever loads the
        file. The plan of an effect, such as a .nam file, is always that of a stream, and says beside `about` how an
        AudioWorklet runs it.

        Before it is written, the plan is run once, or for some steps, with inputs that are made up, and compared with
        what the session gives. What is to be said of that, such as sizes for which it does not hold, is returned.
        """
        from .export_trial import try_plan, try_pool, try_stream

        if self.threads > 1 and self._source is not None:  # a file has nothing that is for threads
            alone = self._another(self._source, threads=1)
            alone.about, alone._is_effect = self.about, self._is_effect
            return alone.export(path, shapes, carry, about, time, running, lookback, pool, starts)
        if self._is_effect:
            carry, about = carry or "internal", {**self.about, **(about or {})}
        if carry is None and pool:
            raise OptionError(
                'pool=True is for streams: say what they carry, carry="auto", "internal" or {input: output}'
            )
        if carry is None and starts:
            raise OptionError("starts= is for streams: say what they carry")
        if carry is None:
            data = export_plan(self._program, self.inputs, shapes, about, self._notes)
            said = try_plan(data, self.backend, self._limits, self._program, self.inputs, shapes, self._source)
        else:
            model = self._streaming(carry, time, running, lookback, starts)
            if pool:
                data = export_pool(model, self._batched_for(model, shapes), shapes, about)
            else:
                data = export_stream(model, shapes, about, self._notes)
            said = try_stream(data, self.backend, self._limits, model, shapes)
            if pool:
                try_pool(data, self.backend, self._limits, shapes)
        with open(path, "wb") as file:
            file.write(data)
        return said

    def report(self) -> str:
        """On what the model runs, and what of it has no instruction and runs in numpy."""
        return describe(self._program, self.backend, self._notes)

    def _another(self, source: Graph, threads: int) -> InferenceSession:
        """A session with the same options."""
        forms = self._forms
        weights: Any = "f32" if forms is None else {EVERY: forms.default, **forms.by_name}
        return InferenceSession(
            source, self.backend, self._disable, limits=self._limits, weights=weights, threads=threads
        )

    def _run_without_names(self, names: Sequence[str], feeds: Mapping[str, Any], conflict: SizeConflict) -> list[Any]:
        """The model on inputs that differ in a size for which it has one name, if it takes them: onnxruntime only warns
        there."""
        if self._source is None:
            raise conflict
        with self._lock:
            if self._loose is None:
                self._loose = self._another(_without_size_names(self._source), self.threads)
        try:
            found = self._loose.run(names, feeds)
        except (ShapeError, PlanError):
            raise conflict from None
        warnings.warn(f"{conflict}: the model has one name for both sizes", UserWarning, stacklevel=3)
        return found

    def get_inputs(self) -> list[NodeArg]:
        return [NodeArg.of(value) for value in self.inputs]

    def get_outputs(self) -> list[NodeArg]:
        if self._shown_outputs is None:
            values = self.outputs if self._source is None else _shown_outputs(self._source)
            self._shown_outputs = [NodeArg.of(value) for value in values]
        return list(self._shown_outputs)

    @overload
    def run(
        self, output_names: Sequence[str] | None, feeds: Mapping[str, Any], run_options: Any = None
    ) -> list[Any]: ...

    @overload
    def run(
        self, output_names: Sequence[str] | None, *, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[Any]: ...

    def run(
        self,
        output_names: Sequence[str] | None,
        feeds: Mapping[str, Any] | None = None,
        run_options: Any = None,
        *,
        input_feed: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """The named outputs, or all if none is named, as arrays of the caller's own. Nothing is kept for the next run.

        `input_feed` is onnxruntime's name of `feeds`; of `run_options` only `terminate` has an effect.

        Inside Pyodide feeds may be JavaScript's: an object or a Map of typed arrays. Each is copied once, to where
        Python's arrays are. A page reads a result in place with `getBuffer()` of its proxy.
        """
        if run_options is not None:
            refuse_if_ended(run_options)
        if feeds is None:
            feeds = input_feed
        if not isinstance(feeds, dict):
            feeds = mapping_of(feeds)
            if not isinstance(feeds, Mapping):
                raise OptionError(f"feeds are a dict, {{input: array}}, not {type(feeds).__name__}")
        recent = getattr(self._program, "recent", None)
        if not output_names and recent is not None:
            try:
                results = recent.run_same(feeds)
            except PlanError:  # a branch that is taken now does not hold for these sizes
                results = None
            if results is not None:
                return results
        names = list(output_names or self._output_names)
        if isinstance(output_names, str):
            raise OptionError(f"the names of outputs are a list: run([{output_names!r}], feeds)")
        for name in names:
            if name not in self._output_names:
                raise ShapeError(unknown_name("output", name, self._output_names))
        for name in feeds:
            if name not in self._inputs:
                raise ShapeError(self._caller.not_fed(name, list(self._inputs)))
        arguments = []
        sizes: dict[str, int] = {}
        try:
            for name, value in self._inputs.items():
                if name not in feeds and "optional" not in value.container:
                    raise ShapeError(f"input {name!r} is missing")
                arguments.append(checked_feed(value, feeds.get(name), sizes))
        except SizeConflict as conflict:
            return self._run_without_names(names, feeds, conflict)
        results = self._program.run(arguments)
        chosen = [results[self._output_names.index(name)] for name in names]
        return like_feeds(own(chosen, borrowed=arguments), feeds.values())


def _without_size_names(graph: Graph) -> Graph:
    """A copy in which each open size of an input is one of its own."""
    found = graph.copy()
    for value in found.inputs:
        value.shape = value.shape and tuple(dim if isinstance(dim, int) else None for dim in value.shape)
    for value in found.outputs:
        value.shape = None
    return found


def inferred_outputs(graph: Graph) -> list[Value]:
    """The outputs as they are declared; where that says nothing of a type or a size, as it follows from the graph."""
    declared = [value.like(value.name) for value in graph.outputs]
    if all(value.container or (value.dtype is not None and _is_said(value.shape)) for value in declared):
        return declared
    facts = infer(graph)
    for value, source in zip(declared, graph.outputs, strict=True):
        if value.container:
            continue
        fact = facts.of(source)
        value.dtype = value.dtype or fact.dtype
        value.shape = _with_inferred(value.shape, fact.shape)
    return declared


def _shown_outputs(graph: Graph) -> list[Value]:
    """As onnxruntime shows them: a number where the graph says it, a name that the model has, or nothing."""
    named = {name for value in graph.inputs for dim in value.shape or () for name in getattr(dim, "names", ())}
    shown = inferred_outputs(graph)
    if all(value.container or is_static(value.shape) for value in shown):
        return shown
    facts = infer(graph)
    for value, source in zip(shown, graph.outputs, strict=True):
        if value.shape is None or value.container:
            continue
        declared, found = source.shape or (None,) * len(value.shape), facts.of(source).shape or value.shape
        if len(declared) == len(found) == len(value.shape):
            value.shape = tuple(_shown(*each, named) for each in zip(declared, found, value.shape, strict=True))
    return shown


def _shown(declared: Dim | None, found: Dim | None, size: Dim | None, named: set[str]) -> Dim | None:
    if declared is None and isinstance(size, SymbolicDim) and not named.issuperset(size.names):
        return None
    return found if isinstance(found, int) and not isinstance(declared, int) else size


def _is_said(shape: Shape | None) -> bool:
    return shape is not None and None not in shape


def _with_inferred(declared: Shape | None, found: Shape | None) -> Shape | None:
    """What is declared, and of the rest what is a number or one of the names of the inputs' sizes."""
    if found is None:
        return declared
    sizes = tuple(size if isinstance(size, int) or not is_late(size) else None for size in found)
    if declared is None:
        return sizes
    if len(declared) != len(sizes):
        return declared
    return tuple(size if size is not None else other for size, other in zip(declared, sizes, strict=True))


def _optimize(
    graph: Graph, disable: Collection[str], forms: WeightForms | None, semantics: Semantics = "run"
) -> WeightReport | None:
    """Run the passes on a graph, and make its weights small if that is asked for."""
    run_passes(graph, disable=disable, semantics=semantics)
    if forms is None:
        return None
    from webrnn.passes.small_weights import make_weights_small  # a page waits for what is imported

    report = make_weights_small(graph, forms)
    run_passes(graph, FUSIONS[-1:], disable=disable, semantics=semantics)  # the scales of lookups go along
    return report


def _built(graph: Graph, fixed: Mapping[str, Any] | None) -> Graph:
    if fixed:
        raise OptionError("the inputs of a graph that was built are fixed by building it with constants")
    return graph.copy()
