"""What the passes did to a model, in numbers and in words."""

from .measures import Measures, measure
from .report import Report, Step, optimize

__all__ = ["Measures", "Report", "Step", "measure", "optimize"]
