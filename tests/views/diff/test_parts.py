"""The parts of the logical timeline, and what is missing where a side doesn't record it."""

from __future__ import annotations

import pytest

from tests.support.diffs import WORK, compare, part, walk
from tests.support.recordings import Op, record
from tests.support.traces import draw
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.text import plain

TRAINING = """
host  user_annotation  ProfilerStep#1                                  0  100
host  user_annotation  enumerate(DataLoader)#_SingleProcess.__next__   1   19
host  cpu_op           aten::stack                                     2   10
host  python_function  nn.Module:~Net_0                               21   20
host  python_function  torch/nn/functional.py(1):~linear              22   18
host  cpu_op           aten::linear                                   23   16   Sequence~number=5
host  cuda_runtime     cudaLaunchKernel                               25    2   correlation=7
gpu0  kernel           gemm                                           30   20   correlation=7 stream=7
host  cpu_op           aten::mse_loss                                 42    3
host2 cpu_op           autograd::engine::evaluate_function:~AddmmBackward0  50 20
host2 cpu_op           AddmmBackward0                                 51   18   Sequence~number=5 Fwd~thread~id=1
host  user_annotation  Optimizer.step#SGD.step                        80   10
host  cpu_op           aten::add_                                     81    5
""".replace("Sequence~number", "Sequence number").replace("Fwd~thread~id", "Fwd thread id")


def test_the_parts_of_a_step() -> None:
    trace = draw(TRAINING)
    answer = part(trace, draw(TRAINING), "")
    assert [(each.kind, each.name, each.host.base_ns) for each in answer.parts] == [
        ("dataloader", "enumerate(DataLoader)#_SingleProcess.__next__", 19_000),
        ("module", "Net_0", 20_000),
        ("operators", "Operators", 3_000),
        ("backward", "Backward", 20_000),
        ("optimizer", "Optimizer.step#SGD.step", 10_000),
        ("self", "self", 48_000),
    ]
    forward = part(trace, draw(TRAINING), "1")
    assert [(each.kind, each.name) for each in forward.parts][:1] == [("operator", "aten::linear")]
    assert forward.part.device.base_ns == 20_000
    assert [crumb.name for crumb in forward.crumbs] == ["step", "Net_0"]
    assert [row.name for row in forward.operators] == ["aten::linear"]
    linear = part(trace, draw(TRAINING), "1-0")
    assert [(each.kind, each.name) for each in linear.parts] == [
        ("runtime", "cudaLaunchKernel"),
        ("device", "gemm"),
        ("self", "self"),
    ]
    assert linear.parts[1].base_event == [trace.strings[code] for code in trace.events.name].index("gemm")
    backward = part(trace, draw(TRAINING), "3")
    assert [(each.kind, each.name) for each in backward.parts] == [("module", "Net_0")]


def test_kernels_of_other_back_ends_are_paired_below_their_common_ancestor() -> None:
    base = [Op("aten::conv2d", 10, [Op("aten::cudnn_convolution", 20, kernel=100)]), Op("aten::relu", 10)]
    candidate = [Op("aten::conv2d", 10, [Op("aten::miopen_convolution", 30, kernel=150)]), Op("aten::relu", 10)]
    parts = {each.name: each for each in walk(record(base, 3), record(candidate, 3))}
    convolution = parts["aten::cudnn_convolution"]
    assert (convolution.status, convolution.candidate_name) == ("renamed", "aten::miopen_convolution")
    assert (convolution.host.delta_ns, convolution.device.delta_ns) == (10_000, 50_000)
    assert parts["aten::cudnn_convolution kernel"].candidate_name == "aten::miopen_convolution kernel"
    assert parts["aten::conv2d"].status == "matched"


def test_data_loaders_of_other_kinds_are_compared() -> None:
    base, candidate = (
        record([Op(f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__", 50, category="user_annotation")], 2)
        for kind in ("SingleProcess", "MultiProcessing")
    )
    first = part(base, candidate, "").parts[0]
    assert (first.kind, first.status, first.host.delta_ns) == ("dataloader", "renamed", 0)


def test_an_unknown_part_is_refused() -> None:
    trace = record(WORK, 2)
    for path in ("99", "0-99", "x", "-", "0-0-0-0-0-0"):
        with pytest.raises(NotFoundError, match="there is no part"):
            part(trace, trace, path)


def test_missing_times_are_null_with_their_reason() -> None:
    lost = draw(
        """
        host  user_annotation  ProfilerStep#1     0  100
        host  cpu_op           aten::mm          10   40
        host  cuda_runtime     cudaLaunchKernel  20   10   correlation=7
        """
    )
    answer = compare(lost, record(WORK, 2))
    kernel = answer.waterfalls[0].bars[0]
    assert (kernel.name, kernel.base_ns, kernel.candidate_ns, kernel.verdict) == ("kernel", None, None, "unknown")
    assert "didn't record the device" in plain(answer.reasons["kernel"])
    assert all(row.device_self.delta_ns is None for row in answer.level.operators)
    assert "device" in answer.level.reasons
    assert "profile_memory=True" in plain(answer.reasons["memory"])
    assert sum(bar.delta_ns for bar in answer.waterfalls[0].bars) == answer.waterfalls[0].delta_ns


def test_different_batch_sizes_are_noted() -> None:
    def draw_sized(batch: int) -> Trace:
        return draw(
            f"""
            host  cpu_op  aten::mm    10   40  Input~Dims=[[{batch},8],[8,8]]
            host  cpu_op  aten::relu  60   40  Input~Dims=[[{batch},8]]
            """.replace("~", " ")
        )

    assert [plain(note) for note in compare(draw_sized(4), draw_sized(8)).notes if "batch" in plain(note)] == [
        "The first dimension of the inputs (often the batch size) is 4 in the base and 8 in the candidate."
    ]
    assert not any("batch" in plain(note) for note in compare(draw_sized(4), draw_sized(4)).notes)


@pytest.mark.parametrize(("at", "forward", "other"), [(91, 23_000, 28_000), (70, 31_000, 20_000)])
def test_what_waits_after_the_optimizer_is_no_forward_pass(at: int, forward: int, other: int) -> None:
    """Only before the optimizer may `loss.item()` be a part of the forward pass."""
    trace = draw(f"{TRAINING}\nhost cpu_op aten::item {at} 8")
    (phases,) = (each for each in compare(trace, trace).waterfalls if each.by == "phase")
    assert {bar.name: bar.base_ns for bar in phases.bars if bar.name in ("forward", "other")} == {
        "forward": forward,
        "other": other,
    }
