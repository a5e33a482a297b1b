"""Which operands an op may have: decided in one place, before any backend sees a node.

Each op has one rule (`registry.py`; one module a family). `graphs.py` asks it about nodes whose operands are known as
far as they can be before a run, `arrays.py` about the arrays of a run.
"""
