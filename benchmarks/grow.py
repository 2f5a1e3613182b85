"""Grow a recorded trace to a wanted size, in the layout in which Kineto wrote it.

    python benchmarks/grow.py samples/transformer/*.gz big.json 500

The recording is repeated, each time later by its own length. What tells events apart moves along: times, step
numbers, ids of operators, Python frames, flows, kernel launches and sequence numbers. Metadata and the
profiler's own marks stay single.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_EVENTS = re.compile(r'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(r"(?<=\})\s*,\s*(?=\{)")
_IDS = "External id|Record function id|Ev Idx|Sequence number|Python id|Python parent id|correlation|id"
_MOVES = re.compile(rf'"ts": (?P<time>\d+\.\d{{3}})|"(?:{_IDS})": (?P<id>[1-9]\d*)|ProfilerStep#(?P<step>\d+)')
_PAUSE_NS = 1_000_000


@dataclass(frozen=True)
class GrowingFile:
    """Text before the events, single events, the text to repeat, text behind; and how far a repetition moves.

    literals  pieces of the repeated text; between them stand numbers
    numbers   (value, "time" | "id" | "step") in the order of the text
    moves     by how much a repetition shifts each kind of number (times in ns)
    """

    head: str
    single: list[str]
    literals: list[str]
    numbers: list[tuple[int, str]]
    tail: str
    moves: dict[str, int]


def read_recording(path: Path) -> GrowingFile:
    """Take a Kineto file apart."""
    packed = path.read_bytes()
    text = (gzip.decompress(packed) if path.suffix == ".gz" else packed).decode()
    found = _EVENTS.search(text)
    if found is None:
        raise SystemExit(f"{path} has no `traceEvents`")
    end = text.rindex("]")
    events = _split(text[found.end() : end].strip())
    single = [event for event in events if _is_single(event)]
    body = ",\n  ".join(event for event in events if not _is_single(event))
    literals, numbers, at = [], [], 0
    for match in _MOVES.finditer(body):
        kind = str(match.lastgroup)
        literals.append(body[at : match.start(kind)])
        numbers.append((int(match.group(kind).replace(".", "")), kind))
        at = match.end(kind)
    literals.append(body[at:])
    moves = {"time": _trace_length(events), "id": _reach(numbers, "id"), "step": _reach(numbers, "step")}
    return GrowingFile(text[: found.end()], single, literals, numbers, text[end:], moves)


def _split(events: str) -> list[str]:
    """Return the texts of the events; a boundary inside a string or an argument does not count."""
    whole: list[str] = []
    open_part = ""
    for part in _BETWEEN.split(events):
        open_part = f"{open_part},{part}" if open_part else part
        try:
            json.loads(open_part)
        except ValueError:
            continue
        whole.append(open_part)
        open_part = ""
    return whole


def _is_single(event: str) -> bool:
    return '"ph": "M"' in event or '"cat": "Trace"' in event or '"cat"' not in event


def _trace_length(events: list[str]) -> int:
    """Return ns from the start of the recording to the end of its last event, and a pause."""
    timed = [event for event in map(json.loads, events) if "dur" in event]
    start = min(event["ts"] for event in timed)
    end = max(event["ts"] + event["dur"] for event in timed)
    return int((end - start) * 1000) + _PAUSE_NS


def _reach(numbers: list[tuple[int, str]], kind: str) -> int:
    """Return how many numbers of a kind one repetition needs at most."""
    return max((value for value, of in numbers if of == kind), default=0) + 1


def write_grown(recording: GrowingFile, megabytes: float, out: IO[str]) -> int:
    """Write repetitions until the file is as large as wanted; returns how many."""
    written = out.write(recording.head) + out.write("\n  " + ",\n  ".join(recording.single))
    count = 0
    while written < megabytes * 1e6 or count == 0:
        written += out.write(",\n  ") + out.write(_repetition(recording, count))
        count += 1
    out.write("\n  " + recording.tail)
    return count


def _repetition(recording: GrowingFile, count: int) -> str:
    shift = {kind: move * count for kind, move in recording.moves.items()}
    parts = [recording.literals[0]]
    for (value, kind), literal in zip(recording.numbers, recording.literals[1:], strict=True):
        value += shift[kind]
        parts.append(f"{value // 1000}.{value % 1000:03d}" if kind == "time" else str(value))
        parts.append(literal)
    return "".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sample", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("megabytes", type=float)
    wanted = parser.parse_args()
    with wanted.out.open("w", encoding="utf-8") as out:
        count = write_grown(read_recording(wanted.sample), wanted.megabytes, out)
    print(f"{wanted.out}: {count} repetitions, {wanted.out.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
