"""What the names of an input and an output say about each other: the habits of exporters, as tables.

A name is taken apart into words and numbers. Two names are related if they have the same words and numbers but for
words that say "before" in the input's name and "after" in the output's.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import NamedTuple


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


class Habit(NamedTuple):
    before: str
    """Words that mark the input, any of them; none where exporters leave it unmarked."""
    after: str
    kind: str
    """"time": speaks of steps; "port": signals have such marks too; "letter": means something beside a state only."""
    example: tuple[str, str]
    exporters: str


HABITS = (
    Habit("in ins input inputs", "out outs output outputs", "port", ("h_in", "h_out"), "wrappers for torch.onnx"),
    Habit("in", "out", "port", ("in_cache0", "out_cache0"), "FunASR"),
    Habit("input", "output", "port", ("input_states_1", "output_states_1"), "NeMo"),
    Habit("", "out", "port", ("conv_cache", "conv_cache_out"), "GTCRN"),
    Habit("i", "o", "letter", ("r1i", "r1o"), "Robust Video Matting"),
    Habit("past", "present", "time", ("past_key_values.0.key", "present.0.key"), "Optimum, transformers.js"),
    Habit("past", "new", "time", ("past_k_0", "new_k_0"), "decoders with key and value caches"),
    Habit("", "new", "time", ("cached_len_0", "new_cached_len_0"), "icefall, sherpa-onnx"),
    Habit("", "next nxt", "time", ("cache_last_channel", "cache_last_channel_next"), "NeMo"),
    Habit("prev previous prior", "next nxt", "time", ("prev_h", "next_h"), "RNN-T predictors"),
    Habit("prev previous", "cur curr current now", "time", ("state_prev", "state_cur"), "agents"),
    Habit("cur curr current", "next nxt", "time", ("cur_state", "next_state"), "agents"),
    Habit("old", "new", "time", ("old_buf", "new_buf"), "streaming convolutions"),
    Habit("", "update updated upd", "time", ("mem", "updated_mem"), "streaming convolutions"),
    Habit("init initial start", "final last end", "time", ("initial_state", "final_state"), "tf.keras, tf2onnx"),
    Habit("last", "new", "time", ("last_state", "new_state"), "agents"),
    Habit("before", "after", "time", ("state_before", "state_after"), "agents"),
    Habit("tminus", "t", "time", ("h_tm1", "h_t"), "Keras cells; h_t-1 and h_t_minus_1 too"),
    Habit("t", "tplus", "time", ("h_t", "h_t+1"), "textbooks"),
    Habit("0", "n", "letter", ("h0", "hn"), "torch.nn.GRU and LSTM: h_0 -> h_n"),
    Habit("", "n", "letter", ("state", "stateN"), "Silero"),
    Habit("", "t", "letter", ("h", "h_t"), "textbooks"),
    Habit("x", "y", "letter", ("hx", "hy"), "torch: hx, cx -> hy, cy"),
    Habit("initial", "y", "letter", ("initial_h", "Y_h"), "the inputs and outputs of ONNX's own RNN ops"),
    Habit("", "r", "letter", ("att_cache", "r_att_cache"), "WeNet"),
    Habit("", "ret returned result", "letter", ("state", "state_ret"), "wrappers for torch.onnx"),
)


def _marks(side: int) -> dict[str, str]:
    """The words of inputs (0) or outputs (1), each with its kind: the first, if there are several."""
    found: dict[str, str] = {}
    for habit in HABITS:
        for word in (habit.after if side else habit.before).split():
            found.setdefault(word, habit.kind)
    return found


BEFORE, AFTER = _marks(0), _marks(1)
_ONLY_BEFORE = {word for word, kind in BEFORE.items() if kind != "letter" and word not in AFTER}
_ONLY_AFTER = {word for word, kind in AFTER.items() if kind != "letter" and word not in BEFORE}

STATES = _set("state h cell cache cached mem buf past kv recurrent carry hist")
"""Words for what lives between steps: an input or output with one is taken for a state."""
MAYBE_STATES = _set(
    "s key value ctx delay fifo queue ring overlap tail accum acc running offset pos step counter count sum processed "
    "seen consumed ssm"
)
"""Words that name a state only beside a mark."""
GENERIC = _set("state tensor cache cached vector rnn lstm gru")
"""What one of two names may leave away: cell_state -> cell_out."""
SIGNALS = _set(
    "audio wav wave waveform pcm speech voice sound mic ref far near mix mixture noisy noise clean enh enhanced "
    "denoised est estimate estimated spec spectrum spectra spectrogram stft fft mag magnitude phase real imag mel "
    "fbank feat feature frame chunk block signal sample x y u input output in out data image img pixel video token id "
    "ids text char label logit prob score pred prediction gain vad action obs observation reward target embed "
    "embedding emb src tgt rgb pha fgr seq sequence query result left right series sensor point pose idx index hyp "
    "log encoder encoded weight alignment depth disp motion color bert vel velocity force torque angle accel gyro imu "
    "price ecg eeg emg ppg radar lidar map cond condition style pitch energy volume db snr channel band erb lsnr "
    "music vocal drum bass stem residual echo playback capture render doa stereo mono command control ctrl "
    "measurement meas feedback error hypothesis word phoneme code"
)
"""Words for what goes in and comes out: never a state, unless another word says so."""
CONTROLS = _set("mask len length sr rate lang temperature scale speed speaker sid size dim padding")
"""What steers a model: often of the same type and shape before and after, and no state by itself."""
OPAQUE = _set(
    "identity stateful partitioned call getitem add mul stack concat cat lstm gru rnn transpose squeeze "
    "unsqueeze tensor variable placeholder args arg tf op layer slice split scatter nd activation strided reshape "
    "tanh sub where node var value onnx model while functional sequential dense expand gather input output conv d"
)
"""Words that tools make up."""
FIXED = _set("encoder enc cross")
"""Caches of what does not change between steps: a decoder takes them and need not give them back."""

_SYNONYMS = {
    "hid": "h", "hidden": "h", "c": "cell", "hx": "h x", "cx": "cell x", "hy": "h y", "cy": "cell y",
    "hn": "h n", "cn": "cell n", "ht": "h t", "ct": "cell t",
    "states": "state", "caches": "cache", "buffers": "buf", "buffer": "buf", "memory": "mem", "memories": "mem",
    "cells": "cell", "keys": "key", "values": "value", "lens": "len", "lengths": "len", "length": "len",
    "masks": "mask", "history": "hist", "context": "ctx", "contexts": "ctx", "hiddens": "h", "inp": "in",
    "hin": "h in", "hout": "h out", "cin": "cell in", "cout": "cell out", "ins": "in", "outs": "out", "outp": "out",
    "inputs": "input", "outputs": "output", "previous": "prev", "initial": "init", "updated": "update",
    "offsets": "offset",
    "k": "key", "v": "value", "val": "value", "kvs": "kv", "position": "pos", "positions": "pos",
}  # fmt: skip
_PLURALS = {f"{word}s": word for word in SIGNALS | CONTROLS if len(word) > 2}
_GLUED = _set("state hidden cell cache mem memory buf buffer states")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_BEFORE_WORDS = (
    (re.compile(r"^serving_default_|^onnx::|:0$"), ""),  # TensorFlow and torch, around any name
    (re.compile(r"(?<![A-Za-z])([hc]?)_?t[ _]?(-|minus|m)_?1(?![0-9])", re.I), r"\1_tminus_"),
    (re.compile(r"(?<![A-Za-z])([hc]?)_?t[ _]?(\+|plus|p)_?1(?![0-9])", re.I), r"\1_tplus_"),
    (re.compile(r"(?<![A-Za-z])(past|present)[_.]?key[_.]?values?", re.I), r"\1"),
)


@dataclass(frozen=True)
class Name:
    """A name in parts."""

    text: str
    words: tuple[str, ...]
    numbers: tuple[int, ...]

    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(self.words)

    @property
    def is_opaque(self) -> bool:
        """Whether a tool made it up; `input` and `output` only with a number."""
        words = set(self.words)
        return words <= OPAQUE and (bool(self.numbers) or not words <= {"input", "output", "value"})

    @cached_property
    def speaks_of_state(self) -> bool:
        words = set(self.words)
        controls = words & CONTROLS
        if controls and not (controls == {"len"} and words & {"cache", "cached"}):
            return False  # past_len steers, cached_len goes with a cache
        return bool(words & STATES) and not self.is_of_transformer

    @cached_property
    def is_of_transformer(self) -> bool:
        """`hidden_states` and the like: what layers of a transformer hand on is no state between steps."""
        return bool(re.search(r"(encoder|decoder|last|all)_?hidden_?states?$|state_?value", self.text, re.I))

    @property
    def is_stack(self) -> bool:
        """`tf_op_layer_stack_2`: Keras models stack the states that their layers return, as DTLN does."""
        return {"layer", "stack"} <= set(self.words)

    @cached_property
    def is_signal(self) -> bool:
        words = set(self.words)
        return bool(words & (SIGNALS | CONTROLS)) and not self.speaks_of_state and not self.is_opaque

    @cached_property
    def core(self) -> frozenset[str]:
        """The words that tell one state from another."""
        return frozenset(self.words) - set(BEFORE) - set(AFTER) - GENERIC


@lru_cache(4096)
def parts(text: str) -> Name:
    spaced = text
    for pattern, replacement in _BEFORE_WORDS:
        spaced = pattern.sub(replacement, spaced)
    words: list[str] = []
    numbers: list[int] = []
    for found in _WORDS.findall(spaced):
        if found.isdecimal():
            numbers.append(int(found))
        else:
            words.extend(_plain(found.lower()))
    return Name(text, tuple(words), tuple(numbers))


def _plain(word: str) -> list[str]:
    word = _SYNONYMS.get(word, _PLURALS.get(word, word))
    for end in range(2, len(word) - 1):
        first, second = word[:end], word[end:]
        is_mark = (first in BEFORE or first in AFTER) and second in _GLUED
        if is_mark or (first in _GLUED and (second in BEFORE or second in AFTER or second in _GLUED)):
            return [*_plain(first), *_plain(second)]
    return word.split()


class Relation(IntEnum):
    """How sure a name is of another; a larger one decides."""

    DOUBT = 0
    """A signal or a length, marked as a state is: it is fed back perhaps, and perhaps not."""
    REST = 1
    """Both speak of a state, and nothing in them contradicts."""
    NUMBERED = 2
    """The same words, the numbers say before and after: h0 -> h1, hidden -> hidden.1."""
    LOOSE = 3
    """The same but for a word as general as `state`."""
    PORT = 4
    """Marked as in and out, which signals are too."""
    STATE = 5
    """Marked, and a word or the mark speaks of a state."""


def relation(before: Name, after: Name) -> Relation | None:
    """What the names say about an output being the next value of an input; None is nothing."""
    if not _numbers_allow(before.numbers, after.numbers) or before.is_of_transformer:
        return None
    common = before.counts & after.counts
    marks_before, marks_after = set(before.counts - common), set(after.counts - common)
    extra_before, extra_after = marks_before - set(BEFORE), marks_after - set(AFTER)
    if extra_before <= GENERIC and extra_after <= GENERIC:
        found = _marked(before, after, set(common), marks_before - extra_before, marks_after - extra_after)
        if found is not None:
            return min(found, Relation.LOOSE) if extra_before or extra_after else found
    is_turned = marks_before & _ONLY_AFTER or marks_after & _ONLY_BEFORE
    if before.speaks_of_state and after.speaks_of_state and not is_turned and not _apart(before, after):
        return Relation.REST
    return None


def _marked(before: Name, after: Name, common: set[str], first: set[str], second: set[str]) -> Relation | None:
    is_state = bool(common & (STATES | MAYBE_STATES))
    timed = [BEFORE[word] == "time" for word in first] + [AFTER[word] == "time" for word in second]
    lettered = [BEFORE[word] == "letter" for word in first] + [AFTER[word] == "letter" for word in second]
    if not common and not (first & {"past", "prev", "old"} and second & {"present", "next", "new", "cur"}):
        return None
    if "mask" in common and not common & STATES:
        return None
    if common and not is_state:
        if common & (SIGNALS | CONTROLS):
            if not any(timed) or before.numbers != after.numbers:
                return None
            both = any(timed[: len(first)]) and any(timed[len(first) :])
            return Relation.PORT if both and not common & CONTROLS else Relation.DOUBT
        if any(lettered) and not ("i" in first and "o" in second):
            return None
    if before.numbers == after.numbers and (first or second):
        return Relation.STATE if is_state or any(timed) else Relation.PORT
    if not is_state:
        return None
    return _numbered(before.numbers, after.numbers, bool(first or second), bool(second))


def _numbers_allow(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """False for most pairs of two layers, before more is looked at: models have hundreds of caches."""
    if before == after or not before or not after:
        return True
    return before[:-1] == after or after[:-1] == before or before[1:] == after or before[:-1] == after[:-1]


def _numbered(
    before: tuple[int, ...], after: tuple[int, ...], is_marked: bool, is_marked_after: bool
) -> Relation | None:
    """The numbers differ: they are the marks, or one name got a number because the other was taken."""
    if is_marked_after and ((*after, 0) == before or (0, *after) == before):
        return Relation.NUMBERED
    if before[-1:] == (0,) and after == (*before[:-1], 1) and not is_marked:
        return Relation.NUMBERED
    if not is_marked and (after[:-1] == before or before[:-1] == after or before == after):
        return Relation.NUMBERED
    return None


def _apart(before: Name, after: Name) -> bool:
    """Whether each has a word or a number that the other would have if it were the same state."""
    if before.core - after.core and after.core - before.core:
        return True
    return bool(before.numbers and after.numbers and before.numbers != after.numbers)


def pattern(before: str, after: str) -> str:
    """`* -> *_out`: two names with what they share left away."""
    from difflib import SequenceMatcher  # slow to import inside Pyodide

    pieces = re.compile(_WORDS.pattern + "|[^A-Za-z0-9]")
    first, second = pieces.findall(before), pieces.findall(after)
    start, other, size = SequenceMatcher(None, first, second, autojunk=False).find_longest_match()
    while size and not first[start].isalnum():
        start, other, size = start + 1, other + 1, size - 1
    while size and not first[start + size - 1].isalnum():
        size -= 1
    if size:
        first[start : start + size] = second[other : other + size] = ["*"]
    return f"{''.join(first)} -> {''.join(second)}"
