"""The call tree of a thread, one level at a time: the page asks for what it opens."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.modules.calls import calls, longest, threads
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds
from torch_tb_profiler.model.modules.modules import modules
from torch_tb_profiler.model.trace import NO_CODE, Trace
from torch_tb_profiler.view import Page, TraceView


class CallsParams(Page, frozen=True):
    """The children of `parent` (a row of the trace), or the outermost calls of `thread` (`pid/tid`).

    By default those of the main thread; `limit` of them from `first` on, all by default.
    """

    thread: str | None = None
    parent: int | None = None


class CallNode(msgspec.Struct, frozen=True):
    """One call. `self_ns` is what no call inside it covers; `device_ns` what it and those inside launched."""

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
    """A thread with calls: `pid/tid`, its name and role as the timeline shows them."""

    thread: str
    name: str
    role: str


class ModuleCalls(msgspec.Struct, frozen=True):
    """One level of the call tree, in order of time.

    longest  position in the level, not only among `rows`, of the call that takes longest; null without one
    """

    thread: str
    parent: int | None
    total: int
    longest: int | None
    rows: list[CallNode]
    threads: list[CallThread]


def build_calls(trace: Trace, params: CallsParams) -> ModuleCalls:
    """One level of the call tree."""
    listed, tree = threads(trace), calls(trace)
    if params.parent is None:
        thread = _thread(trace, [track.code for track in listed], params.thread)
        rows = tree.roots(trace, thread)
    else:
        if not 0 <= params.parent < len(trace) or call_tree(trace).depth[params.parent] < 0:
            raise NotFoundError(f"event {params.parent} is not a call", hint="give the row of a host event")
        thread = int(trace.events.thread[params.parent])
        rows = tree.children(params.parent)
    return ModuleCalls(
        thread=trace.threads[thread].label,
        parent=params.parent,
        total=len(rows),
        longest=longest(trace, rows),
        rows=[_node(trace, row) for row in rows[params.rows].tolist()],
        threads=[CallThread(trace.threads[track.code].label, track.name, track.role) for track in listed],
    )


def _thread(trace: Trace, codes: list[int], wanted: str | None) -> int:
    names = [trace.threads[code].label for code in codes]
    if wanted is None:
        main = [track.code for track in threads(trace) if track.role == "main"]
        return (main or codes)[0]
    if wanted not in names:
        raise UsageError(f"no thread {wanted!r} has calls", hint=f"threads: {', '.join(names[:20])}")
    return codes[names.index(wanted)]


def _node(trace: Trace, row: int) -> CallNode:
    tree, model = calls(trace), modules(trace)
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


CALLS = TraceView("modules/calls", "Call tree", CallsParams, ModuleCalls, build_calls)
