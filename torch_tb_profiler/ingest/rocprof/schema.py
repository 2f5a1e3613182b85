"""The fields that are read of rocprofv3's JSON. Times are ns since the machine booted."""

from __future__ import annotations

from typing import Any

import msgspec


class Handle(msgspec.Struct, frozen=True):
    """The id of an agent, queue, or stream in records."""

    handle: int | None = None


class Correlation(msgspec.Struct, frozen=True):
    """The correlation ids of a record; a call and the work that it launched share `internal`."""

    internal: int | None = None


class AxisSizes(msgspec.Struct, frozen=True):
    """A size along three axes."""

    x: int | None = None
    y: int | None = None
    z: int | None = None


_NO_HANDLE = Handle()
_NO_CORRELATION = Correlation()
_NO_SIZE = AxisSizes()


class RocprofRecord(msgspec.Struct):
    """The fields of records of every kind; `kind` and `operation` index `Strings.buffer_records`."""

    start_timestamp: int | None = None
    end_timestamp: int | None = None
    kind: int = -1
    operation: int = -1
    thread_id: int | None = None
    correlation_id: Correlation = _NO_CORRELATION


class CallRecord(RocprofRecord):
    """A call on the host."""


class CopyRecord(RocprofRecord):
    """A copy between two agents."""

    src_agent_id: Handle = _NO_HANDLE
    dst_agent_id: Handle = _NO_HANDLE
    bytes: int | None = None
    stream_id: Handle | None = None


class DispatchInfo(msgspec.Struct, frozen=True):
    """A kernel launch; `grid_size` counts work items."""

    agent_id: Handle = _NO_HANDLE
    queue_id: Handle = _NO_HANDLE
    kernel_id: int = -1
    dispatch_id: int | None = None
    private_segment_size: int | None = None
    group_segment_size: int | None = None
    workgroup_size: AxisSizes = _NO_SIZE
    grid_size: AxisSizes = _NO_SIZE


class DispatchRecord(RocprofRecord):
    """A kernel; has a `stream_id` since ROCm 7."""

    dispatch_info: DispatchInfo = msgspec.field(default_factory=DispatchInfo)
    stream_id: Handle | None = None


class DispatchData(msgspec.Struct, frozen=True):
    """A dispatch as its counters describe it."""

    start_timestamp: int | None = None
    end_timestamp: int | None = None
    correlation_id: Correlation = _NO_CORRELATION
    dispatch_info: DispatchInfo = msgspec.field(default_factory=DispatchInfo)


class CounterValue(msgspec.Struct, frozen=True):
    """The value of a counter, of the entire device or of a part of it."""

    counter_id: Handle = _NO_HANDLE
    value: float = float("nan")


class CountedDispatchRecord(msgspec.Struct):
    """A dispatch with its counters."""

    thread_id: int | None = None
    dispatch_data: DispatchData = msgspec.field(default_factory=DispatchData)
    records: list[CounterValue] = []

    def dispatch(self) -> DispatchRecord:
        """Return the dispatch as a recording with traced kernels has it."""
        data = self.dispatch_data
        return DispatchRecord(
            start_timestamp=data.start_timestamp,
            end_timestamp=data.end_timestamp,
            thread_id=self.thread_id,
            correlation_id=data.correlation_id,
            dispatch_info=data.dispatch_info,
        )


class CounterDescription(msgspec.Struct):
    """A counter of an agent."""

    id: Handle = _NO_HANDLE
    name: str = ""


class KernelSymbol(msgspec.Struct):
    """A kernel symbol, with its name as the user chose to format it or as the compiler wrote it."""

    kernel_id: int = -1
    formatted_kernel_name: str = ""
    kernel_name: str = ""

    @property
    def name(self) -> str:
        return self.formatted_kernel_name or self.kernel_name.removesuffix(".kd")


class RecordDomain(msgspec.Struct):
    """A kind of records ("HIP_RUNTIME_API") and the names of its operations."""

    kind: str = ""
    operations: list[str] = []


class MarkerMessage(msgspec.Struct):
    """The text of the marker with this correlation id."""

    key: int
    value: str


class NameTables(msgspec.Struct):
    buffer_records: list[RecordDomain] = []
    marker_api: list[MarkerMessage] = []


class ProcessMetadata(msgspec.Struct):
    pid: int | None = None
    command: Any = None

    @property
    def command_line(self) -> str | None:
        """Return the command as one text; the file has a list of its words."""
        words = self.command if isinstance(self.command, list) else [self.command]
        return " ".join(word for word in words if isinstance(word, str)) or None


class ProcessDescription(msgspec.Struct):
    """The description of a process."""

    metadata: ProcessMetadata = msgspec.field(default_factory=ProcessMetadata)
    agents: list[dict[str, Any]] = []
    strings: NameTables = msgspec.field(default_factory=NameTables)
    kernel_symbols: list[KernelSymbol] = []
    counters: list[CounterDescription] = []

    def domain_name(self, kind: int) -> str | None:
        """Return the name of a kind of records."""
        is_known = 0 <= kind < len(self.strings.buffer_records)
        return self.strings.buffer_records[kind].kind if is_known else None

    def operation_name(self, kind: int, operation: int) -> str | None:
        """Return the name of an operation of a kind."""
        operations = self.strings.buffer_records[kind].operations if self.domain_name(kind) is not None else []
        return operations[operation] if 0 <= operation < len(operations) else None
