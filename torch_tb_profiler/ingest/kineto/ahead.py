"""Blocks that are read while the file is cut into further ones, and the way back if one of them is damaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Stretch:
    """A block that left the window of the document, with the buffer in which it lies.

    buffer  a byte of nobody, then the stretch of the file
    cut     bytes of the block, `begin` those up to the next one
    reach   bytes that were known when its end was looked for
    """

    def __init__(self, buffer: bytearray, cut: int, begin: int, reach: int) -> None:
        self.buffer, self.reach = buffer, reach
        self._cut, self._begin = cut, begin
        self._behind = buffer[1 + cut]
        buffer[0], buffer[1 + cut] = ord("["), ord("]")

    @property
    def block(self) -> memoryview:
        """The block as a JSON array."""
        return memoryview(self.buffer)[: self._cut + 2]

    def text(self) -> bytes:
        """What the file holds, up to the next block."""
        cut = 1 + self._cut
        return bytes(self.buffer[1:cut]) + bytes([self._behind]) + bytes(self.buffer[cut + 1 : 1 + self._begin])


class NotReadError(Exception):
    """A block is no JSON; `stretches` begin with it and hold all that was handed out since."""

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        super().__init__("a block that was read ahead is damaged")
        self.stretches = stretches


class Ahead(Protocol):
    """Takes blocks without saying at once whether they could be read."""

    def buffer(self, size: int) -> bytearray:
        """One of at least this size, for what follows a block that is handed out with its own."""

    def add(self, stretch: Stretch) -> None:
        """Raises NotReadError if one that was handed out before cannot be read."""

    def drain(self) -> None:
        """Wait until all blocks have been read. Raises NotReadError as `add` does."""
