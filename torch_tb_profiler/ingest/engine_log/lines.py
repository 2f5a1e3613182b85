"""Tell when each line of a server's log was written, which engine wrote it, and what it says.

    INFO 11-26 07:00:01 [loggers.py:259] Engine 000: Avg prompt throughput: 98.0 tokens/s, ...
    [2026-11-26 07:00:01 TP0] Decode batch, #running-req: 4, #token: 512, token usage: 0.65, #queue-req: 1
    {"timestamp": "2026-11-26T07:00:01.750000", "event": "request.finished", "rid": "7f", ...}

Lines carry the server's local time, most without the year, the time zone, or fractions of a second. A line that
also has a time since the epoch gives the zone; so does the line that reports the start of the profiler, because
the trace starts then, too.

Sources: vLLM `logger.py`; SGLang `utils/log_utils.py`.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.base.threadsafe import threadsafe

ZONE_STEP_NS = 900 * 10**9
"""Time zones differ from UTC by multiples of 15 minutes."""

MAX_START_DELAY_NS = 60 * 10**9
"""Between the line that says that the profiler starts and the first event of its trace pass fewer ns than this."""

MAX_DISTANCE_NS = 36 * 3600 * 10**9
"""Lines further from the trace's begin than this are of no use in any zone."""

SECOND, MILLISECOND = 10**9, 10**6
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_COLOR = lazy_regex(r"\x1b\[[0-9;]*m")
_COLLECTED = lazy_regex(r"^(?:\d+\s)?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:\d\d)\s+")
"""What `docker logs --timestamps` and `kubectl logs --timestamps` put before a line: a time with its zone."""
_CLOCK = r"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
_PROCESS = r"(?:\d+: )?(?:\((?:EngineCore_(?:DP)?(\d{1,6}))?[^()]{0,80}\) )?"
"""What `srun --label`, Ray and vLLM put before a line: the number of a task, and a process with its engine."""
_VLLM = lazy_regex(rf"^{_PROCESS}(?:DEBUG|INFO|WARNING) (\d\d)-(\d\d) {_CLOCK} (?:\[?[^\]\s]{{1,80}}\] )")
_SGLANG = lazy_regex(rf"^{_PROCESS}\[(\d{{4}})-(\d\d)-(\d\d) {_CLOCK}((?: [A-Z_]+\d+){{0,8}})\] ")
_ISO = lazy_regex(rf"^(\d{{4}})-(\d\d)-(\d\d)T{_CLOCK}$")
_UNTIMED = lazy_regex(r"Finish: obj=\w+\(")
"""The one message that may tell its time itself."""


class Stamp(msgspec.Struct, frozen=True):
    """When a line was written: local time of the server and time since the epoch in ns, each if known."""

    local: int | None
    epoch: int | None
    precision: int

    def at(self, zone: int | None) -> int | None:
        """Return ns since the epoch, or None if the zone of the line's clock is unknown."""
        if self.epoch is not None:
            return self.epoch
        return self.local - zone if self.local is not None and zone is not None else None


class JsonLine(msgspec.Struct, frozen=True):
    """A line of `--log-requests-format json`."""

    timestamp: str = ""
    event: str = ""
    rid: str = ""
    out: dict[str, Any] = {}


class LogLine(msgspec.Struct, frozen=True):
    """A line of a log without what comes before its message; `engine` is '' if the line doesn't say which."""

    stamp: Stamp
    text: str = ""
    engine: str = ""
    json: JsonLine | None = None


class Clock:
    """Finds out how far a server's clock is from UTC.

    near_ns  ns since the epoch at which the trace begins
    """

    def __init__(self, near_ns: int) -> None:
        self.near_ns = near_ns
        self._starts: list[Stamp] = []
        self._zones: list[int] = []

    def add_profiler_start(self, stamp: Stamp) -> None:
        """Note when a line reports that the profiler starts."""
        self._starts.append(stamp)

    def add_known_time(self, stamp: Stamp, epoch: int) -> None:
        """Note a line whose time since the epoch is known otherwise."""
        if stamp.local is not None:
            self._zones.append(round((stamp.local - epoch) / ZONE_STEP_NS) * ZONE_STEP_NS)

    def zone(self) -> int | None:
        """Return the ns that the server's clock is ahead of UTC, or None if the log doesn't tell."""
        if self._zones:
            return max(sorted(set(self._zones)), key=self._zones.count)
        delays = [each.local - self.near_ns for each in self._starts if each.local is not None]
        zones = [(abs(delay - (zone := round(delay / ZONE_STEP_NS) * ZONE_STEP_NS)), zone) for delay in delays]
        delay, zone = min(zones, default=(MAX_START_DELAY_NS, 0))
        return zone if delay < MAX_START_DELAY_NS else None


def parse_line(line: str, near_ns: int) -> LogLine | None:
    """Return what a line says, or None if it is of another program, far from `near_ns`, or has no time."""
    line = _COLOR.sub("", line)
    epoch, precision = None, MILLISECOND
    if match := _COLLECTED.match(line):
        epoch, line = _epoch_of(match), line[match.end() :]
    if line.startswith("{"):
        return _parse_json(line, epoch, near_ns)
    engine, local = "", None
    if match := _VLLM.match(line):
        local, precision = _vllm_time(match.groups()[1:], near_ns)
        engine = match[1].zfill(3) if match[1] else ""
    elif match := _SGLANG.match(line):
        local, precision = _local_time(match.groups()[1:8])
        engine = " ".join(part for part in match[9].split() if part.startswith("DP"))
    text = line[match.end() :] if match else line
    if local is None and epoch is None and not _UNTIMED.match(text):
        return None
    stamp = Stamp(local, epoch, MILLISECOND if epoch is not None else precision)
    return None if _is_far(stamp, near_ns) else LogLine(stamp, text, engine)


_json = msgspec.json.Decoder(threadsafe(JsonLine))


def _parse_json(line: str, epoch: int | None, near_ns: int) -> LogLine | None:
    try:
        record = _json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    match = _ISO.match(record.timestamp)
    local, precision = _local_time(match.groups()) if match else (None, MILLISECOND)
    stamp = Stamp(local, epoch, precision)
    return None if not record.rid or _is_far(stamp, near_ns) else LogLine(stamp, json=record)


def _is_far(stamp: Stamp, near_ns: int) -> bool:
    time = stamp.epoch if stamp.epoch is not None else stamp.local
    return time is not None and abs(time - near_ns) > MAX_DISTANCE_NS


def _vllm_time(parts: tuple[str | Any, ...], near_ns: int) -> tuple[int | None, int]:
    """Return the time of a line without a year: the one nearest to the trace."""
    year = (_EPOCH + timedelta(seconds=near_ns // SECOND)).year
    times = [_local_time((str(each), *parts)) for each in (year - 1, year, year + 1)]
    known = [(local, precision) for local, precision in times if local is not None]
    return min(known, key=lambda each: abs(each[0] - near_ns), default=(None, SECOND))


def _local_time(parts: tuple[str | Any, ...]) -> tuple[int | None, int]:
    """Return (ns, precision in ns) of (year, month, day, hour, minute, second, fraction or None)."""
    *whole, fraction = parts
    try:
        moment = datetime(*map(int, whole), tzinfo=timezone.utc)  # type: ignore[misc, arg-type]
    except ValueError:
        return None, SECOND
    return _nanoseconds_of(moment, fraction), MILLISECOND if fraction else SECOND


def _epoch_of(match: re.Match[str]) -> int | None:
    try:
        moment = datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00"))
    except ValueError:
        return None
    return _nanoseconds_of(moment, match[2])


def _nanoseconds_of(moment: datetime, fraction: str | None) -> int:
    return (moment - _EPOCH) // timedelta(seconds=1) * SECOND + int((fraction or "").ljust(9, "0")[:9])
