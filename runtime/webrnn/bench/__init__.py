"""`webrnn bench`: the same models on every backend, in interleaved rounds. One file for each concern.

models, onnx_file   the built-in models, written without the `onnx` package
runners             one model on one backend or peer, and how long n runs of it take
rounds              all runners of a model in turn; times, ratios, spread
limits              what the processor can do at most, and what follows for a model
table, html         results for people; compare: beside earlier ones; ab: with and without a pass
"""
