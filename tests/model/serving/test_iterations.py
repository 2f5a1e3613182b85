"""Iterations: from labels of all forms, from kernels, and what belongs to each."""

from __future__ import annotations

import pytest

from tests.support.serving import SAMPLER, Workload, serve, several_engines
from tests.support.traces import draw
from torch_tb_profiler.model.serving.iterations import (
    ServingIterations,
    no_iterations_reason,
    serving_iterations,
)
from torch_tb_profiler.model.serving.labeled import unknown_labels
from torch_tb_profiler.model.serving.labels import PHASES
from torch_tb_profiler.model.trace import Trace

DECODE = "step[DECODE~bs=2]"


def found(trace: Trace) -> ServingIterations:
    iterations = serving_iterations(trace)
    assert iterations is not None
    return iterations


@pytest.mark.parametrize("form", ["vllm_sums", "vllm", "sglang"])
@pytest.mark.parametrize("prefill_first", [False, True])
def test_iterations_are_those_of_the_engine(form: str, prefill_first: bool) -> None:
    trace, truth = serve(Workload(form=form, prefill_first=prefill_first, budget=2048))
    mine = found(trace)
    assert [PHASES[phase] for phase in mine.phase] == [each["phase"] for each in truth.iterations]
    assert mine.prompt_tokens.tolist() == [each["prompt"] for each in truth.iterations]
    assert mine.decode_requests.tolist() == [each["decodes"] for each in truth.iterations]
    assert mine.busy == pytest.approx([1000 * each["busy"] for each in truth.iterations], abs=5)
    if form != "vllm":
        assert mine.kv_tokens.tolist() == [each["kv"] for each in truth.iterations]


def test_without_labels_kernels_tell_iterations_and_phases() -> None:
    trace, truth = serve(Workload(form="none"))
    mine = found(trace)
    assert mine.source == "kernels" and mine.engine is None and mine.phase_inferred.all()
    assert [PHASES[phase] for phase in mine.phase] == [each["phase"] for each in truth.iterations]


@pytest.mark.parametrize("form", ["vllm_sums", "vllm"])
def test_a_recomputed_prompt_is_no_decode(form: str) -> None:
    trace, truth = serve(Workload(form=form, kv_capacity=4000, outputs=(100, 200), prompts=(200, 400), every=2000))
    mine = found(trace)
    assert (mine.recomputed > 0).sum() >= 3
    assert [PHASES[phase] for phase in mine.phase] == [each["phase"] for each in truth.iterations]
    same = [a == b["prompt"] for a, b in zip(mine.prompt_tokens.tolist(), truth.iterations, strict=True)]
    assert sum(same) / len(same) > (0.999 if form == "vllm_sums" else 0.99)


def test_drafts_are_no_recomputed_prompt() -> None:
    labels = "\n".join(
        f"host user_annotation execute_context_0(0)_generation_4({tokens}) {1000 * i} 500"
        for i, tokens in enumerate([12, 12, 10, 12, 9])
    )
    mine = found(draw(labels))
    assert mine.speculative and mine.drafts == 3.0
    assert mine.recomputed.tolist() == [0] * 5 and mine.decode_requests.tolist() == [4] * 5


def test_twins_count_once_and_each_fills_in_what_the_other_lacks() -> None:
    mine = found(
        draw(f"""
        host  user_annotation  {DECODE}  100  400
        host  user_annotation  execute_2_context_0(sq0sk0sqsq0sqsk0)_generation_2(sq2sk99sqsq2sqsk99)  99  402
        gpu0  gpu_user_annotation  {DECODE}  150  400
        host  user_annotation  {DECODE}  600  400
        """)
    )
    assert len(mine) == 2 and mine.engine == "SGLang"
    assert mine.kv_tokens[0] == 99 and mine.kv_tokens[1] < 0


def test_device_work_belongs_to_the_label_before_its_launch_wherever_it_runs() -> None:
    mine = found(
        draw(f"""
        host  user_annotation  {DECODE}         0  100
        host  cuda_runtime     cudaGraphLaunch  10   5  correlation=1
        host  cuda_runtime     cudaLaunchKernel 150  5  correlation=2
        host  user_annotation  {DECODE}        200  100
        host  cuda_runtime     cudaGraphLaunch 210   5  correlation=3
        gpu0  kernel           model           300 200  correlation=1
        gpu0  kernel           model           500 100  correlation=1
        gpu0  kernel           model           610 100  correlation=1
        gpu0  kernel           model           720 100  correlation=1
        gpu0  kernel           argmax_kernel   820  50  correlation=2
        gpu0  kernel           model           870 300  correlation=3
        """)
    )
    assert mine.busy.tolist() == [550_000, 300_000]
    assert mine.device_end.tolist() == [870_000, 1_170_000]
    assert mine.graph.tolist() == [1, 1]


def test_draft_and_verification_are_one_iteration_and_idle_steps_are_none() -> None:
    mine = found(
        draw("""
        host  user_annotation  step[DRAFT~bs=2]           0  10
        host  user_annotation  step[TARGET_VERIFY~bs=2]  12  30
        host  user_annotation  step[IDLE~bs=0]           80   5
        host  user_annotation  step[DRAFT~bs=2]         100  10
        host  user_annotation  step[TARGET_VERIFY~bs=2] 112  30
        """)
    )
    assert mine.host_start.tolist() == [0, 100_000] and len(mine.idle_labels) == 1
    assert mine.speculative and mine.drafts is None  # how many tokens are verified isn't recorded


def test_why_a_trace_has_no_iterations() -> None:
    new = draw("host  user_annotation  step[WARP~bs=3]  0  10")
    assert unknown_labels(new) == ("step[WARP bs=3]",)
    assert no_iterations_reason(new) == "the iteration labels have an unknown format (step[WARP bs=3])"
    training = draw(f"gpu0  kernel  {SAMPLER.replace(' ', '~')}  0  10")
    assert "paged KV cache" in (no_iterations_reason(training) or "")


def test_engines_of_one_process_keep_their_work_apart() -> None:
    load = Workload(requests=8)
    alone, beside = found(serve(load)[0]), found(several_engines(load, Workload(requests=4, seed=2)))
    assert beside.busy.tolist() == alone.busy.tolist()
    assert (len(alone.other_threads), len(beside.other_threads)) == (0, 1)


def test_a_server_without_requests_says_so() -> None:
    idle = "\n".join(f"host user_annotation step[IDLE~bs=0] {100 * i} 20" for i in range(5))
    assert no_iterations_reason(draw(idle)) == (
        "its labels say that no request came while it was recorded; record while requests run"
    )
