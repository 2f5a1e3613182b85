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

from torch_tb_profiler.base.arrays import search_sorted
from torch_tb_profiler.base.markers import is_step, step_number
from torch_tb_profiler.base.memo import derived, stored
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.kinds import HOST_KINDS, Kind, event_ends, event_kinds, rows_of_kind
from torch_tb_profiler.model.serving.iterations import ServingIterations, running_before, serving_iterations
from torch_tb_profiler.model.trace import ABSENT, MAX_RECORDING_NS, Bool, Float64, Int32, Int64, Trace, name_mask
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
    rows = _step_rows(trace)
    batches, vary = trainer_batches(trace) if len(rows) == 0 else None, False
    if batches is not None:
        names, host_start, host_end = batches.names, batches.starts, batches.ends
    elif len(rows):
        host_start, host_end = trace.events.start[rows], event_ends(trace)[rows]
        names = tuple(step_number(trace.strings[code]) for code in trace.events.name[rows])
    elif (engine := serving_iterations(trace)) is not None:
        host_start, host_end = _iteration_bounds(engine)
        vary = True
        names = tuple(map(str, range(len(engine))))
    else:
        return _trace_as_step(trace)
    work = _device_work(trace, host_start, host_end)
    starts, finish = _extend(host_start, host_end, work)
    complete = _complete_mask(work.counts, _executed_shares(trace, host_start, host_end))
    complete &= ~_lost_work(trace, host_start, host_end, work.counts)
    return Steps(names, starts, finish, host_start, host_end, complete, recorded=True, vary=vary)


def step_noun(trace: Trace) -> str:
    """Return what a step of the trace is in a sentence: "step", or "iteration" of an inference engine."""
    return "iteration" if steps(trace).vary else "step"


def _iteration_bounds(engine: ServingIterations) -> tuple[Int64, Int64]:
    """Return when the host works on each iteration of an inference engine, int64[k] each.

    It begins where the launches of the one before end, because scheduling is part of it; one that no running
    request waited for begins with its label, because the time before it may be a wait for requests.
    """
    ends = np.maximum(engine.launch_end, engine.host_end)
    starts = engine.host_start.copy()
    waited_for = running_before(engine)[1:]
    starts[1:][waited_for] = np.minimum(ends[:-1], starts[1:])[waited_for]
    return starts, np.maximum(ends, starts)


def _step_rows(trace: Trace) -> Int32:
    rows = rows_of_kind(trace, Kind.ANNOTATION, Kind.CPU_OP)
    rows = rows[name_mask(trace.strings, is_step)[trace.events.name[rows]]]
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


def _trace_as_step(trace: Trace) -> Steps:
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


def _device_work(trace: Trace, start: Int64, end: Int64) -> _StepWork:
    device, launch = device_launches(trace)
    finish = event_ends(trace)
    has_launch = launch >= 0
    launch = np.where(has_launch, launch, 0)
    step = search_sorted(start, trace.events.start[launch], "right") - 1
    inside = has_launch & (step >= 0)
    inside[inside] &= finish[launch[inside]] <= end[step[inside]]
    step, rows = step[inside], device[inside]
    count = len(start)
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.full(count, ABSENT)
    np.minimum.at(first, step, trace.events.start[rows])
    np.maximum.at(last, step, finish[rows])
    first[last == ABSENT] = ABSENT
    earlier = np.where(has_launch, trace.events.start[launch] < start[0], launched_before_recording(trace, device))
    return _StepWork(first, last, np.bincount(step, minlength=count), finish[device[earlier]])


def launched_before_recording(trace: Trace, device: Int32) -> Bool:
    """Return which device work was launched before the recording, bool[k].

    The driver's `correlation` increases, so that of earlier work is below that of every recorded call. When other
    work without a recorded launch was launched is unknown, so it delays no step.
    """
    correlation = trace.arg_int("correlation", device)
    calls = trace.arg_int("correlation", rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER))
    first = calls[calls > 0].min(initial=np.iinfo(np.int64).max)
    before: Bool = (correlation > 0) & (correlation < first) & bool((calls > 0).any())
    return before


def _extend(host_start: Int64, host_end: Int64, work: _StepWork) -> tuple[Int64, Int64]:
    starts, finish = host_start.copy(), host_end.copy()
    before = work.earlier_ends[work.earlier_ends < work.first_starts[0]]  # none, if the step has no device work
    previous = max([int(host_start[0]), *([int(before.max())] if len(before) else [])])
    for i in range(len(starts)):
        starts[i] = max(previous, int(host_start[i]))
        finish[i] = max(int(host_end[i]), int(work.last_ends[i]), int(starts[i]))
        previous = int(finish[i])
    return starts, finish


def _executed_shares(trace: Trace, start: Int64, end: Int64) -> Float64:
    """Return the share of each step's kernel launches that have a kernel, float64[steps]; 1 without launches."""
    calls = rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    calls = calls[
        name_mask(trace.strings, lambda name: "launch" in name.lower()).take(trace.events.name.take(calls))
    ]
    has_kernel = np.zeros(len(trace), np.bool_)
    _, launch = device_launches(trace)
    has_kernel[launch[launch >= 0]] = True
    step = search_sorted(start, trace.events.start[calls], "right") - 1
    inside = (step >= 0) & (event_ends(trace)[calls] <= end[step])
    launched = np.bincount(step[inside], minlength=len(start))
    executed = np.bincount(step[inside], has_kernel[calls[inside]], minlength=len(start))
    return np.where(launched > 0, executed / np.maximum(launched, 1), 1.0)


def _lost_work(trace: Trace, start: Int64, end: Int64, counts: Int64) -> Bool:
    """Return bool[steps]: steps that launch kernels of which none is recorded, while those of other launches are.

    Work without a recorded launch that runs in a step may be what it launched.
    """
    lost: Bool = counts == 0
    if not lost.any():
        return lost
    lost &= _executed_shares(trace, start, end) == 0
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
