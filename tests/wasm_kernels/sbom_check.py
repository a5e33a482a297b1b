"""SBOMs against the schema of CycloneDX 1.6: `make sbom-check`. The schema is in cyclonedx-python-lib."""

import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

wrong = 0
for name in sys.argv[1:]:
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(Path(name).read_text())
    print(f"{name}: {error or 'as the schema of CycloneDX 1.6 has it'}")
    wrong += error is not None
sys.exit(1 if wrong or len(sys.argv) < 2 else 0)
