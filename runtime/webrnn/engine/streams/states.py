"""Finding the states that a model takes as inputs and gives back as outputs: `find_states`, for all who need to know.

A pair needs a relation in its names (`state_names`), or a way through the graph (`state_flow`), or to be the only one
that is possible. What is not certain is a doubt, and where there is one nothing is carried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from webrnn.errors import ModelError
from webrnn.ir import DType, Graph, Value

from .state_flow import Flow, Kind, dependents, flow_of
from .state_names import BEFORE, FIXED, Name, Relation, parts, pattern, relation

_INTEGERS = (DType.INT64, DType.INT32, DType.BOOL)
_GIVEN_BACK = frozenset(("out", "next", "new", "n", "present", "update"))
"""Marks of outputs that are for the next step and nothing else."""


@dataclass(frozen=True)
class FoundPair:
    before: str
    after: str
    reason: str


@dataclass(frozen=True)
class FoundStates:
    pairs: tuple[FoundPair, ...]
    """In the order of the inputs."""
    doubts: tuple[str, ...]
    """Why the pairs are not all, or not sure."""
    hints: tuple[tuple[str, str], ...] = ()
    """Pairs that may answer the doubts, as far as there are candidates."""

    @property
    def answer(self) -> dict[str, str]:
        """What a caller may write, after a look at it."""
        return {pair.before: pair.after for pair in self.pairs} | dict(self.hints)

    @property
    def problem(self) -> str | None:
        """What is said instead of carrying; None if the pairs are sure."""
        if self.pairs and not self.doubts:
            return None
        if not self.pairs and not self.hints:
            seen = f" ({'; '.join(self.doubts)})" if self.doubts else ""
            return (
                f'carry="auto" finds no input that looks like a state with an output of its type and shape{seen}; name '
                'the pairs, carry={"input": "output"}, or use carry="internal" if the loops of the model start from '
                "constants"
            )
        found = [f"found {pair.before} -> {pair.after} ({pair.reason})" for pair in self.pairs]
        lines = ", ".join(f'"{before}": "{after}"' for before, after in self.answer.items())
        seen = "; ".join([*found, *self.doubts])
        return f'carry="auto" is not sure which output becomes which input: {seen}. Name the pairs: carry={{{lines}}}'

    def carry(self) -> dict[str, str]:
        """{input: output}; raises with what was found and what is open where that is not sure."""
        if self.problem is not None:
            raise ModelError(self.problem)
        return {pair.before: pair.after for pair in self.pairs}


def find_states(inputs: Sequence[Value], outputs: Sequence[Value], graph: Graph | None = None) -> FoundStates:
    """The states of a model, with reasons; a graph of these inputs and outputs has more to say than their names."""
    return _Search(inputs, outputs, graph).found()


def states_of(graph: Graph) -> FoundStates:
    return find_states(graph.inputs, graph.outputs, graph)


def fits(before: Value, after: Value) -> bool:
    """Whether the type and the sizes, where both are known, allow that an output becomes an input."""
    return before.dtype == after.dtype and not before.container and not after.container and fits_sizes(before, after)


def fits_sizes(before: Value, after: Value) -> bool:
    if before.shape is None or after.shape is None:
        return True
    if len(before.shape) != len(after.shape):
        return False
    known = [pair for pair in zip(before.shape, after.shape, strict=True) if all(isinstance(dim, int) for dim in pair)]
    return all(have == give for have, give in known)


class _Search:
    """From what is surest to what is least sure; what is paired is not looked at again."""

    def __init__(self, inputs: Sequence[Value], outputs: Sequence[Value], graph: Graph | None):
        self.inputs = {value.name: value for value in inputs}
        self.outputs = {value.name: value for value in outputs}
        self.graph = graph
        self.flow = Flow() if graph is None else flow_of(graph)
        self.pairs: dict[str, tuple[str, str]] = {}
        """input -> (output, reason)"""
        self.as_ports: set[str] = set()
        """Inputs that were paired by marks that signals have, too."""
        self.doubts: dict[str, str] = {}
        """By the input or output that they are about."""
        self.hints: dict[str, str] = {}
        self.mentioned: set[str] = set()
        """Outputs that are candidates in a doubt."""
        self.relations = {
            (i, o): found
            for i, before in self.inputs.items()
            for o, after in self.outputs.items()
            if i != o and (found := relation(parts(i), parts(o))) is not None and fits(before, after)
        }
        self._forget_what_layers_hand_on()
        self._renumber()

    def found(self) -> FoundStates:
        for level in (Relation.STATE, Relation.PORT, Relation.LOOSE, Relation.NUMBERED):
            self._pair_by_name(level)
        self._pair_by_flow()
        self._pair_by_name(Relation.REST)
        self._pair_the_only_ones()
        self._pair_what_tools_named()
        self._contradictions()
        self._leave_something()
        self._doubtful_names()
        self._signals_that_live_on()
        if self.pairs or self.doubts:
            self._open_inputs()
            self._open_outputs()
        else:
            self._lonely_inputs()
        pairs = tuple(FoundPair(i, *self.pairs[i]) for i in self.inputs if i in self.pairs)
        order = [*self.inputs, *self.outputs, ""]
        doubts = tuple(self.doubts[name] for name in order if name in self.doubts)
        return FoundStates(pairs, doubts, tuple((i, self.hints[i]) for i in self.inputs if i in self.hints))

    # What is left

    def _free_inputs(self) -> list[str]:
        return [name for name in self.inputs if name not in self.pairs]

    def _free_outputs(self) -> list[str]:
        taken = {output for output, _ in self.pairs.values()}
        return [name for name in self.outputs if name not in taken]

    def _fitting(self, name: str) -> list[str]:
        """Outputs that nobody has and that may be the next value of an input."""
        return [o for o in self._free_outputs() if o != name and fits(self.inputs[name], self.outputs[o])]

    def _doubt(self, name: str, text: str, candidates: Sequence[str] = ()) -> None:
        self.doubts.setdefault(name, text)
        if candidates:
            self.hints.setdefault(name, candidates[0])
            self.mentioned.update(candidates)

    # Names

    def _forget_what_layers_hand_on(self) -> None:
        """`hidden_states` beside caches of keys and values is what goes through a layer of a transformer."""
        if self._has_caches():
            for i, o in list(self.relations):
                if _is_handed_on(i):
                    del self.relations[i, o]

    def _renumber(self) -> None:
        """The same states counted from 0 on one side and from 1 on the other are paired in their order."""
        families: list[dict[tuple[str, ...], dict[int, str]]] = []
        for names in (self.inputs, self.outputs):
            family: dict[tuple[str, ...], dict[int, str]] = defaultdict(dict)
            for name in names:
                if len(parts(name).numbers) == 1:
                    family[tuple(sorted(parts(name).words))][parts(name).numbers[0]] = name
            families.append({words: members for words, members in family.items() if len(members) > 1})
        for words, before in families[0].items():
            for other, after in families[1].items():
                if len(before) != len(after) or before.keys() == after.keys():
                    continue
                if not (_is_run(sorted(before)) and _is_run(sorted(after))):
                    continue
                bare = relation(Name("", words, ()), Name("", other, ()))
                if bare is None or bare < Relation.PORT:
                    continue
                for i in before.values():
                    for o in after.values():
                        self.relations.pop((i, o), None)
                for first, second in zip(sorted(before), sorted(after), strict=True):
                    i, o = before[first], after[second]
                    if fits(self.inputs[i], self.outputs[o]):
                        self.relations[i, o] = bare

    def _pair_by_name(self, level: Relation) -> None:
        inputs, outputs = set(self._free_inputs()), set(self._free_outputs())
        edges = [
            (i, o)
            for (i, o), found in self.relations.items()
            if found == level and i in inputs and o in outputs and i not in self.doubts
        ]
        of_input, of_output = _by_end(edges, 0), _by_end(edges, 1)
        for i, candidates in of_input.items():
            chosen = candidates
            if len(candidates) > 1:  # the graph may know which
                chosen = [o for o in candidates if o in self.flow.ways.get(i, ())] or candidates
            rivals = [j for j in of_output[chosen[0]] if len(of_input[j]) == 1] if len(chosen) == 1 else []
            if len(chosen) == 1 and rivals in ([i], []):
                self.pairs[i] = chosen[0], f"by name: {pattern(i, chosen[0])}"
                if level == Relation.PORT:
                    self.as_ports.add(i)
            else:
                self._doubt(i, f"{i}: {' or '.join(candidates)}", candidates)

    # The graph

    def _pair_by_flow(self) -> None:
        edges = []
        free = self._free_outputs()
        for i in self._free_inputs():
            if i not in self.doubts:
                edges += [(i, o) for o in self._flow_candidates(i) if o in free]
        of_input, of_output = _by_end(edges, 0), _by_end(edges, 1)
        for i, candidates in of_input.items():
            if len(candidates) == 1 and len(of_output[candidates[0]]) == 1:
                self.pairs[i] = candidates[0], f"by flow: {self.flow.ways[i][candidates[0]].text}"
            else:
                self._doubt(i, f"{i}: {' or '.join(candidates)}", candidates)

    def _flow_candidates(self, name: str) -> list[str]:
        """Outputs in which an input lives on: those that are no signals by name, if there are such."""
        before, ways = self.inputs[name], self.flow.ways.get(name, {})
        found = []
        for o, way in ways.items():
            if not fits(before, self.outputs[o]) or parts(name).is_signal:
                continue  # signals start loops, too: a mean from the first frame, tokens to go on from
            if way.kind is Kind.BUFFER and (before.shape is None or before.shape != self.outputs[o].shape):
                continue  # it may grow, or be something else: names decide
            found.append(o)
        return [o for o in found if not parts(o).is_signal] or ([] if name in self.pairs else found)

    def _contradictions(self) -> None:
        for i, (o, reason) in self.pairs.items():
            if not reason.startswith("by name"):
                continue
            others = [other for other in self._flow_candidates(i) if other != o]
            by_flow = [j for j in self.flow.ways if j != i and self._flow_candidates(j) == [o]]
            if others and o not in self.flow.ways.get(i, ()):
                how = self.flow.ways[i][others[0]].text
                self._doubt(i, f"{i} -> {o} {reason}, but {i} -> {others[0]} by flow: {how}")
            elif by_flow and o not in self.flow.ways.get(i, ()):
                how = self.flow.ways[by_flow[0]][o].text
                self._doubt(i, f"{i} -> {o} {reason}, but {by_flow[0]} -> {o} by flow: {how}")

    # The only way

    def _pair_the_only_ones(self) -> None:
        """One of two names speaks of a state, the other is a tool's, and nothing else fits."""
        reason = "by elimination: no other {} of its type and shape"
        for i in self._free_inputs():
            candidates = [o for o in self._fitting(i) if not parts(o).is_signal and not parts(o).is_of_transformer]
            if i in self.doubts or not self._is_hinted(i) or not candidates:
                continue
            rivals = [j for j in self._free_inputs() if j != i and candidates[0] in self._fitting(j)]
            rivals = [j for j in rivals if not parts(j).is_signal]
            if len(candidates) == 1 and not rivals and parts(candidates[0]).is_opaque:
                self.pairs[i] = candidates[0], reason.format("output")
            else:
                self._doubt(i, f"{i}: {' or '.join(candidates)}", candidates)
        for o in self._free_outputs():
            is_given_back = parts(o).speaks_of_state and _GIVEN_BACK & set(parts(o).words)
            if not is_given_back and not parts(o).is_stack:
                continue
            fitting = [i for i in self._free_inputs() if o in self._fitting(i) and not parts(i).is_signal]
            if len(fitting) == 1 and parts(fitting[0]).is_opaque and fitting[0] not in self.doubts:
                self.pairs[fitting[0]] = o, reason.format("input")

    def _pair_what_tools_named(self) -> None:
        """Where names say nothing: one pair fits, the output comes from it and from a signal, and so does another."""
        if self.graph is None or self.pairs or self.doubts:
            return
        fitting = [(i, o) for i in self.inputs for o in self._fitting(i)]
        if len(fitting) != 1:
            return
        ((i, o),) = fitting
        before, after = self.inputs[i], self.outputs[o]
        is_exact = before.shape is not None and before.shape == after.shape and len(before.shape) > 1
        if not is_exact or not (_is_unnamed(parts(i)) and _is_unnamed(parts(o))):
            return
        if _is_first(i, self.inputs) or _is_first(o, self.outputs):
            return  # what a tool counts first is the signal
        depends = dependents(self.graph)
        fed = {name for name, value in self.inputs.items() if name != i and value.dtype == before.dtype and value.shape}
        mixed = [name for name in self.outputs if i in depends[name] and fed & depends[name]]
        if o in mixed and len(mixed) > 1:
            self.pairs[i] = o, "by elimination: no other pair has one type and shape"

    def _leave_something(self) -> None:
        """A model is fed something and gives something: if a pair is marked as signals are, it is that."""
        if not self.pairs or (self._free_inputs() and self._free_outputs()):
            return
        ports = [i for i in self.as_ports if i not in self.flow.ways]
        timed = [i for i in ports if set(parts(i).words) & set(BEFORE) - {"in", "input"}]
        if len(ports) == 1 and len(self.pairs) > 1 and not timed:
            del self.pairs[ports[0]]
        if not self._free_outputs():
            self._doubt("", "no output would be left that is not carried")
        elif not self._free_inputs():
            self._doubt("", "no input would be left to feed")

    # What is open

    def _doubtful_names(self) -> None:
        free = self._free_inputs(), self._free_outputs()
        for (i, o), found in self.relations.items():
            if found == Relation.DOUBT and i in free[0] and o in free[1]:
                self._doubt(i, f"{i}: {o}, if it is fed back", [o])

    def _signals_that_live_on(self) -> None:
        """Beside states, a token that starts a loop and leaves it under the same name is fed back, or to go on from."""
        outputs = self._free_outputs()
        for i in [name for name in self._free_inputs() if name in self.flow.starts and self.pairs]:
            for o in outputs:
                lives_on = o in self.flow.ways.get(i, {}) and fits(self.inputs[i], self.outputs[o])
                if lives_on and parts(i).core and parts(i).core == parts(o).core:
                    self._doubt(i, f"{i}: {o}, if it is fed back", [o])

    def _is_hinted(self, name: str) -> bool:
        """Whether an input looks like a state by itself."""
        parted, value = parts(name), self.inputs[name]
        words = set(parted.words)
        if not parted.speaks_of_state or (value.dtype == DType.BOOL):
            return False
        if value.dtype in _INTEGERS and words & {"pos", "offset", "index", "step", "branch"}:
            return False
        if _is_fixed(name) and self.pairs:
            return False
        return not (_is_handed_on(name) and self._has_caches())

    def _has_caches(self) -> bool:
        return any({"key", "value", "kv"} & set(parts(name).words) for name in self.inputs)

    def _open_inputs(self) -> None:
        for i in self._free_inputs():
            if i in self.doubts:
                continue
            fitting = [o for o in self.outputs if o != i and fits(self.inputs[i], self.outputs[o])]
            free = [o for o in self._fitting(i) if not parts(o).is_signal]
            is_bare = parts(i).text.lower() in ("hidden", "memory") and not fitting  # of an encoder, perhaps
            if self._is_hinted(i) and not is_bare:
                known = f": {' or '.join(free)}" if free else " looks like a state, and no output is left for it"
                self._doubt(i, f"{i}{known}", free)
            elif i in self.flow.starts and not parts(i).is_signal:
                self._doubt(i, f"{i} {self.flow.starts[i]}, and no output has what it becomes")

    def _open_outputs(self) -> None:
        for o in self._free_outputs():
            parted = parts(o)
            words = set(parted.words)
            if not parted.speaks_of_state or (_is_fixed(o) and self.pairs) or o in self.mentioned:
                continue
            if _is_handed_on(o) and self._has_caches():
                continue
            fitting = [i for i in self._free_inputs() if o in self._fitting(i) and not parts(i).is_signal]
            if fitting:
                self._doubt(o, f"{o} looks like the next value of {' or '.join(fitting)}")
                self.hints.setdefault(fitting[0], o)
            elif words & _GIVEN_BACK:
                self._doubt(o, f"{o} looks like a state, and no input is left for it")

    def _lonely_inputs(self) -> None:
        for i in self.inputs:
            if self._is_hinted(i):
                self._doubt(i, f"{i} looks like a state, and no output is left for it")
            elif i in self.flow.starts and not parts(i).is_signal:
                self._doubt(i, f"{i} {self.flow.starts[i]}, and no output has what it becomes")


def _by_end(edges: Sequence[tuple[str, str]], end: int) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for edge in edges:
        found[edge[end]].append(edge[1 - end])
    return found


def _is_run(numbers: Sequence[int]) -> bool:
    return all(second == first + 1 for first, second in pairwise(numbers))


def _is_fixed(name: str) -> bool:
    """Keys and values of what an encoder made: they stay the same."""
    words = set(parts(name).words)
    return bool(words & FIXED and words & {"key", "value", "kv"})


def _is_handed_on(name: str) -> bool:
    return parts(name).core == {"h"} and "state" in parts(name).words and not parts(name).numbers


def _is_unnamed(name: Name) -> bool:
    return name.is_opaque or (len(name.text) == 1 and not name.is_signal)


def _is_first(name: str, names: Sequence[str] | dict[str, Value]) -> bool:
    """Whether of the names that a tool counts, `input_1` and `input_2`, this is the first."""
    same = [other for other in names if parts(other).words == parts(name).words]
    return (
        parts(name).is_opaque and len(same) > 1 and parts(name).numbers == min(parts(other).numbers for other in same)
    )
