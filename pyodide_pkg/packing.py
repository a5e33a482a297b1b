"""Makes a wheel smaller: modules in subpackages go into one file, without what only readers of the source need.

Hundreds of small files compress badly one by one and take long to unpack. In the packed wheel a package keeps its own
modules as files; those of its subpackages are in `_modules.json` beside them, and packed_modules.py imports them from
there. File names and line numbers in tracebacks stay as they are.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import json
import tokenize
import zipfile
from collections.abc import Mapping
from pathlib import Path

MODULES = "_modules.json"
IMPORTER = Path(__file__).with_name("packed_modules.py")
#: What cannot work in a browser, or is of no use there.
LEFT_OUT = tuple(
    f"webrnn/{name}"
    for name in ("bench/", "cli/", "corpora/", "demo/", "onnx_backend.py", "profile/", "py.typed", "quantize/", "web/")
)
#: Packages whose docstrings and annotations are for people who work on webrnn, and what of them users see.
INTERNAL = tuple(
    f"webrnn/{package}/"
    for package in [
        "along_time",
        "checks",
        "engine",
        "formats",
        "gradients",
        "ir",
        "onnx",
        "ops",
        "passes",
        "plan",
        "reference",
        "shapes",
    ]
)
PUBLIC = (
    "webrnn/engine/limits.py",
    "webrnn/engine/streams/pool.py",
    "webrnn/engine/session.py",
    "webrnn/engine/streams/stream.py",
    "webrnn/gradients/api.py",
    "webrnn/report/",
)

#: The earliest time that a zip file can hold.
TIME = (1980, 1, 1, 0, 0, 0)


def pack(wheel: Path, package: str = "webrnn") -> None:
    """Rewrites the wheel in place."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    wheel.write_bytes(packed(files, package))


def packed(contents: Mapping[str, bytes], package: str = "webrnn") -> bytes:
    """The wheel of these files. The same files give the same bytes."""
    files = {name: contents[name] for name in sorted(contents) if not name.startswith(LEFT_OUT)}
    info = next(name.partition("/")[0] for name in files if name.endswith(".dist-info/WHEEL"))
    files.pop(f"{info}/entry_points.txt", None)  # commands, which a browser has no place for
    packed = {name: files.pop(name) for name in list(files) if name.endswith(".py") and name.count("/") > 1}
    modules = {name.removeprefix(f"{package}/"): shortened(name, data.decode()) for name, data in packed.items()}
    files[f"{package}/{MODULES}"] = json.dumps(modules, ensure_ascii=False).encode()
    files[f"{package}/_packed.py"] = IMPORTER.read_bytes()
    files[f"{package}/__init__.py"] += f"\nimport {package}._packed\n".encode()
    files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD")
    return _zipped(files)


def shortened(name: str, source: str) -> str:
    is_internal = name.startswith(INTERNAL) and not name.startswith(PUBLIC)
    source = without_comments(source)
    return without_annotations(without_docstrings(source)) if is_internal else source


def without_comments(source: str) -> str:
    lines = source.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip() + "\n"
    return "".join(lines)


def without_docstrings(source: str) -> str:
    """Docstrings, and strings that document attributes, become empty lines; those of classes become one character.

    A dataclass without a docstring would have one made, which takes longer than to make the class.
    """
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for statement in node.body:
            if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                continue
            if not isinstance(statement.value.value, str) or statement.end_lineno is None:
                continue
            for row in range(statement.lineno, statement.end_lineno + 1):
                lines[row - 1] = "\n"
            if isinstance(node, ast.ClassDef) and statement is node.body[0]:
                lines[statement.lineno - 1] = " " * statement.col_offset + "'-'\n"
            elif len(node.body) == 1:
                lines[statement.lineno - 1] = " " * statement.col_offset + "...\n"
    return "".join(lines)


def without_annotations(source: str) -> str:
    """Types of arguments, results and local variables are gone. Those of classes stay, since dataclasses read them,
    and those of keywords of decorated functions, since the table of numpy ops checks attributes by them.

    A fifth of the time that Python takes to compile such modules in a browser is theirs. Lines stay where they are.
    """
    data = source.encode()
    starts = [0, *(position + 1 for position, byte in enumerate(data) if byte == ord("\n"))]

    def end_of(node: ast.expr) -> int:
        return starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)

    cuts = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        read = node.args.kwonlyargs if node.decorator_list else []
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg) and argument.annotation is not None and argument not in read:
                name = starts[argument.lineno - 1] + argument.col_offset + len(argument.arg.encode())
                cuts.append((name, end_of(argument.annotation)))
        if node.returns is not None:
            arrow = data.rindex(b"->", 0, starts[node.returns.lineno - 1] + node.returns.col_offset)
            cuts.append((arrow, end_of(node.returns)))
        for local in ast.walk(node):
            if isinstance(local, ast.AnnAssign) and local.value is not None and isinstance(local.target, ast.Name):
                cuts.append((end_of(local.target), end_of(local.annotation)))
    kept, position = [], 0
    for start, end in sorted(set(cuts)):
        kept += [data[position:start], b"\\\n" * data.count(b"\n", start, end)]
        position = end
    return b"".join([*kept, data[position:]]).decode()


def _zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files, key=_order):
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED, compresslevel=9)
    return buffer.getvalue()


def _order(name: str) -> tuple[bool, str]:
    """Metadata last, as the wheel format recommends."""
    return ".dist-info/" in name, name


def _record(files: Mapping[str, bytes], own: str) -> bytes:
    rows = []
    for name in sorted(files, key=_order):
        if name != own:
            digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(files[name])}\n")
    return "".join([*rows, f"{own},,\n"]).encode()
