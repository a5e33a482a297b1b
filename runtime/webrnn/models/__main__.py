"""`python -m webrnn.models [name ...]`: fetch these models, or all, and print where they are."""

import sys

from webrnn.models import MODELS, fetch

for name in sys.argv[1:] or [*MODELS, "speech"]:
    print(fetch(name))
