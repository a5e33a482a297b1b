"""Changes to a parsed model that keep it a model: attributes, constants, declarations, wires, ops, opsets.

Each function takes a model and a source of chance, changes the model in place and says what it did, or returns None
where there is nothing to change.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

EDGES = (-(2**63), -(2**31) - 1, -(10**18), -2, -1, 0, 1, 2, 3, 4, 5, 7, 64, 2**31 - 1, 2**31, 2**32, 10**18, 2**63 - 1)
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"), 3.4e38)
TEXTS = (
    "", "reflect", "wrap", "edge", "constant", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "forward", "reverse",
    "bidirectional", "linear", "nearest", "cubic", "add", "mul", "max", "min", "floor", "ceil", "tanh", "LEFT",
    "RIGHT", "Tanh", "Sigmoid", "Relu", "Affine", "HardSigmoid", "ij,jk->ik", "half_pixel", "align_corners",
    "asymmetric", "\0", "ünïcödé", "a" * 3000
)  # fmt: skip
TYPES = (
    TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.DOUBLE,
    TensorProto.FLOAT16, TensorProto.INT8, TensorProto.UINT8, TensorProto.UINT64, TensorProto.STRING,
    TensorProto.BFLOAT16,
)  # fmt: skip
OPSETS = (0, 1, 6, 7, 9, 10, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 23, 24, 99, -1, 2**31)
NAMES = ("", "x", "y", "\0", "a\0b", "n" * 5000, "../x", "ä", " ", "__proto__")
UNARY = (
    "Relu", "Neg", "Abs", "Exp", "Log", "Sqrt", "Tanh", "Sigmoid", "Floor", "Identity", "Softmax", "Flatten", "Not",
    "Cast", "Shape", "Transpose", "ReduceSum", "ReduceMax", "Squeeze", "Erf", "Sign", "GlobalAveragePool", "NonZero",
    "Softplus", "Round"
)  # fmt: skip
BINARY = (
    "Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "MatMul", "Equal", "Less", "And", "Concat", "Gather",
    "Reshape", "Expand", "Tile", "PRelu", "BitShift", "CumSum", "ReduceMean", "Unsqueeze", "Gemm", "Sum", "Split",
    "Pad"
)  # fmt: skip

Mutation = Callable[[ModelProto, random.Random], str | None]


def mutate(model: ModelProto, rng: random.Random) -> list[str]:
    """Make one to three changes; what they were."""
    done: list[str] = []
    wanted = rng.choice((1, 1, 1, 1, 2, 2, 3))
    for _ in range(12):
        what = rng.choices(MUTATIONS, WEIGHTS)[0](model, rng)
        if what is not None:
            done.append(what)
        if len(done) == wanted:
            break
    return done


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and those inside it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs(attribute.g)


def _graph(model: ModelProto, rng: random.Random) -> GraphProto:
    return rng.choice(list(graphs(model.graph)))


def _node(model: ModelProto, rng: random.Random) -> NodeProto | None:
    nodes = [node for graph in graphs(model.graph) for node in graph.node]
    return rng.choice(nodes) if nodes else None


def _number(rng: random.Random, old: int) -> int:
    if rng.random() < 0.4:
        return max(-(2**63), min(2**63 - 1, old + rng.choice((-2, -1, 1, 2))))
    return rng.choice(EDGES)


def change_attribute(model: ModelProto, rng: random.Random) -> str | None:
    node = _node(model, rng)
    if node is None or not node.attribute:
        return None
    attribute = rng.choice(node.attribute)
    kind = attribute.type
    what = f"{node.op_type}.{attribute.name}"
    if kind == AttributeProto.INT:
        attribute.i = _number(rng, attribute.i)
        return f"{what} = {attribute.i}"
    if kind == AttributeProto.FLOAT:
        attribute.f = rng.choice(FLOATS)
        return f"{what} = {attribute.f}"
    if kind == AttributeProto.STRING:
        attribute.s = rng.choice(TEXTS).encode() if rng.random() < 0.9 else b"\xff\xfe"
        return f"{what} = {attribute.s[:20]!r}"
    if kind == AttributeProto.INTS:
        _change_list(attribute.ints, rng, lambda: _number(rng, 1))
        return f"{what} = {list(attribute.ints)[:8]}"
    if kind == AttributeProto.FLOATS:
        _change_list(attribute.floats, rng, lambda: rng.choice(FLOATS))
        return f"{what} = {list(attribute.floats)[:8]}"
    if kind == AttributeProto.STRINGS:
        _change_list(attribute.strings, rng, lambda: rng.choice(TEXTS).encode())
        return f"{what} = {list(attribute.strings)[:4]}"
    if kind == AttributeProto.TENSOR:
        return f"{what}: {_change_tensor(attribute.t, rng)}"
    return None


def _change_list(items, rng: random.Random, new: Callable[[], object]) -> None:  # type: ignore[no-untyped-def]
    kept = list(items)
    kind = rng.randrange(5)
    if kind == 0 or not kept:
        kept.insert(rng.randint(0, len(kept)), new())
    elif kind == 1:
        kept.pop(rng.randrange(len(kept)))
    elif kind == 2:
        kept = [] if rng.random() < 0.5 else kept * 2
    else:
        kept[rng.randrange(len(kept))] = new()
    del items[:]
    items.extend(kept)


def retype_attribute(model: ModelProto, rng: random.Random) -> str | None:
    node = _node(model, rng)
    if node is None or not node.attribute:
        return None
    index = rng.randrange(len(node.attribute))
    name = node.attribute[index].name
    value = rng.choice((1, 1.5, "text", [1, 2], [0.5], ["a", "b"], [], numpy_helper.from_array(np.float32([1, 2]))))
    kind = AttributeProto.INTS if value == [] else None
    node.attribute[index].CopyFrom(helper.make_attribute(name, value, attr_type=kind))
    return f"{node.op_type}.{name} is of another type"


def drop_attribute(model: ModelProto, rng: random.Random) -> str | None:
    node = _node(model, rng)
    if node is None or not node.attribute:
        return None
    index = rng.randrange(len(node.attribute))
    name = node.attribute[index].name
    del node.attribute[index]
    return f"{node.op_type}.{name} is gone"


KNOWN_ATTRIBUTES = {
    "axis": 1, "axes": [0], "keepdims": 0, "noop_with_empty_axes": 1, "to": 7, "perm": [1, 0], "group": 2, "pads": [1,
    1], "strides": [2], "dilations": [2], "kernel_shape": [2], "auto_pad": "SAME_LOWER", "ceil_mode": 1,
    "count_include_pad": 1, "mode": "linear", "alpha": 0.5, "beta": 2.0, "epsilon": 0.1, "transA": 1, "transB": 1,
    "direction": "reverse", "layout": 1, "clip": 1.0, "linear_before_reset": 1, "allowzero": 1, "num_outputs": 2,
    "start": 1, "end": -1, "batch_dims": 1, "fmod": 1, "exclusive": 1, "reverse": 1, "largest": 0,
    "select_last_index": 1, "stash_type": 1, "training_mode": 1, "onesided": 1, "inverse": 1, "scan_input_axes": [1],
    "scan_input_directions": [1], "scan_output_axes": [1], "scan_output_directions": [1], "num_scan_inputs": 1,
    "hidden_size": 2, "input_forget": 1, "saturate": 0, "block_size": 2, "output_padding": [1], "output_shape": [3],
    "storage_order": 1, "upper": 0, "no_such_attribute": 3, "blocksize": 1, "activations": ["Relu"],
    "activation_alpha": [0.5], "coordinate_transformation_mode": "align_corners", "approximate": "tanh",
}  # fmt: skip


def add_attribute(model: ModelProto, rng: random.Random) -> str | None:
    node = _node(model, rng)
    if node is None:
        return None
    from onnx import defs

    domain, known = node.domain, []
    if defs.has(node.op_type, domain):
        known = [name for name in defs.get_schema(node.op_type, domain).attributes if name in KNOWN_ATTRIBUTES]
    name = rng.choice(sorted(known)) if known and rng.random() < 0.85 else rng.choice(list(KNOWN_ATTRIBUTES))
    value = KNOWN_ATTRIBUTES[name]
    if isinstance(value, int) and rng.random() < 0.5:
        value = _number(rng, value)
    elif isinstance(value, list) and isinstance(value[0], int):
        value = [
            _number(rng, value[0]) if rng.random() < 0.4 else value[0] for _ in range(rng.choice((0, 1, 1, 2, 2, 4)))
        ]
    given = any(attribute.name == name for attribute in node.attribute)
    if given and rng.random() < 0.9:
        return None
    kind = AttributeProto.INTS if value == [] else None
    node.attribute.append(helper.make_attribute(name, value, attr_type=kind))
    return f"{node.op_type}.{name} {'twice' if given else 'added'}: {value}"


def duplicate_attribute(model: ModelProto, rng: random.Random) -> str | None:
    node = _node(model, rng)
    if node is None or not node.attribute:
        return None
    node.attribute.append(rng.choice(node.attribute))
    return f"{node.op_type}.{node.attribute[-1].name} twice"


def change_initializer(model: ModelProto, rng: random.Random) -> str | None:
    graph = _graph(model, rng)
    if not graph.initializer:
        return None
    tensor = rng.choice(graph.initializer)
    return f"constant {tensor.name[:20]}: {_change_tensor(tensor, rng)}"


def _change_tensor(tensor: TensorProto, rng: random.Random) -> str:
    kind = rng.randrange(8)
    if kind <= 4:
        try:
            array = numpy_helper.to_array(tensor)
        except Exception:
            return "unreadable as before"
        array, what = _changed_array(np.array(array), kind, rng)
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(array, name))
        return what
    if kind == 5:
        tensor.data_type = rng.choice((*TYPES, 0, 99, 2**31 - 1, -1))
        return f"declared as type {tensor.data_type}"
    if kind == 6:
        _change_list(tensor.dims, rng, lambda: _number(rng, 1))
        return f"declared as {list(tensor.dims)[:8]}"
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = (
        "location",
        rng.choice(("weights.bin", "w" * 5000, "", "..", "\0", "/etc/passwd", "a/" * 2500)),
    )
    return f"in the file {entry.value[:20]!r}"


def _changed_array(array: np.ndarray, kind: int, rng: random.Random) -> tuple[np.ndarray, str]:
    if kind <= 1 and array.size and array.dtype.kind in "iufb":
        position = rng.randrange(array.size)
        if array.dtype.kind == "f":
            number: float = rng.choice(FLOATS)
        else:
            number = _number(rng, int(array.reshape(-1)[position]))
        with np.errstate(all="ignore"):
            array.reshape(-1)[position : position + 1] = np.asarray(number).astype(array.dtype)
        return array, f"[{position}] = {number}"
    if kind == 2:
        wanted = rng.choice(
            (np.float32, np.int64, np.int32, np.bool_, np.float64, np.float16, np.int8, np.uint8, np.uint64)
        )
        try:
            with np.errstate(all="ignore"):
                return array.astype(wanted), f"as {np.dtype(wanted)}"
        except (TypeError, ValueError):
            return array, "as before"
    shape = list(array.shape)
    choice = rng.randrange(6)
    if choice == 0:
        return array.reshape(*shape, 1), f"of shape {[*shape, 1]}"
    if choice == 1:
        return array.reshape(1, *shape), f"of shape {[1, *shape]}"
    if choice == 2:
        return array.reshape(-1), "flat"
    if choice == 3 and shape:
        axis = rng.randrange(len(shape))
        return np.take(array, range(max(shape[axis] - 1, 0)), axis), f"one less on axis {axis}"
    if choice == 4 and shape:
        axis = rng.randrange(len(shape))
        more = np.concatenate([array, np.take(array, range(min(shape[axis], 1)), axis)], axis)
        return more, f"one more on axis {axis}"
    if choice == 5 and array.size:
        return np.array(array.reshape(-1)[0], array.dtype), "a number"
    return array.reshape(shape[::-1]), f"of shape {shape[::-1]}"


def declare_input(model: ModelProto, rng: random.Random) -> str | None:
    graph = _graph(model, rng)
    infos = [*graph.input, *graph.input, *graph.output, *graph.value_info]
    infos = [info for info in infos if info.type.HasField("tensor_type")]
    if not infos:
        return None
    info = rng.choice(infos)
    tensor, name = info.type.tensor_type, info.name[:20]
    kind = rng.randrange(8)
    if kind == 0:
        tensor.elem_type = rng.choice((*TYPES, 0, 99))
        return f"{name} declared as type {tensor.elem_type}"
    if kind == 1:
        tensor.ClearField("shape")
        return f"{name} declared without a shape"
    if kind == 2:
        info.ClearField("type")
        return f"{name} declared without a type"
    dims = tensor.shape.dim
    if kind == 3 or not dims:
        dims.add().dim_value = rng.choice((0, 1, 2, 3))
        return f"{name} declared with one more axis"
    if kind == 4:
        del dims[rng.randrange(len(dims))]
        return f"{name} declared with one axis less"
    dim = rng.choice(dims)
    if kind == 5:
        dim.dim_param = rng.choice(("n", "t", "b", "other", "n + 1", "n" * 300))
        return f"{name} declared with the size {dim.dim_param[:10]}"
    if kind == 6:
        dim.Clear()
        return f"{name} declared with an open size"
    dim.dim_value = (
        rng.choice((0, 1, 2, 3, 4, 5, 8, 17, -1, 2**31, 10**18)) if rng.random() < 0.6 else dim.dim_value + 1
    )
    return f"{name} declared with the size {dim.dim_value}"


def _names(graph: GraphProto) -> list[str]:
    found = [info.name for info in graph.input] + [tensor.name for tensor in graph.initializer]
    return found + [name for node in graph.node for name in node.output]


def rewire(model: ModelProto, rng: random.Random) -> str | None:
    graph = _graph(model, rng)
    if not graph.node:
        return None
    node = rng.choice(graph.node)
    inputs, kind = list(node.input), rng.randrange(7)
    if kind == 0 and len(inputs) > 1:
        a, b = rng.sample(range(len(inputs)), 2)
        inputs[a], inputs[b] = inputs[b], inputs[a]
        what = "two inputs swapped"
    elif kind == 1 and inputs:
        inputs.pop(rng.randrange(len(inputs)))
        what = "an input less"
    elif kind == 2 and inputs:
        inputs.insert(rng.randrange(len(inputs) + 1), rng.choice(inputs))
        what = "an input more"
    elif kind == 3 and inputs:
        inputs[rng.randrange(len(inputs))] = ""
        what = "an input left out"
    elif kind in (4, 5) and inputs and _names(graph):
        inputs[rng.randrange(len(inputs))] = rng.choice(_names(graph))
        what = "an input from elsewhere"
    else:
        return _rewire_outputs(graph, node, rng)
    del node.input[:]
    node.input.extend(inputs)
    return f"{node.op_type}: {what}"


def _rewire_outputs(graph: GraphProto, node: NodeProto, rng: random.Random) -> str:
    outputs, kind = list(node.output), rng.randrange(5)
    if kind == 0:
        outputs.append(rng.choice(["extra", *outputs]))
    elif kind == 1 and len(outputs) > 1:
        outputs.reverse()
    elif kind == 2 and outputs:
        outputs.pop()
    elif kind == 3 and outputs:
        outputs[rng.randrange(len(outputs))] = ""
    else:
        info = graph.output.add()
        info.name = rng.choice([*_names(graph), *(item.name for item in graph.output)])
        return f"{info.name[:20]} is an output too"
    del node.output[:]
    node.output.extend(outputs)
    return f"{node.op_type}: other outputs"


def exchange_op(model: ModelProto, rng: random.Random) -> str | None:
    node = _node(model, rng)
    if node is None:
        return None
    others = [other.op_type for graph in graphs(model.graph) for other in graph.node]
    table = (
        (BINARY if len(node.input) > 1 else UNARY) if rng.random() < 0.85 else (*UNARY, *BINARY, "NoSuchOp", *others)
    )
    was, node.op_type = node.op_type, rng.choice(table)
    if rng.random() < 0.6:
        del node.attribute[:]
    return f"{was} becomes {node.op_type}"


def change_opset(model: ModelProto, rng: random.Random) -> str | None:
    if not model.opset_import:
        return None
    entry = rng.choice(model.opset_import)
    entry.version = rng.choice(OPSETS)
    return f"opset {entry.version}"


def rename(model: ModelProto, rng: random.Random) -> str | None:
    graph = _graph(model, rng)
    names = _names(graph)
    if not names:
        return None
    old, new = rng.choice(names), rng.choice(NAMES)
    everywhere = rng.random() < 0.7
    for inner in graphs(model.graph) if everywhere else [graph]:
        for node in inner.node:
            node.input[:] = [new if name == old else name for name in node.input]
            node.output[:] = [new if name == old else name for name in node.output]
        if everywhere:
            for item in (*inner.input, *inner.output, *inner.initializer, *inner.value_info):
                item.name = new if item.name == old else item.name
    return f"{old[:20]} is called {new[:20]!r}"


def nest(model: ModelProto, rng: random.Random) -> str | None:
    """Put all nodes into a branch, or into the body of a loop that runs some times."""
    graph = model.graph
    if not graph.node or not graph.output:
        return None
    names = [info.name for info in graph.output]
    if len(set(names)) != len(names) or not set(names) <= {name for node in graph.node for name in node.output}:
        return None
    inner = GraphProto(name="inner")
    inner.node.extend(graph.node)
    inner.output.extend(graph.output)
    kind = rng.randrange(2)
    if kind == 0:
        flag = numpy_helper.from_array(np.array(rng.random() < 0.5), "flag")
        graph.initializer.append(flag)
        node = helper.make_node("If", ["flag"], names, then_branch=inner, else_branch=inner)
        what = "If"
    else:
        steps = rng.choice((0, 1, 2, 3, 10**18, -1)) if rng.random() < 0.3 else rng.choice((1, 2, 3))
        graph.initializer.append(numpy_helper.from_array(np.int64(steps), "nest_steps"))
        inner.input.extend([helper.make_tensor_value_info("nest_i", TensorProto.INT64, []),
                            helper.make_tensor_value_info("nest_go", TensorProto.BOOL, [])])  # fmt: skip
        inner.node.append(helper.make_node("Identity", ["nest_go"], ["nest_on"]))
        inner.output.insert(0, helper.make_tensor_value_info("nest_on", TensorProto.BOOL, []))
        node = helper.make_node("Loop", ["nest_steps", ""], names, body=inner)
        what = f"Loop of {steps} steps"
    del graph.node[:]
    graph.node.append(node)
    for info in graph.output:
        info.type.tensor_type.ClearField("shape")
    return f"all in a {what}"


def make_sparse(model: ModelProto, rng: random.Random) -> str | None:
    """Write a constant as a sparse one, right or wrong."""
    graph = _graph(model, rng)
    candidates = [i for i, tensor in enumerate(graph.initializer) if 0 < len(tensor.dims) < 3]
    if not candidates:
        return None
    index = rng.choice(candidates)
    tensor = graph.initializer[index]
    try:
        array = numpy_helper.to_array(tensor)
    except Exception:
        return None
    where = np.argwhere(array != 0) if array.dtype.kind in "iuf" else np.zeros((0, array.ndim), np.int64)
    values = array[tuple(where.T)]
    indices = where if array.ndim > 1 else where.reshape(-1)
    kind = rng.randrange(8)
    if kind == 0:
        indices = indices + 1
    elif kind == 1:
        indices = indices - 9
    elif kind == 2:
        values = values[:-1]
    elif kind == 3:
        indices = indices.astype(rng.choice((np.float32, np.int32, np.bool_)))
    elif kind == 4:
        values = values.reshape(-1, 1)
    elif kind == 5:
        indices = indices[..., None]
    sparse = graph.sparse_initializer.add()
    sparse.values.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), tensor.name))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(indices.astype(indices.dtype)), "indices"))
    dims = list(tensor.dims) if kind != 6 else rng.choice(([], [-1], [0], [10**18], [2**40, 2**40], [1] * 40))
    sparse.dims.extend(dims)
    del graph.initializer[index]
    return f"constant {sparse.values.name[:20]} is sparse ({kind})"


def drop_something(model: ModelProto, rng: random.Random) -> str | None:
    graph = _graph(model, rng)
    fields = [name for name in ("node", "input", "output", "initializer") if len(getattr(graph, name))]
    if not fields:
        return None
    name = rng.choice(fields)
    items = getattr(graph, name)
    del items[rng.randrange(len(items)) if rng.random() < 0.9 else slice(None)]
    return f"a {name} less"


def duplicate_something(model: ModelProto, rng: random.Random) -> str | None:
    graph = _graph(model, rng)
    fields = [name for name in ("node", "input", "output", "initializer") if len(getattr(graph, name))]
    if not fields:
        return None
    name = rng.choice(fields)
    items = getattr(graph, name)
    items.append(rng.choice(items))
    return f"a {name} twice"


def extend(model: ModelProto, rng: random.Random) -> str | None:
    """Another op behind an output."""
    graph = model.graph
    if not graph.output:
        return None
    info = rng.choice(graph.output)
    old = info.name
    attributes = {}
    if rng.random() < 0.6:
        op, inputs = rng.choice(UNARY), [old]
    else:
        op, inputs = rng.choice(BINARY), [old, rng.choice([old, *_names(graph)])]
    if op == "Cast":
        attributes = {"to": rng.choice(TYPES)}
    if op in ("Concat", "Softmax", "Flatten", "Gather"):
        attributes = {"axis": rng.choice((0, 1, -1))}
    graph.node.append(helper.make_node(op, inputs, [f"{old[:9]}_more"], **attributes))
    info.Clear()
    info.name = f"{old[:9]}_more"
    return f"{op} behind {old[:20]}"


MUTATIONS: tuple[Mutation, ...] = (
    change_attribute, add_attribute, drop_attribute, retype_attribute, duplicate_attribute, change_initializer,
    declare_input, rewire, exchange_op, change_opset, rename, nest, make_sparse, drop_something, duplicate_something,
    extend,
)  # fmt: skip
WEIGHTS = (20, 12, 4, 3, 1, 16, 10, 10, 8, 3, 2, 3, 2, 2, 2, 10)
