"""How an op on one element of a sequence becomes an op on all of them: the element's axes follow one for the steps.

`over_all_steps` raises Declined, with the reason, for an op that it does not know or whose operands do not fit it. Each
op is a row of a table: `@rule("Name")` before a function puts it there.
"""

from . import arithmetic, layout, windows
from .rewrite import Declined, Operand, over_all_steps

__all__ = ["Declined", "Operand", "arithmetic", "layout", "over_all_steps", "windows"]
