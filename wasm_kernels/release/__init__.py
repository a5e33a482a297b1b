"""One command for a release: `make release VERSION=x.y.z`. docs/releasing.md says what it does, and what is left."""


class ReleaseError(Exception):
    """A release cannot be made, or what was made is not as it should be."""
