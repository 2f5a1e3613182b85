"""Recognize files of rocprofv3 by their first bytes, unpacked."""

from __future__ import annotations

from torch_tb_profiler.base.patterns import lazy_regex

_SQLITE = b"SQLite format 3\0"
_JSON = lazy_regex(rb'\{\s*"rocprofiler-sdk-tool"\s*:')


def looks_like_rocpd(head: bytes) -> bool:
    """Return whether a file is a database with tables of rocpd."""
    return head.startswith(_SQLITE) and b"rocpd_" in head


def looks_like_rocprof_json(head: bytes) -> bool:
    return b"rocprofiler-sdk-tool" in head and bool(_JSON.match(head.lstrip(b"\xef\xbb\xbf \t\r\n")))


_TIMES = {"start_timestamp", "end_timestamp"}
_KERNELS = _TIMES | {"kernel_name", "agent_id"}
_COPIES = _TIMES | {"direction", "source_agent_id", "destination_agent_id"}
_CALLS = _TIMES | {"domain", "function", "process_id", "thread_id"}
_AGENTS = {"node_id", "logical_node_id", "agent_type"}
"""Columns that a header has in every version."""

_MAX_COLUMNS = 256
"""The tool writes about 60; a file made to fill memory may name a million."""


def looks_like_tables(head: bytes) -> bool:
    """Return whether a file is a table of kernels, copies, or calls."""
    return (names := parse_header(head.partition(b"\n")[0])) is not None and set(names) >= _TIMES


def parse_header(line: bytes) -> list[str] | None:
    """Return the lower-case columns of a header of kernels, copies, calls, or agents; None for any other line."""
    if b"imestamp" not in line and b"ode_" not in line:
        return None
    cells = line.decode("utf-8-sig", "replace").strip().split(",")
    names = [cell.strip().strip('"').lower() for cell in cells]
    known = set(names)
    if len(names) > _MAX_COLUMNS or len(known) < len(names) or not all(map(str.isidentifier, names)):
        return None
    complete = any(known >= each for each in (_KERNELS, _COPIES, _CALLS, _AGENTS))
    return names if complete and "counter_name" not in known else None
