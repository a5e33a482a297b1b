"""Architectures written in PyTorch, one file a family; `FAMILIES` has their names."""

FAMILIES = ("layers", "cells", "loops")
