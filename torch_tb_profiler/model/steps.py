"""Steps: `ProfilerStep#N` on the host, each reaching to the end of the device work launched in it.

host    |- step 5 -----------|- step 6 -----------|
device       [ work of 5 ........][ work of 6 ........]
result  |- step 5 ---------------|- step 6 ------------|

Without `ProfilerStep#N`, a step is a trainer's batch and the wait for its data, or an iteration of an inference
engine.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import highest_by_number, lowest_by_number, search_sorted
from torch_tb_profiler.base.markers import step_number
from torch_tb_profiler.base.memo import derived, stored
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.kinds import (
    HOST_KINDS,
    Kind,
    event_ends,
    event_kinds,
    event_spans,
    rows_named,
    rows_of_kind,
    step_marks,
)
from torch_tb_profiler.model.serving.iterations import ServingIterations, running_before, serving_iterations
from torch_tb_profiler.model.trace import ABSENT, MAX_RECORDING_NS, Bool, Float64, Int32, Int64, Trace
from torch_tb_profiler.model.trainer import trainer_batches

MIN_COMPLETE_SHARE = 0.95
"""Minimum share of the last step's launches with a kernel, relative to the step before, for it to be complete.

The last step is the last with device work: the recording of the device may end before that of the host.
"""


class Steps(msgspec.Struct, frozen=True):
    """Steps in order of time.

    names     "5" for "ProfilerStep#5"; a single "all" if no steps are recorded
    starts    int64[k] ns; moved to the end of the previous step's device work
    ends      int64[k] ns; moved to the end of the device work launched in the step
    host_starts, host_ends  int64[k] ns; as recorded on the host
    complete  bool[k]; False for steps whose device work is missing
    recorded  False if the file has no ProfilerStep, batches or iterations, so that the single step is the trace
    vary      True for iterations of an inference engine: they differ by what is in their batches
    """

    names: tuple[str, ...]
    starts: Int64
    ends: Int64
    host_starts: Int64
    host_ends: Int64
    complete: Bool
    recorded: bool
    vary: bool = False


@stored
def steps(trace: Trace) -> Steps:
    """Return the recorded steps, else batches of a trainer or iterations of an engine, else the trace as one."""
    rows = _find_step_rows(trace)
    batches, vary = trainer_batches(trace) if len(rows) == 0 else None, False
    if batches is not None:
        names, host_start, host_end = batches.names, batches.starts, batches.ends
    elif len(rows):
        host_start, host_end = trace.events.start[rows], event_ends(trace)[rows]
        names = tuple(step_number(trace.strings[code]) for code in trace.events.name[rows])
    elif (engine := serving_iterations(trace)) is not None:
        host_start, host_end = _find_iteration_bounds(engine)
        vary = True
        names = tuple(map(str, range(len(engine))))
    else:
        return _build_step_of_trace(trace)
    work = _assign_device_work(trace, host_start, host_end)
    starts, finish = _extend(host_start, host_end, work)
    complete = _complete_mask(work.counts, _compute_executed_shares(trace, host_start, host_end))
    complete &= ~_find_lost_work(trace, host_start, host_end, work.counts)
    return Steps(names, starts, finish, host_start, host_end, complete, recorded=True, vary=vary)


def step_noun(trace: Trace) -> str:
    """Return what a step of the trace is in a sentence: "step", or "iteration" of an inference engine."""
    return "iteration" if steps(trace).vary else "step"


def _find_iteration_bounds(engine: ServingIterations) -> tuple[Int64, Int64]:
    """Return when the host works on each iteration of an inference engine, int64[k] each.

    It begins where the launches of the one before end, because scheduling is part of it; one that no running
    request waited for begins with its label, because the time before it may be a wait for requests.
    """
    ends = np.maximum(engine.launch_end, engine.host_end)
    starts = engine.host_start.copy()
    waited_for = running_before(engine)[1:]
    starts[1:][waited_for] = np.minimum(ends[:-1], starts[1:])[waited_for]
    return starts, np.maximum(ends, starts)


def _find_step_rows(trace: Trace) -> Int32:
    rows = step_marks(trace)
    if len(rows) == 0:
        return rows
    # A second profiler may mark a step again inside it or on another thread; it counts once.
    finish = event_ends(trace)[rows]
    order = np.lexsort((-finish, trace.events.start[rows], trace.events.thread[rows]))
    rows, finish = rows[order], finish[order]
    thread = trace.events.thread[rows]
    first = np.append(True, np.diff(thread) != 0)
    reach = np.concatenate([np.maximum.accumulate(part) for part in np.split(finish, np.flatnonzero(first)[1:])])
    outermost = first | (finish > np.append(0, reach[:-1]))
    rows, thread = rows[outermost], thread[outermost]
    threads, counts = np.unique(thread, return_counts=True)
    steps_of_one: Int32 = rows[thread == threads[np.argmax(counts)]]
    return steps_of_one


def _build_step_of_trace(trace: Trace) -> Steps:
    events = trace.events
    counted = (events.start != ABSENT) & (events.phase != ord("M")) & (event_kinds(trace) != Kind.SPAN)
    counted &= np.isin(events.phase, np.frombuffer(b"XBE", np.uint8))
    reach = event_ends(trace)
    counted &= (events.start >= 0) & (events.start < MAX_RECORDING_NS) & (reach < 2 * MAX_RECORDING_NS)
    if not counted.any():
        return Steps((), _int64(), _int64(), _int64(), _int64(), np.empty(0, np.bool_), recorded=False)
    start, end = events.start[counted].min(), reach[counted].max()
    return Steps(
        ("all",),
        _int64(start),
        _int64(end),
        _int64(start),
        _int64(end),
        np.ones(1, np.bool_),
        recorded=False,
    )


def _int64(*values: int) -> Int64:
    return np.array(values, np.int64)


class _StepWork(msgspec.Struct, frozen=True):
    """Device work launched in each of k steps.

    first_starts, last_ends  int64[k] ns, ABSENT without work
    counts                   int64[k] number of device events
    earlier_ends             int64[j] ns; ends of the device work launched before the first step
    """

    first_starts: Int64
    last_ends: Int64
    counts: Int64
    earlier_ends: Int64


def _assign_device_work(trace: Trace, start: Int64, end: Int64) -> _StepWork:
    device, launch = device_launches(trace)
    has_launch = launch >= 0
    launched, returned = event_spans(trace, np.where(has_launch, launch, 0))
    step = search_sorted(start, launched, "right") - 1
    inside = np.flatnonzero(has_launch & (step >= 0))
    step = step.take(inside)
    in_time = returned.take(inside) <= end.take(step)
    step, inside = step[in_time], inside[in_time]
    count = len(start)
    begins, finish = event_spans(trace, device.take(inside))
    first, last = lowest_by_number(step, begins, count), highest_by_number(step, finish, count)
    first[last == ABSENT] = ABSENT
    earlier = np.where(has_launch, launched < start[0], launched_before_recording(trace, device))
    earlier_ends = event_spans(trace, device[earlier])[1]
    return _StepWork(first, last, np.bincount(step, minlength=count), earlier_ends)


def launched_before_recording(trace: Trace, device: Int32) -> Bool:
    """Return which device work was launched before the recording, bool[k].

    The driver's `correlation` increases, so that of earlier work is below that of every recorded call. When other
    work without a recorded launch was launched is unknown, so it delays no step.
    """
    first = _find_first_correlation(trace)
    if first is None:
        return np.zeros(len(device), np.bool_)
    correlation = trace.arg_int("correlation", device)
    before: Bool = (correlation > 0) & (correlation < first)
    return before


@derived
def _find_first_correlation(trace: Trace) -> int | None:
    """Return the lowest `correlation` of a recorded call, None if none has one."""
    calls = trace.arg_int("correlation", rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER))
    calls[calls <= 0] = np.iinfo(np.int64).max
    first = int(calls.min(initial=np.iinfo(np.int64).max))
    return None if first == np.iinfo(np.int64).max else first


def _extend(host_start: Int64, host_end: Int64, work: _StepWork) -> tuple[Int64, Int64]:
    starts, finish = host_start.copy(), host_end.copy()
    before = work.earlier_ends[work.earlier_ends < work.first_starts[0]]  # none, if the step has no device work
    previous = max([int(host_start[0]), *([int(before.max())] if len(before) else [])])
    for i in range(len(starts)):
        starts[i] = max(previous, int(host_start[i]))
        finish[i] = max(int(host_end[i]), int(work.last_ends[i]), int(starts[i]))
        previous = int(finish[i])
    return starts, finish


def _compute_executed_shares(trace: Trace, start: Int64, end: Int64) -> Float64:
    """Return the share of each step's kernel launches that have a kernel, float64[steps]; 1 without launches."""
    calls = rows_named(trace, lambda name: "launch" in name.lower(), Kind.RUNTIME, Kind.DRIVER)
    has_kernel = np.zeros(len(trace), np.bool_)
    _, launch = device_launches(trace)
    has_kernel[launch[launch >= 0]] = True
    begins, returns = event_spans(trace, calls)
    step = search_sorted(start, begins, "right") - 1
    inside = (step >= 0) & (returns <= end.take(step))
    launched = np.bincount(step[inside], minlength=len(start))
    executed = np.bincount(step[inside], has_kernel[calls[inside]], minlength=len(start))
    return np.where(launched > 0, executed / np.maximum(launched, 1), 1.0)


def _find_lost_work(trace: Trace, start: Int64, end: Int64, counts: Int64) -> Bool:
    """Return bool[steps]: steps that launch kernels of which none is recorded, while those of other launches are.

    Work without a recorded launch that runs in a step may be what it launched.
    """
    lost: Bool = counts == 0
    if not lost.any():
        return lost
    lost &= _compute_executed_shares(trace, start, end) == 0
    device, launch = device_launches(trace)
    if not (launch >= 0).any():
        return np.zeros(len(start), np.bool_)
    begins = np.sort(trace.events.start[device[launch < 0]])
    lost &= np.searchsorted(begins, start) == np.searchsorted(begins, end)
    return lost


def _complete_mask(counts: Int64, executed: Float64) -> Bool:
    complete = np.ones(len(counts), np.bool_)
    if len(counts) < 2 or not counts.any():
        return complete
    last = int(np.flatnonzero(counts)[-1])
    complete[last + 1 :] = False
    if last > 0:
        usual = executed[last - 1]
    else:  # no step before shows how many launches have no kernel: assume none if all work of a later one is lost
        usual = float((executed[1:] == 0).any())
    if executed[last] < MIN_COMPLETE_SHARE * usual:
        complete[last] = False
    return complete


@derived
def has_host_events(trace: Trace) -> bool:
    """Return whether any host events were recorded."""
    return len(rows_of_kind(trace, *HOST_KINDS)) > 0
