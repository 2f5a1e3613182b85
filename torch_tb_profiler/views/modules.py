"""Modules: the model as it ran, with the time of each nn.Module on host and device, forward and backward.

The call tree of a thread is read one level at a time: the page requests the children of what it opens.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.analyses.modules.calls import call_tree_index, find_longest, threads_with_calls
from torch_tb_profiler.analyses.modules.times import call_order, class_times, module_times
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.base.grammar import list_options
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.devices import device_kind
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds
from torch_tb_profiler.model.modules import modules
from torch_tb_profiler.model.trace import NO_CODE, Trace
from torch_tb_profiler.view import NoParams, Page, Tab, TraceView
from torch_tb_profiler.views._shared.availability import modules_reason
from torch_tb_profiler.views._shared.module_parts import module_views
from torch_tb_profiler.views._shared.modules import (
    ModuleClass,
    ModuleRow,
    UnplacedWork,
    build_class_rows,
    build_module_rows,
    build_unplaced_work,
    missing_reasons,
    modules_details,
    modules_headline,
    unlinked_words,
)
from torch_tb_profiler.views._shared.text import Text, device_noun, reason_texts


class ModulesPayload(msgspec.Struct, frozen=True):
    """The outermost modules in order of their first call.

    headline     which class of modules takes the most time; details: forward, backward, work outside modules
    classes      sums over all modules of a class
    device_ns    all device time = sum of all `device_self_ns` + outside + unlinked
    outside      work launched outside any module
    unlinked     work whose module is unknown: neither a launch nor an operator is recorded, or a graph replayed it
                 and its capture doesn't say the module
    has_device   the trace has device work; has_backward: some backward work is assigned to modules
    reasons      field -> why it is null
    """

    headline: Text
    details: Text
    rows: list[ModuleRow]
    classes: list[ModuleClass]
    device_ns: int
    outside: UnplacedWork
    unlinked: UnplacedWork
    has_device: bool
    has_backward: bool
    reasons: Mapping[str, Text]


class CallTreeParams(Page, frozen=True):
    """The children of `parent` (a row of the trace), or the outermost calls of `thread` (`pid/tid`).

    By default those of the main thread; `limit` of them from `first` on, all by default.
    """

    thread: str | None = None
    parent: int | None = None


class CallNode(msgspec.Struct, frozen=True):
    """One call.

    self_ns    time that no call inside it covers
    device_ns  device work that it and the calls inside it launched
    """

    event: int
    name: str
    kind: str
    module: str | None
    start_ns: int
    duration_ns: int
    self_ns: int
    device_ns: int
    children: int


class CallThread(msgspec.Struct, frozen=True):
    """A thread with calls: `pid/tid`, its name and role as on the timeline."""

    thread: str
    name: str
    role: str


class CallTreeLevel(msgspec.Struct, frozen=True):
    """One level of the call tree, in order of time.

    longest  position of the longest call in the level, not only among `rows`; null if the level is empty
    """

    thread: str
    parent: int | None
    total: int
    longest: int | None
    rows: list[CallNode]
    threads: list[CallThread]


def build(trace: Trace, _: NoParams) -> ModulesPayload:
    """Build the module tree of one trace."""
    model = modules(trace)
    times, order = module_times(trace, model), call_order(trace, model)
    classes = build_class_rows(trace, model, class_times(model, times, order))
    outside, unlinked = build_unplaced_work(times.outside), build_unplaced_work(times.unlinked)
    has_device = times.device_time > 0
    has_backward = len(model.tasks) > 0 or bool(times.backward_self.any())
    device = device_noun(device_kind(trace)) if has_device else None
    return ModulesPayload(
        headline=modules_headline("modules", classes, device),
        details=modules_details(
            classes, has_backward, device, times.device_time, outside, unlinked, unlinked_words(trace)
        ),
        rows=build_module_rows(trace, model, times, order),
        classes=classes,
        device_ns=times.device_time,
        outside=outside,
        unlinked=unlinked,
        has_device=has_device,
        has_backward=has_backward,
        reasons=reason_texts(missing_reasons(trace, model, times)),
    )


def build_calls(trace: Trace, params: CallTreeParams) -> CallTreeLevel:
    """Build one level of the call tree; NotFoundError or UsageError for an unknown call or thread."""
    tracks, tree = threads_with_calls(trace), call_tree_index(trace)
    if params.parent is None:
        thread = _find_requested_thread(trace, [track.code for track in tracks], params.thread)
        rows = tree.roots(trace, thread)
    else:
        if not 0 <= params.parent < len(trace) or call_tree(trace).depth[params.parent] < 0:
            raise NotFoundError(f"event {params.parent} is not a call", hint="give the row of a host event")
        thread = int(trace.events.thread[params.parent])
        rows = tree.children(params.parent)
    return CallTreeLevel(
        thread=trace.threads[thread].label,
        parent=params.parent,
        total=len(rows),
        longest=find_longest(trace, rows),
        rows=[_call_node(trace, row) for row in rows[params.rows].tolist()],
        threads=[CallThread(trace.threads[track.code].label, track.name, track.role) for track in tracks],
    )


def _find_requested_thread(trace: Trace, codes: list[int], label: str | None) -> int:
    """Return the code of the thread with this label, or of the main thread if there is no label."""
    if label is None:
        main = [track.code for track in threads_with_calls(trace) if track.role == "main"]
        return (main or codes)[0]
    labels = [trace.threads[code].label for code in codes]
    if label not in labels:
        raise UsageError(f"no thread {label!r} has calls", hint=list_options("threads", labels))
    return codes[labels.index(label)]


def _call_node(trace: Trace, row: int) -> CallNode:
    tree, model = call_tree_index(trace), modules(trace)
    text = trace.events.name[row]
    duration = int(event_ends(trace)[row] - trace.events.start[row])
    code = int(model.code[row])
    return CallNode(
        event=row,
        name=trace.strings[text] if text >= 0 else "",
        kind=Kind(int(event_kinds(trace)[row])).name.lower(),
        module=model.names[code] if code != NO_CODE else None,
        start_ns=int(trace.events.start[row]),
        duration_ns=duration,
        self_ns=duration - int(tree.nested[row]),
        device_ns=int(tree.device[row]),
        children=len(tree.children(row)),
    )


TAB = Tab(
    "Where the time goes",
    TraceView(
        "modules",
        "Modules",
        NoParams,
        ModulesPayload,
        build,
        cached="on_request",
        answers="Modules as a tree: how often they ran, how long on the host and the device.",
    ),
    modules_reason,
    (
        *module_views("modules", modules),
        TraceView("modules/calls", "Call tree", CallTreeParams, CallTreeLevel, build_calls),
    ),
)
