"""Recurrent architectures as users write them, exported by PyTorch and Keras, and a judge of what webrnn makes of them.

`make exports` does all of it: `write` (in virtual environments of its own, which have the frameworks) makes the models
below build/exports/models, `judge` (in the project's environment) opens and runs them and compares with `expected.txt`.
"""
