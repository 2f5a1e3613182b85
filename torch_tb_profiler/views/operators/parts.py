"""What the operator table asks for when a row is chosen: its stacks and how its durations are spread."""

from __future__ import annotations

from torch_tb_profiler.analyses.operators.stacks import operator_stacks
from torch_tb_profiler.analyses.operators.table import Filter, calls_beside, operator_table
from torch_tb_profiler.analyses.shared.call_stacks import MergedFrame, has_stacks
from torch_tb_profiler.analyses.tracks.sources import frame
from torch_tb_profiler.base.markers import is_user_frame
from torch_tb_profiler.model.calls.operators import operators
from torch_tb_profiler.model.trace import NO_CODE, Int64, Trace
from torch_tb_profiler.model.vendors.records import option
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views._shared.instances import Instances, instances
from torch_tb_profiler.views._shared.text import text
from torch_tb_profiler.views.operators.payload import OperatorStack, OperatorStacks, RowParams, StackFrame


def _calls(trace: Trace, params: RowParams) -> Int64:
    kept = Filter(params.step, params.thread, params.phase, params.kernel, params.family)
    return calls_beside(operator_table(trace, params.group_by, kept), params.event)


def build_stacks(trace: Trace, params: RowParams) -> OperatorStacks:
    """NotFoundError if the event is not a call in the table."""
    answer = operator_stacks(trace, _calls(trace, params), params.time == "device")
    stacks = [
        OperatorStack(
            frames=[frame(text) for text in each.frames],
            calls=each.calls,
            host_self_ns=each.host_self,
            host_total_ns=each.host_total,
            device_self_ns=each.device_self,
            device_total_ns=each.device_total,
            event=each.event,
        )
        for each in answer.stacks
    ]
    missing = "no frame is around these calls" if has_stacks(trace) else no_stacks(trace)
    return OperatorStacks(
        name=trace.strings[trace.events.name[params.event]],
        stacks=stacks,
        frames=[_merged(each) for each in answer.merged],
        bare=answer.bare,
        reason=None if stacks else text(missing),
    )


def no_stacks(trace: Trace) -> str:
    """Why no operator has a call stack."""
    return f"no call stacks are recorded ({option(trace, 'stacks')})"


def _merged(merged: MergedFrame) -> StackFrame:
    source = frame(merged.text)
    return StackFrame(
        source.text,
        source.file,
        source.line,
        source.function,
        not is_user_frame(merged.text),
        None if merged.parent == NO_CODE else merged.parent,
        merged.calls,
        merged.host_ns,
        merged.device_ns,
    )


def build_instances(trace: Trace, params: RowParams) -> Instances:
    """How long the calls of a row take; by device time only those that launched some count."""
    table, calls = operators(trace), _calls(trace, params)
    if params.time == "device":
        calls = calls[table.device_total[calls] > 0]
        return instances(trace, table.rows[calls], table.device_total[calls])
    return instances(trace, table.rows[calls], table.host_total[calls])


PARTS = (
    TraceView("operators/stacks", "Call stacks", RowParams, OperatorStacks, build_stacks),
    TraceView(
        "operators/instances",
        "Durations",
        RowParams,
        Instances,
        build_instances,
        rows="longest",
        answers="How long the calls of an operator take: median, tail, outliers.",
    ),
)
