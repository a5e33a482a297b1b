"""Corpora: a model on each of many items, on all cores or on a cluster. docs/corpora.md says how.

`webrnn.map` runs it, `read` reads the folder that it writes, `Mapper` is what each process of it has.
"""

from .api import Summary, map
from .errors import CorpusError, ItemError, WorkersError
from .items import inputs
from .mapper import Mapper, Result
from .options import Options
from .reader import Corpus, read

__all__ = [
    "Corpus",
    "CorpusError",
    "ItemError",
    "Mapper",
    "Options",
    "Result",
    "Summary",
    "WorkersError",
    "inputs",
    "map",
    "read",
]
