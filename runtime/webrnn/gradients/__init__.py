"""Gradients of models: reverse mode on graphs, loops included. See docs/gradients.md."""
