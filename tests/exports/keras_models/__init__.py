"""Architectures written in Keras, one file a family; `FAMILIES` has their names."""

FAMILIES = ("keras_layers", "keras_networks")
