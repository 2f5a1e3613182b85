"""Graph captures in a trace: what each launch between BeginCapture and EndCapture stands for.

    hipStreamBeginCapture | aten::mm -------| aten::add -------| hipStreamEndCapture
                               hipLaunch       hipLaunch             a capture of two launches

No kernel runs during a capture, so its launches have no device event. AMD's calls carry the kernel's name;
NVIDIA's do not, but the operator of a Triton kernel has the kernel's name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.calltree import call_tree, enclosing_operators
from torch_tb_profiler.model.costs.models import find_cost_model, find_work_owners
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.module_calls import has_module_calls, recorded_modules
from torch_tb_profiler.model.origin_records import Capture, CaptureSet, LaunchSite
from torch_tb_profiler.model.origins.frames import stacks_around
from torch_tb_profiler.model.phases import PHASES, event_phases
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace, distinct_codes, name_mask

_LAUNCH = lazy_regex(
    r"Launch(?:Cooperative)?Kernel|LaunchKernelExC?$|LaunchByPtr|Memcpy\w*Async|Memset\w*Async|^cuLaunchKernel"
)
_CAPTURED_SIZE = lazy_regex(r"^capture_(\d+)_")
_FILE_SIZE = lazy_regex(r"(?:^|[/_-])bs_?(\d+)(?:[_.]|$)")
_SHAPE_KEYS = ("Input Dims", "Input dims")
_INPUT_KEYS = ("Input type", "Input Strides", "Concrete Inputs")
"""Arguments of an operator that its cost depends on, beside the shapes."""

COPY, FILL = "Memcpy", "Memset"
"""Names of copies and memsets, whichever copy it is: a capture doesn't say the direction."""

_WRAPPER = lazy_regex(
    r"^(?:Torch-Compiled Region\b|## Call CompiledFxGraph\b|CompiledFunction(?:Backward\d*)?$|TorchDynamo |"
    r"AOTDispatcher |Pregraph bytecode|autograd::engine::evaluate_function: CompiledFunctionBackward)"
)


def is_wrapper(name: str) -> bool:
    """Return whether an operator is only the frame around code that torch.compile generated."""
    return _WRAPPER.match(name) is not None


def has_captures(trace: Trace) -> bool:
    """Return whether any call of the trace begins a capture."""
    return any("BeginCapture" in text for text in trace.strings)


@derived
def own_captures(trace: Trace) -> CaptureSet:
    """Return the captures that a trace contains itself."""
    return find_captures(trace, "this trace")


def find_captures(trace: Trace, source: str, file_name: str = "") -> CaptureSet:
    """Return the captures of a trace, in order of their begin; captures without a launch are left out.

    source     what holds the trace, for people
    file_name  may say the batch size (`bs_16_rank0.json`), for captures without an annotation that does
    """
    if not has_captures(trace):
        return CaptureSet()
    pieces = _group_launches_by_capture(trace)
    if not pieces:
        return CaptureSet()
    launches = np.concatenate([rows for _, rows, _ in pieces])
    kernels, (site_codes, owners, sites) = _find_kernel_names(trace, launches), _find_launch_sites(trace, launches)
    match = _FILE_SIZE.search(file_name)
    file_size = int(match[1]) if match else None
    sizes = annotated_sizes(trace, np.array([begin for begin, _, _ in pieces], np.int32), _CAPTURED_SIZE)
    captures: list[Capture] = []
    low = 0
    for (_, rows, forked), size in zip(pieces, sizes, strict=True):
        high = low + len(rows)
        captures.append(
            Capture(
                source,
                file_size if size is None else size,
                tuple(kernels[low:high]),
                tuple(site_codes[low:high].tolist()),
                _number_calls(owners[low:high].tolist()),
                forked,
            )
        )
        low = high
    return CaptureSet(tuple(sites), tuple(captures))


def _group_launches_by_capture(trace: Trace) -> list[tuple[int, Int32, bool]]:
    """Return (row of BeginCapture, rows of its launches, whether it forked) of each capture that was ended."""
    calls = rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    names = trace.events.name
    begins, ends, launches, waits = (
        name_mask(trace.strings, predicate, names[calls])
        for predicate in (
            lambda text: "BeginCapture" in text,
            lambda text: "EndCapture" in text,
            lambda text: _LAUNCH.search(text),
            lambda text: "StreamWaitEvent" in text,
        )
    )
    calls = calls[begins[names[calls]] | ends[names[calls]] | launches[names[calls]] | waits[names[calls]]]
    calls = calls[np.lexsort((calls, trace.events.start[calls], trace.events.thread[calls]))]
    found: list[tuple[int, list[int], list[bool]]] = []
    open_thread: int | None = None
    current: tuple[int, list[int], list[bool]] | None = None
    for row in calls.tolist():
        thread, name = int(trace.events.thread[row]), int(names[row])
        if thread != open_thread:
            open_thread, current = thread, None
        if begins[name]:
            if current is None:  # a second stream of one thread joins the capture
                current = (row, [], [])
            else:
                current[2].append(True)
        elif ends[name]:
            if current is not None and current[1]:
                found.append(current)
            current = None
        elif current is not None:
            (current[1] if launches[name] else current[2]).append(row if launches[name] else True)
    found.sort(key=lambda each: int(trace.events.start[each[0]]))
    return [(begin, np.array(rows, np.int32), bool(forks)) for begin, rows, forks in found]


def _find_kernel_names(trace: Trace, launches: Int32) -> list[str | None]:
    codes, texts = trace.arg_codes("kernel", launches)
    operators = _find_innermost_triton_names(trace, launches)
    names: list[str | None] = []
    for code, row, operator in zip(codes.tolist(), launches.tolist(), operators, strict=True):
        call = trace.strings[int(trace.events.name[row])]
        if "Memcpy" in call:
            names.append(COPY)
        elif "Memset" in call:
            names.append(FILL)
        else:
            names.append(texts[code] if code >= 0 else operator)
    return names


def _find_innermost_triton_names(trace: Trace, launches: Int32) -> list[str | None]:
    """Return the name of the innermost Triton kernel's operator around each launch."""
    hashes, _ = trace.arg_codes("kernel_hash")
    around = enclosing_operators(trace)
    found = around[launches].copy()
    while (climbing := (found >= 0) & (hashes[found] < 0)).any():
        found[climbing] = around[found[climbing]]
    return [trace.strings[int(trace.events.name[row])] if row >= 0 else None for row in found.tolist()]


def _number_calls(owners: Sequence[int]) -> tuple[int, ...]:
    """Return a number for the call of each launch, by the row of its owner, NO_CODE if it has none."""
    numbers = {NO_CODE: NO_CODE}
    for row in owners:
        numbers.setdefault(row, len(numbers) - 1)
    return tuple(numbers[row] for row in owners)


def _find_launch_sites(trace: Trace, launches: Int32) -> tuple[Int32, Int32, list[LaunchSite]]:
    """Return (index of the site of each launch, row of the operator that owns its work, the distinct sites)."""
    operator = enclosing_operators(trace)[launches]
    place = (
        recorded_modules(trace).code[launches]
        if has_module_calls(trace)
        else np.full(len(launches), NO_CODE, np.int32)
    )
    stack, stacks = stacks_around(trace, launches)
    shape, shapes = input_shapes(trace, operator)
    owner, modeled = find_work_owners(trace, operator)
    has_formula = name_mask(trace.strings, lambda text: find_cost_model(trace, text) is not None)
    is_wrapping = has_formula[trace.events.name[owner]] & ~modeled
    with_inputs = np.where(is_wrapping, NO_CODE, owner).astype(np.int32)
    inputs = [
        input_shapes(trace, with_inputs),
        *(_argument_codes(trace, key, with_inputs) for key in _INPUT_KEYS),
    ]
    name, owner_name = (np.where(rows >= 0, trace.events.name[rows], NO_CODE) for rows in (operator, owner))
    backward = event_phases(trace)[launches] == PHASES.index("backward")
    keys = np.stack([name, place, stack, shape, backward, owner_name, *(codes for codes, _ in inputs)], axis=1)
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    sites = []
    for name_code, place_code, stack_code, shape_code, is_backward, owner_code, *codes_of in distinct.tolist():
        text, owner_text = (trace.strings[code] if code >= 0 else None for code in (name_code, owner_code))
        sites.append(
            LaunchSite(
                None if text is None or is_wrapper(text) else text,
                recorded_modules(trace).path(place_code) if place_code >= 0 else None,
                stacks[stack_code] if stack_code >= 0 else None,
                shapes[shape_code] if shape_code >= 0 else None,
                None if owner_text is None or is_wrapper(owner_text) else owner_text,
                tuple(
                    texts[code] if code >= 0 else None for code, (_, texts) in zip(codes_of, inputs, strict=True)
                ),
                bool(is_backward),
            )
        )
    return which.reshape(-1).astype(np.int32), owner, sites


def input_shapes(trace: Trace, rows: Int32) -> tuple[Int32, list[str]]:
    """Return (code of the recorded input shapes of each operator, int32[k], NO_CODE if none; their JSON)."""
    texts: list[str] = []
    codes = np.full(len(rows), NO_CODE, np.int32)
    for key in _SHAPE_KEYS:
        if key in trace.args:
            own, dictionary = trace.arg_codes(key)
            found = np.append(own, NO_CODE)[rows]
            codes = np.where((codes < 0) & (found >= 0), found + len(texts), codes).astype(np.int32)
            texts += dictionary
    return codes, texts


def _argument_codes(trace: Trace, key: str, rows: Int32) -> tuple[Int32, Sequence[str]]:
    codes, texts = trace.arg_codes(key)
    return np.append(codes, NO_CODE)[rows].astype(np.int32), texts


def annotated_sizes(trace: Trace, rows: Int32, pattern: re.Pattern[str]) -> list[int | None]:
    """Return the batch size that the innermost annotation around each row names, None if none does."""
    annotations = rows_of_kind(trace, Kind.ANNOTATION)
    size_of: dict[int, int] = {}
    for code in distinct_codes(trace.events.name[annotations]):
        if match := pattern.search(trace.strings[code]):
            size_of[code] = int(next(group for group in match.groups() if group))
    if not size_of:
        return [None] * len(rows)
    parent, names = call_tree(trace).parent, trace.events.name
    sizes: list[int | None] = []
    for row in rows.tolist():
        above = int(parent[row]) if row >= 0 else NO_CODE
        while above >= 0 and int(names[above]) not in size_of:
            above = int(parent[above])
        sizes.append(size_of[int(names[above])] if above >= 0 else None)
    return sizes
