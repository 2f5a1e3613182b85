"""The parts of rocprofv3's JSON that are read, field by field. Times are ns since the machine booted."""

from __future__ import annotations

from typing import Any

import msgspec


class Handle(msgspec.Struct, frozen=True):
    """How records name an agent, a queue or a stream."""

    handle: int | None = None


class Correlation(msgspec.Struct, frozen=True):
    """`internal` is shared by a call and the work that it launched."""

    internal: int | None = None


class Size(msgspec.Struct, frozen=True):
    x: int | None = None
    y: int | None = None
    z: int | None = None


_NONE = Handle()
_UNJOINED = Correlation()
_NO_SIZE = Size()


class Record(msgspec.Struct):
    """What records of every kind hold; kind and operation index `Strings.buffer_records`."""

    start_timestamp: int | None = None
    end_timestamp: int | None = None
    kind: int = -1
    operation: int = -1
    thread_id: int | None = None
    correlation_id: Correlation = _UNJOINED


class Call(Record):
    """A call on the host."""


class Copy(Record):
    """A copy between two agents."""

    src_agent_id: Handle = _NONE
    dst_agent_id: Handle = _NONE
    bytes: int | None = None
    stream_id: Handle | None = None


class DispatchInfo(msgspec.Struct, frozen=True):
    """A launch; `grid_size` counts work items."""

    agent_id: Handle = _NONE
    queue_id: Handle = _NONE
    kernel_id: int = -1
    dispatch_id: int | None = None
    private_segment_size: int | None = None
    group_segment_size: int | None = None
    workgroup_size: Size = _NO_SIZE
    grid_size: Size = _NO_SIZE


class Dispatch(Record):
    """A kernel; `stream_id` since ROCm 7."""

    dispatch_info: DispatchInfo = msgspec.field(default_factory=DispatchInfo)
    stream_id: Handle | None = None


class DispatchData(msgspec.Struct, frozen=True):
    """A dispatch as its counters tell it."""

    start_timestamp: int | None = None
    end_timestamp: int | None = None
    correlation_id: Correlation = _UNJOINED
    dispatch_info: DispatchInfo = msgspec.field(default_factory=DispatchInfo)


class CounterValue(msgspec.Struct, frozen=True):
    """Of the whole device, or of a part of it."""

    counter_id: Handle = _NONE
    value: float = float("nan")


class Counters(msgspec.Struct):
    """What was counted for a dispatch."""

    thread_id: int | None = None
    dispatch_data: DispatchData = msgspec.field(default_factory=DispatchData)
    records: list[CounterValue] = []

    def dispatch(self) -> Dispatch:
        """The dispatch, as it is recorded where kernels are traced, too."""
        data = self.dispatch_data
        return Dispatch(
            start_timestamp=data.start_timestamp,
            end_timestamp=data.end_timestamp,
            thread_id=self.thread_id,
            correlation_id=data.correlation_id,
            dispatch_info=data.dispatch_info,
        )


class Counter(msgspec.Struct):
    """A counter of an agent."""

    id: Handle = _NONE
    name: str = ""


class Symbol(msgspec.Struct):
    """A kernel; its name formatted as the user asked, else as the compiler spelled it."""

    kernel_id: int = -1
    formatted_kernel_name: str = ""
    kernel_name: str = ""

    @property
    def name(self) -> str:
        return self.formatted_kernel_name or self.kernel_name.removesuffix(".kd")


class Domain(msgspec.Struct):
    """A kind of records ("HIP_RUNTIME_API") and the names of its operations."""

    kind: str = ""
    operations: list[str] = []


class Message(msgspec.Struct):
    """What the marker with this correlation id says."""

    key: int
    value: str


class Strings(msgspec.Struct):
    buffer_records: list[Domain] = []
    marker_api: list[Message] = []


class Metadata(msgspec.Struct):
    pid: int | None = None
    command: Any = None

    @property
    def command_line(self) -> str | None:
        """`command` is a list of its words."""
        words = self.command if isinstance(self.command, list) else [self.command]
        return " ".join(word for word in words if isinstance(word, str)) or None


class Process(msgspec.Struct):
    """The description of a process."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    agents: list[dict[str, Any]] = []
    strings: Strings = msgspec.field(default_factory=Strings)
    kernel_symbols: list[Symbol] = []
    counters: list[Counter] = []

    def domain(self, kind: int) -> str | None:
        """The name of a kind of records."""
        known = 0 <= kind < len(self.strings.buffer_records)
        return self.strings.buffer_records[kind].kind if known else None

    def operation(self, kind: int, operation: int) -> str | None:
        """The name of what a record of this kind did."""
        operations = self.strings.buffer_records[kind].operations if self.domain(kind) is not None else []
        return operations[operation] if 0 <= operation < len(operations) else None
