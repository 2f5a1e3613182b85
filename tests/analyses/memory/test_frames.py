"""Which frame of a stack names a block: the program's own, or what asked the allocator for it."""

from __future__ import annotations

import pytest

from torch_tb_profiler.analyses.memory.snapshot.modules import program_frame

RECORDER = ["torch::unwind::unwind()", "torch::CapturedTraceback::gather(bool, bool, bool)"]
ALLOCATOR = [*RECORDER, "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::malloc(void**, int)"]
WORKSPACE, TORCH, OWN = (
    "at::cuda::setWorkspaceForHandle(x)",
    "torch/nn/modules/linear.py(134): forward",
    "a.py(3): f",
)


@pytest.mark.parametrize(
    ("frames", "named"),
    [
        ([*ALLOCATOR, WORKSPACE, TORCH, OWN], OWN),
        ([*ALLOCATOR, WORKSPACE, TORCH], TORCH),
        ([*ALLOCATOR, WORKSPACE, "torch::autograd::Engine::thread_main(x)"], WORKSPACE),
        (ALLOCATOR, ALLOCATOR[0]),
        ([], None),
    ],
)
def test_a_block_is_named_by_the_program_else_by_what_allocates_it(frames: list[str], named: str | None) -> None:
    assert program_frame(frames) == named
