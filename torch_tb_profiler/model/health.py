"""Notes on what was skipped, repaired, or doubtful in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

Severity = Literal["info", "warning", "error"]

_TRUNCATED = frozenset(("truncated", "gzip_damaged"))


class HealthNote(msgspec.Struct, frozen=True):
    """One kind of finding in a file.

    count         how often it was found
    first_offset  byte offset of the first one in the decompressed file; None if it has no place
    """

    kind: str
    severity: Severity
    message: str
    count: int = 1
    first_offset: int | None = None


class HealthLog(msgspec.Struct):
    """Collects notes while a file is read, one for each kind."""

    _notes: dict[str, HealthNote] = msgspec.field(default_factory=dict)

    def add(
        self,
        kind: str,
        severity: Severity,
        message: str,
        *,
        count: int = 1,
        offset: int | None = None,
    ) -> None:
        known = self._notes.get(kind)
        if known is None:
            self._notes[kind] = HealthNote(kind, severity, message, count, offset)
            return
        first = known.first_offset if known.first_offset is not None else offset
        self._notes[kind] = HealthNote(kind, known.severity, known.message, known.count + count, first)

    def __contains__(self, kind: object) -> bool:
        return kind in self._notes

    def __iter__(self) -> Iterator[HealthNote]:
        return iter(self._notes.values())

    def notes(self) -> tuple[HealthNote, ...]:
        return tuple(self._notes.values())


def is_truncated(notes: Iterable[HealthNote]) -> bool:
    """Return whether the file is truncated; device work is usually written last, so it is then missing."""
    return any(note.kind in _TRUNCATED for note in notes)
