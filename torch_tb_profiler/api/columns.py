"""The columns of a trace as Arrow tables, for data-frame tools."""

from __future__ import annotations

import inspect
from functools import cached_property
from typing import TYPE_CHECKING

from torch_tb_profiler.api import column_tables
from torch_tb_profiler.base import html
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.model.trace import Trace

if TYPE_CHECKING:
    import pyarrow


class Columns:
    """The columns of one trace as Arrow tables, for DuckDB, Polars, pandas and whatever else reads Arrow.

    Times (`_ns`) are int64 nanoseconds since the trace's start; `origin_ns` is that instant. Sizes (`_bytes`)
    are bytes. `event` in any table is a row of `events`, and the number that the views take and show as `event`.
    What is unknown is null. Tables are built on first use; the columns of `events` share the memory of the trace.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def origin_ns(self) -> int:
        """Return time 0 of all tables in the clock of the file: with PyTorch's profiler ns since 1970."""
        return self._trace.base_ns + self._trace.trace_start_ns

    @cached_property
    def events(self) -> pyarrow.Table:
        """Every event in file order: event, name, category, phase ("X": a slice), thread ("pid/tid"), start_ns,
        duration_ns, id (of flows)."""
        return column_tables.build_event_table(self._trace)

    @cached_property
    def operators(self) -> pyarrow.Table:
        """Calls of operators: event, name, thread, start_ns, host_total_ns, host_self_ns, device_total_ns and
        device_self_ns (of what they launched), input_shape, module (path), step, parent (event around it), and
        of calls of compiled kernels origin_how, origin_line, origin_nodes, origin_compile_id."""
        return column_tables.build_operator_table(self._trace)

    @cached_property
    def modules(self) -> pyarrow.Table:
        """Calls of `nn.Module`s: event, module (path), class, thread, start_ns, duration_ns, device_ns (launched
        in it), step."""
        return column_tables.build_module_table(self._trace)

    @cached_property
    def steps(self) -> pyarrow.Table:
        """Steps: step, start_ns, duration_ns, host_start_ns, host_duration_ns, complete, recorded, and the parts
        of the duration (`kernel_ns`, ... as in the overview)."""
        return column_tables.build_step_table(self._trace)

    @cached_property
    def iterations(self) -> pyarrow.Table:
        """Iterations of an inference engine: event (label), phase, phase_inferred, start_ns, duration_ns,
        host_start_ns, host_duration_ns, device_start_ns, device_duration_ns, requests, prompt_tokens,
        decode_requests, decode_tokens, kv_tokens, recomputed_tokens, busy_ns, graph, and the idle time by cause
        (`idle_launch_ns`, ...)."""
        return column_tables.build_iteration_table(self._trace)

    @cached_property
    def memory(self) -> pyarrow.Table:
        """Allocations and releases: event, time_ns, device, address, size_bytes (negative: a release),
        allocated_bytes and reserved_bytes after it, operator (event)."""
        return column_tables.build_memory_table(self._trace)

    @cached_property
    def kernels(self) -> pyarrow.Table:
        """Kernels: event, name, family, device, stream, start_ns, duration_ns, launch (event of the call),
        operator (event), module (path), step (in which it was launched), and where it comes from: origin_how,
        origin_operator, origin_module, origin_line, origin_shapes, origin_region, origin_reason."""
        return column_tables.build_kernel_table(self._trace)

    @cached_property
    def copies(self) -> pyarrow.Table:
        """Copies and memsets of devices: as `kernels`, with `bytes`."""
        return column_tables.build_copy_table(self._trace)

    @cached_property
    def collectives(self) -> pyarrow.Table:
        """Communication operations: event, collective, group, ranks, group_size, backend, dtype, issue_ns (called
        or launched), start_ns, end_ns, timing ("device", "host", "none"), sequence, bytes_in, bytes_out."""
        return column_tables.build_collective_table(self._trace)

    @cached_property
    def origins(self) -> pyarrow.Table:
        """Where kernels, copies, memsets and calls of compiled kernels on the host come from: event, start_ns,
        name, how ("launch", "graph node", "capture", "compile record"), operator, modules (outermost first), lines
        (`file:line`, innermost first), shapes, nodes (FX), region, compile_id, backward, reason (why a value is
        null)."""
        return column_tables.build_origin_table(self._trace)

    @cached_property
    def gaps(self) -> pyarrow.Table:
        """Idle time of devices in complete steps, in parts with one cause each: device, gap (number), start_ns,
        duration_ns (on the device's own clock), cause, event (what caused it), emptied_by (event of the blocking
        call), step."""
        return column_tables.build_gap_table(self._trace)

    def _repr_html_(self) -> str:
        """Return the list of tables with their descriptions, for a notebook; it builds none of them."""
        rows = [
            {"table": name, "holds": " ".join(inspect.cleandoc(each.__doc__ or "").split())}
            for name, each in vars(Columns).items()
            if isinstance(each, cached_property)
        ]
        return html.render_block(
            f"Columns of {plural(len(self._trace), 'event')}", [], html.render_table("tables", rows)
        )
