"""NAM's WaveNet: arrays of layers of dilated convolutions, with a residual and a path to the head.

Its settings are those that the trainer's package 0.13 writes (files of version 0.7), and those of older files: `gated`,
`head_size` and `head_bias`, one activation and one kernel size for all layers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .activations import activated, paired
from .entries import Entry, Weights
from .signals import Signal, SignalBuilder

_FILMS = (
    "conv_pre_film", "conv_post_film", "input_mixin_pre_film", "input_mixin_post_film", "activation_pre_film",
    "activation_post_film", "layer1x1_post_film", "head1x1_post_film",
)  # fmt: skip
"""Places of a layer where the condition may scale and shift the signal, in the order of their weights."""

_ARRAY_KEYS = {
    "input_size", "condition_size", "head", "head_size", "head_bias", "channels", "kernel_size", "kernel_sizes",
    "dilations", "activation", "bottleneck", "head1x1", "layer1x1", "groups_input", "groups_input_mixin", "gated",
    "gating_mode", "secondary_activation", "slimmable", *_FILMS,
}  # fmt: skip

_SLIM = "slice_channels_uniform"


def wavenet(s: SignalBuilder, x: Signal, condition: Signal, config: Entry, weights: Weights, size: float) -> Signal:
    config.refuse_others({"layers", "head", "head_scale", "condition_dsp", "in_channels"})
    if config.count("in_channels", 1) != x.channels:
        raise config.wrong(f"it gets {x.channels} signals", "in_channels")
    arrays = config.items("layers")
    if not arrays:
        raise config.wrong("the list is empty", "layers")
    head: Signal | None = None
    for index, item in enumerate(arrays):
        array = Entry.of(item, f"layers[{index}]", "WaveNet")
        is_whole = index in (0, len(arrays) - 1) and len(arrays) == 1
        head, x = _Array(s, array, weights, condition, size, is_whole).run(x, head)
    assert head is not None
    end, scale = _Head(config, head.channels), config.number("head_scale", 1.0)
    kernels = end.take(weights)
    last = float(weights.take((1,), "head_scale")[0])
    head = s.op("Mul", head, scale if abs(last - scale) <= 1e-5 else last)
    return end.run(s, head, kernels)


class _Array:
    """A stack of layers with the same number of channels."""

    def __init__(
        self, s: SignalBuilder, array: Entry, weights: Weights, condition: Signal, size: float, is_whole: bool
    ):
        array.refuse_others(_ARRAY_KEYS)
        self.s, self.array, self.weights, self.condition = s, array, weights, condition
        self.channels = array.count("channels")
        self.bottleneck = array.count("bottleneck", self.channels)
        self.groups = array.count("groups_input", 1), array.count("groups_input_mixin", 1)
        if array.count("condition_size") != condition.channels:
            raise array.wrong(f"it gets a condition of {condition.channels} channels", "condition_size")
        self.layer1x1 = _part(array, "layer1x1", True)
        self.head1x1 = _part(array, "head1x1", False)
        self.films = {name: _part(array, name, False, {"active", "shift", "groups"}) for name in _FILMS}
        for film, part in (("layer1x1_post_film", self.layer1x1), ("head1x1_post_film", self.head1x1)):
            if self.films[film] is not None and part is None:
                raise array.wrong(f"it cannot be active when {film[:-10]} is not", film)
        self.used = self._used_channels(size, is_whole)

    def run(self, x: Signal, head: Signal | None) -> tuple[Signal, Signal]:
        array, weights = self.array, self.weights
        if array.count("input_size") != x.channels:
            raise array.wrong(f"it gets {x.channels} channels", "input_size")
        w = weights.take((self.channels, x.channels, 1), f"{array.node}.rechannel")
        x = self._conv(f"{array.node}.rechannel", x, w[: self.used], None, centered=True)
        dilations = array.counts("dilations")
        for index, (dilation, kernel, functions) in enumerate(
            zip(dilations, self._kernels(len(dilations)), self._functions(len(dilations)), strict=True)
        ):
            x, term = self._layer(f"{array.node}.layers[{index}]", x, dilation, kernel, functions)
            if head is not None and head.channels != term.channels:
                raise array.wrong(f"what comes from the array before has {head.channels} channels, not {term.channels}")
            head = term if head is None else self.s.add(head, term)
        assert head is not None
        return self._rechanneled(head), x

    def _rechanneled(self, head: Signal) -> Signal:
        array = self.array
        if array.has("head"):
            setting = array.inside("head")
            setting.refuse_others({"out_channels", "kernel_size", "bias"})
            outputs, kernel = setting.count("out_channels"), setting.count("kernel_size", 1)
            has_bias = setting.flag("bias", True)
        else:
            outputs, kernel, has_bias = array.count("head_size"), 1, array.flag("head_bias", False)
        name = f"{array.node}.head"
        whole = self.head1x1.count("out_channels") if self.head1x1 is not None else self.bottleneck
        w = self.weights.take((outputs, whole, kernel), name)[:, : head.channels]
        return self._conv(name, head, w, self.weights.take((outputs,), name) if has_bias else None)

    def _layer(
        self, name: str, x: Signal, dilation: int, kernel: int, functions: tuple[str, Any, Any]
    ) -> tuple[Signal, Signal]:
        """The residual for the next layer, and the term for the head."""
        s, weights, c = self.s, self.weights, self.condition
        mode, primary, secondary = functions
        pair = 1 if mode == "none" else 2
        middle, used = pair * self.bottleneck, self.used if self.used != self.channels else self.bottleneck
        w = weights.take((middle, self._part_of(self.channels, 0), kernel), f"{name}.conv")[: pair * used]
        conv = w[:, : x.channels], weights.take((middle,), f"{name}.conv")[: pair * used]
        self._require_groups(middle, 0)
        self._require_groups(middle, 1)
        mixin = weights.take((middle, self._part_of(c.channels, 1), 1), f"{name}.input_mixin")[: pair * used]
        out = None if self.layer1x1 is None else self._one_by_one(f"{name}.layer1x1", self.layer1x1, self.channels)
        to_head = None
        if self.head1x1 is not None:
            to_head = self._one_by_one(f"{name}.head1x1", self.head1x1, self.head1x1.count("out_channels"))
        films = self._film_weights(name, middle)

        entry = Entry(self.array.data, f"{name}.conv", "WaveNet")
        inner = self._film(films, "conv_pre_film", x)
        z = s.conv(inner, *conv, entry, dilation, self.groups[0])
        z = self._film(films, "conv_post_film", z)
        mixed = self._film(films, "input_mixin_pre_film", c)
        mixed = self._conv(f"{name}.input_mixin", mixed, mixin, None, self.groups[1])
        z = s.op("Add", z, self._film(films, "input_mixin_post_film", mixed))
        z = self._film(films, "activation_pre_film", z)
        layer = Entry(self.array.data, name, "WaveNet")
        z = activated(s, z, primary, layer) if mode == "none" else paired(s, z, mode, primary, secondary, layer)
        z = self._film(films, "activation_post_film", z)
        residual = z
        if out is not None and self.layer1x1 is not None:
            w, bias = out[0][: x.channels, : z.channels], out[1][: x.channels]
            is_last = films.get("layer1x1_post_film") is None
            residual = self._conv(f"{name}.layer1x1", z, w, bias, self.layer1x1.count("groups", 1), is_last)
            residual = self._film(films, "layer1x1_post_film", residual)
        if residual.channels != x.channels:
            raise layer.wrong(f"without layer1x1 the bottleneck needs {x.channels} channels", "bottleneck")
        term = z
        if to_head is not None and self.head1x1 is not None:
            term = self._conv(f"{name}.head1x1", z, *to_head, self.head1x1.count("groups", 1))
            term = self._film(films, "head1x1_post_film", term)
        return s.add(x, residual), term

    def _conv(
        self,
        name: str,
        x: Signal,
        w: np.ndarray,
        bias: np.ndarray | None,
        groups: int = 1,
        centered: bool = False,
    ) -> Signal:
        return self.s.conv(x, w, bias, Entry(self.array.data, name, "WaveNet"), 1, groups, centered)

    def _one_by_one(self, name: str, part: Entry, outputs: int) -> tuple[np.ndarray, np.ndarray]:
        groups = part.count("groups", 1)
        if self.bottleneck % groups or outputs % groups:
            raise part.wrong(f"{self.bottleneck} and {outputs} channels cannot be cut into {groups} groups", "groups")
        return self.weights.take((outputs, self.bottleneck // groups, 1), name), self.weights.take((outputs,), name)

    def _film_weights(self, name: str, middle: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        sizes = (
            self.channels, middle, self.condition.channels, middle, middle, self.bottleneck, self.channels,
            self.head1x1.count("out_channels") if self.head1x1 is not None else self.bottleneck,
        )  # fmt: skip
        found = {}
        for film, size in zip(_FILMS, sizes, strict=True):
            setting = self.films[film]
            if setting is None:
                continue
            outputs, groups = size * (2 if setting.flag("shift", True) else 1), setting.count("groups", 1)
            if outputs % groups or self.condition.channels % groups:
                raise setting.wrong(f"{outputs} channels cannot be cut into {groups} groups", "groups")
            w = self.weights.take((outputs, self.condition.channels // groups, 1), f"{name}.{film}")
            found[film] = w, self.weights.take((outputs,), f"{name}.{film}")
        return found

    def _film(self, films: dict[str, tuple[np.ndarray, np.ndarray]], name: str, x: Signal) -> Signal:
        setting = self.films[name]
        if name not in films or setting is None:
            return x
        made = self._conv(f"{self.array.node}.{name}", self.condition, *films[name], setting.count("groups", 1))
        if not setting.flag("shift", True):
            return self.s.op("Mul", made, x)
        scale, shift = self.s.halves(made)
        return self.s.op("Add", self.s.op("Mul", scale, x), shift)

    def _part_of(self, channels: int, which: int) -> int:
        self._require_groups(channels, which)
        return channels // self.groups[which]

    def _require_groups(self, channels: int, which: int) -> None:
        if channels % self.groups[which]:
            key = ("groups_input", "groups_input_mixin")[which]
            raise self.array.wrong(f"{channels} channels cannot be cut into {self.groups[which]} groups", key)

    def _kernels(self, count: int) -> list[int]:
        key = "kernel_sizes" if self.array.has("kernel_sizes") else "kernel_size"
        given = self.array.get(key)
        sizes = self.array.counts(key) if isinstance(given, list) else [self.array.count(key)] * count
        if len(sizes) != count:
            raise self.array.wrong(f"it has {len(sizes)}, there are {count} dilations", key)
        return sizes

    def _functions(self, count: int) -> list[tuple[str, Any, Any]]:
        """For each layer how its activations work together, the first and the second."""
        array = self.array
        gated = "gated" if array.flag("gated", False) else "none"
        modes = self._for_each("gating_mode", count, gated)
        primary = self._for_each("activation", count, None)
        secondary = self._for_each("secondary_activation", count, "Sigmoid")
        for mode in modes:
            if mode not in ("none", "gated", "blended"):
                raise array.unsupported(f"{mode!r} is not known", "gating_mode")
        return [(mode, a, b or "Sigmoid") for mode, a, b in zip(modes, primary, secondary, strict=True)]

    def _for_each(self, key: str, count: int, default: Any) -> list[Any]:
        given = self.array.get(key) if default is None else self.array.get(key, default)
        items = given if isinstance(given, list) else [given] * count
        if len(items) != count:
            raise self.array.wrong(f"it has {len(items)}, there are {count} dilations", key)
        return [default if item is None else item for item in items]

    def _used_channels(self, size: float, is_whole: bool) -> int:
        """Of a slimmable array the number of channels that this size takes."""
        array = self.array
        if not array.has("slimmable"):
            return self.channels
        setting = array.inside("slimmable")
        if setting.text("method", None) is None:
            return self.channels
        if setting.text("method") != _SLIM:
            raise setting.unsupported(f"the method {setting.text('method')!r} is not known", "method")
        allowed = list(range(1, self.channels + 1))
        if setting.has("kwargs") and setting.inside("kwargs").has("allowed_channels"):
            allowed = setting.inside("kwargs").counts("allowed_channels")
        if max(allowed) > self.channels:
            raise setting.wrong(f"{max(allowed)} channels of {self.channels} are allowed", "kwargs")
        used = allowed[min(int(size * len(allowed)), len(allowed) - 1)]
        if used == self.channels:
            return used
        others = [part for part in (self.head1x1, *self.films.values()) if part is not None]
        is_plain = is_whole and self.groups == (1, 1) and self.bottleneck == self.channels and not others
        if not is_plain or (self.layer1x1 is not None and self.layer1x1.count("groups", 1) != 1):
            raise setting.unsupported("only one plain array of layers can use a part of its channels")
        return used


class _Head:
    """Blocks of an activation and a convolution behind the arrays, in few files."""

    def __init__(self, config: Entry, channels: int):
        self.setting = config.inside("head") if config.has("head") else None
        self.sizes: list[tuple[int, int, int]] = []
        if self.setting is None:
            return
        head = self.setting
        head.refuse_others({"channels", "activation", "out_channels", "kernel_sizes", "num_layers", "in_channels"})
        if head.count("in_channels", channels) != channels:
            raise head.wrong(f"it gets {channels} channels", "in_channels")
        kernels = head.counts("kernel_sizes") if head.has("kernel_sizes") else [1] * min(head.count("num_layers"), 4096)
        inner = head.count("channels")
        for index, kernel in enumerate(kernels):
            outputs = head.count("out_channels") if index == len(kernels) - 1 else inner
            self.sizes.append((outputs, channels, kernel))
            channels = inner

    def take(self, weights: Weights) -> list[tuple[np.ndarray, np.ndarray]]:
        return [
            (weights.take(shape, f"head.layers[{i}]"), weights.take(shape[:1], f"head.layers[{i}]"))
            for i, shape in enumerate(self.sizes)
        ]

    def run(self, s: SignalBuilder, x: Signal, kernels: list[tuple[np.ndarray, np.ndarray]]) -> Signal:
        for index, (w, bias) in enumerate(kernels):
            assert self.setting is not None
            layer = Entry(self.setting.data, f"head.layers[{index}]", "WaveNet")
            x = s.conv(activated(s, x, self.setting.get("activation"), layer), w, bias, layer)
        return x


def _part(array: Entry, key: str, default: bool, known: set[str] | None = None) -> Entry | None:
    """The settings of a part that may be switched off."""
    if not array.has(key):
        return Entry({}, f"{array.node}.{key}", array.op) if default else None
    if isinstance(array.get(key), bool):
        part = Entry({"active": array.get(key)}, f"{array.node}.{key}", array.op)
    else:
        part = array.inside(key)
    part.refuse_others(known or {"active", "out_channels", "groups"})
    return part if part.flag("active", default) else None
