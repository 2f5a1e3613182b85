"""The origin of every device event, from the sources that the trace and the files beside it hold.

    how             operator  modules  lines  shapes  nodes   from
    launch          yes       yes      yes    yes     -       the call that launched it, and what is around it
    graph node      -         -        yes    -       -       notes on the nodes of a CUDA graph
    capture         yes       yes      yes    yes     -       the trace in which the graph was captured
    compile record  replayed  -        yes    -       yes     what torch.compile wrote about its kernels

The sources come in this order: `how` is the first that says anything, and a field is of the first that knows it.
What no source knows stays unknown, with the reason.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Generic, Literal, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.memo import derived, prepared
from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.calltree import build_call_tree, innermost_enclosing
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.module_calls import has_module_calls, recorded_modules
from torch_tb_profiler.model.origins import compiled, graph_nodes
from torch_tb_profiler.model.origins.captures import input_shapes, is_wrapper
from torch_tb_profiler.model.origins.compiled_replays import compiled_replays
from torch_tb_profiler.model.origins.frames import enclosing_compiled_regions as compiled_regions
from torch_tb_profiler.model.origins.frames import has_frames, stacks_around
from torch_tb_profiler.model.origins.packaged import packaged_kernels
from torch_tb_profiler.model.origins.replayed_kernels import replayed_kernels
from torch_tb_profiler.model.origins.replays import replayed_mask
from torch_tb_profiler.model.phases import PHASES, event_phases
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, distinct_codes
from torch_tb_profiler.model.vendors.recording_options import recording_option

LAUNCH, GRAPH_NODE, CAPTURE, COMPILE_RECORD = range(4)
ORIGIN_SOURCES = ("launch", "graph node", "capture", "compile record")
"""Sources of an origin, in the order in which they count."""

NO_CAPTURE = "replayed from a graph whose capture was not recorded"
NO_NOTE = "the graph node has neither an annotation nor a launch stack, and the capture was not recorded"
NO_LAUNCH = "the launch was not recorded"
NO_OPERATOR = "no operator encloses the launch"
COMPILED_LAUNCH = "launched by compiled code outside of any operator"
NO_MODULE = "launched outside any `nn.Module` call"
NO_LINE = "no frame of the program encloses the launch"
NOT_RECORDED = {
    "stacks": "no Python stacks were recorded",
    "modules": "no `nn.Module` calls were recorded",
    "shapes": "no shapes were recorded",
}

T = TypeVar("T", bound=Hashable)


class CodeTable(Generic[T]):
    """A table of distinct values; a column holds their codes."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._codes: dict[T, int] = {}

    def code(self, value: T | None) -> int:
        """Return the code of a value, NO_CODE for None."""
        if value is None:
            return NO_CODE
        if value not in self._codes:
            self._codes[value] = len(self.values)
            self.values.append(value)
        return self._codes[value]

    def codes(self, own: Int32 | Int64, values: Sequence[T | None]) -> Int32:
        """Return a column of codes into this table for one of codes into `values`."""
        table = np.full(len(values) + 1, NO_CODE, np.int32)
        for code in distinct_codes(own):
            table[code] = self.code(values[code])
        return table[own]


class Origins(msgspec.Struct, frozen=True):
    """Origins of k events: all device work, and calls of compiled kernels on the host; ascending rows.

    rows        int32[k]  their rows in the trace
    is_device   bool[k]   whether it is device work
    how         int32[k]  the source, an index into ORIGIN_SOURCES
    operator, modules, lines, shapes, nodes, region, compile_id, reason
                int32[k]  codes into the table of that name, NO_CODE if unknown
    backward    int32[k]  1 backward, 0 not, NO_CODE unknown
    tables      values by the names of the columns; modules are paths, outermost first; lines are `file:line`,
                innermost first, or of a compiled kernel one for each statement that it computes
    """

    rows: Int32
    is_device: Bool
    how: Int32
    operator: Int32
    modules: Int32
    lines: Int32
    shapes: Int32
    nodes: Int32
    region: Int32
    compile_id: Int32
    reason: Int32
    backward: Int32
    tables: dict[str, list[Any]]

    def value(self, column: str, index: int) -> Any:
        """Return the value of a column of the event at an index, None if unknown."""
        code = int(getattr(self, column)[index])
        return self.tables[column][code] if code >= 0 else None


_COLUMNS = ("operator", "modules", "lines", "shapes", "nodes", "region", "compile_id", "reason")
_LISTS = ("modules", "lines", "nodes")
"""Columns whose values are tuples of texts."""


class _OriginColumns:
    """Columns of k events that are filled source by source."""

    def __init__(self, count: int) -> None:
        self.codes = {name: np.full(count, NO_CODE, np.int32) for name in _COLUMNS}
        self.texts: dict[str, CodeTable[Any]] = {name: CodeTable() for name in _COLUMNS}
        self.how = np.full(count, NO_CODE, np.int32)
        self.backward = np.full(count, NO_CODE, np.int32)

    def fill(self, source: int, name: str, codes: Int32, values: Sequence[Any], *, decides: bool = True) -> None:
        """Set what is unknown in a column; where the event had no source, this is it if the column `decides`."""
        codes = self.texts[name].codes(codes, values)
        fresh = (codes >= 0) & (self.codes[name] < 0)
        self.codes[name][fresh] = codes[fresh]
        if decides:
            self.how[fresh & (self.how < 0)] = source

    def explain(self, wanted: Bool, reason: str) -> None:
        """Set the reason of the wanted events that have none."""
        fresh = wanted & (self.codes["reason"] < 0)
        if fresh.any():
            self.codes["reason"][fresh] = self.texts["reason"].code(reason)

    def known(self, name: str) -> Bool:
        known: Bool = self.codes[name] >= 0
        return known


def missing_reason(trace: Trace, topic: Literal["stacks", "modules", "shapes"]) -> str:
    """Return why no origin of the trace has this; a cut of the file that may be why is named, not an option."""
    return f"{NOT_RECORDED[topic]} ({recording_option(trace, topic)})"


@derived
def origin_positions(trace: Trace) -> Int32:
    """Return the position in `origins(trace)` of each event, int32[n + 1], NO_CODE if it has none there."""
    positions = np.full(len(trace) + 1, NO_CODE, np.int32)
    found = origins(trace)
    positions[found.rows] = np.arange(len(found.rows))
    return positions


class _StoredOrigins(msgspec.Struct, frozen=True):
    """Origins as they are stored: the codes of a column as numbers of as few bytes as they fit in.

    A table of `Origins` is in `texts` or, where its values are lists, in `lists`.
    """

    rows: Int32
    is_device: Bool
    codes: dict[str, npt.NDArray[Any]]
    texts: dict[str, list[str]]
    lists: dict[str, list[tuple[str, ...]]]


@derived
def origins(trace: Trace) -> Origins:
    """Return the origin of every device event, and of every call of a compiled kernel on the host."""
    found = _stored_origins(trace)
    codes = {name: column.astype(np.int32) for name, column in found.codes.items()}
    return Origins(found.rows, found.is_device, **codes, tables={**found.texts, **found.lists})


@prepared
def _stored_origins(trace: Trace) -> _StoredOrigins:
    found = _find_origins(trace)
    codes: dict[str, Int32] = {name: getattr(found, name) for name in ("how", *_COLUMNS, "backward")}
    return _StoredOrigins(
        found.rows,
        found.is_device,
        codes={name: column.astype(_smallest_type(column)) for name, column in codes.items()},
        texts={name: values for name, values in found.tables.items() if name not in _LISTS},
        lists={name: found.tables[name] for name in _LISTS},
    )


def _smallest_type(codes: Int32) -> type[np.signedinteger[Any]]:
    """Return the smallest type of numbers that holds these codes and NO_CODE."""
    largest = int(codes.max(initial=NO_CODE))
    return np.int8 if largest < 2**7 else np.int16 if largest < 2**15 else np.int32


def _find_origins(trace: Trace) -> Origins:
    links = device_links(trace)
    calls = compiled.compiled_calls(trace)
    count = len(links.rows)
    device, host = _OriginColumns(count), _OriginColumns(len(calls.rows))
    is_replayed = replayed_mask(trace)
    _add_launches(trace, device, is_replayed)
    _add_graph_nodes(trace, device)
    if is_replayed.any():
        _add_captures(trace, device, is_replayed)
    _add_compile_records(trace, device, is_replayed, calls)
    _explain_device(trace, device, is_replayed, calls)
    _add_host_calls(trace, host, calls)
    return _assemble(links.rows, device, calls.rows, host)


def _add_launches(trace: Trace, columns: _OriginColumns, is_replayed: Bool) -> None:
    """Add what is around the launch of each event that no graph launch ran."""
    links, names = device_links(trace), trace.events.name
    operator = np.where(is_replayed, NO_CODE, links.operator).astype(np.int32)
    launch = np.where(is_replayed, NO_CODE, links.launch).astype(np.int32)
    site = np.where(launch >= 0, launch, operator)
    name = np.where(operator >= 0, names[operator], NO_CODE)
    texts = [None if is_wrapper(text) else text for text in _texts_of(trace, name)]
    columns.fill(LAUNCH, "operator", name, texts)
    if has_module_calls(trace):
        model = recorded_modules(trace)
        place = np.where(site >= 0, model.code[site], NO_CODE)
        paths = {code: model.path(code) for code in distinct_codes(place)}
        columns.fill(LAUNCH, "modules", place, [paths.get(code) for code in range(len(model.names))])
    stack, stacks = stacks_around(trace, site)
    columns.fill(LAUNCH, "lines", stack, stacks)
    if (site >= 0).any():
        backward = event_phases(trace)[site] == PHASES.index("backward")
        columns.backward = np.where(site >= 0, backward, NO_CODE).astype(np.int32)
        _add_forward_lines(trace, columns, site, backward)
    shape, shapes = input_shapes(trace, operator)
    columns.fill(LAUNCH, "shapes", shape, shapes, decides=False)


def _texts_of(trace: Trace, codes: Int32) -> list[str]:
    """Return the texts of the trace up to the last of these codes; unused ones are empty."""
    texts = [""] * (int(codes.max(initial=-1)) + 1)
    for code in distinct_codes(codes):
        texts[code] = trace.strings[code]
    return texts


def _add_forward_lines(trace: Trace, columns: _OriginColumns, site: Int32, backward: Bool) -> None:
    """Add the lines of the forward operator that a backward task differentiates, where no frame is around it."""
    wanted = np.flatnonzero((site >= 0) & backward & ~columns.known("lines"))
    if len(wanted) == 0 or not has_frames(trace):
        return
    tasks = backward_tasks(trace)
    forward = np.full(len(trace) + 1, NO_CODE, np.int32)
    forward[tasks.rows] = tasks.forward
    task = innermost_enclosing(trace, build_call_tree(trace, tasks.rows))[site[wanted]]
    origin = np.full(len(site), NO_CODE, np.int32)
    origin[wanted] = np.where(task >= 0, forward[task], NO_CODE)
    stack, stacks = stacks_around(trace, origin)
    columns.fill(LAUNCH, "lines", stack, stacks)


def _add_graph_nodes(trace: Trace, columns: _OriginColumns) -> None:
    """Add the notes on the graph node that each event ran."""
    region, regions = graph_nodes.node_regions(trace)
    columns.fill(GRAPH_NODE, "region", region, regions)
    stack, stacks = graph_nodes.node_stacks(trace)
    columns.fill(GRAPH_NODE, "lines", stack, stacks)
    direction = graph_nodes.node_directions(trace)
    columns.backward = np.where(columns.backward < 0, direction, columns.backward)


def _add_captures(trace: Trace, columns: _OriginColumns, is_replayed: Bool) -> None:
    """Add what was around the launch at capture that each replayed event stands for."""
    found = replayed_kernels(trace)
    for name in ("operator", "modules", "lines"):
        columns.fill(CAPTURE, name, found.code, [getattr(each, name) for each in found.values])
    columns.fill(CAPTURE, "shapes", found.code, [each.shapes for each in found.values], decides=False)
    directions = np.array(
        [NO_CODE if each.backward is None else each.backward for each in found.values] + [NO_CODE]
    )
    fresh = is_replayed & (columns.backward < 0)
    columns.backward = np.where(fresh, directions[found.code], columns.backward).astype(np.int32)
    reasons = columns.texts["reason"].codes(found.code, [each.reason for each in found.values])
    columns.codes["reason"] = np.where(is_replayed, reasons, NO_CODE).astype(np.int32)


def _add_compile_records(
    trace: Trace, columns: _OriginColumns, is_replayed: Bool, calls: compiled.CompiledCalls
) -> None:
    """Add the record of the compiled kernel around the launch of each event, or of the same name."""
    links = device_links(trace)
    if len(calls.rows):
        operator = np.where(is_replayed, NO_CODE, links.operator).astype(np.int32)
        _fill_record(columns, compiled.calls_around(trace, operator, calls), calls)
    if is_replayed.any():
        _add_compiled_replays(trace, columns)
    packaged = packaged_kernels(trace)
    own = np.where(is_replayed, NO_CODE, packaged.of_event[links.rows]).astype(np.int32)
    for name in ("nodes", "lines"):
        values = [None if kernel is None else getattr(kernel, name) for kernel, _ in packaged.values]
        columns.fill(COMPILE_RECORD, name, own, values)
    reasons = columns.texts["reason"].codes(own, [reason for _, reason in packaged.values])
    columns.codes["reason"] = np.where(reasons >= 0, reasons, columns.codes["reason"]).astype(np.int32)


def _add_compiled_replays(trace: Trace, columns: _OriginColumns) -> None:
    """Add the record of each kernel of a compiled graph that a CUDA graph replays."""
    found = compiled_replays(trace)
    kernels = [each.kernel for each in found.values]
    operators = [compiled.extern_operator(each.name) for each in kernels]
    columns.fill(COMPILE_RECORD, "operator", found.code, operators)
    columns.fill(COMPILE_RECORD, "nodes", found.code, [each.nodes for each in kernels])
    columns.fill(COMPILE_RECORD, "lines", found.code, [each.lines for each in kernels])
    columns.fill(
        COMPILE_RECORD, "compile_id", found.code, [each.compile_id for each in found.values], decides=False
    )
    directions = np.array([*(each.backward for each in found.values), NO_CODE], np.int32)
    fresh = (found.code >= 0) & (columns.backward < 0)
    columns.backward = np.where(fresh, directions[found.code], columns.backward).astype(np.int32)
    known = columns.known("operator") & columns.known("lines")
    columns.codes["reason"][known & (found.code >= 0)] = NO_CODE


def _fill_record(columns: _OriginColumns, call: Int32, calls: compiled.CompiledCalls) -> None:
    """Fill the columns from the record of the call of each event, int32[k], NO_CODE for none."""
    kernels = calls.kernels
    columns.fill(COMPILE_RECORD, "nodes", call, [None if each is None else each.nodes for each in kernels])
    columns.fill(COMPILE_RECORD, "lines", call, [None if each is None else each.lines for each in kernels])
    ids = [
        compile_id if graph is None else graph.compile_id
        for graph, compile_id in zip(calls.graphs, calls.compile_ids, strict=True)
    ]
    columns.fill(COMPILE_RECORD, "compile_id", call, ids, decides=False)
    if len(calls.rows):
        backward = np.where(call >= 0, calls.backward[call], NO_CODE)
        columns.backward = np.where(call >= 0, backward, columns.backward).astype(np.int32)


def _add_host_calls(trace: Trace, columns: _OriginColumns, calls: compiled.CompiledCalls) -> None:
    """Add the calls of compiled kernels on the host."""
    rows = calls.rows
    if len(rows) == 0:
        return
    _fill_record(columns, np.arange(len(rows), dtype=np.int32), calls)
    name = trace.events.name[rows]
    columns.fill(COMPILE_RECORD, "operator", name, _texts_of(trace, name), decides=False)
    if has_module_calls(trace):
        model = recorded_modules(trace)
        paths = {code: model.path(code) for code in distinct_codes(model.code[rows])}
        columns.fill(
            LAUNCH,
            "modules",
            model.code[rows],
            [paths.get(code) for code in range(len(model.names))],
            decides=False,
        )
    shape, shapes = input_shapes(trace, rows)
    columns.fill(LAUNCH, "shapes", shape, shapes, decides=False)
    reason = columns.texts["reason"].codes(np.arange(len(rows)), calls.reasons)
    columns.codes["reason"] = reason
    has_record = columns.how >= 0
    columns.explain(has_record & ~columns.known("lines"), compiled.NO_LINES)
    columns.explain(has_record & ~columns.known("nodes"), compiled.NO_MAPPING)
    _explain_modules(trace, columns)


def _explain_device(
    trace: Trace, columns: _OriginColumns, is_replayed: Bool, calls: compiled.CompiledCalls
) -> None:
    """Set why the origin of an event is unknown, or the first of its fields that is."""
    links = device_links(trace)
    noted = columns.known("region") | columns.known("lines")
    in_graph = graph_nodes.graph_nodes(trace)[links.rows] >= 0
    columns.explain(is_replayed & in_graph & ~noted, NO_NOTE)
    columns.explain(is_replayed & ~noted, NO_CAPTURE)
    launched = ~is_replayed
    linked = (links.launch >= 0) | (links.operator >= 0)
    columns.explain(launched & ~linked & (columns.how < 0), NO_LAUNCH)
    site = np.where(links.launch >= 0, links.launch, links.operator)
    in_region = launched & linked & (compiled_regions(trace)[site] >= 0)
    columns.explain(launched & ~columns.known("operator") & in_region, COMPILED_LAUNCH)
    columns.explain(launched & ~columns.known("operator") & linked, NO_OPERATOR)
    if len(calls.rows) and in_region.any():
        call = compiled.calls_around(trace, np.where(in_region, links.operator, NO_CODE).astype(np.int32), calls)
        for reason in {each for each in calls.reasons if each is not None}:
            has_reason = np.array([each == reason for each in calls.reasons] + [False])
            columns.explain(in_region & ~columns.known("lines") & has_reason[call], reason)
    has_record = bool(trace.origin_records.graphs)
    columns.explain(
        in_region & ~columns.known("lines"), compiled.NOT_IN_RECORD if has_record else compiled.NO_RECORD
    )
    if not has_frames(trace):
        columns.explain(launched & linked & ~columns.known("lines"), missing_reason(trace, "stacks"))
    _explain_modules(trace, columns)
    columns.explain(launched & linked & ~columns.known("lines"), NO_LINE)
    columns.explain(is_replayed & ~(columns.known("operator") & columns.known("lines")), NO_CAPTURE)
    columns.explain(~columns.known("lines"), NO_LINE)
    if not any(key in trace.args for key in ("Input Dims", "Input dims")):
        columns.explain(launched & ~columns.known("shapes"), missing_reason(trace, "shapes"))


def _explain_modules(trace: Trace, columns: _OriginColumns) -> None:
    missing = (columns.how >= 0) & ~columns.known("modules")
    reason = NO_MODULE if has_module_calls(trace) else missing_reason(trace, "modules")
    columns.explain(missing & (columns.how != GRAPH_NODE), reason)


def _assemble(device_rows: Int32, device: _OriginColumns, host_rows: Int32, host: _OriginColumns) -> Origins:
    """Return the rows of both builders in one table, ascending."""
    rows = np.concatenate([device_rows, host_rows]).astype(np.int32)
    order = np.argsort(rows, kind="stable")
    columns: dict[str, Int32] = {}
    for name in _COLUMNS:
        shared = device.texts[name]
        more = shared.codes(host.codes[name], host.texts[name].values)
        columns[name] = np.concatenate([device.codes[name], more])[order]
    is_device = np.arange(len(rows)) < len(device_rows)
    return Origins(
        rows=rows[order],
        is_device=is_device[order],
        how=np.concatenate([device.how, host.how])[order],
        backward=np.concatenate([device.backward, host.backward])[order],
        tables={name: device.texts[name].values for name in _COLUMNS},
        **columns,
    )
