"""What callers of onnxruntime bring along: options, providers, metadata. What has no meaning here is stored and said
once in a warning, so that `import webrnn as ort` is the only line that changes. docs/migrating.md lists it."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

from webrnn.errors import OptionError
from webrnn.ir import DType, SymbolicDim, Value
from webrnn.names import unknown_name
from webrnn.onnx.tensors import spell_type

CPU = "CPUExecutionProvider"
PROVIDERS = (CPU,)


class GraphOptimizationLevel(enum.IntEnum):
    """Below `ORT_ENABLE_BASIC` no pass runs; all other levels are the same here."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Nodes run one after the other in both."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


_said: set[str] = set()


def _say_once(message: str) -> None:
    if message not in _said:
        _said.add(message)
        warnings.warn(message, UserWarning, stacklevel=4)


class _Options:
    """Attributes with defaults; what is not one of them is refused, as onnxruntime refuses it."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {}
    _WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {}
    """Attributes that are stored only, and what to use instead."""

    def __init__(self) -> None:
        self.__dict__.update(self._DEFAULTS)
        self.__dict__["_entries"] = {}

    def __getattr__(self, name: str) -> Any:  # those with defaults are in __dict__
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._DEFAULTS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        default = self._DEFAULTS[name]
        if isinstance(default, enum.IntEnum):
            value = _member(type(default), name, value)
        elif isinstance(default, int) and hasattr(value, "__index__"):  # numpy's integers, and 0 and 1 for a bool
            value = type(default)(value)
        elif not isinstance(value, type(default)):
            raise TypeError(f"{name} is {type(default).__name__}, not {type(value).__name__}")
        if name in self._WITHOUT_EFFECT and value != default:
            _say_once(f"{type(self).__name__}.{name} has no effect in webrnn{self._WITHOUT_EFFECT[name]}")
        self.__dict__[name] = value


def _member(kind: type[enum.IntEnum], name: str, value: Any) -> enum.IntEnum:
    """A member of ours, for one of ours, for onnxruntime's of the same name and for nothing else."""
    if isinstance(value, kind):
        return value
    found = kind.__members__.get(getattr(value, "name", ""))
    if found is None:
        raise TypeError(f"{name} is a {kind.__name__}, not {value!r}")
    return found


class SessionOptions(_Options):
    """`intra_op_num_threads` is `threads` (0: one), and ORT_DISABLE_ALL disables the passes.

    >>> options = SessionOptions()
    >>> options.intra_op_num_threads = 2
    >>> options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    """

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "enable_cpu_mem_arena": True,
        "enable_mem_pattern": True,
        "enable_mem_reuse": True,
        "enable_profiling": False,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
        "inter_op_num_threads": 0,
        "intra_op_num_threads": 0,
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "optimized_model_filepath": "",
        "profile_file_prefix": "onnxruntime_profile_",
        "use_deterministic_compute": False,
        "use_per_session_threads": True,
    }
    _WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {
        "enable_profiling": "; `webrnn profile model.onnx` profiles",
        "optimized_model_filepath": "; session.export(path) writes what it made of the model",
    }

    def add_session_config_entry(self, key: str, value: str) -> None:
        self.__dict__["_entries"][str(key)] = str(value)
        _say_once(f"the entry {key!r} of SessionOptions has no effect in webrnn")

    def get_session_config_entry(self, key: str) -> str:
        if key not in self.__dict__["_entries"]:
            raise OptionError(f"SessionOptions has no entry {key!r}")
        found: str = self.__dict__["_entries"][key]
        return found

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        _say_once(f"the size {name!r}={size} is not fixed by SessionOptions in webrnn: plans take all sizes")

    add_free_dimension_override_by_denotation = add_free_dimension_override_by_name

    def register_custom_ops_library(self, path: str) -> NoReturn:
        raise OptionError(f"webrnn has no custom ops of libraries ({path}); docs/adding-an-op.md says how to add one")


class RunOptions(_Options):
    """A run with `terminate` set is refused, the rest is stored; `webrnn.Limits` bounds what a run may use."""

    _DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "only_execute_path_to_fetches": False,
        "terminate": False,
    }

    def add_run_config_entry(self, key: str, value: str) -> None:
        self.__dict__["_entries"][str(key)] = str(value)

    def get_run_config_entry(self, key: str) -> str:
        if key not in self.__dict__["_entries"]:
            raise OptionError(f"RunOptions has no entry {key!r}")
        found: str = self.__dict__["_entries"][key]
        return found


def refuse_if_ended(options: Any) -> None:
    if not hasattr(options, "terminate"):
        raise OptionError(f"run_options is a webrnn.RunOptions, not {options!r}")
    if options.terminate:
        raise OptionError("the run does not begin: terminate of its RunOptions is set")


@dataclass(frozen=True)
class ModelMetadata:
    """What a model says about itself."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


class OrtValue:
    """An array; there is one memory here, that of the processor.

    >>> OrtValue.ortvalue_from_numpy([[1.0, 2.0]]).shape()
    [1, 2]
    """

    def __init__(self, array: Any):
        import numpy as np

        self._array = np.asarray(array)

    @classmethod
    def ortvalue_from_numpy(cls, array: Any, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        if device_type != "cpu":
            raise OptionError(f"webrnn runs on the processor, not on {device_type!r}")
        return cls(array)

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        import numpy as np

        return cls.ortvalue_from_numpy(np.zeros(shape, element_type), device_type, device_id)

    def numpy(self) -> Any:
        return self._array

    def data_type(self) -> str:
        return spell_type(DType.of(self._array), ())

    def element_type(self) -> int:
        return DType.of(self._array).value

    def shape(self) -> list[int]:
        return list(self._array.shape)

    def device_name(self) -> str:
        return "cpu"

    def is_tensor(self) -> bool:
        return True

    def has_value(self) -> bool:
        return True

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._array if dtype is None else self._array.astype(dtype)


@dataclass(frozen=True)
class NodeArg:
    """An input or output as a caller sees it; named sizes are strings and unknown ones None."""

    name: str
    type: str
    shape: list[int | str | None]

    @staticmethod
    def of(value: Value) -> NodeArg:
        dims = value.shape if value.shape and "seq" not in value.container else ()
        shape = [str(dim) if isinstance(dim, SymbolicDim) else dim for dim in dims]
        return NodeArg(value.name, spell_type(value.dtype, value.container), shape)


def no_io_binding() -> NoReturn:
    raise OptionError(
        "webrnn has no io_binding: session.run takes and gives numpy arrays without a copy to a device, and "
        "session.stream() keeps states in place"
    )


def get_available_providers() -> list[str]:
    return list(PROVIDERS)


def get_all_providers() -> list[str]:
    return list(PROVIDERS)


def get_device() -> str:
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Accepted: webrnn logs nothing."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted: webrnn logs nothing."""


def enable_telemetry_events() -> None:
    """Accepted: webrnn sends nothing, whoever asks."""


def disable_telemetry_events() -> None:
    """Accepted: webrnn sends nothing."""


def set_seed(seed: int) -> None:
    """Accepted: random ops draw from seeds of their own, as ONNX has them."""


def providers_of(providers: Any, provider_options: Any = None) -> list[str]:
    """The names that a caller gave; those that there are not are said once."""
    if providers is None:
        return list(PROVIDERS)
    if isinstance(providers, str):
        providers = [providers]
    if not isinstance(providers, Sequence):
        raise OptionError(f"providers is a list of names, such as [{CPU!r}], not {providers!r}")
    names = []
    for each in providers:
        name = each[0] if isinstance(each, tuple | list) and each else each
        if not isinstance(name, str):
            raise OptionError(f"a provider is a name, or a name with options, not {each!r}")
        names.append(name)
    if provider_options is not None and len(provider_options) != len(names):
        raise OptionError(f"there are {len(names)} providers and {len(provider_options)} options of them")
    for name in names:
        if name not in PROVIDERS:
            _say_once(f"webrnn has no {name}; it runs on {CPU}")
    return list(dict.fromkeys(name for name in names if name in PROVIDERS)) or list(PROVIDERS)


class OnnxruntimeCaller:
    """What a caller of onnxruntime gave to a session."""

    def __init__(self, options: Any, providers: Any, provider_options: Any):
        if options is not None and not isinstance(options, SessionOptions):
            options = _converted(options)
        self.options: SessionOptions = options or SessionOptions()
        self.providers = providers_of(providers, provider_options)
        self.metadata: Mapping[str, Any] = {}
        self.defaults: Sequence[Value] = ()

    def threads(self, given: int | str, backend: str) -> int | str:
        wanted: int = self.options.intra_op_num_threads
        return wanted if given == 1 and wanted > 1 and backend.partition(":")[0] == "native" else given

    def disabled(self, given: Iterable[str]) -> Iterable[str]:
        level = self.options.graph_optimization_level
        return ("all",) if level is GraphOptimizationLevel.ORT_DISABLE_ALL and not given else given

    def not_fed(self, name: str, inputs: list[str]) -> str:
        """Why an input cannot be fed."""
        if name in {value.name for value in self.defaults}:
            return (
                f"input {name!r} has a default in the model and is a constant here: give it to "
                f"InferenceSession(model, fixed={{{name!r}: ...}})"
            )
        return unknown_name("input", name, inputs)


def _converted(options: Any) -> SessionOptions:
    """Options of onnxruntime itself, by their attributes."""
    if not hasattr(options, "graph_optimization_level"):
        raise OptionError(f"sess_options is a webrnn.SessionOptions, not {options!r}")
    found = SessionOptions()
    for name in SessionOptions._DEFAULTS:
        if hasattr(options, name):
            setattr(found, name, getattr(options, name))
    return found


class OnnxruntimeMethods:
    """Methods that sessions have for callers of onnxruntime."""

    _caller: OnnxruntimeCaller

    def get_providers(self) -> list[str]:
        return list(self._caller.providers)

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        self._caller.providers = providers_of(providers, provider_options)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: {} for name in self._caller.providers}

    def get_session_options(self) -> SessionOptions:
        return self._caller.options

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata(**self._caller.metadata)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Inputs with a default. They are constants here; `fixed=` gives them other values."""
        return [NodeArg.of(value) for value in self._caller.defaults]

    def enable_fallback(self) -> None:
        """Accepted: there is one provider."""

    def disable_fallback(self) -> None:
        """Accepted: there is one provider."""

    def end_profiling(self) -> str:
        """No file was written: `webrnn profile model.onnx` profiles."""
        return ""

    def io_binding(self) -> NoReturn:
        no_io_binding()

    def run_with_iobinding(self, iobinding: Any, run_options: Any = None) -> NoReturn:
        no_io_binding()

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, Any], run_options: Any = None
    ) -> list[OrtValue]:
        """The same as `run`, with arrays in wrappers."""
        feeds = {name: value.numpy() for name, value in input_dict_ort_values.items()}
        return [OrtValue(result) for result in self.run(output_names, feeds, run_options)]  # type: ignore[attr-defined]
