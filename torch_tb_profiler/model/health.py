"""What was skipped, repaired or doubtful in a trace: kind, count, first offset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import msgspec

Severity = Literal["info", "warning", "error"]

_TRUNCATED = frozenset(("truncated", "gzip_damaged"))


class HealthNote(msgspec.Struct, frozen=True):
    """One kind of finding.

    `count` is how many times it was met; `first_offset` the byte offset of the first one in the
    decompressed file (None where there is no place to name).
    """

    kind: str
    severity: Severity
    message: str
    count: int = 1
    first_offset: int | None = None


@dataclass
class HealthLog:
    """Collects findings while a file is read; equal kinds are counted together."""

    _notes: dict[str, HealthNote] = field(default_factory=dict)

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
    """The file ends before the recording does; as a rule what is missing is the work of the devices."""
    return any(note.kind in _TRUNCATED for note in notes)
