"""Advice on kernels that a graph replays: from the shapes at its capture, with the line that they come from."""

from __future__ import annotations

from msgspec.structs import replace

from tests.analyses.overview.kernel_calls import H100, STEP, SYNC
from tests.model.origins.drawing import Event, captures_of, host
from tests.support.traces import read
from torch_tb_profiler.analyses.overview.advice import advice
from torch_tb_profiler.model.origin_records import OriginRecords
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.overview.advice import build_recommendation

CHAIN = ("aten::add", "aten::mul", "aten::relu")


def capture(sizes: tuple[int, ...]) -> list[Event]:
    events = [
        host("cuda_runtime", "hipStreamBeginCapture", 0, 1),
        host("python_function", "nn.Module: Net_0", 2, 200),
        host("python_function", "nn.Module: Gate_1", 3, 190),
        host("cuda_runtime", "hipStreamEndCapture", 300, 1),
    ]
    for number, (name, size) in enumerate(zip(CHAIN, sizes, strict=True)):
        begin = 10 + 20 * number
        inputs = {"Input Dims": [[size, 8], [8]], "Input type": ["float", "float"]}
        events += [
            host("python_function", f"model.py({41 + number}): forward", begin, 18),
            host("cpu_op", name, begin + 1, 16, **inputs),
            host("cuda_runtime", "hipLaunchKernel", begin + 2, 2, kernel=f"{name}_kernel"),
        ]
    return events


def replayed(sizes: tuple[int, ...] = (1000, 1000, 1000), *, is_captured: bool = True) -> Trace:
    launch = host("cuda_runtime", "hipGraphLaunch", 10, 5, correlation=1)
    kernels = [
        host("kernel", f"{name}_kernel", 1_000 + 500 * n, 400, device=0, stream=7, correlation=1)
        | {"pid": 0, "tid": 7}
        for n, name in enumerate(CHAIN)
    ]
    records = OriginRecords(captures_of(capture(sizes))) if is_captured else OriginRecords()
    trace = read([STEP, SYNC | {"args": {"correlation": 9}}, launch, *kernels], deviceProperties=[H100])
    return replace(trace, origin_records=records)


def texts(trace: Trace) -> list[str]:
    return [
        plain(build_recommendation(each, "the step").text)
        for each in advice(trace)
        if each.finding.id == "elementwise_chains"
    ]


def test_a_chain_that_a_graph_replays_is_found_and_leads_to_its_line() -> None:
    (text,) = texts(replayed())
    assert text.endswith("The example comes from add in Net_0/Gate_1, model.py:41.")


def test_nothing_is_said_of_other_sizes_or_without_the_capture() -> None:
    assert texts(replayed((1000, 1000, 999))) == []
    assert texts(replayed(is_captured=False)) == []
