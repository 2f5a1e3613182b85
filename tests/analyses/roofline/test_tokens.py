"""Tokens per second of serving engines, by hand."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.roofline.tokens import count_tokens
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.overview.build import build as overview
from torch_tb_profiler.views.roofline.build import build
from torch_tb_profiler.views.roofline.payload import RooflineParams

MIXED = "execute_130_context_2(sq128sk128sqsq8192sqsk8192)_generation_2(sq2sk99sqsq2sqsk99)"
DECODE = "execute_3_context_0(sq0sk0sqsq0sqsk0)_generation_3(sq3sk300sqsq3sqsk300)"
SERVING = f"""
host  user_annotation      {MIXED}     0  400
host  cpu_op               aten::mm   10   20
host  cuda_runtime         cudaLaunchKernel  12  5  correlation=1
gpu0  kernel               gemm      100  400  correlation=1
gpu0  gpu_user_annotation  {MIXED}   100  400
host  user_annotation      {DECODE}  500  100
gpu0  gpu_user_annotation  {DECODE}  550  450
"""


def test_tokens_of_all_iterations_until_the_work_of_the_last_ends() -> None:
    found = count_tokens(draw(SERVING))
    assert found is not None
    assert (found.iterations, found.prompt, found.generating) == (2, 128, 5)
    assert found.duration_ns == 1_000_000
    assert found.per_second == pytest.approx(133 / 1e-3)


def test_work_goes_on_after_the_host_has_launched_it() -> None:
    found = count_tokens(
        draw(f"""
        host  user_annotation  {DECODE}  0  100
        host  cuda_runtime     cudaLaunchKernel  12  5  correlation=1
        host  cuda_runtime     cudaLaunchKernel  200  5  correlation=2
        gpu0  kernel           gemm   90  410  correlation=1
        gpu0  kernel           after  500  400  correlation=2
        """)
    )
    assert found is not None and found.duration_ns == 500_000


def test_the_overview_and_the_roofline_say_it() -> None:
    trace = draw(SERVING)
    expected = (
        "The model processes 133,000 tokens/s: 133 tokens in 1 ms (128 prompt, 5 generated; counted from the "
        "labels of 2 iterations)."
    )
    assert expected in plain(overview(trace, NoParams()).explanation).replace("1.00 ms", "1 ms")
    rate = build(trace, RooflineParams()).tokens
    assert rate is not None
    assert (rate.per_second, rate.prompt, rate.generating, rate.iterations) == (133_000, 128, 5, 2)


@pytest.mark.parametrize(
    "picture",
    [
        "host  user_annotation  execute_model  0  100",
        f"host  cpu_op  {DECODE}  0  100",
        f"host  user_annotation  {DECODE}  5  0",
        f"host  user_annotation  {DECODE.replace('sq3sk', 'sqXsk')}  0  100",
        f"host  user_annotation  {DECODE}_more  0  100",
        f"host  user_annotation  {DECODE}  0  100\ngpu0  kernel  gemm  50  400",
    ],
    ids=["another annotation", "no annotation", "no time", "no number", "a longer name", "work of nobody"],
)
def test_what_is_no_iteration_tells_nothing(picture: str) -> None:
    assert count_tokens(draw(picture)) is None
