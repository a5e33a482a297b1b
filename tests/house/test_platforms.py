"""The package is imported on Windows too: what only some systems have is imported where it is used."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "runtime" / "webrnn"
ONLY_UNIX = {"fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}


def imported_at_once(source: str) -> set[str]:
    """Modules that an import of this source imports whatever the system is."""
    names: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add((node.module or "").partition(".")[0])
    return names


def test_nothing_is_imported_that_windows_lacks() -> None:
    found = {str(file.relative_to(PACKAGE)): imported_at_once(file.read_text()) for file in PACKAGE.rglob("*.py")}
    assert {name: names & ONLY_UNIX for name, names in found.items() if names & ONLY_UNIX} == {}


def test_the_test_sees_imports() -> None:
    assert imported_at_once("import fcntl\nfrom resource import x\ndef f():\n    import pwd\n") == {"fcntl", "resource"}
