"""What a shared library of any system says about itself: read from its headers, so that a library for Windows or macOS
can be looked at on Linux.

>>> read(Path("native.so").read_bytes())  # doctest: +SKIP
Library(kind='ELF', machine='x86_64', needs=(), undefined=('memcpy', ...), exported=(...), marks={})
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


class LibraryError(Exception):
    """A file is no shared library, or not one that can be read here."""


@dataclass(frozen=True)
class Library:
    kind: str
    machine: str
    #: libraries that it loads
    needs: tuple[str, ...]
    #: symbols that others must give; of a DLL those that its libraries give
    undefined: tuple[str, ...]
    exported: tuple[str, ...]
    #: of Mach-O: the least version of macOS, and what must be there for dyld to load it
    marks: dict[str, str] = field(default_factory=dict)


def read(data: bytes) -> Library:
    for magic, reader in _READERS.items():
        if data.startswith(magic):
            try:
                return reader(data)
            except (struct.error, LookupError, StopIteration, ValueError, OverflowError) as error:
                raise LibraryError(f"the headers are damaged: {error}") from error
    raise LibraryError("neither ELF nor Mach-O nor a DLL")


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


# --- ELF, of 32 and 64 bits -------------------------------------------------------------------------------------------

_ELF_MACHINES = {3: "i686", 40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
_DYNSYM, _DYNAMIC, _NEEDED = 11, 6, 1


def _elf(data: bytes) -> Library:
    is_wide = data[4] == 2
    machine = struct.unpack_from("<H", data, 18)[0]
    table, size, count = struct.unpack_from("<Q10xHH" if is_wide else "<I10xHH", data, 40 if is_wide else 32)
    # kind, offset, size, link
    fields = struct.Struct("<4xI16xQQI" if is_wide else "<4xI8xIII")
    sections = [fields.unpack_from(data, table + i * size) for i in range(count)]

    def strings(link: int) -> int:
        return sections[link][1]

    needs, undefined, exported = [], [], []
    for kind, at, length, link in sections:
        if kind == _DYNAMIC:
            pair = struct.Struct("<QQ" if is_wide else "<II")
            entries = pair.iter_unpack(data[at : at + length])
            needs = [_text(data, strings(link) + value) for tag, value in entries if tag == _NEEDED]
        elif kind == _DYNSYM:
            symbol = struct.Struct("<IxxH16x" if is_wide else "<I10xH")
            rows = list(symbol.iter_unpack(data[at : at + length]))[1:]
            undefined = [_text(data, strings(link) + name) for name, section in rows if section == 0]
            exported = [_text(data, strings(link) + name) for name, section in rows if section != 0]
    return Library("ELF", _ELF_MACHINES[machine], tuple(needs), tuple(sorted(undefined)), tuple(sorted(exported)))


# --- Mach-O of 64 bits ------------------------------------------------------------------------------------------------

_MACH_MACHINES = {0x01000007: "x86_64", 0x0100000C: "arm64"}
_SYMTAB, _LOAD_DYLIB, _ID, _UUID, _SIGNATURE, _BUILD_VERSION = 0x2, 0xC, 0xD, 0x1B, 0x1D, 0x32
_MACH_MARKS = {_ID: "id", _UUID: "uuid", _SIGNATURE: "signature"}


def _mach(data: bytes) -> Library:
    machine, _, kind, commands = struct.unpack_from("<IIII", data, 4)
    if kind != 6:
        raise LibraryError("not a dynamic library")
    needs: list[str] = []
    undefined: list[str] = []
    exported: list[str] = []
    marks: dict[str, str] = {}
    at = 32
    for _ in range(commands):
        command, size = struct.unpack_from("<II", data, at)
        if command == _LOAD_DYLIB:
            needs.append(_text(data, at + struct.unpack_from("<I", data, at + 8)[0]))
        elif command == _SYMTAB:
            for name, is_exported in _mach_symbols(data, *struct.unpack_from("<IIII", data, at + 8)):
                (exported if is_exported else undefined).append(name)
        elif command == _BUILD_VERSION:
            version = struct.unpack_from("<I", data, at + 12)[0]
            marks["macos"] = f"{version >> 16}.{version >> 8 & 255}"
        elif command in _MACH_MARKS:
            marks[_MACH_MARKS[command]] = "present"
        at += size
    machine_name = _MACH_MACHINES[machine]
    return Library("Mach-O", machine_name, tuple(needs), tuple(sorted(undefined)), tuple(sorted(exported)), marks)


def _mach_symbols(data: bytes, symbols: int, count: int, strings: int, _: int) -> Iterator[tuple[str, bool]]:
    for i in range(count):
        name, kind = struct.unpack_from("<IB", data, symbols + 16 * i)
        if kind & 0xE0 or not kind & 1:  # of a debugger, or not for others
            continue
        yield _text(data, strings + name).removeprefix("_"), kind & 0xE != 0


# --- DLL of 64 bits ---------------------------------------------------------------------------------------------------

_PE_MACHINES = {0x8664: "amd64", 0xAA64: "arm64"}


def _dll(data: bytes) -> Library:
    header = struct.unpack_from("<I", data, 60)[0]
    machine, sections = struct.unpack_from("<HH", data, header + 4)
    optional_size, traits = struct.unpack_from("<HH", data, header + 20)
    optional = header + 24
    if struct.unpack_from("<H", data, optional)[0] != 0x20B or not traits & 0x2000:
        raise LibraryError("not a DLL of 64 bits")
    table = [struct.unpack_from("<IIII", data, optional + optional_size + 40 * i + 8) for i in range(sections)]

    def place(address: int) -> int:
        """In the file, of an address in memory."""
        return next(raw + address - start for size, start, _, raw in table if start <= address < start + size)

    exports, _, imports, _ = struct.unpack_from("<IIII", data, optional + 112)
    exported: list[str] = []
    if exports:
        count, _, names = struct.unpack_from("<III", data, place(exports) + 24)
        addresses = struct.unpack_from(f"<{count}I", data, place(names))
        exported = [_text(data, place(address)) for address in addresses]
    needs, undefined = [], []
    at = place(imports) if imports else 0
    while imports and (row := struct.unpack_from("<IIIII", data, at))[3]:
        needs.append(_text(data, place(row[3])))
        entry = place(row[0] or row[4])
        while (value := struct.unpack_from("<Q", data, entry)[0]) != 0:
            undefined.append(f"#{value & 0xFFFF}" if value >> 63 else _text(data, place(value) + 2))
            entry += 8
        at += 20
    return Library("DLL", _PE_MACHINES[machine], tuple(needs), tuple(sorted(undefined)), tuple(sorted(exported)))


_READERS: dict[bytes, Callable[[bytes], Library]] = {b"\x7fELF": _elf, b"\xcf\xfa\xed\xfe": _mach, b"MZ": _dll}
