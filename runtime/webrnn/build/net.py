"""`Net`: a model under construction, whatever framework its weights are from."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from webrnn.checks.graphs import check_node
from webrnn.errors import Error, OptionError, ShapeError, UnsupportedOp
from webrnn.ir import Dim, DType, Graph, GraphBuilder, Node, Scan, Symbol, SymbolicDim, Value
from webrnn.reference.registry import lookup
from webrnn.shapes.facts import Facts, fact_of_array, facts_of_inputs
from webrnn.shapes.infer import infer_node

from .tensor import Tensor
from .weights import Weights, few, spelled

if TYPE_CHECKING:
    from webrnn.engine.session import InferenceSession
    from webrnn.engine.streams.stream import Stream

Self = TypeVar("Self", bound="Net")

FLOAT_TYPES: dict[str, np.dtype] = {"float32": np.dtype(np.float32), "float64": np.dtype(np.float64)}


_OURS: tuple[type[Exception], ...] = (Error,)
_WRONG: tuple[type[Exception], ...] = (Error, ValueError, TypeError, IndexError, OverflowError)
"""What a wrong argument can lead to. Of what the step of a loop raises, only webrnn's own errors are touched."""


class _Builder(GraphBuilder):
    """A graph that can go back to where it was."""

    def mark(self) -> tuple[Any, ...]:
        graph = self.graph
        kept = len(graph.nodes), len(graph.constants), len(graph.inputs), len(graph.outputs)
        return kept, dict(self.captures), set(self._names), dict(self._next_suffix), dict(self._int_vectors)

    def back_to(self, mark: tuple[Any, ...]) -> None:
        (nodes, constants, inputs, outputs), self.captures, self._names, self._next_suffix, self._int_vectors = mark
        graph = self.graph
        del graph.nodes[nodes:], graph.inputs[inputs:], graph.outputs[outputs:]
        for value in list(graph.constants)[constants:]:
            del graph.constants[value]


class Core:
    """What all parts of a model share."""

    def __init__(self, weights: Weights, dtype: np.dtype, name: str):
        self.weights, self.dtype = weights, dtype
        self.builder = _Builder(name)
        """Where layers put their nodes: the model, or the body of the loop that is being built."""
        self.outermost = self.builder
        self.facts = Facts()
        self.sizes: dict[str, tuple[Value, int]] = {}
        """An axis of an input for each named size."""
        self.carry: dict[str, str] = {}

    def settle(self, since: int) -> None:
        """Check the nodes that were added since, and find what they give."""
        graph = self.builder.graph
        for node in graph.nodes[since:]:
            for value in node.inputs:
                if value in graph.constants and self.facts.of(value).shape is None:
                    self.facts.set(value, fact_of_array(graph.constants[value]))
            check_node(node, self.facts)
            infer_node(node, self.facts)
            for value in node.outputs:
                if value is not None:
                    fact = self.facts.of(value)
                    value.dtype, value.shape = fact.dtype or value.dtype, fact.shape or value.shape


class Net:
    """A model under construction: inputs, layers, outputs. `build.torch` and `build.keras` make one of a file."""

    def __init__(self, weights: Weights, dtype: str = "float32", name: str = "built"):
        if dtype not in FLOAT_TYPES:
            raise OptionError(f"dtype is {dtype!r}; it is one of {', '.join(FLOAT_TYPES)}")
        self.core = Core(weights, FLOAT_TYPES[dtype], name)
        self.prefix = ""
        """What stands in front of the names of layers."""

    @property
    def weights(self) -> Weights:
        return self.core.weights

    @property
    def carry(self) -> dict[str, str]:
        """The input and the output of each state that a layer was asked to keep (`states=True`)."""
        return dict(self.core.carry)

    def part(self: Self, prefix: str) -> Self:
        """The same model, with the names of layers below a prefix: for modules inside modules.

        >>> from webrnn import build
        >>> net = build.torch({"encoder.0.weight": np.ones((2, 3), np.float32)})
        >>> net.part("encoder").linear("0", net.input("x", (1, 3))).shape
        (1, 2)
        """
        found = copy.copy(self)
        found.prefix = self.full(prefix)
        if prefix and not self.weights.below(found.prefix):
            raise self.weights.unknown(found.prefix)
        return found

    def full(self, prefix: str) -> str:
        """The whole name of a layer."""
        if not isinstance(prefix, str):
            raise OptionError(f"the name of a layer is a text, not a {type(prefix).__name__}: net.linear('out', x)")
        return self.weights.full(self.prefix, prefix) if prefix else self.prefix

    # ------------------------------------------------------------------------------------------------ ends of a model

    def input(self, name: str, shape: Sequence[int | str | None], dtype: str | None = None) -> Tensor:
        """An input of the model. Open sizes have names: ("time", 1, 40); the same name is the same size."""
        with self.layer("input", name):
            if any(value.name == name for value in self.core.outermost.graph.inputs):
                raise OptionError("there is an input of that name")
            if self.core.builder is not self.core.outermost:
                raise OptionError("inputs are of the model, not of a loop in it")
            if isinstance(shape, str) or not isinstance(shape, Sequence):
                raise OptionError(f"the shape is {shape!r}; it is a tuple of sizes and names")
            sizes = tuple(_size(given, f"{name}_{axis}") for axis, given in enumerate(shape))
            return self._new_input(name, sizes, _element_type(dtype or str(self.core.dtype)))

    def _new_input(self, name: str, sizes: tuple[Dim, ...], dtype: DType) -> Tensor:
        core = self.core
        value = core.outermost.input(name, dtype, sizes)
        if value.name != name:
            raise OptionError(f"the name {name!r} is taken")
        for axis, size in enumerate(sizes):
            if isinstance(size, SymbolicDim):
                core.sizes.setdefault(str(size), (value, axis))
        core.facts.set(value, facts_of_inputs([value])[0])
        return Tensor(self, value)

    def output(self, name: str, tensor: Tensor) -> None:
        """Make a tensor an output of the model, under a name."""
        with self.layer("output", name):
            core = self.core
            if core.builder is not core.outermost:
                raise OptionError("outputs are of the model, not of a loop in it")
            if any(value.name == name for value in core.builder.graph.outputs):
                raise OptionError("there is an output of that name")
            value = self._value(tensor)
            given = core.builder.op("Identity", value, output=core.builder.value(name, value.dtype, value.shape))
            if given.name != name:
                raise OptionError(f"the name {name!r} is taken")
            core.builder.graph.outputs.append(given)

    def graph(self, strict: bool = True) -> Graph:
        """The model as `webrnn.InferenceSession` takes it. If weights are left that no layer has used, it raises and
        names them, unless `strict` is False."""
        core = self.core
        if core.builder is not core.outermost:
            raise OptionError("a loop is being built")
        if not [value for value in core.builder.graph.outputs if value.name not in core.carry.values()]:
            raise OptionError("the model has no output: net.output('y', y)")
        left = core.weights.unused()
        if strict and left:
            raise OptionError(
                f"{len(left)} of {len(core.weights)} weights of {core.weights.origin} are not used: {few(left)}. "
                "strict=False leaves them out"
            )
        graph = core.builder.graph.copy()
        graph.outputs.sort(key=lambda value: value.name in core.carry.values())  # states behind the others
        graph.drop_unused_constants()
        return graph

    def session(self, strict: bool = True, **options: Any) -> InferenceSession:
        """A session of the model; options are those of `webrnn.InferenceSession`."""
        from webrnn.engine.session import InferenceSession  # it takes a while to import

        return InferenceSession(self.graph(strict), **options)

    def stream(self, strict: bool = True, **options: Any) -> Stream:
        """A stream that carries the states of layers with `states=True`; without any, one that runs a model for whole
        sequences by frames, exactly, or says what is in the way (docs/along-time.md)."""
        return self.session(strict, **options).stream(carry=self.carry or "internal")

    # ------------------------------------------------------------------------------------------------------ any op

    def op(self, op: str, *inputs: Any, name: str = "", **attrs: Any) -> Tensor:
        """The first result of an op of ONNX's (newest form): net.op("Clip", x, np.float32(0), np.float32(6))."""
        found = self.ops(op, *inputs, name=name, **attrs)
        return found[0]

    def ops(self, op: str, *inputs: Any, results: int = 1, name: str = "", **attrs: Any) -> list[Tensor]:
        """All results of an op that has several: net.ops("TopK", x, net.ints(3), results=2)."""
        with self.layer(op, name or None):
            if lookup("", op) is None:
                raise UnsupportedOp("there is no implementation of this op")
            builder = self.core.builder
            hint = f"{self.full(name)}_weights" if name else "const"
            operands = [None if item is None else self._value(self.like(item, hint=hint)) for item in inputs]
            outputs: list[Value | None] = [builder.value(op.lower()) for _ in range(results)]
            builder.add(Node(op, operands, outputs, attrs, self.full(name) if name else ""))
            return [Tensor(self, value) for value in outputs if value is not None]

    def like(self, item: Any, other: Tensor | None = None, hint: str = "const") -> Tensor:
        """A tensor as it is; a number or an array as a constant of the type of another tensor, or of the model."""
        if isinstance(item, Tensor):
            return item
        dtype = None
        if other is not None and other.value.dtype is not None:
            dtype = other.value.dtype.array_type
        elif isinstance(item, float) or (isinstance(item, np.ndarray) and item.dtype == np.float64):
            dtype = self.core.dtype
        return self.constant(item, dtype, hint)

    def constant(self, array: Any, dtype: Any = None, name: str = "const") -> Tensor:
        if isinstance(array, tuple | list) and any(isinstance(item, Tensor) for item in array):
            raise OptionError(
                "a tuple of tensors is where one tensor is needed; a recurrent layer of PyTorch's gives output and "
                "states: y, h = net.gru(...)"
            )
        try:
            found = np.asarray(array) if dtype is None else np.asarray(array, dtype)
            if isinstance(array, int) and dtype is None:
                found = np.asarray(array, np.int64)
            value = self.core.builder.constant(found, name)
        except (TypeError, ValueError) as error:
            raise OptionError(f"a {type(array).__name__} is no tensor: {error}") from None
        self.core.facts.set(value, fact_of_array(found))
        return Tensor(self, value)

    def ints(self, *numbers: int) -> Tensor:
        """A constant vector of int64, as axes, sizes and the like are."""
        value = self.core.builder.ints(*(int(number) for number in numbers))
        self.core.facts.set(value, fact_of_array(np.array(numbers, np.int64)))
        return Tensor(self, value)

    def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        return self.op("Concat", *tensors, axis=axis)

    def stack(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        return self.concat([tensor.unsqueeze(axis) for tensor in tensors], axis)

    def split(self, tensor: Tensor, parts: int, axis: int) -> list[Tensor]:
        """Equal parts along an axis."""
        return self.ops("Split", tensor, results=parts, axis=axis, num_outputs=parts)

    def softmax(self, x: Tensor, axis: int = -1) -> Tensor:
        return self.op("Softmax", x, axis=axis)

    def log_softmax(self, x: Tensor, axis: int = -1) -> Tensor:
        return self.op("LogSoftmax", x, axis=axis)

    def dropout(self, x: Tensor, *_: Any, **__: Any) -> Tensor:
        """Nothing: a model that runs has no dropout."""
        return x

    def reshaped(self, tensor: Tensor, sizes: tuple[int | str, ...]) -> Tensor:
        for size in sizes:
            if isinstance(size, str) and size not in self.core.sizes:
                raise OptionError(f"no input has a size that is called {size!r}; there are {few([*self.core.sizes])}")
            if not isinstance(size, str) and (not isinstance(size, int | np.integer) or size < -1):
                raise OptionError(f"{size!r} is not a size")
        if not any(isinstance(size, str) for size in sizes):
            return self.op("Reshape", tensor, self.ints(*(int(size) for size in sizes)), allowzero=1)
        parts = [self._size_of(size) if isinstance(size, str) else self.ints(size) for size in sizes]
        return self.op("Reshape", tensor, self.concat(parts, 0), allowzero=1)

    def _size_of(self, name: str) -> Tensor:
        value, axis = self.core.sizes[name]
        outer = Tensor(self, value)
        outer.owner = self.core.outermost
        return self.op("Shape", outer, start=axis, end=axis + 1)

    # -------------------------------------------------------------------------------------------------------- loops

    def loop(
        self, step: Callable[..., Any], x: Tensor, states: Sequence[Tensor], axis: int = 0, name: str = "loop"
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """A loop along an axis of `x`: `step(x_t, *states)` gives (y_t, *new states). The outputs of all steps stacked
        along that axis, and the last states.

        >>> from webrnn import build
        >>> net = build.torch({"cell.weight_ih": np.ones((2, 3), "f"), "cell.weight_hh": np.ones((2, 2), "f")})
        >>> x, h = net.input("x", ("time", 1, 3)), net.input("h", (1, 2))
        >>> def step(x_t, h):
        ...     h = net.rnn_cell("cell", x_t, h)
        ...     return net.relu(h), h
        >>> y, (h_next,) = net.loop(step, x, [h])
        >>> y.shape, h_next.shape
        (('time', 1, 2), (1, 2))
        """
        with self.layer("loop", name):
            core, outside = self.core, self.core.builder
            whole, inits = self._value(x), [self._value(state) for state in states]
            if whole.shape is None or not -len(whole.shape) <= axis < len(whole.shape):
                raise OptionError(f"{axis} is no axis of a tensor of shape {x.shape}")
            axis %= len(whole.shape)
            body = _Builder(outside.unique_name(name), outside)
            scan = Scan(body.graph, name=self.full(name))
            element = body.value("x", whole.dtype, whole.shape[:axis] + whole.shape[axis + 1 :])
            befores = [body.value("state", init.dtype, init.shape) for init in inits]
            for value in (element, *befores):
                core.facts.set(value, facts_of_inputs([value])[0])
            core.builder = body
            try:
                given = step(*(Tensor(self, value) for value in (element, *befores)))
                given = given if isinstance(given, tuple) else (given,)
                if len(given) != 1 + len(befores) or not all(isinstance(item, Tensor) for item in given):
                    raise OptionError(f"a step gives its output and {len(befores)} states, all of them tensors")
                trace, *afters = [body.op("Identity", self._value(item)) for item in given]
                core.settle(len(body.graph.nodes) - len(given))
            finally:
                core.builder = outside
            for before, after in zip(befores, afters, strict=True):
                if before.dtype != after.dtype or before.shape != after.shape:
                    raise ShapeError(f"a state is {spelled(before.shape)}, its next one {spelled(after.shape)}")
            finals = [outside.value("final", init.dtype, init.shape) for init in inits]
            scan.add_sequence(whole, element, axis=axis)
            for init, before, after, final in zip(inits, befores, afters, finals, strict=True):
                scan.add_state(init, before, after, final)
            result = outside.value("trace", trace.dtype)
            scan.add_trace(trace, result, axis=axis)
            scan.add_captures(body)
            outside.add(scan.to_node())
            return Tensor(self, result), tuple(Tensor(self, value) for value in finals)

    # ------------------------------------------------------------------------------------- what layers are made of

    @contextmanager
    def layer(self, kind: str, name: str | None) -> Iterator[None]:
        """What is added inside is checked, and taken back if anything is wrong; errors name the layer."""
        core = self.core
        builder, mark = core.builder, core.builder.mark()
        used, carry, sizes = set(core.weights.used), dict(core.carry), dict(core.sizes)
        try:
            yield
            core.settle(mark[0][0])
        except Exception as error:
            builder.back_to(mark)
            core.builder, core.weights.used, core.carry, core.sizes = builder, used, carry, sizes
            if getattr(error, "in_layer", False) or not isinstance(error, _OURS if kind == "loop" else _WRONG):
                raise
            raise _blamed(error, kind, name) from error

    def _value(self, tensor: Any) -> Value:
        """The value of a tensor in the graph that is being built; of an outer one what stands for it there."""
        if not isinstance(tensor, Tensor):
            if isinstance(tensor, tuple | list):
                self.constant(tensor)
            raise OptionError(f"a {type(tensor).__name__} is where a tensor is needed; net.constant(array) makes one")
        if tensor.net.core is not self.core:
            raise OptionError("the tensor is of another model")
        return self._captured(tensor.value, tensor.owner, self.core.builder)

    def _captured(self, value: Value, owner: GraphBuilder, builder: GraphBuilder) -> Value:
        if owner is builder:
            return value
        if builder.parent is None:
            raise OptionError("the tensor is inside of a loop; what a loop gives is its outputs and last states")
        inner = builder.capture(self._captured(value, owner, builder.parent))
        self.core.facts.set(inner, self.core.facts.of(value))
        return inner

    def require_size(self, x: Tensor, axis: int, size: int, what: str = "the input") -> None:
        """That an axis is as long as the weights say, or open."""
        self._value(x)
        if not -x.rank <= axis < x.rank:
            raise ShapeError(f"{what} is {spelled(x.shape)}, it has no axis {axis}")
        have = (x.shape or ())[axis]
        if isinstance(have, int) and have != size:
            raise ShapeError(f"{what} is {spelled(x.shape)}: axis {axis} has {have} elements, the weights take {size}")

    def product(self, x: Tensor, weight: np.ndarray, bias: np.ndarray | None, name: str) -> Tensor:
        """x [..., inputs] times weight [inputs, outputs], plus bias; the last op has the name of the layer."""
        matrix = self.like(weight, hint=f"{self.full(name)}_WT")
        if bias is None:
            return self.op("MatMul", x, matrix, name=name)
        return self.op("Add", self.op("MatMul", x, matrix), self.like(bias, hint=f"{self.full(name)}_B"), name=name)

    def state(self, name: str, shape: Sequence[Dim], dtype: DType) -> Tensor:
        """An input for what a layer remembers; `keep_state` makes its output."""
        if self.core.builder is not self.core.outermost:
            raise OptionError("states=True is for layers of the model, not of a loop: give them to net.loop")
        return self._new_input(name, tuple(shape), dtype)

    def keep_state(self, name: str, tensor: Tensor) -> None:
        self.output(f"{name}_next", tensor)
        self.core.carry[name] = f"{name}_next"


def _blamed(error: Exception, kind: str, name: str | None) -> Error:
    """An error that says in which layer it came up. Ops inside of a layer have no name of their own."""
    found = type(error) if isinstance(error, Error) else ShapeError
    message, attribute = (error.message, error.attribute) if isinstance(error, Error) else (str(error), None)
    if name is None:
        return found(message, op=kind, attribute=attribute)
    if isinstance(error, Error) and error.op:
        message = f"{error.op}: {message}"
    blamed = found(message, node=name or None, op=kind, attribute=attribute)
    blamed.in_layer = True  # type: ignore[attr-defined]
    return blamed


def _size(given: Any, name: str) -> Dim:
    if given is None:
        return Symbol(name)
    if isinstance(given, str) and given.isidentifier():
        return Symbol(given)
    if isinstance(given, int | np.integer) and not isinstance(given, bool) and given >= 0:
        return int(given)
    raise OptionError(f"{given!r} is not a size: numbers and names are")


def _element_type(dtype: str) -> DType:
    try:
        return DType.of(np.zeros(0, np.dtype(dtype)))
    except TypeError as error:
        raise OptionError(f"{dtype!r} is not a type of tensors: {error}") from None
