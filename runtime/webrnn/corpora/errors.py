"""What goes wrong with corpora."""

from __future__ import annotations

from webrnn.errors import Error


class CorpusError(Error):
    """A folder of results cannot be used: it is another run's, somebody works in it, or its inputs have changed."""


class ItemError(Error):
    """One item of a corpus has no result. The text says why."""


class WorkersError(Error):
    """The processes that do the work end again and again."""
