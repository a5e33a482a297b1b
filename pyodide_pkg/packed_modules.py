"""Imports the modules of this package's subpackages from one file beside it, `_modules.json`, as if they were files.

It is written into a packed wheel as `_packed.py`, see packing.py."""

import json
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

PACKAGE = __name__.rpartition(".")[0]
HOME = Path(__file__).parent


class PackedModules(Loader, MetaPathFinder):
    """Finds and loads modules by their path below the package; the sources are read when the first one is asked for."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not name.startswith(f"{PACKAGE}."):
            return None
        if not self.sources:
            self.sources = json.loads((HOME / "_modules.json").read_text())
        file = name.removeprefix(f"{PACKAGE}.").replace(".", "/")
        if f"{file}/__init__.py" in self.sources:
            places = [str(HOME / file)]
            return spec_from_file_location(
                name, HOME / file / "__init__.py", loader=self, submodule_search_locations=places
            )
        if f"{file}.py" in self.sources:
            return spec_from_file_location(name, HOME / f"{file}.py", loader=self)
        return None

    def get_source(self, name: str) -> str:
        file = name.removeprefix(f"{PACKAGE}.").replace(".", "/")
        return self.sources.get(f"{file}.py") or self.sources[f"{file}/__init__.py"]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        code = compile(self.get_source(module.__name__), str(module.__file__), "exec", dont_inherit=True)
        exec(code, module.__dict__)


sys.meta_path.insert(0, PackedModules())
