"""What docs/scan-study.md says about its figures. Numbers are filled in from the run, so that text and tables agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from webrnn.bench.rounds import ModelResult, Result

FUSED, LOOP, REUSE, NAIVE = "VM, fused", "VM, loop", "Python, reuse", "Python, naive"
ORT, TRACT, ORT_WEB = "onnxruntime", "tract", "onnxruntime-web Node"
SMALL, LARGE = ("rnn_128", "gru_128", "lstm_128"), ("rnn_256", "gru_256", "lstm_256")
STACKED, DECODER = "gru_256x2", "decoder_256x2"
LAYERS = (*SMALL, *LARGE, STACKED)
MODELS = (*LAYERS, DECODER)
STEPS = {**dict.fromkeys(SMALL, 50), **dict.fromkeys((*LARGE, STACKED, DECODER), 100)}

WAYS = f"""| way | what a step is |
|---|---|
| {NAIVE} | `backend="numpy", disable=["scan_buffers"]`: the body is run anew, op by op, with new arrays |
| {REUSE} | `backend="numpy"`: the same ops on buffers of states, inputs and results that are used again |
| {LOOP} | `disable=["fused_sequences"]`: the VM's loop instruction around a product and a cell |
| {FUSED} | part of one instruction for the whole sequence |
| peers | onnxruntime (C API), tract, onnxruntime-web |"""

DISCUSSION = """\
**The Python executor** pays for numpy calls more than for arithmetic: with state reuse a step takes {step_small} at
128 units and {step_large} at 256, which is {reuse_small} and {reuse_large} times the VM's time. The gap closes as
layers grow and the product takes over. Inside Pyodide, where numpy has no BLAS and each call costs
more, it is {reuse_pyodide} times the VM in the same engine. It wins nowhere. It is there for bodies with ops
that have no instruction, and it needs nothing but numpy.

**State reuse** (`scan_buffers`) keeps the buffers of states, traces, gates and results from step to step and looks
functions up once. The naive way takes {naive} times as long, and {naive_pyodide} in Pyodide: the more ops a body
has beside its product, the more there is to save. A plain RNN has the least. Both ways give the same bits.

**The VM's generic loop** dispatches two instructions a step, a product and a cell, and moves views instead of
copying states. It takes {loop} times as long as the fused instruction natively and {loop_node} in V8. It is what
every body gets that is not exactly one cell: two GRUs in one Scan are the same program with the switch on and off,
so the ratio there, {loop_decoder}, shows how much of these differences is noise.

**The fused instruction** runs the same kernels and gives the same bits. What it saves is a fixed cost for each
step, which shows where steps are short (a tenth to a fifth of the time up to 16 units, see [notes](notes.md)). From
128 units on reading the recurrent weights is most of a step. It also projects inputs in chunks that are still in
the cache when they are used, and its memory does not grow with the sequence; the loop has the whole projection in
its arena.

**onnxruntime** has kernels of its own for RNN, GRU and LSTM and takes {ort} times as long as the fused VM. A Scan
is one call of a sub-graph for each step, with a kernel call for each op in it: {ort_decoder} times on two cells in
one Scan. onnxruntime-web in Node takes {web} times as long as the VM there, and {web_decoder} on the Scan.

**tract** makes a loop over a typed body out of either form, with kernels chosen for the processor: {tract} times as
long as the fused VM, and {tract_decoder} on the Scan. There is no package of it for WebAssembly to compare with.

**Native against wasm.** The same plan takes {node} times the native time in V8 and {wasmtime} under wasmtime.
Vectors are 128 bits wide instead of 256, which doubles the instructions; how much of that shows depends on how much
of a step waits for memory. Between the two engines it is code generation: Cranelift and V8's optimizing compiler
allocate registers and fold addresses differently.
"""


class Ratios:
    """How many times longer one way takes than another, over some models."""

    def __init__(self, models: Sequence[ModelResult]):
        self._models = {model.name: model for model in models}

    def result(self, name: str, way: str) -> Result | None:
        model = self._models.get(name)
        result = model.of(way) if model is not None else None
        return result if result is not None and result.seconds else None

    def text(self, way: str, other: str, names: Iterable[str] = MODELS) -> str:
        pairs = [(self.result(name, way), self.result(name, other)) for name in names]
        return span([a.ratio_to(b).median for a, b in pairs if a is not None and b is not None])

    def step_text(self, way: str, names: Iterable[str]) -> str:
        """Microseconds of a step."""
        results = [(self.result(name, way), STEPS[name]) for name in names]
        return span([result.best * 1e6 / steps for result, steps in results if result is not None]) + " µs"


def span(values: Sequence[float]) -> str:
    """
    >>> span([1.234, 20.06]), span([2, 2.001]), span([])
    ('1.23 to 20.1', '2', '(not measured)')
    """
    if not values:
        return "(not measured)"
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"


def discussion(models: Sequence[ModelResult]) -> str:
    ratio = Ratios(models)
    node, wasmtime, pyodide = (f"{{}} {where}".format for where in ("Node", "wasmtime", "Pyodide"))
    return DISCUSSION.format(
        step_small=ratio.step_text(REUSE, SMALL),
        step_large=ratio.step_text(REUSE, LARGE),
        reuse_small=ratio.text(REUSE, FUSED, SMALL),
        reuse_large=ratio.text(REUSE, FUSED, LARGE),
        reuse_pyodide=ratio.text(pyodide(REUSE), node(FUSED)),
        naive=ratio.text(NAIVE, REUSE),
        naive_pyodide=ratio.text(pyodide(NAIVE), pyodide(REUSE)),
        loop=ratio.text(LOOP, FUSED, LAYERS),
        loop_node=ratio.text(node(LOOP), node(FUSED), LAYERS),
        loop_decoder=ratio.text(LOOP, FUSED, [DECODER]),
        ort=ratio.text(ORT, FUSED, LAYERS),
        ort_decoder=ratio.text(ORT, FUSED, [DECODER]),
        web=ratio.text(ORT_WEB, node(FUSED), LAYERS),
        web_decoder=ratio.text(ORT_WEB, node(FUSED), [DECODER]),
        tract=ratio.text(TRACT, FUSED, LAYERS),
        tract_decoder=ratio.text(TRACT, FUSED, [DECODER]),
        node=ratio.text(node(FUSED), FUSED, LAYERS),
        wasmtime=ratio.text(wasmtime(FUSED), FUSED, LAYERS),
    )
