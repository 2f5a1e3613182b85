"""The content of a flight recorder's dump as plain values: a pickle or JSON, without running anything in it."""

from __future__ import annotations

import io
import pickle
import re
from typing import Any, NoReturn

import msgspec

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.plain_pickle import read_plain_pickle

HINT = "write the dump again, or copy it again, whole"

MAX_TUPLES = 10_000
"""Most tuples in a pickle for the fast reader: hashing one of this depth takes about 1 MB of the C stack."""

_TUPLES = (b"t", b"\x85", b"\x86", b"\x87")

_PLAIN = lazy_regex(
    rb"(?:h.[\]}()teuN\x88\x89as\x85-\x87]*|K.|[\]}()teuN\x88\x89as\x85-\x87]|j.{4}|M..|J.{4}|"
    rb"\x8a(?:\x08.{8}|\x05.{5}|\x06.{6}|\x07.{7}|\x09.{9}|\x04.{4}|\x03.{3}|\x02..|\x01.|\x00)|"
    rb"G.{8}|q.|r..[\x00-\x0f]\x00|\x94|\x95.{8})*",
    re.DOTALL,
)
"""Opcodes that build plain values, except text; the memo's indexes are below a million."""


def read_content(data: bytes) -> dict[str, Any]:
    """Return the top of a dump. Raises TraceError, with the place, if it is empty, damaged, or hostile."""
    if not data:
        raise TraceError("the file is empty", hint="the process ended before it wrote its flight recorder")
    value = _read_json(data) if data.lstrip()[:1] == b"{" else _read_pickle(data)
    if not isinstance(value, dict) or not isinstance(value.get("entries", []), list):
        raise TraceError("the file isn't a flight recorder's dump: it has no list of entries", hint=HINT)
    if "version" not in value and "entries" not in value:
        raise TraceError("the file isn't a flight recorder's dump: it has neither version nor entries", hint=HINT)
    return value


def _read_json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(f"the dump is damaged: {error}", hint=HINT) from error


def _read_pickle(data: bytes) -> Any:
    """Return the value of a pickle.

    The standard library's unpickler is 18 times faster than the careful reader. It gets a file whose every opcode
    is known to build plain values within bounds; the careful reader gets all others, and finds what is wrong.
    """
    if _is_plain(data):
        try:
            # The unpickler reads a buffered file in pieces, any other one byte by byte.
            return _PlainUnpickler(io.BufferedReader(io.BytesIO(data), len(data))).load()
        except (pickle.UnpicklingError, EOFError, TypeError, ValueError, IndexError, KeyError, AttributeError):
            pass
    try:
        return read_plain_pickle(io.BytesIO(data))
    except TraceError as error:
        hint = "a flight recorder holds only plain values; do not open this file elsewhere"
        raise TraceError(error.message, hint=hint if error.message.startswith("refused") else HINT) from error


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"{module}.{name} is refused")


def _is_plain(data: bytes) -> bool:
    """Return whether a pickle consists of opcodes that build plain values, with a small memo and few tuples."""
    if data[:1] != b"\x80" or len(data) < 3 or data[1] > 5:
        return False
    at, end, tuples = 2, len(data), 0
    while at < end:
        begin = at
        match = _PLAIN.match(data, at)
        assert match is not None  # it matches zero opcodes, too
        at = match.end()
        tuples += sum(data.count(opcode, begin, at) for opcode in _TUPLES)
        opcode = data[at : at + 1]
        if opcode == b"X":
            at += 5 + int.from_bytes(data[at + 1 : at + 5], "little")
        elif opcode == b"\x8c":
            at += 2 + int.from_bytes(data[at + 1 : at + 2], "little")
        else:
            return opcode == b"." and tuples <= MAX_TUPLES
    return False
