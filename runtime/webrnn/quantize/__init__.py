"""Small weights, weighed: what each node's cost in results and save in bytes, and which forms keep within an error.

>>> from webrnn.bench.models import BUILT_IN
>>> found = quantize(BUILT_IN["gru_128_t1"](), max_error=0.001)
>>> found.error <= 0.001, found.weight_bytes < found.plain_bytes
(True, True)
>>> session = found.session  # as InferenceSession(model, weights=found.weights)
"""

from .study import Progress, Quantization, quantize

__all__ = ["Progress", "Quantization", "quantize"]
