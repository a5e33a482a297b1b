"""`python -m webrnn.cli`."""

import sys

from . import main

sys.exit(main())
