"""Read pickles of plain values without the standard library's unpickler.

A pickle is a program for a stack machine. This machine knows the opcodes that build lists, tuples, dicts with text
keys, numbers, text, booleans, and None; it refuses any other opcode with a reason. Sizes stated in the file are
checked against the bytes that are there, so memory is bounded by the size of the file.

Why not `pickle.Unpickler` with a `find_class` that refuses, behind an allow-list over `pickletools.genops`? It is
shorter, and nothing is called or imported there either, but it is not safe on a hostile file, and not faster:

- A dict key may be a tuple nested a million deep: hashing it overflows the C stack and ends the process. An
  allow-list sees opcodes, not what is on the stack, so it cannot tell a key from a value.
- The memo of the C unpickler is an array: five bytes (LONG_BINPUT 2147483647) make it allocate 32 GiB.
- `genops` converts an opcode's argument before the list sees the opcode: where Python does not limit `int`, a
  decimal number of a million digits takes quadratic time.
- Their errors have several types and no offset; they would have to be translated into reasons.
- `genops` alone takes as long as this machine: 1.8 s against 1.7 s for a snapshot of 8.5 MB, 60,000 entries.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

from torch_tb_profiler.base.errors import TraceError

MAX_BYTES = 512 * 2**20
"""Largest pickle that is read in Python, at some 8 MB per second and several times its size in memory."""

MAX_CONTAINERS = 10_000_000
"""Lists, tuples and dicts in one file; half a million blocks with their stacks make about two million."""

_RECORD_LESS = "record less: `torch.cuda.memory._record_memory_history(max_entries=100_000)`"
_MAX_PROTOCOL = 5
_MAX_LONG_BYTES = 16
_MAX_DIGITS = len(f"{-(2 ** (8 * _MAX_LONG_BYTES - 1))}L")

_REFUSED = {
    "c": "names a class or function (GLOBAL)",
    "\x93": "names a class or function (STACK_GLOBAL)",
    "i": "makes an object (INST)",
    "o": "makes an object (OBJ)",
    "\x81": "makes an object (NEWOBJ)",
    "\x92": "makes an object (NEWOBJ_EX)",
    "R": "calls a function (REDUCE)",
    "b": "sets the state of an object (BUILD)",
    "P": "refers to an object outside of the file (PERSID)",
    "Q": "refers to an object outside of the file (BINPERSID)",
    "\x82": "names a registered class (EXT1)",
    "\x83": "names a registered class (EXT2)",
    "\x84": "names a registered class (EXT4)",
    "\x97": "refers to a buffer outside of the file (NEXT_BUFFER)",
}


def read_plain_pickle(stream: BinaryIO, *, number_keys: bool = False) -> Any:
    """Return the value of a pickle (protocols 0 to 5) that has plain values only.

    number_keys  whether keys may be integers, too

    Raises TraceError with the offset if it is too large, truncated, or malformed, or has other values.
    """
    return _StackMachine(_read_all(stream), (str, int) if number_keys else (str,)).run()


def read_plain_prefix(stream: BinaryIO) -> PlainPickle:
    """Read a pickle as `read_plain_pickle` does; of a truncated one, what precedes the cut.

    A dict that was cut is left out, and so is everything that it holds, unless it is the outermost.
    """
    data = _read_all(stream)
    machine = _StackMachine(data, may_be_truncated=True)
    try:
        return PlainPickle(machine.run(), len(data))
    except TruncatedError as error:
        value = machine.close_containers()
        if value is None:
            raise
        return PlainPickle(value, len(data), error.message)


def _read_all(stream: BinaryIO) -> bytes:
    data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise PickleLimitError(f"the file is larger than {MAX_BYTES // 2**20} MiB", hint=_RECORD_LESS)
    return data


class PickleLimitError(TraceError):
    """The pickle is too large for this reader."""


class TruncatedError(TraceError):
    """The pickle ends too early."""


class PlainPickle(NamedTuple):
    """The value of a pickle, its bytes, and why it is incomplete (None: it isn't)."""

    value: Any
    bytes: int
    incomplete: str | None = None


class _StackMachine:
    """The state while a pickle is read: the stack, its marks, the memo, and the position in the file."""

    def __init__(self, data: bytes, key_types: tuple[type, ...] = (str,), may_be_truncated: bool = False) -> None:
        self.data = data
        self.key_types = key_types
        self.may_be_truncated = may_be_truncated
        self.position = 0
        self.stack: list[Any] = []
        self.outer_stacks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.containers = 0

    def run(self) -> Any:
        data, end = self.data, len(self.data)
        while self.position < end:
            opcode = data[self.position]
            self.position += 1
            if opcode == _STOP:
                return self._final_value()
            handler = _HANDLERS[opcode]
            if handler is None:
                raise self._refusal_error(opcode)
            try:
                handler(self)
            except struct.error as error:
                raise self.truncated_error() from error
            except (IndexError, KeyError, ValueError) as error:
                if self.position >= end:
                    raise self.truncated_error() from error
                raise self._malformed_error(f"opcode 0x{opcode:02x} has no operand") from error
        raise (
            self.truncated_error() if end else TraceError("the file is empty", hint="the snapshot was not written")
        )

    def close_containers(self) -> Any:
        """Close the containers that the end of the file left open; return the outermost, None if there is none.

        A dict that was cut is dropped, except for the outermost one: some of its keys would be missing.
        """
        while self.outer_stacks:
            items = self.pop_to_mark()
            target = self.stack[-1] if self.stack else None
            if type(target) is list:
                target.extend(items)
            elif type(target) is dict and len(self.stack) == 1 and not self.outer_stacks:
                pairs = zip(items[::2], items[1::2], strict=False)
                target.update((key, value) for key, value in pairs if type(key) is str)
            elif self.stack:
                self.stack.pop()
            while len(self.stack) > 1 and type(self.stack[-1]) is type(self.stack[-2]) is list:
                self.stack[-2].append(self.stack.pop())
        return self.stack[0] if self.stack and type(self.stack[0]) in (dict, list) else None

    def _final_value(self) -> Any:
        if len(self.stack) != 1 or self.outer_stacks:
            raise self._malformed_error("it ends inside a value")
        return self.stack[0]

    def _refusal_error(self, opcode: int) -> TraceError:
        what = _REFUSED.get(chr(opcode), f"has opcode 0x{opcode:02x}, which plain values don't need")
        return TraceError(
            f"refused: the pickle {what}, at byte {self.position - 1}",
            hint="a memory snapshot has only lists, dicts, numbers, and text; don't open this file elsewhere"
            if chr(opcode) in _REFUSED
            else "is this a file that `torch.cuda.memory._dump_snapshot` wrote?",
        )

    def _malformed_error(self, reason: str) -> TraceError:
        return TraceError(
            f"malformed pickle: {reason}, before byte {self.position}",
            hint="is this a file that `torch.cuda.memory._dump_snapshot` wrote?",
        )

    def truncated_error(self) -> TruncatedError:
        return TruncatedError(
            f"the pickle is truncated at byte {len(self.data)}",
            hint="write or copy the snapshot again",
        )

    # ---- reading ---------------------------------------------------------------------------

    def read_bytes(self, count: int) -> bytes:
        """Return the next `count` bytes; a count beyond the end of the file allocates nothing."""
        begin, self.position = self.position, self.position + count
        if count < 0 or self.position > len(self.data):
            self.position = begin
            raise self.truncated_error()
        return self.data[begin : self.position]

    def read_line(self) -> bytes:
        end = self.data.find(b"\n", self.position)
        if end < 0:
            raise self.truncated_error()
        begin, self.position = self.position, end + 1
        return self.data[begin:end]

    def read_unsigned(self, count: int) -> int:
        return int.from_bytes(self.read_bytes(count), "little")

    def push_text(self, content: bytes, encoding: str = "utf-8") -> None:
        self.stack.append(content.decode(encoding, "replace"))

    def push_container(self, value: Any) -> None:
        self.containers += 1
        if self.containers > MAX_CONTAINERS:
            raise PickleLimitError(
                f"the pickle has more than {MAX_CONTAINERS:,} lists and dicts", hint=_RECORD_LESS
            )
        self.stack.append(value)

    # ---- numbers --------------------------------------------------------------------------------------

    def push_long(self, width: int) -> None:
        count = self.read_unsigned(width)
        if count > _MAX_LONG_BYTES:
            raise self._malformed_error(f"a number of {count} bytes")
        self.stack.append(int.from_bytes(self.read_bytes(count), "little", signed=True))

    def push_number(self, kind: type[int] | type[float]) -> None:
        digits = self.read_line()
        if kind is int and digits in (b"00", b"01"):
            self.stack.append(digits == b"01")  # protocol 0 writes booleans so
            return
        try:
            if len(digits) > _MAX_DIGITS:
                raise ValueError
            self.stack.append(kind(digits.removesuffix(b"L").decode("ascii")))
        except ValueError as error:
            raise self._malformed_error(f"{digits[:_MAX_DIGITS]!r} is not a number") from error

    # ---- containers -----------------------------------------------------------------------------------

    def push_mark(self) -> None:
        self.outer_stacks.append(self.stack)
        self.stack = []

    def pop_to_mark(self) -> list[Any]:
        items, self.stack = self.stack, self.outer_stacks.pop()
        return items

    def push_tuple(self, count: int) -> None:
        if len(self.stack) < count:
            raise IndexError
        items = tuple(self.stack[-count:])
        del self.stack[-count:]
        self.push_container(items)

    def extend_list(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise self._malformed_error("items without a list")
        target.extend(items)

    def update_dict(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict or len(items) % 2:
            raise self._malformed_error("items without a dict")
        for i in range(0, len(items), 2):
            if type(items[i]) not in self.key_types:
                raise self._malformed_error("a key that is not text")
            target[items[i]] = items[i + 1]

    def push_dict(self, items: list[Any]) -> None:
        self.push_container({})
        self.update_dict(items)

    def pop_pair(self) -> list[Any]:
        value = self.stack.pop()
        return [self.stack.pop(), value]

    # ---- the rest -------------------------------------------------------------------------------------

    def check_protocol(self) -> None:
        version = self.read_unsigned(1)
        if version > _MAX_PROTOCOL:
            raise TraceError(
                f"the pickle uses protocol {version}; protocols up to {_MAX_PROTOCOL} are supported",
                hint="write the snapshot with a protocol up to 5",
            )

    def check_frame(self) -> None:
        if self.read_unsigned(8) > len(self.data) - self.position and not self.may_be_truncated:
            raise self.truncated_error()

    def store_memo(self, index: int) -> None:
        self.memo[index] = self.stack[-1]


_STOP = ord(".")
_UINT = struct.Struct("<I")
_INT = struct.Struct("<i")

_Handler = Callable[[_StackMachine], Any]


# The most frequent opcodes of a snapshot, inlined because they take nine tenths of the time.


def _get_long(m: _StackMachine) -> None:
    m.stack.append(m.memo[_UINT.unpack_from(m.data, m.position)[0]])
    m.position += 4


def _get_byte(m: _StackMachine) -> None:
    m.stack.append(m.memo[m.data[m.position]])
    m.position += 1


def _push_int(m: _StackMachine) -> None:
    m.stack.append(_INT.unpack_from(m.data, m.position)[0])
    m.position += 4


def _push_byte(m: _StackMachine) -> None:
    m.stack.append(m.data[m.position])
    m.position += 1


def _memoize(m: _StackMachine) -> None:
    m.memo[len(m.memo)] = m.stack[-1]


def _build_handlers() -> list[_Handler | None]:
    table: dict[str | int, _Handler] = {
        0x80: _StackMachine.check_protocol,
        0x95: _StackMachine.check_frame,
        "(": _StackMachine.push_mark,
        "0": lambda m: m.stack.pop(),
        "1": _StackMachine.pop_to_mark,
        "N": lambda m: m.stack.append(None),
        0x88: lambda m: m.stack.append(True),
        0x89: lambda m: m.stack.append(False),
        "I": lambda m: m.push_number(int),
        "L": lambda m: m.push_number(int),
        "F": lambda m: m.push_number(float),
        "J": _push_int,
        "K": _push_byte,
        "M": lambda m: m.stack.append(m.read_unsigned(2)),
        0x8A: lambda m: m.push_long(1),
        0x8B: lambda m: m.push_long(4),
        "G": lambda m: m.stack.append(struct.unpack(">d", m.read_bytes(8))[0]),
        "V": lambda m: m.push_text(m.read_line(), "raw-unicode-escape"),
        "X": lambda m: m.push_text(m.read_bytes(m.read_unsigned(4))),
        0x8C: lambda m: m.push_text(m.read_bytes(m.read_unsigned(1))),
        0x8D: lambda m: m.push_text(m.read_bytes(m.read_unsigned(8))),
        "]": lambda m: m.push_container([]),
        "}": lambda m: m.push_container({}),
        ")": lambda m: m.push_container(()),
        "l": lambda m: m.push_container(m.pop_to_mark()),
        "t": lambda m: m.push_container(tuple(m.pop_to_mark())),
        0x85: lambda m: m.push_tuple(1),
        0x86: lambda m: m.push_tuple(2),
        0x87: lambda m: m.push_tuple(3),
        "d": lambda m: m.push_dict(m.pop_to_mark()),
        "a": lambda m: m.extend_list([m.stack.pop()]),
        "e": lambda m: m.extend_list(m.pop_to_mark()),
        "s": lambda m: m.update_dict(m.pop_pair()),
        "u": lambda m: m.update_dict(m.pop_to_mark()),
        "p": lambda m: m.store_memo(int(m.read_line()[:_MAX_DIGITS])),
        "q": lambda m: m.store_memo(m.read_unsigned(1)),
        "r": lambda m: m.store_memo(m.read_unsigned(4)),
        0x94: _memoize,
        "g": lambda m: m.stack.append(m.memo[int(m.read_line()[:_MAX_DIGITS])]),
        "h": _get_byte,
        "j": _get_long,
    }
    handlers: list[_Handler | None] = [None] * 256
    for opcode, handler in table.items():
        handlers[ord(opcode) if isinstance(opcode, str) else opcode] = handler
    return handlers


_HANDLERS = _build_handlers()
