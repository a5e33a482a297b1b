"""Architectures written in PyTorch, one file a family; `FAMILIES` has their names."""

FAMILIES = (
    "layers",
    "cells",
    "loops",
    "spatial",
    "scans",
    "state_space",
    "linear_attention",
    "decoders",
    "structured",
    "speech",
    "sequence_models",
)
